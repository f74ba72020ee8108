/* What caches share that are made of other caches. */
#ifndef MC_CACHE_LAYERED_H
#define MC_CACHE_LAYERED_H

#include "cache/cache_base.h"

/* One child: where it counts (composite only). */
typedef struct mc_layered_child {
    const char *name;
    int minzoom, maxzoom; /* -1: unbounded */
    const char *grids, *dimensions;
    mc_cache *cache;
    int filter_count;
    struct {
        const char *name, *value;
    } * filters;
} mc_layered_child;

/* Beginning of the struct of a kind. */
typedef struct mc_layered {
    mc_cache_base base;
    apr_array_header_t *nodes; /* of const mc_node *, by the key "cache" */
    int count;
    mc_layered_child *children;
} mc_layered;

/* Keys of a child that is a name and nothing else. */
extern const mc_key mc_layered_child_keys[];

/* Reads `node` by ops->keys into `cache`, a zeroed struct, and its children by `keys`. False after a complaint. */
bool mc_layered_read(mc_layered *cache, const mc_cache_ops *ops, const mc_key *keys, const mc_node *node,
                     mc_build *build);

/* Of one child, together where the child can; else with one look at each file. Entries of `tiles` for missing tiles
 * become NULL. */
mc_error *mc_layered_get_all(mc_tile **tiles, mc_cache *child, const mc_tile_key *keys, int count, mc_ctx *ctx,
                             apr_pool_t *pool) MC_CHECKED;

/* Entries of mc_cache_ops; removals ask all children, whichever fails (docs/reference/configuration.md 5.13), lists are
 * those of all children, each place once. */
bool mc_layered_gets_all(const mc_cache *base);
mc_error *mc_layered_remove(mc_cache *base, const mc_tile_key *key, mc_ctx *ctx);
mc_error *mc_layered_remove_all(mc_cache *base, const mc_tile_key *keys, int count, mc_ctx *ctx);
bool mc_layered_lists(const mc_cache *base, const mc_tile_key *key);
mc_error *mc_layered_list(mc_cache *base, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                          void *baton, mc_ctx *ctx);
mc_cache *mc_layered_first(mc_cache *base, const mc_tile_key *key);
mc_cache *mc_layered_last(mc_cache *base, const mc_tile_key *key);
void mc_layered_parts(mc_cache *base, void (*visit)(void *baton, mc_cache *part), void *baton);
void mc_layered_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build);

/* The members of the kinds that have the same form in all of them: <prefix>_get and so on. */
#define MC_LAYERED_OPS(prefix_)                                                                                        \
    .get = prefix_##_get, .get_all = prefix_##_get_all, .gets_all = mc_layered_gets_all, .exists = prefix_##_exists,   \
    .put = prefix_##_put, .used_by = mc_layered_used_by, .parts = mc_layered_parts

#endif
