/* See mapfile_words.h; and what readers of blocks share (mapfile_parts.h). */
#include "adopt/mapfile_words.h"

#include <apr_strings.h>
#include <apr_tables.h>
#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "adopt/mapfile_parts.h"
#include "text/text.h"

typedef struct mapfile_parser {
    mc_mapfile_words words;
    const char *file;
    int *room;
    apr_pool_t *pool;
} mapfile_parser;

/* Keywords whose value may be a word without quotes. */
static const char *const worded[] = { "SYMBOL",       "SIZE",           "LINECAP",
                                      "LINEJOIN",     "ANGLE",          "POSITION",
                                      "ALIGN",        "FORCE",          "PARTIALS",
                                      "ANTIALIAS",    "FILLED",         "SIZEUNITS",
                                      "TRANSFORM",    "DUMP",           "DEBUG",
                                      "LABELCACHE",   "OPACITY",        "POSTLABELCACHE",
                                      "ENCODING",     "GEOMTRANSFORM",  "MINFEATURESIZE",
                                      "TRANSPARENCY", "TOLERANCEUNITS", "CHARACTER",
                                      "FALLBACK",     "IMAGE",          NULL };

/* `value`: what is added, with its form. */
static mc_error *
add_mapfile_text(mapfile_parser *parser, mc_branch *block, const char *key, const mc_mapfile_word *value, int line)
{
    if (--*parser->room < 0)
        return mc_error_create(parser->pool, MC_ERR_CONFIG, "%s:%d: there are too many values", parser->file, line);
    mc_branch *made = mc_branch_create(MC_BRANCH_TEXT, parser->file, line, parser->pool);
    char *name = key == NULL ? NULL : apr_pstrdup(parser->pool, key);
    for (char *c = name; c != NULL && *c != '\0'; c++)
        *c = (char)(strcmp(block->key, "METADATA") == 0 ? tolower((unsigned char)*c) : toupper((unsigned char)*c));
    made->key = name;
    made->text = value->text;
    made->form = value->form;
    made->any_case = value->any_case;
    mc_branch_add(block, made);
    return MC_OK;
}

static mc_error *parse_mapfile_block(mapfile_parser *parser, mc_branch *block, int depth);

static mc_error *
open_mapfile_block(mapfile_parser *parser, mc_branch *parent, const mc_mapfile_word *word, int depth)
{
    bool list = strcasecmp(word->text, "PROJECTION") == 0 || strcasecmp(word->text, "POINTS") == 0 ||
                strcasecmp(word->text, "PATTERN") == 0;
    if (--*parser->room < 0 || depth >= MC_BRANCH_DEPTH)
        return mc_error_create(parser->pool, MC_ERR_CONFIG, "%s:%d: %s", parser->file, word->line,
                               *parser->room < 0 ? "there are too many values" : "blocks are nested too deeply");
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
    return add_mapfile_text(parser, block, key->text, &value, key->line);
}

static bool
is_mapfile_keyword(const mc_mapfile_word *word)
{
    return word->plain && (isalpha((unsigned char)*word->text) || *word->text == '_');
}

/* A keyword that no table has the number of values of: all that follows and is no keyword, with blanks between. */
static mc_error *
take_mapfile_values(mapfile_parser *parser, mc_branch *block, const mc_mapfile_word *key)
{
    mc_mapfile_word first = { .plain = true }, value;
    apr_array_header_t *values = apr_array_make(parser->pool, 4, sizeof(const char *));
    for (mc_mapfile_words before = parser->words; mc_mapfile_next(&value, &parser->words); before = parser->words) {
        bool word = is_mapfile_keyword(&value);
        if (word && (values->nelts > 0 || !mc_mapfile_lists(worded, key->text))) {
            parser->words = before;
            break;
        }
        if (values->nelts == 0)
            first = value;
        else
            APR_ARRAY_PUSH(values, const char *) = " ";
        APR_ARRAY_PUSH(values, const char *) = value.text;
        if (word)
            break;
    }
    first.text = apr_array_pstrcat(parser->pool, values, '\0');
    return add_mapfile_text(parser, block, key->text, &first, key->line);
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
    return add_mapfile_text(parser, block, "EXTENT", &(mc_mapfile_word){ .text = text, .plain = true }, line);
}

/* All up to the END of a block. */
static mc_error *
parse_mapfile_block(mapfile_parser *parser, mc_branch *block, int depth)
{
    mc_mapfile_word word;
    bool pairs = mc_mapfile_has_pairs(block->key);
    while (mc_mapfile_next(&word, &parser->words)) {
        bool ends = word.plain && strcasecmp(word.text, "END") == 0;
        mc_mapfile_word value;
        if (ends)
            return MC_OK;
        if (block->kind == MC_BRANCH_LIST) {
            MC_TRY(add_mapfile_text(parser, block, NULL, &word, word.line));
        } else if (pairs) {
            if (word.plain && strcasecmp(word.text, "INCLUDE") == 0)
                MC_TRY(take_mapfile_value(parser, block, &word));
            else if (mc_mapfile_next(&value, &parser->words))
                MC_TRY(add_mapfile_text(parser, block, word.text, &value, word.line));
        } else if (word.plain && strcasecmp(word.text, "EXTENT") == 0) {
            MC_TRY(take_extent(parser, block, word.line));
        } else if (word.plain && mc_mapfile_begins_block(word.text, block->key)) {
            MC_TRY(open_mapfile_block(parser, block, &word, depth));
        } else if (word.plain && mc_mapfile_has_value(word.text)) {
            MC_TRY(take_mapfile_value(parser, block, &word));
        } else if (is_mapfile_keyword(&word)) {
            MC_TRY(take_mapfile_values(parser, block, &word));
        }
    }
    return *block->key == '\0' ? MC_OK
                               : mc_error_create(parser->pool, MC_ERR_CONFIG, "%s:%d: %s has no END", parser->file,
                                                 block->line, block->key);
}

mc_error *
mc_mapfile_parse(mc_branch **root, const char *file, const char *text, int *room, apr_pool_t *pool)
{
    mapfile_parser parser = { .words = { text, 1, pool }, .file = file, .room = room, .pool = pool };
    *root = mc_branch_create(MC_BRANCH_MAP, file, 1, pool);
    (*root)->key = "";
    return parse_mapfile_block(&parser, *root, 0);
}

/* ---- values of blocks ---- */

bool
mc_mapfile_refuse(mc_mapfile_reader *reader, const mc_branch *at, const char *format, ...)
{
    va_list arguments;
    if (reader->refused != NULL)
        return false;
    va_start(arguments, format);
    reader->refusal = apr_pvsprintf(reader->pool, format, arguments);
    va_end(arguments);
    reader->refused = at;
    return false;
}

bool
mc_mapfile_is_read(mc_mapfile_reader *reader, const mc_branch *block)
{
    for (const mc_branch *child = block->children; child != NULL; child = child->next)
        if (!child->taken)
            return mc_mapfile_refuse(reader, child, "%s of its %s", mc_message_text(child->key, 60, reader->pool),
                                     block->key);
    return true;
}

void
mc_mapfile_pass(mc_branch *block, const char *const *keys)
{
    for (; *keys != NULL; keys++)
        mc_branch_pass(mc_branch_get(block, *keys));
}

bool
mc_mapfile_number(double *number, mc_mapfile_reader *reader, mc_branch *block, const char *key, double otherwise)
{
    const mc_branch *found = mc_branch_get(block, key);
    *number = otherwise;
    return found == NULL || (found->text != NULL && mc_parse_double(number, found->text)) ||
           mc_mapfile_refuse(reader, found, "%s of its %s, which is no number", key, block->key);
}

void
mc_mapfile_put(apr_array_header_t *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    APR_ARRAY_PUSH(out, const char *) = apr_pvsprintf(out->pool, format, arguments);
    va_end(arguments);
}

const char *
mc_mapfile_digits(double number, apr_pool_t *pool)
{
    return mc_double_text('g', 10, number, pool);
}
