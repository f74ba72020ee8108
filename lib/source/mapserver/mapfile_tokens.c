/* See mapfile_tokens.h. */
#include "source/mapserver/mapfile_tokens.h"

#include <apr_strings.h>
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
        word->form = first;
        word->text = first == '(' ? bracketed_text(words) : closed_text(words, first == '{' ? '}' : first);
        word->any_case = *words->at == 'i' && (words->at[1] == '\0' || strchr(" \t\r\n\f\v", words->at[1]) != NULL);
        words->at += word->any_case;
        return true;
    }
    apr_size_t size = strcspn(words->at, " \t\r\n\f\v\"'#({");
    size = size == 0 ? 1 : size;
    word->text = apr_pstrmemdup(words->pool, words->at, size);
    word->plain = true;
    words->at += size;
    return true;
}

bool
mc_mapfile_lists(const char *const *list, const char *word)
{
    for (; *list != NULL; list++)
        if (strcasecmp(*list, word) == 0)
            return true;
    return false;
}

bool
mc_mapfile_begins_block(const char *word, const char *parent)
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
    return mc_mapfile_lists(blocks, word);
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

bool
mc_mapfile_has_value(const char *word)
{
    return mc_mapfile_lists(valued, word);
}

bool
mc_mapfile_has_pairs(const char *block)
{
    static const char *const paired[] = { "METADATA", "VALIDATION", "VALUES", "CONNECTIONOPTIONS", NULL };
    return mc_mapfile_lists(paired, block);
}
