/* What the parts of the cache "disk" share. */
#ifndef MC_CACHE_DISK_DISK_BASE_H
#define MC_CACHE_DISK_DISK_BASE_H

#include <fts.h>
#include <stdatomic.h>

#include "cache/quota/quota.h"

/* Of the layouts behind TEMPLATE, <base> is the folder of one tileset and one grid, and may have placeholders. */
typedef enum layout {
    TILECACHE,
    ARCGIS,
    WORLDWIND,
    TEMPLATE,
    MAPPROXY_TC,
    MAPPROXY_MP,
    MAPPROXY_ARCGIS,
    QUADKEY,
    GEOWEBCACHE,
    LAYOUT_COUNT
} layout;

typedef struct disk_cache {
    mc_cache_base base;
    const char *layout_name;
    layout layout;
    const char *root;
    const char *template_text;
    const char *extension; /* of the files' names; NULL: that of the tileset's format */
    bool symlink_blank;
    bool detect_blank;
    int creation_retry;
    mc_template *template; /* of TEMPLATE, and of <base> of the layouts behind it */
    _Atomic bool seen;     /* the root has been there */
    apr_hash_t *places;    /* of mc_cache_note_place */
} disk_cache;

/* What the configuration calls a layout. */
const char *mc_disk_layout_name(layout layout);

/* Puts base/tileset/grid. */
void mc_disk_put_folder(mc_text_out *out, const disk_cache *cache, const mc_tile_key *key);

/* The path of a tile, of MC_PATH_MAX bytes. */
mc_error *mc_disk_tile_path(char *path, const disk_cache *cache, const mc_tile_key *key, apr_pool_t *pool);

/* mc_cache_ops.list_folders: of the layouts of TileCache, ArcGIS and MapProxy. */
bool mc_disk_lists_folders(const mc_cache *cache);
mc_error *mc_disk_list_folders(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                               void *baton, mc_ctx *ctx) MC_CHECKED;

/* mc_cache_ops.upkeep and measure: what lies in folders of the layouts that have some. */
mc_error *mc_disk_upkeep(mc_cache *cache, const struct mc_upkeep *task, mc_ctx *ctx);
bool mc_disk_tells_groups(const mc_cache *cache);
mc_error *mc_disk_measure(int64_t *bytes, int64_t *tiles, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);

/* Whether the folder of a store is there; an error where that cannot be told. */
mc_error *mc_disk_find_folder(bool *there, const char *folder, apr_pool_t *pool) MC_CHECKED;

/* The next entry of a walk through the files of a store, of which `folder` is the root; NULL at the end. *error: the
 * walk is not whole. */
FTSENT *mc_disk_next_entry(mc_error **error, FTS *files, const char *folder, mc_ctx *ctx);

/* For <max_size>. */
extern const mc_quota_store mc_disk_quota;

/* mc_cache_ops.place */
const char *mc_disk_place(bool *file, const mc_cache *cache, apr_pool_t *pool);

#endif
