/* Which tilesets are collections, of which kind, and where their tiles are. */
#include <apr_strings.h>
#include <string.h>

#include "service/ogcapi/ogcapi.h"
#include "text/text.h"

bool
mc_ogcapi_is_vector(const mc_tileset *tileset)
{
    return mc_format_is_vector(tileset->format);
}

bool
mc_ogcapi_offers(const mc_tileset *tileset)
{
    const char *name = tileset->name;
    return strchr(name, '/') == NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && *name != '\0' &&
           (mc_tileset_is_image(tileset) || mc_ogcapi_is_vector(tileset));
}

const char *
mc_ogcapi_tiles_path(const mc_tileset *tileset, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "/collections/", mc_url_segment(tileset->name, pool),
                       mc_ogcapi_is_vector(tileset) ? "/tiles" : "/map/tiles", NULL);
}

mc_error *
mc_ogcapi_check_kind(const mc_ogcapi_ask *ask)
{
    bool maps = strstr(ask->operation->address, "/map/") != NULL, vector = mc_ogcapi_is_vector(ask->tileset);
    if (maps != vector || ask->collection == NULL)
        return MC_OK;
    return mc_error_create(ask->pool, MC_ERR_NOT_FOUND, "the tiles of collection %s are %s: they are at /ogcapi%s",
                           ask->tileset->name, vector ? "vector tiles" : "images",
                           mc_ogcapi_tiles_path(ask->tileset, ask->pool));
}

/* --- collections of a dataset ----------------------------------------------------------------------------------- */

/* The tileset that an item of the list names: its name, or its address in this API. */
static mc_tileset *
find_listed_collection(const char *item, const mc_call *call, apr_pool_t *pool)
{
    const char *base = apr_pstrcat(pool, call->base, "ogcapi/collections/", NULL);
    size_t size = strlen(base);
    if (strncmp(item, base, size) == 0)
        item = mc_url_decode(item + size, strcspn(item + size, "/?#"), false, pool);
    mc_tileset *tileset = mc_call_tileset(call, item, pool);
    return tileset != NULL && mc_ogcapi_offers(tileset) ? tileset : NULL;
}

static mc_error *
add_listed_collection(mc_ogcapi_ask *ask, const char *item, bool vector)
{
    mc_tileset *tileset = find_listed_collection(item, ask->call, ask->pool);
    if (tileset == NULL)
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "collections",
                                "there is no collection \"%s\"; /ogcapi/collections lists them",
                                mc_message_text(item, 100, ask->pool));
    if (mc_ogcapi_is_vector(tileset) != vector)
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "collections",
                                "collection %s has %s, and %s are asked for", tileset->name,
                                vector ? "images" : "vector tiles", vector ? "vector tiles" : "images");
    MC_TRY(mc_tileset_check_built(tileset, ask->pool));
    ask->layers[ask->layer_count++] = (mc_map_layer){ .tileset = tileset };
    return MC_OK;
}

static mc_error *
add_first_collection(mc_ogcapi_ask *ask, bool vector)
{
    const apr_array_header_t *tilesets = ask->call->config->tilesets;
    for (int i = 0; i < tilesets->nelts; i++) {
        mc_tileset *tileset = APR_ARRAY_IDX(tilesets, i, mc_tileset *);
        if (!mc_ogcapi_offers(tileset) || mc_ogcapi_is_vector(tileset) != vector || tileset->not_built != NULL)
            continue;
        ask->layers[ask->layer_count++] = (mc_map_layer){ .tileset = tileset };
        return MC_OK;
    }
    return mc_error_create(ask->pool, MC_ERR_NOT_FOUND, "there is no collection of %s",
                           vector ? "vector tiles" : "images");
}

mc_error *
mc_ogcapi_find_collections(mc_param_reader *reader)
{
    mc_ogcapi_ask *ask = reader->target;
    bool vector = strncmp(ask->operation->address, "/ogcapi/tiles", strlen("/ogcapi/tiles")) == 0;
    size_t most = 1;
    for (const char *at = ask->collections; at != NULL && *at != '\0'; at++)
        most += *at == ',';
    if (most > MC_LAYERS_MAX)
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "collections", "more than %d collections",
                                MC_LAYERS_MAX);
    ask->layers = apr_pcalloc(ask->pool, most * sizeof(mc_map_layer));
    char *rest = ask->collections == NULL ? NULL : apr_pstrdup(ask->pool, ask->collections);
    for (char *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ","))
        MC_TRY(add_listed_collection(ask, item, vector));
    if (ask->layer_count == 0)
        MC_TRY(add_first_collection(ask, vector));
    if (vector && ask->layer_count > 1)
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "collections",
                                "vector tiles are those of one collection: they are not merged");
    ask->tileset = ask->layers[0].tileset;
    return MC_OK;
}

const mc_grid_link *
mc_ogcapi_shared_link(const mc_ogcapi_ask *ask, const mc_tileset *tileset, const char *id)
{
    const mc_grid_link *link = mc_tile_matrix_set_link(tileset, id), *lowest;
    if (ask->layer_count < 2 || link == NULL || tileset == ask->tileset)
        return link;
    lowest = mc_tile_matrix_set_link(ask->tileset, id);
    for (int i = 0; lowest != NULL && i < tileset->link_count; i++) {
        const mc_grid_link *each = tileset->links[i];
        if (each->grid == lowest->grid ||
            (each->grid->origin == lowest->grid->origin && mc_tile_matrix_set_of(each->grid) != NULL &&
             mc_tile_matrix_set_is(each->grid, id)))
            return each;
    }
    return NULL;
}

const char *
mc_ogcapi_selection(const mc_ogcapi_ask *ask)
{
    if (ask->collections == NULL)
        return "";
    return apr_pstrcat(ask->pool, "collections=", mc_url_encode(ask->collections, ",:/", true, false, ask->pool), "&",
                       NULL);
}

const char *
mc_ogcapi_titles(const mc_ogcapi_ask *ask)
{
    const char *titles = mc_tileset_title(ask->tileset);
    for (int i = 1; i < ask->layer_count; i++)
        titles = apr_pstrcat(ask->pool, titles, ", ", mc_tileset_title(ask->layers[i].tileset), NULL);
    return titles;
}
