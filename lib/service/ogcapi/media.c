/* The media types of images, and which one a request wants (OGC 20-057, 7.3; OGC 20-058, 22). */
#include <string.h>

#include "service/ogcapi/ogcapi.h"
#include "service/wmts/wmts.h"
#include "text/accept.h"

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
        const mc_tileset *variant = mc_tileset_variant_of_type(tileset, image_mimes[index]);
        const mc_format *format = variant != NULL ? variant->format : mc_wmts_format(tileset, image_mimes[index], call);
        if (format == NULL && index == MC_OGCAPI_IMAGES - 1)
            format = ((const mc_ogcapi *)call->service)->webp;
        if (format == NULL)
            continue;
        listed[index] = true;
        media[count++] = (mc_ogcapi_media){ image_mimes[index], image_names[index], format };
    }
    return count;
}

/* Whether PNG and JPEG are accepted alike, so that the stored bytes will do. */
static bool
likes_all_images(const char *accept)
{
    if (accept == NULL || strcmp(accept, "*/*") == 0)
        return true;
    int png = mc_accept_weight(accept, image_mimes[0]);
    return png > 0 && png == mc_accept_weight(accept, image_mimes[1]);
}

static mc_error *
refuse_image(const mc_ogcapi_ask *ask)
{
    if (ask->image >= 0)
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "f", "%s is not offered here",
                                image_names[ask->image]);
    return mc_error_create(ask->pool, MC_ERR_NOT_ACCEPTABLE, "images of collection %s are PNG, JPEG and WebP only",
                           ask->tileset->name);
}

mc_error *
mc_ogcapi_choose_image(const mc_format **format, mc_ogcapi_ask *ask, bool map)
{
    mc_ogcapi_media media[MC_OGCAPI_IMAGES + 1];
    const char *mimes[MC_OGCAPI_IMAGES + 1];
    const char *accept = ask->image >= 0 ? NULL : mc_call_header(ask->call, "Accept");
    *format = NULL;
    if (ask->image < 0)
        ask->request->vary = "Accept";
    if (ask->image < 0 && !map && likes_all_images(accept))
        return MC_OK;
    int count = mc_ogcapi_tile_media(media, ask->tileset, ask->call, ask->pool), chosen = -1;
    for (int i = 0; i < count; i++) {
        mimes[i] = media[i].mime;
        if (ask->image >= 0 && strcmp(media[i].name, image_names[ask->image]) == 0)
            chosen = i;
    }
    if (ask->image < 0)
        chosen = mc_accept_choose(accept, mimes, count);
    if (ask->image < 0 && !map && count > 0 && mc_accept_weight(accept, mimes[0]) > 0)
        chosen = 0; /* what is stored needs no work */
    if (chosen < 0)
        return refuse_image(ask);
    *format = media[chosen].format;
    return MC_OK;
}
