/* What the caches in SQLite files share: sqlite3, mbtiles and geopackage differ by their statements. */
#ifndef MC_CACHE_SQLITE_SQLITE_BASE_H
#define MC_CACHE_SQLITE_SQLITE_BASE_H

#include <stdatomic.h>

#include "cache/quota/quota.h"
#include "cache/sqlite/coverage.h"

struct mc_path_groups;

/* Statements about all tiles of a file; NULL: not known. */
typedef struct mc_sqlite_counts {
    /* Of an area of a level (mc_sqlite_bind_area), and of all of the series. */
    const char *area, *series;
    /* Rows of tileset, grid, dimensions, level, tiles, blanks and bytes. */
    const char *groups;
    /* `remove`: removes some tiles of a group (:tileset :grid :dim :z); repeated while it removes any. `tidy_up`:
     * removes the data that no tile uses any more. */
    const char *remove, *tidy_up;
    /* Of a file whose `tiles` is a view: the bytes that `tidy_up` removes. */
    const char *unused;
    /* Of a file whose `tiles` is a view, for one place: the name of the content that other places may have, too (text;
     * no row: it has none); removes the content :key that no place has any more; makes the index for that. */
    const char *content, *remove_content, *index_contents;
    /* `groups` and `remove` of a file whose `tiles` is a table, where ours is a view; NULL: it always is one. */
    const char *table_groups, *table_remove;
} mc_sqlite_counts;

typedef struct sqlite_cache {
    mc_cache_base base;
    const mc_node *dbfile;
    const char *path_text; /* of it: the path, or the template of paths */
    int columns, rows, top;
    const char *allow_path_in_dim;
    bool detect_blank;
    apr_array_header_t *pragmas; /* of const mc_node * */
    const mc_node *queries;
    const char *hitstats;
    const char *historical_base, *historical_template;
    bool immutable;
    bool deduplicate; /* new files have each content once */
    bool create_bare; /* `create` is for files that have nothing in them */
    int index_check;  /* 0 warn, 1 error, 2 off */
    /* What has been made of the above. */
    mc_template *template;
    mc_open_options reading, settled, writing;
    const char *create, *exists, *get, *set, *remove;
    const char *coverage; /* gives z, x and y of all that `get` can find; NULL: not known */
    bool bare;            /* small files may be read without SQLite's machine: */
    mc_plain_get plain;   /* `get`, taken apart */
    uint64_t identity;
    uint64_t paths; /* of the way from keys to paths: another configuration may have another one */
    bool single_file;
    /* Gives x and y (or column and row: `north_west`) of at most :most tiles of an area, in some order of the two,
     * behind those of the key; NULL: not known. */
    const char *list;
    const char *list_view; /* the same of a file whose `tiles` is a view; NULL: it never is */
    bool north_west;       /* the file counts columns from the west and rows from the north */
    mc_sqlite_counts counts;
    const char *table;        /* of geopackage only */
    apr_array_header_t *uses; /* of mc_sqlite_use, by mbtiles and geopackage: for the check of the configuration */
    _Atomic int plan;         /* of the get statement: 0 not looked at, 1 fine, 2 scans */
    /* An error where the file says that its tiles of a level lie elsewhere; NULL: it does not tell. */
    mc_error *(*check_level)(mc_handle *handle, const struct sqlite_cache *cache, const mc_tile_key *key,
                             apr_pool_t *pool);
    _Atomic uint64_t checked[64]; /* files, grids and levels that it passed, as hashes, each where its hash says */
    mc_error *(*put_tile)(mc_handle *handle, struct sqlite_cache *cache, const mc_tile_write *tile, apr_pool_t *pool);
    /* NULL: by `remove`. */
    mc_error *(*remove_tile)(mc_handle *handle, const struct sqlite_cache *cache, const mc_tile_key *key,
                             apr_pool_t *pool);
    /* With the first of the tiles of each level that are put together; or NULL. */
    mc_error *(*put_level)(mc_handle *handle, struct sqlite_cache *cache, const mc_tile_write *tile, mc_ctx *ctx);
} sqlite_cache;

extern const mc_key mc_sqlite_keys[];
extern const mc_key mc_geopackage_keys[]; /* those, and the table */

/* Reads the element; statements that are set in `cache` are the defaults. False after a complaint. fixed_writes: only
 * create, exists and get may be replaced. */
bool mc_sqlite_read(sqlite_cache *cache, const mc_cache_ops *ops, bool fixed_writes, const mc_node *node,
                    mc_build *build);

/* Who uses which file. */
typedef struct mc_sqlite_use {
    const char *tileset, *grid, *path;
} mc_sqlite_use;

/* mc_cache_ops.used_by of files that have neither tileset, grid nor dimensions in their keys: two that share one, or
 * two values of a dimension, overwrite each other (docs/reference/configuration.md 5.4). Reading the same tiles twice
 * may be meant, so that it is no error. */
bool mc_sqlite_tells_grids(const mc_cache *cache);
void mc_sqlite_used_by(mc_cache *cache, const mc_cache_use *use, const mc_node *node, mc_build *build);

/* Whether a column of bytes is a stored colour, without reading those of pictures. */
#define MC_SQLITE_BLANK(column) "CASE length(" column ") WHEN 5 THEN substr(" column ", 1, 1) = x'23' ELSE 0 END"

/* Whether `tiles` is a view in an MBTiles file. In our files `tiles` is a view; in files of other programs it may be a
 * table. */
mc_error *mc_sqlite_has_view(bool *view, mc_handle *handle, apr_pool_t *pool) MC_CHECKED;

/* mc_cache_ops.upkeep */
mc_error *mc_sqlite_upkeep(mc_cache *cache, const struct mc_upkeep *task, mc_ctx *ctx);

/* put_level of files with a table `metadata` as MBTiles has it (1.3, metadata): what it does not say yet. */
mc_error *mc_mbtiles_put_metadata(mc_handle *handle, sqlite_cache *cache, const mc_tile_write *tile,
                                  mc_ctx *ctx) MC_CHECKED;

/* What a statement may refer to besides the tile's key. */
typedef struct sqlite_binds {
    const void *data;
    size_t size;
    const char *id;      /* :key */
    const char *color;   /* :color */
    apr_time_t made;     /* :made, seconds since 1970; null where it is 0 */
    int64_t hash, image; /* :hash, :image; of <deduplicate> */
} sqlite_binds;

mc_error *mc_sqlite_bind(sqlite3_stmt *statement, mc_handle *handle, const mc_tile_key *key, const sqlite_binds *binds,
                         apr_pool_t *pool) MC_CHECKED;

/* Binds what of :minx :miny :maxx :maxy (all inclusive) and, from the west and the north, :mincolumn :minrow :maxcolumn
 * :maxrow a statement has. */
void mc_sqlite_bind_area(sqlite3_stmt *statement, const mc_tile_key *key, const mc_tile_range *area);

/* Binds and runs a statement that gives no rows. */
mc_error *mc_sqlite_run(mc_handle *handle, const char *sql, const mc_tile_key *key, const sqlite_binds *binds,
                        apr_pool_t *pool) MC_CHECKED;

/* The file of a tile; *present false: there is none, and that is no error. */
mc_error *mc_sqlite_locate(char *path, bool *present, const sqlite_cache *cache, const mc_tile_key *key,
                           mc_ctx *ctx) MC_CHECKED;

/* Lets go of the file that the caller's series of gets holds, if any. */
void mc_cache_reads_drop(mc_ctx *ctx);

mc_error *mc_sqlite_location(mc_store_location *location, mc_cache *cache, const mc_tile_key *key, apr_pool_t *pool);

/* A file as it was looked at by the caller. */
typedef struct mc_sqlite_look {
    const char *path;
    mc_stamp stamp;
    apr_time_t taken; /* before the stamp */
} mc_sqlite_look;

/* As mc_cache_get, without memory and repetitions, under a stamp that is there already. *rollback: the file does not
 * use a -wal, and none can come without a change of the file itself. */
mc_error *mc_sqlite_get_stamped(mc_tile **tile, bool *rollback, mc_cache *cache, const mc_sqlite_look *look,
                                const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Which tiles of the key's tileset, grid and dimensions the file has; NULL where they are too many, or the file does
 * not tell. The result is from malloc(). */
mc_error *mc_sqlite_coverage(mc_coverage **coverage, mc_cache *cache, const mc_sqlite_look *look,
                             const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

mc_error *mc_sqlite_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool);
mc_error *mc_sqlite_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
mc_error *mc_sqlite_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx);
mc_error *mc_sqlite_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
mc_error *mc_sqlite_remove_all(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx);

/* mc_cache_list, where all tiles of a series stand in one file and `list` is set. */
bool mc_sqlite_lists(const mc_cache *cache, const mc_tile_key *key);
mc_error *mc_sqlite_list(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                         void *baton, mc_ctx *ctx);

/* Work on tiles of one file: `items` as given to mc_sqlite_change. */
typedef mc_error *mc_sqlite_work(sqlite_cache *cache, mc_handle *handle, const struct mc_path_groups *groups, int group,
                                 const void *items, mc_ctx *ctx);

/* Works on the files of tiles, as far as they are there, one after the other, open for writing; forgets the tiles. */
mc_error *mc_sqlite_change(sqlite_cache *cache, const mc_tile_key *keys, int count, mc_sqlite_work *work,
                           const void *items, mc_ctx *ctx) MC_CHECKED;

/* Removes a tile, within the caller's transaction. */
mc_error *mc_sqlite_remove_tile(const sqlite_cache *cache, mc_handle *handle, const mc_tile_key *key,
                                apr_pool_t *pool) MC_CHECKED;

/* For <max_size>. */
extern const mc_quota_store mc_sqlite_quota;

/* mc_cache_ops.place */
const char *mc_sqlite_place(bool *file, const mc_cache *cache, apr_pool_t *pool);

/* The members of mc_cache_ops that are the same for all caches in SQLite files. */
#define MC_SQLITE_OPS                                                                                                  \
    .get = mc_sqlite_get, .exists = mc_sqlite_exists, .put = mc_sqlite_put, .remove = mc_sqlite_remove,                \
    .remove_all = mc_sqlite_remove_all, .tells_grids = mc_sqlite_tells_grids, .upkeep = mc_sqlite_upkeep,              \
    .list = mc_sqlite_list, .lists = mc_sqlite_lists, .location = mc_sqlite_location, .place = mc_sqlite_place

#endif
