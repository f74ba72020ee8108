/* Headers for caches in front (<cdn>): the surrogate keys of a tile or a map, and for how long it may be kept. */
#include <apr_strings.h>
#include <stdatomic.h>
#include <string.h>

#include "cdn/cdn.h"
#include "cdn/surrogate_keys.h"
#include "changes/watch.h"
#include "server/server_private.h"
#include "text/text.h"

/* How keys call a tileset: never by what a client has sent. NULL: not at all. */
static const char *
surrogate_name(const mc_tileset *tileset)
{
    const mc_tileset *first = tileset->master != NULL ? tileset->master : tileset;
    if (first->watch != NULL)
        return first->watch->tileset;
    return first->client_named ? NULL : first->name;
}

/* The tiles that a tile above max-cached-zoom is made of. */
static void
add_made_tile(mc_surrogates *keys, const char *name, const mc_tile_request *tile)
{
    const mc_grid_link *link = tile->link;
    const mc_extent box = mc_grid_tile_extent(link->grid, tile->z, tile->x, tile->y);
    mc_tile_range range;
    if (mc_grid_link_tiles(link, &box, link->max_cached_zoom, &range))
        mc_surrogates_add_range(keys, name, link->grid, link->max_cached_zoom, &range);
}

static void
add_stack_keys(mc_surrogates *keys, const mc_tile_stack *stack)
{
    for (int i = 0; i < stack->count && !keys->overflown; i++) {
        const mc_tile_request *tile = &stack->tiles[i];
        const char *name = surrogate_name(tile->tileset);
        if (name == NULL)
            continue;
        if (mc_surrogate_is_made(tile->link, tile->z))
            add_made_tile(keys, name, tile);
        else
            mc_surrogates_add_tile(keys, name, tile->link->grid, tile->z, tile->x, tile->y);
    }
}

static void
add_map_keys(mc_surrogates *keys, const mc_map_request *map)
{
    for (int i = 0; i < map->count && !keys->overflown; i++) {
        const mc_grid_link *link;
        mc_tile_range range;
        int z;
        const char *name = surrogate_name(map->layers[i].tileset);
        if (name == NULL)
            continue;
        if (map->mode == MC_WMS_FORWARD)
            mc_surrogates_add_map(keys, name);
        else if (mc_map_layer_tiles(&link, &z, &range, map, i))
            mc_surrogates_add_range(keys, name, link->grid, z, &range);
    }
}

static bool
is_change_followed(const mc_tileset *tileset)
{
    return tileset->watch != NULL || (tileset->master != NULL && tileset->master->watch != NULL);
}

/* Whether changes of all that is shown are followed, and purged. */
static bool
shows_followed_only(const mc_request *request)
{
    bool followed = true;
    if (request->kind == MC_REQUEST_TILE)
        for (int i = 0; i < request->u.tile.count; i++)
            followed = followed && is_change_followed(request->u.tile.tiles[i].tileset);
    else
        for (int i = 0; i < request->u.map.count; i++)
            followed = followed && is_change_followed(request->u.map.layers[i].tileset);
    return followed;
}

/* Whether a tile expires besides, so that <expires> alone does not tell how long the answer is fresh. */
static bool
expires_besides(const mc_request *request)
{
    bool expires = false;
    if (request->kind == MC_REQUEST_TILE)
        for (int i = 0; i < request->u.tile.count; i++)
            expires = expires || request->u.tile.tiles[i].tileset->auto_expire != NULL;
    else
        for (int i = 0; i < request->u.map.count; i++)
            expires = expires || request->u.map.layers[i].tileset->auto_expire != NULL;
    return expires;
}

/* Not of what is old, or has failed in part, or is no answer. */
static void
set_surrogate_ages(mc_http_response *response, const mc_cdns *cdns, const mc_request *request,
                   const mc_account *account, const mc_result *result, apr_pool_t *pool)
{
    const unsigned events = atomic_load_explicit(&account->events, memory_order_relaxed);
    if ((response->status != 200 && response->status != 304) || result->status != 0 || result->age > 0 ||
        (events & MC_EVENT_FAILED) != 0 || !shows_followed_only(request))
        return;
    const bool bounded = result->lifetime > 0 && expires_besides(request);
    for (int i = 0; i < cdns->age_headers->nelts; i++) {
        const mc_cdn_age *age = &APR_ARRAY_IDX(cdns->age_headers, i, mc_cdn_age);
        mc_whole_text digits;
        const char *value = bounded && result->lifetime < age->max_age
                                ? apr_pstrcat(pool, age->prefix, mc_write_whole(&digits, result->lifetime), NULL)
                                : age->value;
        apr_table_setn(response->headers, age->header, value);
    }
}

void
mc_response_surrogates(mc_http_response *response, const mc_cdns *cdns, const mc_request *request,
                       const mc_account *account, const mc_result *result, apr_pool_t *pool)
{
    mc_surrogates keys;
    if (request->kind != MC_REQUEST_TILE && request->kind != MC_REQUEST_MAP)
        return;
    if (cdns->age_headers->nelts > 0)
        set_surrogate_ages(response, cdns, request, account, result, pool);
    if (cdns->key_headers->nelts == 0)
        return;
    mc_surrogates_begin(&keys);
    if (request->kind == MC_REQUEST_TILE)
        add_stack_keys(&keys, &request->u.tile);
    else
        add_map_keys(&keys, &request->u.map);
    const char *text = mc_surrogates_end(&keys, ' ', pool);
    for (int i = 0; i < cdns->key_headers->nelts; i++)
        apr_table_setn(response->headers, APR_ARRAY_IDX(cdns->key_headers, i, const char *), text);
}
