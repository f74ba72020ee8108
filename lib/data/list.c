/* The list of layers that a look at a thing makes, and their names. */
#include <apr_strings.h>
#include <stdarg.h>
#include <string.h>

#include "data/data_private.h"
#include "mapcache/config.h"
#include "text/secret.h"

enum { NAME_MAX_BYTES = 60, NOTES_MAX = 100 };

mc_data_layer *
mc_data_add(mc_data_search *search, mc_data_kind kind, const char *type)
{
    if (search->layers->nelts >= search->limits.layers) {
        mc_data_note(search, "there are more than %d layers: the others are left out", search->limits.layers);
        return NULL;
    }
    mc_data_layer *layer = apr_pcalloc(search->pool, sizeof(*layer));
    *layer = (mc_data_layer){ .kind = kind, .type = type, .minzoom = -1, .maxzoom = -1 };
    APR_ARRAY_PUSH(search->layers, mc_data_layer *) = layer;
    return layer;
}

void
mc_data_note(mc_data_search *search, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = mc_hide_passwords(apr_pvsprintf(search->pool, format, arguments), search->thing, search->pool);
    va_end(arguments);
    bool again = false;
    for (int i = 0; i < search->notes->nelts; i++)
        again = again || strcmp(APR_ARRAY_IDX(search->notes, i, const char *), text) == 0;
    if (!again && search->notes->nelts < NOTES_MAX)
        APR_ARRAY_PUSH(search->notes, const char *) = text;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static bool
stands_in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
}

const char *
mc_data_identifier(const char *text, apr_pool_t *pool)
{
    char *name = apr_pstrndup(pool, text, NAME_MAX_BYTES);
    bool any = false;
    for (char *c = name; *c != '\0'; c++) {
        any = any || (stands_in_name(*c) && *c != '.' && *c != '_' && *c != '-');
        if (!stands_in_name(*c))
            *c = '_';
    }
    if (*name == '.' || *name == '-')
        *name = '_';
    return any ? name : "data";
}

bool
mc_data_is_database(const char *thing)
{
    return strncmp(thing, "postgresql://", 13) == 0 || strncmp(thing, "postgres://", 11) == 0;
}

const char *
mc_data_stem(const char *path, apr_pool_t *pool)
{
    const char *host = strstr(path = mc_hide_address_password(path, pool), "://");
    const char *inside = host == NULL ? path : strchr(host + 3, '/');
    if (inside == NULL || (inside != path && strcspn(inside + 1, "?#") == 0))
        return mc_data_is_database(path) ? "database" : "data"; /* what stands before it may be a password */
    char *copy = apr_pstrdup(pool, inside);
    size_t size = strcspn(copy, "?#");
    copy[size] = '\0';
    while (size > 1 && copy[size - 1] == '/')
        copy[--size] = '\0';
    char *last = strrchr(copy, '/');
    last = last == NULL ? copy : last + 1;
    char *dot = strrchr(last, '.');
    if (dot != NULL && dot != last && !mc_data_is_database(path))
        *dot = '\0';
    return last;
}

static bool
title_is_taken(const char *title, const apr_array_header_t *layers, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(APR_ARRAY_IDX(layers, i, const mc_data_layer *)->title, title) == 0)
            return true;
    return false;
}

/* The name of the folder that a file lies in; NULL: the layer is in no file, or nobody can say. */
static const char *
folder_of_layer(const mc_data_layer *layer, apr_pool_t *pool)
{
    const char *end = *layer->data == '/' ? strrchr(layer->data, '/') : NULL;
    if (end == NULL || end == layer->data || strstr(layer->data, "://") != NULL)
        return NULL;
    const char *folder = apr_pstrmemdup(pool, layer->data, (apr_size_t)(end - layer->data));
    return strrchr(folder, '/') + 1;
}

const char *
mc_data_distinct_title(const mc_data_layer *layer, const apr_array_header_t *layers, int count, apr_pool_t *pool)
{
    if (!title_is_taken(layer->title, layers, count))
        return layer->title;
    const char *folder = folder_of_layer(layer, pool);
    const char *title = folder == NULL ? layer->title : apr_psprintf(pool, "%s (%s)", layer->title, folder);
    for (int n = 2; title_is_taken(title, layers, count); n++)
        title = apr_psprintf(pool, "%s (%d)", layer->title, n);
    return title;
}

const char *
mc_data_name(const char *thing, apr_pool_t *pool)
{
    return mc_data_identifier(mc_data_stem(thing, pool), pool);
}

const char *
mc_data_thing_path(const char *file, const char *text, apr_pool_t *pool)
{
    const char *blanks = " \t\r\n";
    char *thing = apr_pstrdup(pool, text + strspn(text, blanks));
    for (size_t size = strlen(thing); size > 0 && strchr(blanks, thing[size - 1]) != NULL; size--)
        thing[size - 1] = '\0';
    return strstr(thing, "://") != NULL || *thing == '\0' ? thing : mc_config_path(file, thing, pool);
}
