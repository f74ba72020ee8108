/* Values and conditions of styles (OGC 09-026r1, 7). A null makes a value null and a comparison false. */
#include "draw/style/expression.h"

#include <apr_strings.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "draw/style/moment.h"
#include "draw/style/spatial.h"
#include "text/text.h"
#include "text/text_case.h"
#include "text/utf8.h"

static double evaluate_number(const mc_expression *expression, const mc_feature *feature, apr_pool_t *scratch);

/* Text that is a number as a whole, blanks around it aside; NAN otherwise. */
static double
parse_number_or_nan(const char *text)
{
    double value;
    if (text == NULL || *text == '\0')
        return NAN;
    int64_t whole = 0; /* what numbers of attributes mostly are */
    for (int i = 0; i < 16; i++) {
        if (text[i] == '\0')
            return (double)whole;
        if (text[i] < '0' || text[i] > '9')
            break;
        whole = whole * 10 + (text[i] - '0');
    }
    return mc_parse_double(&value, text) ? value : NAN;
}

static const char *
property_text(const mc_expression *expression, const mc_feature *feature)
{
    return feature == NULL || feature->values == NULL ? NULL : feature->values[expression->property];
}

/* The shortest text that reads back as the number (not by APR's printf, which leaves the 0 before the point out). */
const char *
mc_expression_format(double value, apr_pool_t *pool)
{
    char text[32];
    if (!isfinite(value))
        return NULL;
    if (value == rint(value) && fabs(value) < 1e15)
        return apr_psprintf(pool, "%.0f", value == 0 ? 0 : value); /* no "-0" */
    for (int digits = 6; digits <= 17; digits++) {
        double read;
        mc_format_double(text, sizeof(text), 'g', digits, value);
        if (mc_parse_double(&read, text) && read == value)
            break;
    }
    return apr_pstrdup(pool, text);
}

static const char *
concatenate_arguments(const mc_expression *expression, const mc_feature *feature, apr_pool_t *pool)
{
    const char *joined = "";
    for (int i = 0; i < expression->argument_count; i++) {
        const char *part = mc_expression_text(expression->arguments[i], feature, pool);
        if (part != NULL)
            joined = apr_pstrcat(pool, joined, part, NULL);
    }
    return joined;
}

const char *
mc_expression_text(const mc_expression *expression, const mc_feature *feature, apr_pool_t *scratch)
{
    switch (expression->kind) {
    case MC_LITERAL:
        return expression->literal;
    case MC_PROPERTY:
        return property_text(expression, feature);
    case MC_CONCATENATE:
        return concatenate_arguments(expression, feature, scratch);
    case MC_FUNCTION:
        return expression->function->text(expression->arguments, expression->argument_count, feature, scratch);
    default:
        return mc_expression_format(evaluate_number(expression, feature, scratch), scratch);
    }
}

static double
apply_operator(mc_expression_kind kind, double a, double b)
{
    switch (kind) {
    case MC_ADD:
        return a + b;
    case MC_SUBTRACT:
        return a - b;
    case MC_MULTIPLY:
        return a * b;
    default:
        return b == 0 ? NAN : a / b;
    }
}

static double
evaluate_number(const mc_expression *expression, const mc_feature *feature, apr_pool_t *scratch)
{
    switch (expression->kind) {
    case MC_LITERAL:
        return expression->number;
    case MC_PROPERTY:
        return parse_number_or_nan(property_text(expression, feature));
    case MC_CONCATENATE:
    case MC_FUNCTION:
        return parse_number_or_nan(mc_expression_text(expression, feature, scratch));
    default: {
        double value = evaluate_number(expression->arguments[0], feature, scratch);
        for (int i = 1; i < expression->argument_count; i++)
            value =
                apply_operator(expression->kind, value, evaluate_number(expression->arguments[i], feature, scratch));
        return value;
    }
    }
}

double
mc_expression_number(const mc_expression *expression, const mc_feature *feature, double otherwise, apr_pool_t *scratch)
{
    double value = evaluate_number(expression, feature, scratch);
    return isfinite(value) ? value : otherwise;
}

static bool
same_character(char a, char b, bool any_case)
{
    return a == b || (any_case && tolower((unsigned char)a) == tolower((unsigned char)b));
}

bool
mc_like(const char *text, const char *pattern, const mc_filter *how)
{
    const char *again = NULL, *from = NULL; /* after the last wildcard, and the text that it has not eaten yet */
    while (*text != '\0') {
        bool literal = *pattern == how->escape && how->escape != '\0' && pattern[1] != '\0';
        if (!literal && *pattern == how->wildcard && *pattern != '\0') {
            again = ++pattern;
            from = text;
            continue;
        }
        bool single = *pattern != '\0' && !literal && *pattern == how->single;
        if (single) {
            pattern++;
            text = mc_utf8_next(text);
        } else if (*pattern != '\0' && same_character(pattern[literal], *text, how->any_case)) {
            pattern += literal ? 2 : 1;
            text++;
        } else if (again != NULL) {
            pattern = again;
            text = from = mc_utf8_next(from);
        } else {
            return false;
        }
    }
    while (*pattern == how->wildcard && *pattern != '\0')
        pattern++;
    return *pattern == '\0';
}

/* -1, 0 or 1; as numbers or as moments where both are. `right` is the value of an operand. */
static int
order_of(const char *left, const char *right, const mc_expression *operand, bool any_case, apr_pool_t *scratch)
{
    double x = parse_number_or_nan(left),
           y = operand->kind == MC_LITERAL ? operand->number : parse_number_or_nan(right);
    if (isfinite(x) && isfinite(y))
        return (x > y) - (x < y);
    if (mc_date_seconds(&x, left) && mc_date_seconds(&y, right))
        return (x > y) - (x < y);
    return any_case ? strcasecmp(mc_text_case_fold(left, scratch), mc_text_case_fold(right, scratch))
                    : strcmp(left, right);
}

/* `value` is that of the first operand; each operand is computed once. */
static bool
compare_matches(const mc_filter *filter, const char *value, const mc_feature *feature, apr_pool_t *scratch)
{
    const char *other = value == NULL ? NULL : mc_expression_text(filter->operands[1], feature, scratch);
    if (other == NULL)
        return false;
    int order = order_of(value, other, filter->operands[1], filter->any_case, scratch);
    switch (filter->kind) {
    case MC_FILTER_EQUAL:
        return order == 0;
    case MC_FILTER_NOT_EQUAL:
        return order != 0;
    case MC_FILTER_LESS:
        return order < 0;
    case MC_FILTER_LESS_OR_EQUAL:
        return order <= 0;
    case MC_FILTER_GREATER:
        return order > 0;
    case MC_FILTER_GREATER_OR_EQUAL:
        return order >= 0;
    default:
        other = order < 0 ? NULL : mc_expression_text(filter->operands[2], feature, scratch);
        return other != NULL && order_of(value, other, filter->operands[2], filter->any_case, scratch) <= 0;
    }
}

static bool
members_match(const mc_filter *filter, const mc_feature *feature, apr_pool_t *scratch)
{
    bool wanted = filter->kind == MC_FILTER_OR; /* the answer of one member that decides */
    for (int i = 0; i < filter->member_count; i++)
        if (mc_filter_matches(filter->members[i], feature, scratch) == wanted)
            return wanted;
    return !wanted;
}

/* Digits of a whole number that is written in no other way: without zeros in front, and few enough for a double. */
static bool
is_plain_integer(const char *text)
{
    size_t size = 0;
    while (text[size] >= '0' && text[size] <= '9')
        size++;
    return text[size] == '\0' && size > 0 && size < 16 && (text[0] != '0' || size == 1);
}

/* Whether it may be a moment, which can be written in several ways. */
static bool
has_time(const char *text)
{
    double seconds;
    return strchr(text, ':') != NULL && mc_date_seconds(&seconds, text);
}

/* The most frequent test: a property against a literal. Whether their texts say it all; where both are numbers, those
 * may be written in several ways. */
static bool
is_simple_equal(const mc_filter *filter, const char *value)
{
    if (filter->kind != MC_FILTER_EQUAL || filter->operands[1]->kind != MC_LITERAL || filter->any_case)
        return false;
    return (isnan(filter->operands[1]->number) && !has_time(filter->operands[1]->literal)) ||
           (is_plain_integer(filter->operands[1]->literal) && is_plain_integer(value));
}

static bool
filter_lists_feature(const mc_filter *filter, const mc_feature *feature)
{
    for (int i = 0; i < filter->id_count; i++)
        if (filter->ids[i] == feature->id)
            return true;
    return false;
}

bool
mc_filter_matches(const mc_filter *filter, const mc_feature *feature, apr_pool_t *scratch)
{
    if (filter == NULL)
        return true;
    if (filter->kind == MC_FILTER_NOT)
        return !mc_filter_matches(filter->members[0], feature, scratch);
    if (filter->kind == MC_FILTER_AND || filter->kind == MC_FILTER_OR)
        return members_match(filter, feature, scratch);
    if (filter->kind == MC_FILTER_ID)
        return filter_lists_feature(filter, feature);
    if (filter->kind == MC_FILTER_SPATIAL)
        return mc_spatial_matches(filter->spatial, feature, scratch);
    const char *value = mc_expression_text(filter->operands[0], feature, scratch);
    if (filter->kind == MC_FILTER_NULL)
        return value == NULL;
    if (value != NULL && is_simple_equal(filter, value))
        return strcmp(value, filter->operands[1]->literal) == 0;
    if (filter->kind == MC_FILTER_LIKE) {
        const char *pattern = mc_expression_text(filter->operands[1], feature, scratch);
        if (value == NULL || pattern == NULL)
            return false;
        if (filter->any_case) {
            value = mc_text_case_fold(value, scratch);
            pattern = mc_text_case_fold(pattern, scratch);
        }
        return mc_like(value, pattern, filter);
    }
    return compare_matches(filter, value, feature, scratch);
}

double
mc_expression_most(const mc_expression *expression, double otherwise)
{
    static const struct {
        const char *name;
        int first, step; /* of the arguments that are results */
    } choices[] = { { "if_then_else", 1, 1 },
                    { "Coalesce", 0, 1 },
                    { "Categorize", 1, 2 },
                    { "Recode", 2, 2 },
                    { "Interpolate", 2, 2 } };
    if (expression->kind == MC_LITERAL)
        return isfinite(expression->number) ? fabs(expression->number) : 0;
    for (size_t i = 0; expression->kind == MC_FUNCTION && i < sizeof(choices) / sizeof(choices[0]); i++) {
        double most = 0;
        if (strcmp(expression->function->name, choices[i].name) != 0)
            continue;
        for (int at = choices[i].first; at < expression->argument_count; at += choices[i].step)
            most = fmax(most, mc_expression_most(expression->arguments[at], otherwise));
        return most;
    }
    return otherwise;
}
