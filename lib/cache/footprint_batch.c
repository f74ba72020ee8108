/* Batches of wanted tiles: which of them share a file, what is known of them, and how the others are read. */
#include <apr_hash.h>
#include <apr_strings.h>

#include "cache/footprint_private.h"
#include "mapcache/trace.h"

struct mc_footprints {
    mc_cache *cache;
    mc_footprint_want *wants;
    int count;
    mc_footprint **held; /* the references of the batch, by want */
};

static apr_status_t
release(void *data)
{
    mc_footprints *batch = data;
    for (int i = 0; i < batch->count; i++)
        mc_footprint_unref(batch->held[i]);
    return APR_SUCCESS;
}

/* Wants of equal tileset, grid and dimensions come from the same file in most stores. */
static int
file_of(apr_hash_t *files, const mc_tile_key *key, apr_pool_t *pool)
{
    const char *name =
        apr_pstrcat(pool, key->tileset, "\n", key->grid->name, "\n", mc_cache_dimension_key(key, pool), NULL);
    int *number = apr_hash_get(files, name, APR_HASH_KEY_STRING);
    if (number == NULL) {
        number = apr_palloc(pool, sizeof(*number));
        *number = (int)apr_hash_count(files);
        apr_hash_set(files, name, APR_HASH_KEY_STRING, number);
    }
    return *number;
}

mc_error *
mc_footprints_look(mc_footprints **batch, mc_cache *cache, mc_footprint_want *wants, int count, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    MC_SPAN(ctx, "mc_footprints_look");
    mc_footprints *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_footprints){ cache, wants, count, apr_pcalloc(pool, sizeof(*made->held) * (size_t)(count + 1)) };
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    apr_hash_t *files = apr_hash_make(scratch);
    for (int i = 0; i < count; i++) {
        wants[i].footprint = NULL;
        wants[i].known = false;
        wants[i].file = file_of(files, &wants[i].key, scratch);
    }
    apr_pool_destroy(scratch);
    apr_pool_cleanup_register(pool, made, release, apr_pool_cleanup_null);
    *batch = made;
    return MC_OK;
}

mc_error *
mc_footprints_fetch(mc_footprints *batch, int index, mc_ctx *ctx)
{
    MC_ASSERT(index >= 0 && index < batch->count);
    mc_footprint_want *want = &batch->wants[index];
    if (want->known)
        return MC_OK;
    mc_tile *tile;
    MC_TRY(mc_cache_get(&tile, batch->cache, &want->key, ctx, ctx->pool));
    if (tile != NULL) {
        mc_pixels *pixels;
        MC_TRY(mc_image_decode(&pixels, tile->data->data, tile->data->size, ctx, ctx->pool));
        want->footprint = batch->held[index] = mc_footprint_create(pixels, tile);
        mc_pixels_unref(pixels);
    }
    want->known = true;
    return MC_OK;
}
