/* Drafts of PMTiles archives: SQLite files of the machinery of the cache "sqlite3", whose rows are named by tile ids,
 * so that they stand in the order of the archive. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cache/memory.h"
#include "cache/pmtiles/pmtiles_base.h"
#include "grid/tile_id.h"
#include "text/text.h"

enum { DRAFT_OF_ARCHIVE = 6 }; /* what is remembered of a file */

static const char create_sql[] =
    "CREATE TABLE IF NOT EXISTS tiles(tile_id INTEGER PRIMARY KEY, generation INTEGER, data BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS metadata(name TEXT, value TEXT)";

/* Random bytes: no picture and no vector tile is like that. */
const uint8_t mc_pmtiles_removed[16] = { 0xd1, 0x5f, 0x0c, 0x8e, 0x37, 0xa4, 0x49, 0x62,
                                         0xb8, 0x1d, 0xf3, 0x90, 0x6b, 0xe7, 0x2a, 0x05 };

bool
mc_pmtiles_is_removed(const void *data, size_t size)
{
    return size == sizeof(mc_pmtiles_removed) && memcmp(data, mc_pmtiles_removed, size) == 0;
}

static mc_error *
put_draft_tile(mc_handle *handle, sqlite_cache *draft, const mc_tile_write *tile, apr_pool_t *pool)
{
    sqlite_binds binds = { .data = tile->data->data, .size = tile->data->size };
    return mc_sqlite_run(handle, draft->set, &tile->key, &binds, pool);
}

static mc_error *
put_draft_metadata(mc_handle *handle, sqlite_cache *draft, const mc_tile_write *tile, mc_ctx *ctx)
{
    if (mc_pmtiles_is_removed(tile->data->data, tile->data->size))
        return MC_OK;
    return mc_mbtiles_put_metadata(handle, draft, tile, ctx);
}

static const mc_cache_ops draft_ops = { .type = "pmtiles", .keys = mc_sqlite_keys, MC_SQLITE_OPS };

static mc_node *
add_draft_child(mc_node *parent, const char *name, const char *text, apr_pool_t *pool)
{
    mc_node *child = apr_pcalloc(pool, sizeof(*child));
    *child = (mc_node){ .file = parent->file,
                        .line = parent->line,
                        .column = parent->column,
                        .name = name,
                        .text = text,
                        .parent = parent,
                        .next = parent->children };
    parent->children = child;
    return child;
}

/* The element that a cache of SQLite files would have. Pages in which tiles stand whole cost less than chains. */
static const mc_node *
make_draft_node(const pmtiles_cache *cache, const mc_node *node, apr_pool_t *pool)
{
    static mc_attr page_size = { "name", "page_size", NULL };
    mc_node *whole = apr_pmemdup(pool, node, sizeof(*node));
    whole->children = NULL;
    add_draft_child(whole, "pragma", "8192", pool)->attrs = &page_size;
    add_draft_child(whole, "dbfile", apr_pstrcat(pool, cache->place.file, MC_PMTILES_DRAFT, NULL), pool);
    return whole;
}

sqlite_cache *
mc_pmtiles_make_draft(const pmtiles_cache *cache, const mc_node *node, mc_build *build)
{
    sqlite_cache *draft = apr_pcalloc(build->pool, sizeof(*draft));
    draft->create = create_sql;
    draft->get = "SELECT data FROM tiles WHERE tile_id=:tile_id";
    draft->exists = "SELECT 1 FROM tiles WHERE tile_id=:tile_id";
    draft->set = "INSERT OR REPLACE INTO tiles(tile_id, generation, data)"
                 " VALUES(:tile_id, (SELECT CAST(value AS INTEGER) FROM metadata WHERE name = 'generation'), :data)";
    draft->remove = "DELETE FROM tiles WHERE tile_id=:tile_id";
    draft->put_tile = put_draft_tile;
    draft->put_level = put_draft_metadata;
    draft->uses = apr_array_make(build->pool, 2, sizeof(mc_sqlite_use));
    if (!mc_sqlite_read(draft, &draft_ops, true, make_draft_node(cache, node, build->pool), build))
        return NULL;
    draft->base.cache.remember = cache->base.cache.remember;
    draft->base.cache.retries = 0; /* the front repeats the whole */
    return draft;
}

mc_error *
mc_pmtiles_archive_path(char *path, const pmtiles_cache *cache, const mc_tile_key *key, apr_pool_t *pool)
{
    if (!mc_grid_has_tile_ids(key->grid, key->z))
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "a PMTiles archive cannot hold tiles of grid \"%s\": its tiles are those of web maps",
                               key->grid->name);
    return mc_archive_place_path(path, &cache->place, cache->template, key, pool);
}

mc_error *
mc_draft_step(mc_draft_cursor *cursor, apr_pool_t *pool)
{
    int code = cursor->statement == NULL ? SQLITE_DONE : sqlite3_step(cursor->statement);
    const bool first = !cursor->present;
    const uint64_t before = cursor->id;
    cursor->present = code == SQLITE_ROW;
    if (!cursor->present)
        return code == SQLITE_DONE
                   ? MC_OK
                   : mc_handle_error(cursor->handle, "a draft of a PMTiles archive cannot be read", pool);
    cursor->id = (uint64_t)sqlite3_column_int64(cursor->statement, 0);
    if (!first && cursor->id <= before) { /* somebody else's table, without our key */
        cursor->present = false;
        return mc_error_create(pool, MC_ERR_CORRUPT, "a draft of a PMTiles archive has a tile twice");
    }
    cursor->data = sqlite3_column_blob(cursor->statement, 1);
    cursor->size = (size_t)sqlite3_column_bytes(cursor->statement, 1);
    if (cursor->size == 0 || mc_pmtiles_is_removed(cursor->data, cursor->size))
        cursor->data = NULL;
    return MC_OK;
}

mc_error *
mc_draft_begin(mc_draft_cursor *cursor, mc_handle *handle, uint64_t first, uint64_t end, apr_pool_t *pool)
{
    static const char sql[] = "SELECT tile_id, data FROM tiles WHERE tile_id >= ?1 AND tile_id < ?2 ORDER BY tile_id";
    *cursor = (mc_draft_cursor){ .handle = handle };
    mc_error *error = mc_handle_statement(&cursor->statement, handle, sql, pool);
    if (error != MC_OK) {
        cursor->statement = NULL;
        return mc_handle_lacks_table(handle) ? MC_OK : error; /* its first writer has not come so far */
    }
    sqlite3_bind_int64(cursor->statement, 1, (sqlite3_int64)first);
    sqlite3_bind_int64(cursor->statement, 2, (sqlite3_int64)end);
    return mc_draft_step(cursor, pool);
}

void
mc_draft_end(mc_draft_cursor *cursor)
{
    if (cursor->statement != NULL)
        sqlite3_reset(cursor->statement);
}

typedef struct draft_look {
    bool *any;
    apr_pool_t *pool;
} draft_look;

/* A mc_handle_work. */
static mc_error *
find_draft_row(void *baton, mc_handle *handle)
{
    const draft_look *look = baton;
    mc_draft_cursor cursor;
    mc_error *error = mc_draft_begin(&cursor, handle, 0, INT64_MAX, look->pool);
    *look->any = cursor.present;
    mc_draft_end(&cursor);
    return error;
}

/* Whether a draft has any rows; asked once for each state of the file. */
static mc_error *
look_into_draft(bool *any, const pmtiles_cache *cache, const char *path, const mc_stamp *stamp, mc_ctx *ctx,
                apr_pool_t *pool)
{
    draft_look look = { any, pool };
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    mc_cache_reads_drop(ctx); /* a writer who waits for what a series of gets holds would let nobody else in */
    return mc_handle_read(handles, path, stamp, &cache->draft->reading, find_draft_row, &look, ctx, pool);
}

/* The same, from the memory of the process: most drafts are empty, and each get asks. */
static mc_error *
has_draft_rows(bool *any, const pmtiles_cache *cache, const char *path, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_ranged_file file = { .path = path, .taken = apr_time_now() };
    mc_range_key key;
    mc_clock_cache_entry *entry;
    struct mc_memory *memory = ctx->process == NULL ? NULL : ctx->process->memory;
    bool present;
    *any = false;
    MC_TRY(mc_handle_look(&present, &file.stamp, path, pool));
    if (!present || file.stamp.size == 0)
        return MC_OK;
    mc_ranges_key(&key, &file, DRAFT_OF_ARCHIVE, 0, 0);
    const bool *known = mc_memory_find(memory, MC_SHARE_SMALL, &entry, key.bytes, key.size);
    if (known != NULL) {
        *any = *known;
        mc_clock_cache_release(entry);
        return MC_OK;
    }
    MC_TRY(look_into_draft(any, cache, path, &file.stamp, ctx, pool));
    bool *kept = memory != NULL && mc_stamp_settled(&file.stamp, file.taken) ? malloc(sizeof(*kept)) : NULL;
    if (kept == NULL)
        return MC_OK;
    *kept = *any;
    mc_memory_keep(ctx, MC_SHARE_SMALL, key.bytes, key.size, kept, sizeof(*kept), free);
    return MC_OK;
}

mc_error *
mc_pmtiles_draft_path(char *path, bool *present, const pmtiles_cache *cache, const mc_tile_key *key, mc_ctx *ctx,
                      apr_pool_t *pool)
{
    *present = false;
    *path = '\0';
    if (cache->draft == NULL)
        return MC_OK;
    MC_TRY(mc_template_expand(path, cache->draft->template, key, pool));
    return has_draft_rows(present, cache, path, ctx, pool);
}
