/* See mapfile_words.h. */
#include "adopt/mapfile_words.h"

#include <apr_strings.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

static void
pass_mapfile_blanks(mc_mapfile_words *words)
{
    for (;;) {
        const char *at = words->at;
        if (*at == '\n')
            words->line++;
        if (*at != '\0' && strchr(" \t\r\n\f\v", *at) != NULL) {
            words->at++;
        } else if (*at == '#') {
            words->at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            for (; *at != '\0' && at != end; at++)
                words->line += *at == '\n';
            words->at = end == NULL ? at : end + 2;
        } else {
            return;
        }
    }
}

/* Up to the byte that closes it; a backslash keeps the byte behind it. */
static const char *
closed_text(mc_mapfile_words *words, char close)
{
    apr_size_t size = 0;
    const char *at = words->at;
    while (*at != '\0' && *at != close)
        at += *at == '\\' && at[1] != '\0' ? 2 : 1;
    char *text = apr_palloc(words->pool, (apr_size_t)(at - words->at) + 1);
    for (const char *from = words->at; from < at; from++) {
        words->line += *from == '\n';
        if (*from == '\\' && (from[1] == close || from[1] == '\\'))
            from++;
        text[size++] = *from;
    }
    text[size] = '\0';
    words->at = *at == '\0' ? at : at + 1;
    return text;
}

/* (...) with those inside of it; those in quotes do not count. */
static const char *
bracketed_text(mc_mapfile_words *words)
{
    const char *begin = words->at;
    char quote = '\0';
    for (int depth = 1; *words->at != '\0' && depth > 0; words->at++) {
        char c = *words->at;
        words->line += c == '\n';
        if (quote != '\0')
            quote = c == quote ? '\0' : quote;
        else if (c == '"' || c == '\'' || c == '`')
            quote = c;
        else
            depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    return apr_pstrmemdup(words->pool, begin, (apr_size_t)(words->at - begin));
}

bool
mc_mapfile_next(mc_mapfile_word *word, mc_mapfile_words *words)
{
    pass_mapfile_blanks(words);
    *word = (mc_mapfile_word){ .line = words->line };
    char first = *words->at;
    if (first == '\0')
        return false;
    if (strchr("\"'`{/(", first) != NULL) {
        words->at++;
        word->text = first == '(' ? bracketed_text(words) : closed_text(words, first == '{' ? '}' : first);
        return true;
    }
    apr_size_t size = strcspn(words->at, " \t\r\n\f\v\"'#({");
    size = size == 0 ? 1 : size;
    word->text = apr_pstrmemdup(words->pool, words->at, size);
    word->plain = true;
    words->at += size;
    return true;
}

/* ---- blocks */

typedef struct mapfile_parser {
    mc_mapfile_words words;
    const char *file;
    int room;
    apr_pool_t *pool;
} mapfile_parser;

static bool
is_word_of(const char *const *list, const char *word)
{
    for (; *list != NULL; list++)
        if (strcasecmp(*list, word) == 0)
            return true;
    return false;
}

/* Whether a keyword begins a block where it stands: SYMBOL and STYLE have values elsewhere. */
static bool
begins_block(const char *word, const char *parent)
{
    static const char *const blocks[] = { "MAP",       "LAYER",      "CLASS",      "LABEL",
                                          "WEB",       "METADATA",   "PROJECTION", "LEGEND",
                                          "SCALEBAR",  "QUERYMAP",   "REFERENCE",  "OUTPUTFORMAT",
                                          "FEATURE",   "POINTS",     "PATTERN",    "VALIDATION",
                                          "JOIN",      "GRID",       "CLUSTER",    "LEADER",
                                          "COMPOSITE", "SCALETOKEN", "VALUES",     "CONNECTIONOPTIONS",
                                          "IDENTIFY",  "SYMBOLSET",  NULL };
    if (strcasecmp(word, "SYMBOL") == 0)
        return strcmp(parent, "MAP") == 0 || strcmp(parent, "SYMBOLSET") == 0 || *parent == '\0';
    if (strcasecmp(word, "STYLE") == 0)
        return strcmp(parent, "CLASS") == 0 || strcmp(parent, "LABEL") == 0 || strcmp(parent, "LEADER") == 0;
    return is_word_of(blocks, word);
}

/* Keywords whose next word is their value, whatever the word is. */
static const char *const valued[] = { "NAME",       "GROUP",         "TYPE",           "STATUS",
                                      "DATA",       "CONNECTION",    "CONNECTIONTYPE", "CLASSITEM",
                                      "LABELITEM",  "FILTERITEM",    "FILTER",         "TEMPLATE",
                                      "INCLUDE",    "SHAPEPATH",     "FONTSET",        "SYMBOLSET",
                                      "TILEINDEX",  "TILEITEM",      "TITLE",          "TEXT",
                                      "EXPRESSION", "CLASSGROUP",    "UNITS",          "IMAGETYPE",
                                      "PROCESSING", "MASK",          "PLUGIN",         "STYLEITEM",
                                      "REQUIRES",   "LABELREQUIRES", "HEADER",         "FOOTER",
                                      "FONT",       "CONFIG",        "MINSCALEDENOM",  "MAXSCALEDENOM",
                                      NULL };
/* Of those the ones that are handed out. */
static const char *const wanted[] = { "NAME",           "GROUP",   "TYPE",          "STATUS",        "DATA",
                                      "CONNECTIONTYPE", "INCLUDE", "MINSCALEDENOM", "MAXSCALEDENOM", NULL };

static mc_error *
add_mapfile_text(mapfile_parser *parser, mc_branch *block, const char *key, const char *text, int line)
{
    if (--parser->room < 0)
        return mc_error_create(parser->pool, MC_ERR_CONFIG, "%s:%d: there are too many values", parser->file, line);
    mc_branch *made = mc_branch_create(MC_BRANCH_TEXT, parser->file, line, parser->pool);
    char *name = key == NULL ? NULL : apr_pstrdup(parser->pool, key);
    for (char *c = name; c != NULL && *c != '\0'; c++)
        *c = (char)(strcmp(block->key, "METADATA") == 0 ? tolower((unsigned char)*c) : toupper((unsigned char)*c));
    made->key = name;
    made->text = text;
    mc_branch_add(block, made);
    return MC_OK;
}

static mc_error *parse_mapfile_block(mapfile_parser *parser, mc_branch *block, int depth);

static mc_error *
open_mapfile_block(mapfile_parser *parser, mc_branch *parent, const mc_mapfile_word *word, int depth)
{
    bool list = strcasecmp(word->text, "PROJECTION") == 0 || strcasecmp(word->text, "POINTS") == 0 ||
                strcasecmp(word->text, "PATTERN") == 0;
    if (--parser->room < 0 || depth >= MC_BRANCH_DEPTH)
        return mc_error_create(parser->pool, MC_ERR_CONFIG, "%s:%d: %s", parser->file, word->line,
                               parser->room < 0 ? "there are too many values" : "blocks are nested too deeply");
    mc_branch *block = mc_branch_create(list ? MC_BRANCH_LIST : MC_BRANCH_MAP, parser->file, word->line, parser->pool);
    char *name = apr_pstrdup(parser->pool, word->text);
    for (char *c = name; *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    block->key = name;
    mc_branch_add(parent, block);
    return parse_mapfile_block(parser, block, depth + 1);
}

static mc_error *
take_mapfile_value(mapfile_parser *parser, mc_branch *block, const mc_mapfile_word *key)
{
    mc_mapfile_word value;
    if (!mc_mapfile_next(&value, &parser->words))
        return mc_error_create(parser->pool, MC_ERR_CONFIG, "%s:%d: %s has no value", parser->file, key->line,
                               key->text);
    return is_word_of(wanted, key->text) ? add_mapfile_text(parser, block, key->text, value.text, key->line) : MC_OK;
}

static mc_error *
take_extent(mapfile_parser *parser, mc_branch *block, int line)
{
    const char *text = "";
    for (int i = 0; i < 4; i++) {
        mc_mapfile_word number;
        if (!mc_mapfile_next(&number, &parser->words))
            return mc_error_create(parser->pool, MC_ERR_CONFIG, "%s:%d: EXTENT has fewer than four numbers",
                                   parser->file, line);
        text = apr_pstrcat(parser->pool, text, i > 0 ? " " : "", number.text, NULL);
    }
    return add_mapfile_text(parser, block, "EXTENT", text, line);
}

/* All up to the END of a block. */
static mc_error *
parse_mapfile_block(mapfile_parser *parser, mc_branch *block, int depth)
{
    static const char *const paired[] = { "METADATA", "VALIDATION", "VALUES", "CONNECTIONOPTIONS", NULL };
    mc_mapfile_word word;
    bool pairs = is_word_of(paired, block->key);
    while (mc_mapfile_next(&word, &parser->words)) {
        bool ends = word.plain && strcasecmp(word.text, "END") == 0;
        mc_mapfile_word value;
        if (ends)
            return MC_OK;
        if (block->kind == MC_BRANCH_LIST) {
            MC_TRY(add_mapfile_text(parser, block, NULL, word.text, word.line));
        } else if (pairs) {
            if (word.plain && strcasecmp(word.text, "INCLUDE") == 0)
                MC_TRY(take_mapfile_value(parser, block, &word));
            else if (mc_mapfile_next(&value, &parser->words))
                MC_TRY(add_mapfile_text(parser, block, word.text, value.text, word.line));
        } else if (word.plain && strcasecmp(word.text, "EXTENT") == 0) {
            MC_TRY(take_extent(parser, block, word.line));
        } else if (word.plain && begins_block(word.text, block->key)) {
            MC_TRY(open_mapfile_block(parser, block, &word, depth));
        } else if (word.plain && is_word_of(valued, word.text)) {
            MC_TRY(take_mapfile_value(parser, block, &word));
        }
    }
    return *block->key == '\0' ? MC_OK
                               : mc_error_create(parser->pool, MC_ERR_CONFIG, "%s:%d: %s has no END", parser->file,
                                                 block->line, block->key);
}

mc_error *
mc_mapfile_parse(mc_branch **root, const char *file, const char *text, apr_pool_t *pool)
{
    mapfile_parser parser = { .words = { text, 1, pool }, .file = file, .room = MC_BRANCHES_MAX, .pool = pool };
    *root = mc_branch_create(MC_BRANCH_MAP, file, 1, pool);
    (*root)->key = "";
    return parse_mapfile_block(&parser, *root, 0);
}
