/* See ini.h. */
#include "adopt/ini.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <ctype.h>
#include <string.h>

typedef struct ini_reader {
    const char *file;
    mc_branch *root, *section;
    int line, room;
    apr_hash_t *sections; /* by their names */
    apr_pool_t *pool;
} ini_reader;

/* The text without blanks at its ends; it is changed. */
static char *
trim_ini_text(char *text)
{
    text += strspn(text, " \t\r");
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t\r", text[size - 1]) != NULL)
        size--;
    text[size] = '\0';
    return text;
}

static mc_branch *
find_section(ini_reader *reader, const char *name)
{
    mc_branch *known = apr_hash_get(reader->sections, name, APR_HASH_KEY_STRING);
    if (known != NULL)
        return known;
    mc_branch *made = mc_branch_create(MC_BRANCH_MAP, reader->file, reader->line, reader->pool);
    made->key = apr_pstrdup(reader->pool, name);
    mc_branch_add(reader->root, made);
    apr_hash_set(reader->sections, made->key, APR_HASH_KEY_STRING, made);
    reader->room--;
    return made;
}

/* A value's quotes, or the comment behind it. */
static char *
unquote_value(char *text)
{
    char quote = *text;
    char *end = quote == '"' || quote == '\'' ? strchr(text + 1, quote) : NULL;
    if (end != NULL) {
        *end = '\0';
        return text + 1;
    }
    text[strcspn(text, ";#")] = '\0';
    return trim_ini_text(text);
}

/* Whether the line is one. */
static bool
read_ini_line(ini_reader *reader, char *text)
{
    text = trim_ini_text(text);
    if (*text == '\0' || *text == ';' || *text == '#')
        return true;
    if (*text == '[') {
        char *end = strchr(text, ']');
        if (end == NULL)
            return false;
        *end = '\0';
        reader->section = find_section(reader, trim_ini_text(text + 1));
        return true;
    }
    size_t size = strcspn(text, "=:");
    if (size == 0 || text[size] == '\0' || reader->section == NULL)
        return false;
    mc_branch *value = mc_branch_create(MC_BRANCH_TEXT, reader->file, reader->line, reader->pool);
    text[size] = '\0';
    char *key = apr_pstrdup(reader->pool, trim_ini_text(text));
    for (char *c = key; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    value->key = key;
    value->text = apr_pstrdup(reader->pool, unquote_value(trim_ini_text(text + size + 1)));
    mc_branch_add(reader->section, value);
    reader->room--;
    return true;
}

mc_error *
mc_ini_parse(mc_branch **root, const char *file, const char *bytes, size_t size, void (*odd)(void *baton, int line),
             void *baton, apr_pool_t *pool)
{
    ini_reader reader = { .file = file, .room = MC_BRANCHES_MAX, .pool = pool };
    char *text = apr_pstrmemdup(pool, bytes, size);
    reader.sections = apr_hash_make(pool);
    *root = reader.root = mc_branch_create(MC_BRANCH_MAP, file, 1, pool);
    if (memchr(bytes, '\0', size) != NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s:1: the file holds a zero byte, and is no text", file);
    for (int line = 1; text != NULL; line++) {
        char *begin = text, *end = strchr(text, '\n');
        reader.line = line;
        for (; end != NULL && end > begin && end[-1] == '\\'; line++, end = strchr(end, '\n'))
            end[-1] = *end = ' ';
        text = end == NULL ? NULL : end + 1;
        if (end != NULL)
            *end = '\0';
        if (!read_ini_line(&reader, begin))
            odd(baton, reader.line);
        if (reader.room < 0)
            return mc_error_create(pool, MC_ERR_CONFIG, "%s:%d: there are too many values", file, line);
    }
    return MC_OK;
}
