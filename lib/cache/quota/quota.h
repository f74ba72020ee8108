/*
 * <max_size> of a cache: the tiles that were used least recently are removed in the background.
 *
 * A cache is divided into blocks of tiles of one level. Books beside the store (an SQLite file) say of each block when
 * it was used last, and, where the store itself cannot tell its size, how large it is. Whoever stores a tile says so in
 * the books before, so that no tile is in the store of which the books do not know, and a block that was just written
 * is not removed. Uses are noted in memory (cache/uses.h) and written down by a thread of each process. Of these
 * threads, in whatever process or host, one at a time measures, surveys and removes: it has the keeper's lease, which
 * ends with the lease's time where its holder dies.
 */
#ifndef MC_CACHE_QUOTA_QUOTA_H
#define MC_CACHE_QUOTA_QUOTA_H

#include "cache/cache_base.h"
#include "cache/uses.h"

/* What tiles of a series have in common, as a kind of cache writes it down: two series of the same name are one. */
typedef struct mc_quota_name {
    const char *tileset, *grid, *dim, *extension;
    bool client_named;
} mc_quota_name;

/* What a block has, or had. Bytes are those that the store takes up for the tiles. */
typedef struct mc_quota_amount {
    int64_t tiles, bytes;
} mc_quota_amount;

/* Removing tiles of a block until so much has gone. A tile goes as long as less than `must` has gone, or no more than
 * `may` will have gone with it; the first tile that does not go ends it. */
typedef struct mc_quota_removal {
    int64_t may, must;          /* bytes */
    mc_quota_amount gone, left; /* what went, also after an error; what there still is (bytes where the store knows) */
} mc_quota_removal;

/* Whether a tile of so many bytes goes, too. */
static inline bool
mc_quota_removes(const mc_quota_removal *removal, int64_t bytes)
{
    return removal->gone.bytes < removal->must || removal->gone.bytes + bytes <= removal->may;
}

/* Goes through what a store has. `from`: where a survey that was cut off goes on, "" for the begin. */
typedef struct mc_quota_survey {
    const char *from;
    /* Of a tile; `time`: when it was stored (Unix seconds; 1: not known), `place`: where to go on after it. False ends
     * the survey. Texts are valid during the call. */
    bool (*visit)(void *baton, const mc_quota_name *name, const mc_tile_key *tile, apr_int64_t time, const char *place);
    void *baton;
} mc_quota_survey;

/* What a kind of cache has to know for <max_size>. The keys of measure and evict are those of a few blocks. */
typedef struct mc_quota_store {
    /* The name of a key's series; texts live in `pool` or as long as the key. */
    mc_quota_name (*name)(const mc_cache *cache, const mc_tile_key *key, apr_pool_t *pool);
    /* What a key says besides grid, level, column and row. */
    void (*restore)(mc_tile_key *key, const mc_cache *cache, const mc_quota_name *name, apr_pool_t *pool);
    /* Whether tiles can be found without their grid, by its name alone. */
    bool (*needs_grid)(const mc_cache *cache);
    /* Bytes in use of the whole store; NULL: the sum of the blocks. */
    mc_error *(*total)(int64_t *bytes, mc_cache *cache, mc_ctx *ctx);
    mc_error *(*measure)(mc_quota_amount *found, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx);
    mc_error *(*evict)(mc_quota_removal *removal, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx);
    mc_error *(*survey)(mc_cache *cache, const mc_quota_survey *survey, mc_ctx *ctx);
} mc_quota_store;

/* The rows of a key table for <max_size>. */
#define MC_QUOTA_KEY(type_)                                                                                            \
    MC_KEY_SIZE(                                                                                                       \
        "max_size", offsetof(type_, base.cache.max_size),                                                              \
        "Bytes (K, M, G or T: powers of 1024, as in 20G or 20GB) that the tiles may take: when they take more,"        \
        " those that were used least recently are removed in the background, until nine tenths are left.",             \
        .min = 1 << 20, .max = -1, .flags = MC_KEY_OURS)

#define MC_QUOTA_SHIFT 3 /* blocks of 8 x 8 tiles, where the store does not ask for smaller ones */

typedef struct mc_quota mc_quota;

/*
 * For a cache that was read, and whose ops can tell its place: where it has <max_size>, sets cache->quota and
 * cache->uses. A block has 2^shift tiles a side. False after a complaint.
 */
bool mc_quota_from_config(mc_cache *cache, const mc_quota_store *store, int shift, const mc_node *node,
                          mc_build *build);

/* Once all caches are read, of which `nodes` (const mc_node *) are the elements: complains where another cache has its
 * tiles in the place of one with <max_size>. Places below it are left out. */
void mc_quota_compare_places(const apr_array_header_t *nodes, mc_build *build);

/* Whether another cache has its tiles in this folder, which lies in that of `cache`: its tiles are not to be removed.
 */
bool mc_quota_leaves_out(const mc_cache *cache, const char *folder, apr_pool_t *pool);

/* The path of the books of a cache with <max_size>. */
const char *mc_quota_books_path(const mc_cache *cache);

/* The values of all dimensions of a key in one text, and back. */
const char *mc_quota_pack_dimensions(const mc_tile_key *key, apr_pool_t *pool);
void mc_quota_unpack_dimensions(mc_tile_key *key, const char *packed, apr_pool_t *pool);

/* --- of a process: made and ended by its runtime ------------------------------------------------------------------ */

typedef struct mc_quotas mc_quotas;

mc_quotas *mc_quotas_create(void);
/* Ends all threads; what they know is written down. NULL is ignored. */
void mc_quotas_destroy(mc_quotas *quotas);

#endif
