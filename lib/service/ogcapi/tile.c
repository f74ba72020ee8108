/* A tile (OGC 20-057, 7): rows count from the top. A stored tile costs as one of WMTS. */
#include <string.h>

#include "service/ogcapi/accept.h"
#include "service/ogcapi/ogcapi.h"
#include "service/wmts/wmts.h"

/* In the order of the choices of `f`. */
static const char *const image_mimes[MC_OGCAPI_IMAGES] = { "image/png", "image/jpeg", "image/webp" };
static const char *const image_names[MC_OGCAPI_IMAGES] = { "png", "jpeg", "webp" };

static int
image_index(const char *mime)
{
    for (int i = 0; i < MC_OGCAPI_IMAGES; i++)
        if (strcmp(mime, image_mimes[i]) == 0)
            return i;
    return -1;
}

int
mc_ogcapi_tile_media(mc_ogcapi_media media[MC_OGCAPI_IMAGES + 1], const mc_tileset *tileset, const mc_call *call,
                     apr_pool_t *pool)
{
    int count = 0;
    bool listed[MC_OGCAPI_IMAGES] = { false };
    if (mc_ogcapi_is_vector(tileset)) {
        media[0] = (mc_ogcapi_media){ MC_OGCAPI_MVT, "mvt", NULL };
        return 1;
    }
    const apr_array_header_t *stored = mc_wmts_formats(tileset, pool);
    for (int i = 0; i < stored->nelts + MC_OGCAPI_IMAGES; i++) {
        int index = i < stored->nelts ? image_index(APR_ARRAY_IDX(stored, i, const char *)) : i - stored->nelts;
        if (index < 0 || listed[index])
            continue;
        const mc_format *format = mc_wmts_format(tileset, image_mimes[index], call);
        if (format == NULL && index == MC_OGCAPI_IMAGES - 1)
            format = ((const mc_ogcapi *)call->service)->webp;
        if (format == NULL)
            continue;
        listed[index] = true;
        media[count++] = (mc_ogcapi_media){ image_mimes[index], image_names[index], format };
    }
    return count;
}

/* The format that the client insists on. *format is NULL where the stored bytes will do, whatever they are: where the
 * client likes all images alike. */
static mc_error *
choose_image(const mc_format **format, mc_ogcapi_ask *ask)
{
    mc_ogcapi_media media[MC_OGCAPI_IMAGES + 1];
    const char *mimes[MC_OGCAPI_IMAGES + 1];
    const char *accept = ask->image >= 0 ? NULL : mc_call_header(ask->call, "Accept");
    *format = NULL;
    if (ask->image < 0) {
        ask->request->vary = "Accept";
        if (accept == NULL || strcmp(accept, "*/*") == 0)
            return MC_OK;
    }
    int count = mc_ogcapi_tile_media(media, ask->tileset, ask->call, ask->pool), chosen = -1;
    for (int i = 0; i < count; i++) {
        mimes[i] = media[i].mime;
        if (ask->image >= 0 && strcmp(media[i].name, image_names[ask->image]) == 0)
            chosen = i;
    }
    if (ask->image < 0) {
        double png = mc_accept_weight(accept, image_mimes[0]), jpeg = mc_accept_weight(accept, image_mimes[1]);
        if (png > 0 && png <= jpeg && jpeg <= png)
            return MC_OK;
        chosen = mc_accept_weight(accept, mimes[0]) > 0 ? 0 : mc_accept_choose(accept, mimes, count);
    }
    if (chosen < 0)
        return ask->image >= 0 ? mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "f", "%s is not offered here",
                                                  image_names[ask->image])
                               : mc_error_create(ask->pool, MC_ERR_NOT_ACCEPTABLE,
                                                 "tiles of collection %s are images only", ask->tileset->name);
    *format = media[chosen].format;
    return MC_OK;
}

static mc_error *
check_vector_accepted(mc_ogcapi_ask *ask)
{
    const char *accept = ask->image >= 0 ? NULL : mc_call_header(ask->call, "Accept");
    if (ask->image < 0)
        ask->request->vary = "Accept";
    if (accept == NULL || mc_accept_weight(accept, MC_OGCAPI_MVT) > 0 ||
        mc_accept_weight(accept, "application/x-protobuf") > 0 ||
        mc_accept_weight(accept, "application/octet-stream") > 0)
        return MC_OK;
    return mc_error_create(ask->pool, MC_ERR_NOT_ACCEPTABLE, "tiles of collection %s are " MC_OGCAPI_MVT " only",
                           ask->tileset->name);
}

mc_error *
mc_ogcapi_tile(mc_ogcapi_ask *ask)
{
    const mc_grid *grid = ask->link->grid;
    const char **values;
    MC_TRY(mc_ogcapi_check_kind(ask));
    MC_TRY(mc_ogcapi_values(&values, ask, ask->tileset));
    mc_tile_request *tile = apr_pcalloc(ask->pool, sizeof(*tile));
    *tile = (mc_tile_request){ .tileset = ask->tileset, .link = ask->link, .values = values };
    mc_tile_stack stack = { .tiles = tile, .count = 1, .format = ask->tileset->format };
    if (ask->z < grid->level_count && ask->column < grid->levels[ask->z].columns)
        ask->column = mc_grid_from_west(grid, ask->z, ask->column);
    MC_TRY(mc_wmts_check_level(tile, ask->z, MC_ERR_TILE_OUT_OF_RANGE, ask->pool));
    MC_TRY(mc_stack_place(&stack, ask->z, ask->column, ask->row, true, ask->pool));
    if (mc_ogcapi_is_vector(ask->tileset))
        MC_TRY(check_vector_accepted(ask));
    else
        MC_TRY(choose_image(&stack.exact, ask));
    if (stack.format == NULL)
        stack.format = ask->call->config->default_format;
    ask->request->kind = MC_REQUEST_TILE;
    ask->request->u.tile = stack;
    return MC_OK;
}
