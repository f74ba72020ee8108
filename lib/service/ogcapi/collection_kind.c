/* Which tilesets are collections, of which kind, and where their tiles are. */
#include <apr_strings.h>
#include <string.h>

#include "service/ogcapi/ogcapi.h"

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
    if (maps != vector)
        return MC_OK;
    return mc_error_create(ask->pool, MC_ERR_NOT_FOUND, "the tiles of collection %s are %s: they are at /ogcapi%s",
                           ask->tileset->name, vector ? "vector tiles" : "images",
                           mc_ogcapi_tiles_path(ask->tileset, ask->pool));
}
