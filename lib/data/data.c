/* See data.h: what kind of thing it is, and what all layers have in common. */
#include "data/data.h"

#include <apr_file_info.h>
#include <apr_strings.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "data/data_private.h"
#include "text/text.h"

enum { NAME_MAX_BYTES = 60, NOTES_MAX = 100 };

static const mc_data_limits usual_limits = { .layers = 200, .files = 10000, .seconds = 10 };

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
    const char *text = apr_pvsprintf(search->pool, format, arguments);
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

/* "DIR/land.cover.tif" -> "land.cover"; of a folder the folder's name. */
static const char *
stem_of_path(const char *path, apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, path);
    size_t size = strcspn(copy, "?#");
    copy[size] = '\0';
    while (size > 1 && copy[size - 1] == '/')
        copy[--size] = '\0';
    char *last = strrchr(copy, '/');
    last = last == NULL ? copy : last + 1;
    char *dot = strrchr(last, '.');
    if (dot != NULL && dot != last)
        *dot = '\0';
    return last;
}

const char *
mc_data_name(const char *thing, apr_pool_t *pool)
{
    return mc_data_identifier(stem_of_path(thing, pool), pool);
}

static bool
is_taken(const mc_data_search *search, int before, const char *name)
{
    for (int i = 0; i < before; i++)
        if (strcmp(APR_ARRAY_IDX(search->layers, i, const mc_data_layer *)->name, name) == 0)
            return true;
    return false;
}

static void
name_layers(mc_data_search *search, const char *thing)
{
    for (int i = 0; i < search->layers->nelts; i++) {
        mc_data_layer *layer = APR_ARRAY_IDX(search->layers, i, mc_data_layer *);
        const char *wanted =
            layer->name == NULL ? mc_data_name(thing, search->pool) : mc_data_identifier(layer->name, search->pool);
        layer->name = wanted;
        for (int n = 2; is_taken(search, i, layer->name); n++)
            layer->name = apr_psprintf(search->pool, "%s_%d", wanted, n);
        if (layer->title == NULL || *layer->title == '\0')
            layer->title = layer->name;
    }
}

/* --- kinds of things ---------------------------------------------------------------------------------------------- */

static bool
has_extension(const char *path, const char *extension)
{
    size_t size = strlen(path), its = strlen(extension);
    return size > its && strcasecmp(path + size - its, extension) == 0;
}

static mc_error *
look_at_file(mc_data_search *search, const char *path, const char *part)
{
    if (has_extension(path, ".shp"))
        return mc_data_look_shapefile(search, path);
    return mc_data_look_gdal(search, path, part);
}

/* FILE#LAYER, unless there is a file of that name. */
static void
part_file_name(const char **path, const char **part, const char *thing, apr_pool_t *pool)
{
    apr_finfo_t info;
    const char *mark = strrchr(thing, '#');
    *path = thing;
    *part = NULL;
    if (mark == NULL || mark[1] == '\0' || apr_stat(&info, thing, APR_FINFO_TYPE, pool) == APR_SUCCESS)
        return;
    *path = apr_pstrndup(pool, thing, (apr_size_t)(mark - thing));
    *part = mark + 1;
}

static mc_error *
look_at_path(mc_data_search *search, const char *thing)
{
    apr_finfo_t info;
    const char *path, *part;
    part_file_name(&path, &part, thing, search->pool);
    if (apr_stat(&info, path, APR_FINFO_TYPE, search->pool) != APR_SUCCESS)
        return mc_error_create(search->pool, MC_ERR_UNAVAILABLE, "there is no file \"%s\"", path);
    return look_at_file(search, path, part);
}

static bool
is_address(const char *thing)
{
    return strncmp(thing, "http://", 7) == 0 || strncmp(thing, "https://", 8) == 0;
}

static mc_error *
look_at_thing(mc_data_search *search, const char *thing)
{
    if (is_address(thing))
        return mc_data_look_gdal(search, apr_pstrcat(search->pool, "/vsicurl/", thing, NULL), NULL);
    if (strncmp(thing, "/vsi", 4) == 0)
        return mc_data_look_gdal(search, thing, NULL);
    return look_at_path(search, thing);
}

mc_error *
mc_data_find(mc_data_found *found, const char *thing, const mc_data_limits *limits, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_ctx own = *ctx;
    mc_data_search search = { .limits = limits == NULL ? usual_limits : *limits,
                              .layers = apr_array_make(pool, 8, sizeof(mc_data_layer *)),
                              .notes = apr_array_make(pool, 4, sizeof(const char *)),
                              .ctx = &own,
                              .pool = pool };
    if (search.limits.layers <= 0)
        search.limits.layers = usual_limits.layers;
    if (search.limits.files <= 0)
        search.limits.files = usual_limits.files;
    if (search.limits.seconds <= 0)
        search.limits.seconds = usual_limits.seconds;
    apr_time_t until = mc_clock_now() + (apr_time_t)(search.limits.seconds * APR_USEC_PER_SEC);
    if (own.deadline == 0 || own.deadline > until)
        own.deadline = until;
    MC_TRY(look_at_thing(&search, thing));
    if (search.layers->nelts == 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "\"%s\" holds nothing that can be served", thing);
    name_layers(&search, thing);
    *found = (mc_data_found){ search.layers, search.notes };
    return MC_OK;
}
