/* See data.h: what kind of thing it is, and what all layers have in common. */
#include "data/data.h"

#include <apr_file_info.h>
#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "data/data_private.h"
#include "text/secret.h"
#include "text/text.h"

static const mc_data_limits usual_limits = { .layers = 200, .files = 10000, .seconds = 10 };

/* --- names -------------------------------------------------------------------------------------------------------- */

static bool
name_is_taken(const mc_data_search *search, int before, const char *name)
{
    for (int i = 0; i < before; i++)
        if (strcmp(APR_ARRAY_IDX(search->layers, i, const mc_data_layer *)->name, name) == 0)
            return true;
    return false;
}

static void
name_layers(mc_data_search *search, int first, const char *thing)
{
    for (int i = first; i < search->layers->nelts; i++) {
        mc_data_layer *layer = APR_ARRAY_IDX(search->layers, i, mc_data_layer *);
        if (layer->name == NULL)
            layer->name = mc_data_stem(thing, search->pool);
        if (layer->title == NULL || *layer->title == '\0')
            layer->title = layer->name;
        layer->title = mc_data_distinct_title(layer, search->layers, i, search->pool);
        const char *wanted = mc_data_identifier(layer->name, search->pool);
        layer->name = wanted;
        for (int n = 2; name_is_taken(search, i, layer->name); n++)
            layer->name = apr_psprintf(search->pool, "%s_%d", wanted, n);
    }
}

/* --- kinds of things ---------------------------------------------------------------------------------------------- */

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
    char *whole;
    part_file_name(&path, &part, thing, search->pool);
    if (apr_filepath_merge(&whole, NULL, path, APR_FILEPATH_NOTRELATIVE, search->pool) == APR_SUCCESS)
        path = whole;
    if (apr_stat(&info, path, APR_FINFO_TYPE, search->pool) != APR_SUCCESS)
        return mc_error_create(search->pool, MC_ERR_UNAVAILABLE, "there is no file \"%s\"", path);
    if (info.filetype == APR_DIR)
        return mc_data_look_folder(search, path);
    if (info.filetype != APR_REG) /* a pipe would be waited for */
        return mc_error_create(search->pool, MC_ERR_CONFIG, "\"%s\" is neither a file nor a folder", path);
    /* Not one of a folder: a map file names other files, and programs of databases. */
    if (mc_data_is_mapfile(path, search->pool))
        return mc_data_look_mapfile(search, path);
    return mc_data_look_file(search, path, part);
}

static bool
is_address(const char *thing)
{
    return strncmp(thing, "http://", 7) == 0 || strncmp(thing, "https://", 8) == 0;
}

/* "name://...": no path of a file begins so. */
static bool
has_scheme(const char *thing)
{
    size_t name = strspn(thing, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return name > 1 && strncmp(thing + name, "://", 3) == 0;
}

static mc_error *
look_at_thing(mc_data_search *search, const char *thing)
{
    if (mc_data_is_database(thing))
        return mc_data_look_database(search, thing);
    if (is_address(thing))
        return mc_data_look_gdal(search, apr_pstrcat(search->pool, "/vsicurl/", thing, NULL), NULL);
    if (strncmp(thing, "/vsi", 4) == 0)
        return mc_data_look_gdal(search, thing, NULL);
    if (has_scheme(thing))
        return mc_error_create(search->pool, MC_ERR_CONFIG,
                               "addresses begin with postgresql://, http:// or https://, those of GDAL's file systems "
                               "with /vsi (for example /vsis3/BUCKET/KEY)");
    return look_at_path(search, thing);
}

/* What libraries say of a thing may quote the thing with its password. */
static mc_error *
hide_secrets(mc_error *error, const char *thing, apr_pool_t *pool)
{
    if (error == MC_OK)
        return MC_OK;
    const char *said = mc_error_chain(error, pool), *hidden = mc_hide_passwords(said, thing, pool);
    return strcmp(said, hidden) == 0 ? error : mc_error_create(pool, error->kind, "%s", hidden);
}

/* Fills in what is left open. */
static void
begin_search(mc_data_search *search, mc_ctx *own, const mc_data_limits *limits, const mc_ctx *ctx, apr_pool_t *pool)
{
    *own = *ctx;
    *search = (mc_data_search){ .limits = limits == NULL ? usual_limits : *limits,
                                .layers = apr_array_make(pool, 8, sizeof(mc_data_layer *)),
                                .notes = apr_array_make(pool, 4, sizeof(const char *)),
                                .ctx = own,
                                .pool = pool };
    if (search->limits.layers <= 0)
        search->limits.layers = usual_limits.layers;
    if (search->limits.files <= 0)
        search->limits.files = usual_limits.files;
    if (search->limits.seconds <= 0)
        search->limits.seconds = usual_limits.seconds;
    apr_time_t until = mc_clock_now() + (apr_time_t)(search->limits.seconds * APR_USEC_PER_SEC);
    if (own->deadline == 0 || own->deadline > until)
        own->deadline = until;
}

mc_error *
mc_data_find_all(mc_data_found *found, const char *const *things, int count, const mc_data_limits *limits, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    mc_ctx own;
    mc_data_search search;
    begin_search(&search, &own, limits, ctx, pool);
    for (int i = 0; i < count; i++) {
        int first = search.layers->nelts;
        search.thing = things[i];
        search.late = false;
        MC_TRY(hide_secrets(look_at_thing(&search, things[i]), things[i], pool));
        if (search.layers->nelts == first && first < search.limits.layers)
            return mc_error_create(pool, search.late ? MC_ERR_UNAVAILABLE : MC_ERR_CONFIG,
                                   "\"%s\" holds nothing that can be served%s%s",
                                   mc_hide_address_password(things[i], pool), search.notes->nelts > 0 ? ": " : "",
                                   search.notes->nelts > 0 ? APR_ARRAY_IDX(search.notes, 0, const char *) : "");
        name_layers(&search, first, things[i]);
    }
    *found = (mc_data_found){ search.layers, search.notes };
    return MC_OK;
}

mc_error *
mc_data_find(mc_data_found *found, const char *thing, const mc_data_limits *limits, mc_ctx *ctx, apr_pool_t *pool)
{
    return mc_data_find_all(found, &thing, 1, limits, ctx, pool);
}
