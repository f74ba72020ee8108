/*
 * Stores of MapProxy: which <cache> has the same files. Layouts: MapProxy's documentation, "caches". All count tiles as
 * the grid does, from its corner.
 */
#include <apr_strings.h>
#include <string.h>
#include <unistd.h>

#include "adopt/mapproxy.h"
#include "text/text.h"

/* What is known of a store while it is written. */
typedef struct mapproxy_store {
    mc_mapproxy *proxy;
    mc_adopt *adopt;
    mc_branch *cache, *conf; /* the cache, and its `cache` */
    const char *own, *name;
    const mc_mapproxy_grid *grid;
    const char *extension;
    bool only_read;
} mapproxy_store;

const char *
mc_mapproxy_setting(mc_mapproxy *proxy, mc_branch *cache, const char *key, const char *otherwise)
{
    const char *text = mc_branch_text(cache, key, NULL);
    return text != NULL ? text : mc_branch_text(mc_branch_find(proxy->root, "globals.cache"), key, otherwise);
}

static void
begin_store(mapproxy_store *store, const char *type, const char *attributes)
{
    mc_draft_put(store->adopt, MC_DRAFT_CACHES, "  <cache name=\"%s\" type=\"%s\"%s>\n",
                 mc_xml_escape(store->name, store->adopt->pool), type, attributes);
}

static void
put_store(mapproxy_store *store, const char *name, const char *text)
{
    mc_draft_element(store->adopt, MC_DRAFT_CACHES, "    ", name, text);
}

static void
end_store(mapproxy_store *store)
{
    mc_draft_put(store->adopt, MC_DRAFT_CACHES, "  </cache>\n");
    store->adopt->counts.caches++;
}

/* The folder that all caches lie in. */
static const char *
base_folder(mapproxy_store *store)
{
    const char *own = mc_branch_text(store->cache, "cache_dir", NULL);
    if (own == NULL)
        own = mc_branch_text(store->proxy->root, "globals.cache.base_dir", "cache_data");
    return mc_draft_path(store->proxy->folder, own, store->proxy->pool);
}

/* The folder of this cache's own, without or with that of the grid. */
static const char *
cache_own_folder(mapproxy_store *store, bool by_grid)
{
    apr_pool_t *pool = store->proxy->pool;
    const char *said = mc_branch_text(store->conf, "directory", NULL);
    if (said != NULL && !by_grid)
        return mc_draft_path(store->proxy->folder, said, pool);
    if (said != NULL)
        return apr_pstrcat(pool, mc_draft_path(store->proxy->folder, said, pool), "/", store->grid->own, NULL);
    return apr_pstrcat(pool, base_folder(store), "/", store->own, "/", store->grid->own, NULL);
}

/* What is not read here: tiles are stored anew, in a file beside. */
static void
write_new_store(mapproxy_store *store)
{
    begin_store(store, "sqlite3", "");
    put_store(store, "dbfile", apr_pstrcat(store->proxy->pool, base_folder(store), "/", store->name, ".sqlite3", NULL));
    end_store(store);
}

static void
note_new_store(mapproxy_store *store, const mc_branch *at, const char *what)
{
    mc_draft_note_at(store->adopt, at,
                     "the tiles of cache %s are not taken over: %s. New tiles go into %s/%s.sqlite3; `mapcache seed` "
                     "fills it",
                     store->own, what, base_folder(store), store->name);
    write_new_store(store);
}

static void
write_file_store(mapproxy_store *store)
{
    static const struct {
        const char *layout, *here;
    } folders[] = {
        { "tc", "mapproxy-tc" }, { "mp", "mapproxy-mp" }, { "arcgis", "mapproxy-arcgis" }, { "quadkey", "quadkey" }
    };
    apr_pool_t *pool = store->proxy->pool;
    const char *layout = mc_branch_text(store->conf, "directory_layout", "tc");
    const char *said = mc_branch_text(store->conf, "directory", NULL);
    bool named = mc_branch_is_true(store->conf, "use_grid_names", false);
    const char *folder = said != NULL ? cache_own_folder(store, false)
                         : named
                             ? cache_own_folder(store, true)
                             : apr_pstrcat(pool, base_folder(store), "/", store->own, "_", store->grid->folder, NULL);
    const char *path = strcmp(layout, "tms") == 0           ? "/{z}/{x}/{y}."
                       : strcmp(layout, "reverse_tms") == 0 ? "/{y}/{x}/{z}."
                                                            : NULL;
    size_t at = 0;
    while (at < sizeof(folders) / sizeof(*folders) && strcmp(folders[at].layout, layout) != 0)
        at++;
    if (path == NULL && at == sizeof(folders) / sizeof(*folders)) {
        note_new_store(store, mc_branch_get(store->conf, "directory_layout"),
                       apr_psprintf(pool, "the layout %s is not known", mc_message_text(layout, 60, pool)));
        return;
    }
    begin_store(store, "disk",
                path != NULL ? " layout=\"template\"" : apr_psprintf(pool, " layout=\"%s\"", folders[at].here));
    if (path != NULL) {
        put_store(store, "template", apr_pstrcat(pool, folder, path, store->extension, NULL));
    } else {
        put_store(store, "base", folder);
        put_store(store, "extension", store->extension);
    }
    end_store(store);
}

/* <queries> of a table with MBTiles' columns. `time`: it has a column with the local time. */
static void
put_table_queries(mapproxy_store *store, const char *table, bool time)
{
    apr_pool_t *pool = store->proxy->pool;
    const char *from =
        apr_pstrcat(pool, " FROM ", table, " WHERE tile_column=:x AND tile_row=:y AND zoom_level=:z", NULL);
    mc_draft_put(store->adopt, MC_DRAFT_CACHES, "    <queries>\n");
    put_store(store, "create",
              apr_psprintf(pool,
                           "CREATE TABLE IF NOT EXISTS %s (zoom_level INTEGER, tile_column INTEGER, tile_row INTEGER, "
                           "tile_data BLOB%s, UNIQUE (zoom_level, tile_column, tile_row))",
                           table, time ? ", last_modified DATETIME DEFAULT (datetime('now','localtime'))" : ""));
    put_store(store, "exists", apr_pstrcat(pool, "SELECT 1", from, NULL));
    put_store(store, "get",
              apr_pstrcat(pool, "SELECT tile_data", time ? ", strftime('%s', last_modified, 'utc')" : "", from, NULL));
    put_store(store, "set",
              apr_psprintf(pool,
                           "INSERT OR REPLACE INTO %s (zoom_level, tile_column, tile_row, tile_data%s) VALUES (:z, :x, "
                           ":y, :data%s)",
                           table, time ? ", last_modified" : "", time ? ", datetime('now','localtime')" : ""));
    put_store(store, "delete", apr_pstrcat(pool, "DELETE", from, NULL));
    mc_draft_put(store->adopt, MC_DRAFT_CACHES, "    </queries>\n");
}

/* One that is seen from the file where it begins with "./", else from the folder of all caches. */
static const char *
store_file(mapproxy_store *store, const char *ending)
{
    apr_pool_t *pool = store->proxy->pool;
    const char *name = mc_branch_text(store->conf, "filename", NULL);
    if (name == NULL)
        name = apr_pstrcat(pool, store->own, ending, NULL);
    return mc_draft_path(strncmp(name, "./", 2) == 0 ? store->proxy->folder : base_folder(store), name, pool);
}

static void
write_mbtiles_store(mapproxy_store *store)
{
    begin_store(store, "sqlite3", "");
    put_store(store, "dbfile", store_file(store, ".mbtiles"));
    put_table_queries(store, "tiles", false);
    end_store(store);
}

static void
write_level_store(mapproxy_store *store)
{
    begin_store(store, "sqlite3", "");
    put_store(store, "dbfile", apr_pstrcat(store->proxy->pool, cache_own_folder(store, true), "/{z}.mbtile", NULL));
    put_table_queries(store, "tiles", true);
    end_store(store);
}

static void
write_geopackage_store(mapproxy_store *store)
{
    apr_pool_t *pool = store->proxy->pool;
    const char *table = mc_branch_text(store->conf, "table_name", NULL);
    bool levels = mc_branch_is_true(store->conf, "levels", false);
    const char *file =
        levels ? apr_pstrcat(pool, cache_own_folder(store, true), "/{z}.gpkg", NULL) : store_file(store, ".gpkg");
    if (table == NULL)
        table = apr_pstrcat(pool, store->own, "_", store->grid->own, NULL);
    if (access(levels ? cache_own_folder(store, true) : file, F_OK) != 0) {
        note_new_store(store, store->conf, apr_psprintf(pool, "%s is not there", file));
        return;
    }
    begin_store(store, "sqlite3", "");
    put_store(store, "dbfile", file);
    put_table_queries(store, mc_sql_name(table, pool), false);
    end_store(store);
}

static void
write_compact_store(mapproxy_store *store)
{
    const char *version = mc_branch_text(store->conf, "version", "1");
    if (strcmp(version, "2") != 0 || !store->grid->north_west) {
        note_new_store(store, store->conf,
                       store->grid->north_west ? "bundles of version 1 are not read; `version: 2` is"
                                               : "bundles are read of grids whose origin is nw only");
        return;
    }
    begin_store(store, "bundle", "");
    put_store(store, "base", cache_own_folder(store, mc_branch_get(store->conf, "directory") == NULL));
    end_store(store);
    store->only_read = true;
    mc_draft_note_at(store->adopt, store->conf,
                     "the bundles of cache %s are only read: tiles that are missing are not drawn. `mapcache copy` "
                     "copies the tiles into another cache, which can grow",
                     store->own);
}

/* A value of the cache, or of globals.cache.s3. */
static const char *
s3_setting(mapproxy_store *store, const char *key)
{
    const char *text = mc_branch_text(store->conf, key, NULL);
    return text != NULL ? text : mc_branch_text(mc_branch_find(store->proxy->root, "globals.cache.s3"), key, NULL);
}

static void
write_s3_store(mapproxy_store *store)
{
    apr_pool_t *pool = store->proxy->pool;
    const char *bucket = s3_setting(store, "bucket_name"), *region = s3_setting(store, "region_name");
    const char *endpoint = s3_setting(store, "endpoint_url"), *profile = s3_setting(store, "profile_name");
    const char *layout = mc_branch_text(store->conf, "directory_layout", "tms");
    const char *folder = mc_branch_text(store->conf, "directory", NULL);
    const char *place = strcmp(layout, "tms") == 0           ? "{z}/{x}/{y}"
                        : strcmp(layout, "reverse_tms") == 0 ? "{y}/{x}/{z}"
                                                             : NULL;
    if (bucket == NULL || place == NULL) {
        note_new_store(store, store->conf,
                       bucket == NULL ? "it names no bucket_name"
                                      : "objects are read in the layouts tms and reverse_tms only");
        return;
    }
    if (folder == NULL)
        folder = apr_pstrcat(pool, store->own, "/", store->grid->own, NULL);
    while (*folder == '/')
        folder++;
    const char *key = apr_pstrcat(pool, folder, *folder == '\0' ? "" : "/", place, ".", store->extension, NULL);
    size_t size = endpoint == NULL ? 0 : strlen(endpoint);
    while (size > 0 && endpoint[size - 1] == '/')
        size--;
    const char *url = endpoint != NULL
                          ? apr_pstrcat(pool, apr_pstrmemdup(pool, endpoint, size), "/", bucket, "/", key, NULL)
                          : apr_psprintf(pool, "https://%s.s3.%s.amazonaws.com/%s", bucket,
                                         region == NULL ? "us-east-1" : region, key);
    begin_store(store, "s3", "");
    put_store(store, "url", url);
    put_store(store, "profile", profile);
    put_store(store, "region", region);
    end_store(store);
}

/* Of folders that the configuration names: the usual one is made with the first tile. */
static void
note_missing_folder(mapproxy_store *store, const char *type)
{
    const mc_branch *said = mc_branch_get(store->conf, "directory");
    said = said != NULL ? said : mc_branch_get(store->cache, "cache_dir");
    said = said != NULL ? said : mc_branch_find(store->proxy->root, "globals.cache.base_dir");
    if (said != NULL && said->text != NULL && strcmp(type, "s3") != 0)
        mc_draft_note_folder(store->adopt, said, mc_draft_path(store->proxy->folder, said->text, store->proxy->pool));
}

static void
write_typed_store(mapproxy_store *store, const char *type)
{
    static const struct {
        const char *type;
        void (*write)(mapproxy_store *store);
    } kinds[] = { { "file", write_file_store },       { "mbtiles", write_mbtiles_store },
                  { "sqlite", write_level_store },    { "geopackage", write_geopackage_store },
                  { "compact", write_compact_store }, { "s3", write_s3_store } };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(kinds[i].type, type) == 0) {
            note_missing_folder(store, type);
            kinds[i].write(store);
            return;
        }
    note_new_store(store, store->conf == NULL ? store->cache : store->conf,
                   apr_psprintf(store->proxy->pool, "stores of type %s are not read",
                                mc_message_text(type, 60, store->proxy->pool)));
    mc_branch_pass(store->conf);
}

const char *
mc_mapproxy_store(bool *only_read, mc_mapproxy *proxy, mc_branch *cache, const char *own, const mc_mapproxy_grid *grid,
                  const char *extension, bool single)
{
    static const char *const tuning[] = { "tile_lock_dir", "sqlite_timeout", "sqlite_wal", "use_http_get",
                                          "directory_permissions" };
    const char *wanted = single ? own : apr_pstrcat(proxy->pool, own, "_", grid->own, NULL);
    mapproxy_store store = { .proxy = proxy,
                             .adopt = proxy->adopt,
                             .cache = cache,
                             .conf = mc_branch_get(cache, "cache"),
                             .own = own,
                             .name = mc_draft_name(proxy->adopt, MC_DRAFT_CACHES, wanted),
                             .grid = grid,
                             .extension = extension };
    for (size_t i = 0; i < sizeof(tuning) / sizeof(*tuning); i++)
        mc_branch_pass(mc_branch_get(store.conf, tuning[i]));
    write_typed_store(&store, mc_branch_text(store.conf, "type", "file"));
    *only_read = store.only_read;
    return store.name;
}
