/*
 * Which tiles servers of keys and values have, by their keys. The servers tell keys in any order, and some of them
 * again: places are sorted, each once, before they are told on. A key counts only if it is the very key of its tile, so
 * that what other programs keep beside the tiles is passed over.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cache/keyvalue/keyvalue.h"
#include "cache/place_sorter.h"

enum { DIGITS_MOST = 9, LONGEST_KEY = 4096 };

/* What the keys of a level have before row and column, and behind them. */
typedef struct key_frame {
    const char *before, *behind;
} key_frame;

typedef struct keyvalue_listing {
    const mc_keyvalue_cache *cache;
    mc_tile_key key; /* of the level */
    key_frame frame;
    const mc_tile_range *area;
    mc_place_sorter *places;
    apr_pool_t *scratch; /* of one key */
    mc_error *error;
    apr_pool_t *pool;
    int64_t strangers;
} keyvalue_listing;

/* False: the keys are hashes, which tell nothing. */
static bool
find_key_frame(key_frame *frame, const mc_keyvalue_cache *cache, const mc_tile_key *level, apr_pool_t *pool)
{
    static const char place[] = "/0/0";
    mc_tile_key first = *level;
    first.x = first.y = 0;
    const char *key = mc_keyvalue_key(&first, &cache->kind->rules, pool);
    const char *behind = strrchr(key, '/');
    const size_t size = strlen(place);
    if (behind == NULL || (size_t)(behind - key) < size || memcmp(behind - size, place, size) != 0)
        return false;
    frame->before = apr_pstrmemdup(pool, key, (size_t)(behind - key) - size + 1);
    frame->behind = behind;
    return true;
}

/* A number as the keys have it, and where it ends; NULL: there is none. */
static const char *
read_key_number(int *number, const char *at)
{
    const size_t digits = strspn(at, "0123456789");
    if (digits == 0 || digits > DIGITS_MOST || (digits > 1 && *at == '0'))
        return NULL;
    *number = (int)strtol(at, NULL, 10);
    return at + digits;
}

/* The tile of a key that begins as those of the level do. */
static bool
tell_key_place(mc_tile_key *tile, const keyvalue_listing *listing, const char *key)
{
    const mc_level *level = &listing->key.grid->levels[listing->key.z];
    *tile = listing->key;
    const char *at = read_key_number(&tile->y, key + strlen(listing->frame.before));
    if (at == NULL || *at != '/')
        return false;
    at = read_key_number(&tile->x, at + 1);
    if (at == NULL || strcmp(at, listing->frame.behind) != 0 || tile->x >= level->columns || tile->y >= level->rows)
        return false;
    apr_pool_clear(listing->scratch);
    return strcmp(mc_keyvalue_key(tile, &listing->cache->kind->rules, listing->scratch), key) == 0;
}

static bool
take_listed_key(void *baton, const char *bytes, size_t size)
{
    keyvalue_listing *listing = baton;
    const mc_tile_range *area = listing->area;
    char key[LONGEST_KEY + 1];
    mc_tile_key tile;
    if (size <= LONGEST_KEY) {
        memcpy(key, bytes, size);
        key[size] = '\0';
    }
    if (size > LONGEST_KEY || strlen(key) != size || !tell_key_place(&tile, listing, key)) {
        listing->strangers++;
        return true;
    }
    if (tile.x >= area->minx && tile.x < area->maxx && tile.y >= area->miny && tile.y < area->maxy)
        listing->error = mc_place_sorter_add(listing->places, tile.x, tile.y, listing->pool);
    return listing->error == MC_OK;
}

bool
mc_keyvalue_lists(const mc_cache *base, const mc_tile_key *key)
{
    const mc_keyvalue_cache *cache = (const mc_keyvalue_cache *)base;
    key_frame frame;
    apr_pool_t *scratch;
    if (cache->kind->scan == NULL)
        return false;
    apr_pool_create(&scratch, NULL);
    bool lists = find_key_frame(&frame, cache, key, scratch);
    apr_pool_destroy(scratch);
    return lists;
}

mc_error *
mc_keyvalue_list(mc_cache *base, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit, void *baton,
                 mc_ctx *ctx)
{
    mc_keyvalue_cache *cache = (mc_keyvalue_cache *)base;
    keyvalue_listing listing = { .cache = cache, .key = *key, .area = area };
    apr_pool_create(&listing.pool, ctx->pool);
    apr_pool_create(&listing.scratch, listing.pool);
    listing.places = mc_place_sorter_create(0, listing.pool);
    const mc_remote_call call = mc_keyvalue_call(cache, ctx, listing.pool);
    mc_error *error = MC_OK;
    if (!find_key_frame(&listing.frame, cache, key, listing.pool))
        error =
            mc_error_create(ctx->pool, MC_ERR_LIMIT, "the keys of cache \"%s\" are too long to be listed", base->name);
    else
        error = cache->kind->scan(cache, listing.frame.before, take_listed_key, &listing, &call);
    if (error != MC_OK)
        error = mc_keyvalue_failure(error, cache, listing.pool);
    else
        error = listing.error;
    if (error == MC_OK)
        error = mc_place_sorter_visit(listing.places, visit, baton, ctx);
    if (error == MC_OK && listing.strangers > 0)
        mc_log_write(ctx, MC_LOG_INFO, "cache \"%s\": %" APR_INT64_T_FMT " keys that begin with \"%s\" are no tiles",
                     base->name, (apr_int64_t)listing.strangers, listing.frame.before);
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(listing.pool);
    return error;
}
