/*
 * EXPRESSION, FILTER and TEXT of map files in the words of SLD (MapServer's documentation, "Expressions"). What is not
 * known refuses the layer. An attribute that is not there is 0 or the empty text in MapServer and nothing at all in
 * SLD: where that would tell, Coalesce stands around the attribute.
 */
#include <apr_strings.h>
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "adopt/mapfile_parts.h"
#include "text/text.h"

enum { DEPTH_MAX = 20, NODES_MAX = 2000, LIST_MAX = 500, TEXT_PARTS_MAX = 60 };

typedef enum token_kind { T_END, T_NUMBER, T_TEXT, T_ATTRIBUTE, T_TEXT_ATTRIBUTE, T_WORD, T_OPERATOR } token_kind;

typedef struct expression_token {
    token_kind kind;
    const char *text;
    double number;
} expression_token;

typedef struct expression_parser {
    mc_mapfile_reader *reader;
    const mc_branch *from;
    apr_pool_t *pool;
    const char *at;
    expression_token token; /* the one that is looked at */
    int depth, nodes;
} expression_parser;

/* A value. */
typedef struct expression_operand {
    const char *text;                   /* as an element */
    const char *safe;                   /* the same, with 0 or the empty text for attributes that are not there */
    bool is_text, is_literal, is_alone; /* is_alone: an attribute and nothing else */
    double number;                      /* of a literal */
    const char *value;                  /* of a literal text */
} expression_operand;

static bool
refuse_expression(expression_parser *parser, const char *what)
{
    return mc_mapfile_refuse(parser->reader, parser->from, "%s in its %s (before \"%s\")", what, parser->from->key,
                             mc_message_text(parser->at, 40, parser->pool));
}

static const char *
refuse_condition(expression_parser *parser, const char *what)
{
    (void)refuse_expression(parser, what);
    return NULL;
}

static const char *
refuse_text(mc_mapfile_reader *reader, const mc_branch *at, const char *what)
{
    (void)mc_mapfile_refuse(reader, at, "its %s, which %s", at->key, what);
    return NULL;
}

const char *
mc_mapfile_attribute(const char *name, const char *otherwise, apr_pool_t *pool)
{
    const char *plain = apr_psprintf(pool, "<ogc:PropertyName>%s</ogc:PropertyName>", mc_xml_escape(name, pool));
    return otherwise == NULL
               ? plain
               : apr_psprintf(pool, "<ogc:Function name=\"Coalesce\">%s<ogc:Literal>%s</ogc:Literal></ogc:Function>",
                              plain, mc_xml_escape(otherwise, pool));
}

/* ---- tokens ---- */

static bool
read_quoted_token(expression_parser *parser)
{
    char quote = *parser->at;
    const char *begin = parser->at + 1, *end = begin;
    while (*end != '\0' && *end != quote)
        end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    if (*end == '\0')
        return refuse_expression(parser, "a text without its end");
    char *text = apr_pstrmemdup(parser->pool, begin, (apr_size_t)(end - begin)), *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        from += *from == '\\' && (from[1] == quote || from[1] == '\\');
        *to++ = *from;
    }
    *to = '\0';
    size_t size = strlen(text);
    bool attribute = size > 2 && text[0] == '[' && strchr(text, ']') == text + size - 1;
    if (!attribute && strchr(text, '[') != NULL)
        return refuse_expression(parser, "an attribute in a text");
    parser->token = attribute
                        ? (expression_token){ T_TEXT_ATTRIBUTE, apr_pstrmemdup(parser->pool, text + 1, size - 2), 0 }
                        : (expression_token){ T_TEXT, text, 0 };
    parser->at = end + 1;
    return true;
}

static bool
read_bracketed_token(expression_parser *parser)
{
    const char *end = strchr(parser->at, ']');
    if (end == NULL || end == parser->at + 1)
        return refuse_expression(parser, "an attribute without a name");
    parser->token =
        (expression_token){ T_ATTRIBUTE,
                            apr_pstrmemdup(parser->pool, parser->at + 1, (apr_size_t)(end - parser->at - 1)), 0 };
    parser->at = end + 1;
    return strcasecmp(parser->token.text, "shape") != 0 || refuse_expression(parser, "[shape]");
}

static bool
read_number_token(expression_parser *parser)
{
    size_t size = strspn(parser->at, "0123456789.");
    if ((parser->at[size] == 'e' || parser->at[size] == 'E') && size > 0)
        size +=
            1 + (parser->at[size + 1] == '-' || parser->at[size + 1] == '+') +
            strspn(parser->at + size + 1 + (parser->at[size + 1] == '-' || parser->at[size + 1] == '+'), "0123456789");
    const char *text = apr_pstrmemdup(parser->pool, parser->at, size);
    parser->token = (expression_token){ T_NUMBER, text, 0 };
    if (!mc_parse_double(&parser->token.number, text))
        return refuse_expression(parser, "a number");
    parser->at += size;
    return true;
}

/* The longest operator that begins here. */
static bool
read_operator_token(expression_parser *parser)
{
    static const char *const operators[] = { "!=", "<>", "<=", ">=", "==", "=*", "~*", "&&", "||", "=", "<",
                                             ">",  "~",  "!",  "(",  ")",  ",",  "+",  "-",  "*",  "/", "%" };
    for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
        if (strncmp(parser->at, operators[i], strlen(operators[i])) == 0) {
            parser->token = (expression_token){ T_OPERATOR, operators[i], 0 };
            parser->at += strlen(operators[i]);
            return true;
        }
    return refuse_expression(parser, "what is not known");
}

static bool
read_expression_token(expression_parser *parser)
{
    parser->at += strspn(parser->at, " \t\r\n\f\v");
    char c = *parser->at;
    if (++parser->nodes > NODES_MAX)
        return refuse_expression(parser, "more values than can be read");
    if (c == '\0') {
        parser->token = (expression_token){ T_END, "", 0 };
        return true;
    }
    if (c == '"' || c == '\'')
        return read_quoted_token(parser);
    if (c == '[')
        return read_bracketed_token(parser);
    if (isdigit((unsigned char)c) || c == '.')
        return read_number_token(parser);
    if (!isalpha((unsigned char)c))
        return read_operator_token(parser);
    size_t size = 1;
    while (isalnum((unsigned char)parser->at[size]) || parser->at[size] == '_')
        size++;
    parser->token = (expression_token){ T_WORD, apr_pstrmemdup(parser->pool, parser->at, size), 0 };
    parser->at += size;
    return true;
}

/* Whether the token is an operator or a word for the same; `word` may be NULL. */
static bool
is_token(const expression_parser *parser, const char *operator, const char * word)
{
    return (parser->token.kind == T_OPERATOR && strcmp(parser->token.text, operator) == 0) ||
           (word != NULL && parser->token.kind == T_WORD && strcasecmp(parser->token.text, word) == 0);
}

/* ---- values ---- */

static bool read_sum(expression_operand *value, expression_parser *parser);

static bool
read_call(expression_operand *value, expression_parser *parser, const char *name)
{
    static const struct {
        const char *name, *ours;
        bool takes_text, gives_text;
    } functions[] = { { "upper", "strToUpperCase", true, true },
                      { "lower", "strToLowerCase", true, true },
                      { "length", "strLength", true, false } };
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        if (strcasecmp(functions[i].name, name) != 0)
            continue;
        if (!is_token(parser, "(", NULL) || !read_expression_token(parser) || !read_sum(value, parser))
            return refuse_expression(parser, "a function");
        if (!is_token(parser, ")", NULL) || value->is_text != functions[i].takes_text)
            return refuse_expression(parser, "a function");
        const char *safe =
            apr_psprintf(parser->pool, "<ogc:Function name=\"%s\">%s</ogc:Function>", functions[i].ours, value->safe);
        *value = (expression_operand){ .text = safe, .safe = safe, .is_text = functions[i].gives_text };
        return read_expression_token(parser);
    }
    return refuse_expression(parser,
                             apr_psprintf(parser->pool, "the function %s", mc_message_text(name, 40, parser->pool)));
}

static bool
read_mapfile_literal(expression_operand *value, expression_parser *parser)
{
    const expression_token *token = &parser->token;
    const char *shown = token->kind == T_NUMBER ? mc_mapfile_digits(token->number, parser->pool)
                                                : mc_xml_escape(token->text, parser->pool);
    const char *element = apr_psprintf(parser->pool, "<ogc:Literal>%s</ogc:Literal>", shown);
    *value = (expression_operand){ .text = element,
                                   .safe = element,
                                   .is_text = token->kind == T_TEXT,
                                   .is_literal = true,
                                   .number = token->number,
                                   .value = token->text };
    return read_expression_token(parser);
}

static bool
read_factor(expression_operand *value, expression_parser *parser)
{
    expression_token token = parser->token;
    if (token.kind == T_NUMBER || token.kind == T_TEXT)
        return read_mapfile_literal(value, parser);
    if (token.kind == T_ATTRIBUTE || token.kind == T_TEXT_ATTRIBUTE) {
        bool text = token.kind == T_TEXT_ATTRIBUTE;
        *value = (expression_operand){ .text = mc_mapfile_attribute(token.text, NULL, parser->pool),
                                       .safe = mc_mapfile_attribute(token.text, text ? "" : "0", parser->pool),
                                       .is_text = text,
                                       .is_alone = true };
        return read_expression_token(parser);
    }
    if (++parser->depth > DEPTH_MAX)
        return refuse_expression(parser, "brackets that nest too deeply");
    bool read = read_expression_token(parser);
    if (read && token.kind == T_WORD)
        read = read_call(value, parser, token.text);
    else if (read && strcmp(token.text, "(") == 0)
        read = read_sum(value, parser) &&
               (is_token(parser, ")", NULL) ? read_expression_token(parser) : refuse_expression(parser, "a bracket"));
    else if (read && token.kind == T_OPERATOR && strcmp(token.text, "-") == 0 && parser->token.kind == T_NUMBER) {
        parser->token.number = -parser->token.number;
        read = read_mapfile_literal(value, parser);
    } else if (read)
        read = refuse_expression(parser, "no value");
    parser->depth--;
    return read;
}

/* Two values by +, -, * or /. Texts can be joined. */
static bool
join_operands(expression_operand *left, const expression_operand *right, char operator, expression_parser * parser)
{
    const char *name = operator== '+' ? "Add" : operator== '-' ? "Sub" : operator== '*' ? "Mul" : "Div";
    const char *safe;
    if (left->is_text != right->is_text || (left->is_text && operator!= '+'))
        return refuse_expression(parser, "a text and a number");
    if (left->is_text)
        safe = apr_psprintf(parser->pool, "<ogc:Function name=\"Concatenate\">%s%s</ogc:Function>", left->safe,
                            right->safe);
    else
        safe = apr_psprintf(parser->pool, "<ogc:%s>%s%s</ogc:%s>", name, left->safe, right->safe, name);
    *left = (expression_operand){ .text = safe, .safe = safe, .is_text = left->is_text };
    return true;
}

static bool
read_product(expression_operand *value, expression_parser *parser)
{
    if (!read_factor(value, parser))
        return false;
    for (int count = 0; is_token(parser, "*", NULL) || is_token(parser, "/", NULL); count++) {
        char operator= * parser->token.text;
        expression_operand right;
        if (count >= DEPTH_MAX / 2)
            return refuse_expression(parser, "a product of too many values");
        if (!read_expression_token(parser) || !read_factor(&right, parser) ||
            !join_operands(value, &right, operator, parser))
            return false;
    }
    return true;
}

static bool
read_sum(expression_operand *value, expression_parser *parser)
{
    if (!read_product(value, parser))
        return false;
    for (int count = 0; is_token(parser, "+", NULL) || is_token(parser, "-", NULL); count++) {
        char operator= * parser->token.text;
        expression_operand right;
        if (count >= DEPTH_MAX / 2)
            return refuse_expression(parser, "a sum of too many values");
        if (!read_expression_token(parser) || !read_product(&right, parser) ||
            !join_operands(value, &right, operator, parser))
            return false;
    }
    return true;
}

/* ---- conditions ---- */

static const struct comparison_words {
    const char *operator, * word, *name;
    bool any_case, ordered;
} comparisons[] = { { "=", "eq", "PropertyIsEqualTo", false, false },
                    { "==", NULL, "PropertyIsEqualTo", false, false },
                    { "=*", NULL, "PropertyIsEqualTo", true, false },
                    { "!=", "ne", "PropertyIsNotEqualTo", false, false },
                    { "<>", NULL, "PropertyIsNotEqualTo", false, false },
                    { "<", "lt", "PropertyIsLessThan", false, true },
                    { "<=", "le", "PropertyIsLessThanOrEqualTo", false, true },
                    { ">", "gt", "PropertyIsGreaterThan", false, true },
                    { ">=", "ge", "PropertyIsGreaterThanOrEqualTo", false, true } };

/* Whether the comparison holds for a number. */
static bool
holds_for(const char *name, double left, double right)
{
    bool or_equal = strstr(name, "OrEqual") != NULL;
    if (strcmp(name, "PropertyIsEqualTo") == 0)
        return left == right;
    if (strcmp(name, "PropertyIsNotEqualTo") == 0)
        return left != right;
    return (or_equal && left == right) || (strstr(name, "Less") != NULL ? left < right : left > right);
}

/* Whether an attribute that is not there can be left as it is: the comparison is false either way. */
static bool
is_false_for_nothing(const struct comparison_words *words, const expression_operand *left,
                     const expression_operand *right)
{
    if (!left->is_alone || !right->is_literal)
        return false;
    if (left->is_text)
        return strcmp(words->name, "PropertyIsEqualTo") == 0 && *right->value != '\0';
    return !holds_for(words->name, 0, right->number);
}

static const char *
write_comparison(expression_parser *parser, const struct comparison_words *words, const expression_operand *left,
                 const expression_operand *right)
{
    bool plain = is_false_for_nothing(words, left, right);
    return apr_psprintf(parser->pool, "<ogc:%s%s>%s%s</ogc:%s>", words->name,
                        words->any_case ? " matchCase=\"false\"" : "", plain ? left->text : left->safe,
                        plain ? right->text : right->safe, words->name);
}

/* "[a]" IN "x,y": texts with commas between them. */
static const char *
write_membership(expression_parser *parser, const expression_operand *left, const expression_operand *right)
{
    apr_array_header_t *out = apr_array_make(parser->pool, 8, sizeof(const char *));
    int count = 0;
    if (!right->is_literal || !right->is_text || *right->value == '\0')
        return refuse_condition(parser, "IN without a list");
    char *rest = apr_pstrdup(parser->pool, right->value);
    for (char *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ",")) {
        if (++count > LIST_MAX)
            return refuse_condition(parser, "a list that is too long");
        mc_mapfile_put(out, "<ogc:PropertyIsEqualTo>%s<ogc:Literal>%s</ogc:Literal></ogc:PropertyIsEqualTo>",
                       *item == '\0' ? left->safe : left->text, mc_xml_escape(item, parser->pool));
    }
    const char *all = apr_array_pstrcat(parser->pool, out, '\0');
    return count == 1 ? all : apr_pstrcat(parser->pool, "<ogc:Or>", all, "</ogc:Or>", NULL);
}

static const char *
read_mapfile_comparison(expression_parser *parser)
{
    expression_operand left, right;
    const struct comparison_words *words = NULL;
    if (!read_sum(&left, parser))
        return NULL;
    for (size_t i = 0; i < sizeof(comparisons) / sizeof(*comparisons); i++)
        if (is_token(parser, comparisons[i].operator, comparisons[i].word))
            words = &comparisons[i];
    bool member = is_token(parser, "IN", "in"), like = is_token(parser, "~", NULL),
         like_any = is_token(parser, "~*", NULL);
    if (words == NULL && !member && !like && !like_any)
        return refuse_condition(parser, "no comparison");
    if (!read_expression_token(parser) || !read_sum(&right, parser))
        return NULL;
    if (member)
        return write_membership(parser, &left, &right);
    if (words == NULL) {
        const char *made = right.is_literal && right.is_text
                               ? mc_mapfile_pattern(left.text, left.safe, right.value, like_any, parser->pool)
                               : NULL;
        return made != NULL ? made : refuse_condition(parser, "a regular expression");
    }
    if (left.is_text != right.is_text || (left.is_text && words->ordered))
        return refuse_condition(parser, words->ordered ? "an order of texts" : "a text compared with a number");
    return write_comparison(parser, words, &left, &right);
}

/* Whether a bracket that is open here holds a value: behind its end stands an operator of values. */
static bool
holds_value(const expression_parser *parser)
{
    int depth = 1;
    const char *at = parser->at;
    for (char quote = '\0'; *at != '\0' && depth > 0; at++) {
        if (quote != '\0')
            quote = *at == quote ? '\0' : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else
            depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
    }
    at += strspn(at, " \t\r\n");
    static const char *const words[] = { "eq", "ne", "lt", "le", "gt", "ge", "in" };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strncasecmp(at, words[i], 2) == 0 && !isalnum((unsigned char)at[2]))
            return true;
    return (*at != '\0' && strchr("=<>~+-*/%", *at) != NULL) || (at[0] == '!' && at[1] == '=');
}

static const char *read_any_of(expression_parser *parser);

static const char *
read_condition_part(expression_parser *parser)
{
    bool negated = is_token(parser, "!", "not");
    const char *made = NULL;
    if (!negated && !(is_token(parser, "(", NULL) && !holds_value(parser)))
        return read_mapfile_comparison(parser);
    if (++parser->depth > DEPTH_MAX)
        (void)refuse_expression(parser, "brackets that nest too deeply");
    else if (read_expression_token(parser))
        made = negated ? read_condition_part(parser) : read_any_of(parser);
    parser->depth--;
    if (made == NULL)
        return NULL;
    if (negated)
        return apr_pstrcat(parser->pool, "<ogc:Not>", made, "</ogc:Not>", NULL);
    if (!is_token(parser, ")", NULL))
        return refuse_condition(parser, "a bracket");
    return read_expression_token(parser) ? made : NULL;
}

/* Members with one word between them. */
static const char *
read_members(expression_parser *parser, const char *operator, const char * word, const char *element,
             const char *(*read)(expression_parser *parser))
{
    apr_array_header_t *members = apr_array_make(parser->pool, 4, sizeof(const char *));
    for (;;) {
        const char *member = read(parser);
        if (member == NULL)
            return NULL;
        APR_ARRAY_PUSH(members, const char *) = member;
        if (!is_token(parser, operator, word))
            break;
        if (!read_expression_token(parser))
            return NULL;
    }
    const char *all = apr_array_pstrcat(parser->pool, members, '\0');
    return members->nelts == 1 ? all : apr_psprintf(parser->pool, "<ogc:%s>%s</ogc:%s>", element, all, element);
}

static const char *
read_all_of(expression_parser *parser)
{
    return read_members(parser, "&&", "and", "And", read_condition_part);
}

static const char *
read_any_of(expression_parser *parser)
{
    return read_members(parser, "||", "or", "Or", read_all_of);
}

/* A parser at the first token of a text; a (text) of the map file has its closing bracket yet. */
static bool
begin_expression(expression_parser *parser, mc_mapfile_reader *reader, const mc_branch *from)
{
    size_t size = strlen(from->text);
    *parser = (expression_parser){ .reader = reader, .from = from, .pool = reader->pool };
    parser->at =
        size > 0 && from->text[size - 1] == ')' ? apr_pstrmemdup(reader->pool, from->text, size - 1) : from->text;
    return read_expression_token(parser);
}

static bool
ends_expression(expression_parser *parser)
{
    return parser->token.kind == T_END || refuse_expression(parser, "what is not known");
}

/* {a,b} and "a": one of the values. */
static const char *
write_values(mc_mapfile_reader *reader, const mc_branch *from, const char *item, bool list)
{
    apr_array_header_t *out = apr_array_make(reader->pool, 8, sizeof(const char *));
    int count = 0;
    char *rest = apr_pstrdup(reader->pool, from->text);
    for (char *value = list ? strsep(&rest, ",") : rest; value != NULL; value = list ? strsep(&rest, ",") : NULL) {
        if (++count > LIST_MAX)
            return refuse_text(reader, from, "is a list of too many values");
        mc_mapfile_put(out, "<ogc:PropertyIsEqualTo%s>%s<ogc:Literal>%s</ogc:Literal></ogc:PropertyIsEqualTo>",
                       from->any_case ? " matchCase=\"false\"" : "",
                       mc_mapfile_attribute(item, *value == '\0' ? "" : NULL, reader->pool),
                       mc_xml_escape(value, reader->pool));
    }
    const char *all = apr_array_pstrcat(reader->pool, out, '\0');
    return count == 1 ? all : apr_pstrcat(reader->pool, "<ogc:Or>", all, "</ogc:Or>", NULL);
}

const char *
mc_mapfile_condition(mc_mapfile_reader *reader, const mc_branch *expression, const char *item)
{
    expression_parser parser;
    if (expression->text == NULL || strchr(expression->text, '%') != NULL)
        return refuse_text(reader, expression, "has values that a request fills in");
    if (expression->form == '(') {
        const char *made = begin_expression(&parser, reader, expression) ? read_any_of(&parser) : NULL;
        return made != NULL && ends_expression(&parser) ? made : NULL;
    }
    if (item == NULL)
        return refuse_text(reader, expression, "does not say which attribute it is about");
    if (expression->form != '/')
        return write_values(reader, expression, item, expression->form == '{');
    const char *made =
        mc_mapfile_pattern(mc_mapfile_attribute(item, NULL, reader->pool), mc_mapfile_attribute(item, "", reader->pool),
                           expression->text, expression->any_case, reader->pool);
    if (made == NULL)
        (void)mc_mapfile_refuse(reader, expression, "the regular expression of its %s", expression->key);
    return made;
}

/* "[name] (m)": attributes and texts one behind the other. */
static const char *
write_mixed_text(mc_mapfile_reader *reader, const mc_branch *text)
{
    apr_array_header_t *out = apr_array_make(reader->pool, 8, sizeof(const char *));
    int count = 0;
    for (const char *at = text->text; *at != '\0'; count++) {
        if (count == TEXT_PARTS_MAX)
            return refuse_text(reader, text, "has too many parts");
        const char *end = *at == '[' ? strchr(at, ']') : NULL;
        size_t size = end != NULL ? (size_t)(end - at) + 1 : 1 + strcspn(at + 1, "[");
        const char *part = apr_pstrmemdup(reader->pool, at, size);
        if (end != NULL)
            mc_mapfile_put(out, "%s",
                           mc_mapfile_attribute(apr_pstrmemdup(reader->pool, at + 1, size - 2), "", reader->pool));
        else
            mc_mapfile_put(out, "<ogc:Literal>%s</ogc:Literal>", mc_xml_escape(part, reader->pool));
        at += size;
    }
    const char *all = apr_array_pstrcat(reader->pool, out, '\0');
    return count <= 1 ? all
                      : apr_pstrcat(reader->pool, "<ogc:Function name=\"Concatenate\">", all, "</ogc:Function>", NULL);
}

const char *
mc_mapfile_text(mc_mapfile_reader *reader, const mc_branch *text)
{
    expression_parser parser;
    expression_operand value;
    if (text->text == NULL || *text->text == '\0' || strchr(text->text, '%') != NULL)
        return refuse_text(reader, text, "is empty, or has values that a request fills in");
    if (text->form != '(')
        return write_mixed_text(reader, text);
    bool read = begin_expression(&parser, reader, text) && read_sum(&value, &parser) && ends_expression(&parser);
    return read ? value.safe : NULL;
}
