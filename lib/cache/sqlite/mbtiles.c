/*
 * The cache "mbtiles": SQLite files of the MBTiles schema (docs/reference/configuration.md 5.4; MBTiles 1.3, metadata).
 * A file that is made here has pictures and places in two tables, with a view `tiles` on both; that of another program
 * may have a table instead.
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "cache/sqlite/deduplicate.h"
#include "grid/earth.h"
#include "grid/tile_id.h"
#include "text/json_writer.h"

static const char create_sql[] =
    "CREATE TABLE IF NOT EXISTS images(tile_id text PRIMARY KEY, tile_data blob);"
    "CREATE TABLE IF NOT EXISTS map(zoom_level integer, tile_column integer, tile_row integer, tile_id text,"
    " FOREIGN KEY(tile_id) REFERENCES images(tile_id), PRIMARY KEY(tile_row, tile_column, zoom_level));"
    "CREATE TABLE IF NOT EXISTS metadata(name text, value text);"
    "CREATE VIEW IF NOT EXISTS tiles AS SELECT map.zoom_level AS zoom_level, map.tile_column AS tile_column,"
    " map.tile_row AS tile_row, images.tile_data AS tile_data FROM map JOIN images ON images.tile_id = map.tile_id";

/* Pictures of one colour have names of their own, and stand once in the file. */
static const mc_sqlite_counts counts = {
    .area = "SELECT count(*) FROM tiles WHERE tile_column >= :minx AND tile_column <= :maxx AND tile_row >= :miny"
            " AND tile_row <= :maxy AND zoom_level = :z",
    .series = "SELECT count(*) FROM tiles",
    .groups = "SELECT NULL, NULL, NULL, zoom_level, count(*), sum(tile_id LIKE '#%'), sum(length(tile_data))"
              " FROM map JOIN images USING(tile_id) GROUP BY zoom_level",
    .remove = "DELETE FROM map WHERE rowid IN (SELECT rowid FROM map WHERE zoom_level IS :z LIMIT 2000)",
    .unused = "SELECT coalesce(sum(length(tile_data)), 0) FROM images"
              " WHERE tile_id NOT IN (SELECT tile_id FROM map WHERE tile_id IS NOT NULL)",
    .tidy_up = "DELETE FROM images WHERE tile_id NOT IN (SELECT tile_id FROM map WHERE tile_id IS NOT NULL)",
    .content = "SELECT tile_id FROM map WHERE tile_column=:x AND tile_row=:y AND zoom_level=:z AND tile_id LIKE '=%'",
    .remove_content = "DELETE FROM images WHERE tile_id = :key AND NOT EXISTS(SELECT 1 FROM map WHERE tile_id = :key)",
    .index_contents = "CREATE INDEX IF NOT EXISTS map_by_picture ON map(tile_id)",
    .table_groups = "SELECT NULL, NULL, NULL, zoom_level, count(*), 0, sum(length(tile_data)) FROM tiles"
                    " GROUP BY zoom_level",
    .table_remove = "DELETE FROM tiles WHERE rowid IN (SELECT rowid FROM tiles WHERE zoom_level IS :z LIMIT 2000)",
};

static const char remove_place[] = "DELETE FROM map WHERE tile_column=:x AND tile_row=:y AND zoom_level=:z";
/* That of a tile of one colour stays, as others refer to it. */
static const char remove_picture[] = "DELETE FROM images WHERE tile_id = :key";
static const char remove_row[] = "DELETE FROM tiles WHERE tile_column=:x AND tile_row=:y AND zoom_level=:z";

/* What the picture of a place is called, unless it is of one colour. */
static const char *
mbtiles_picture_id(const mc_tile_key *key, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%d-%d-%d", key->x, key->y, key->z);
}

/* Into the table of another program, whether it has an index or not. */
static mc_error *
put_mbtiles_row(mc_handle *handle, const mc_tile_write *tile, apr_pool_t *pool)
{
    sqlite_binds binds = { .data = tile->data->data, .size = tile->data->size };
    MC_TRY(mc_sqlite_run(handle, remove_row, &tile->key, NULL, pool));
    return mc_sqlite_run(handle,
                         "INSERT INTO tiles(zoom_level, tile_column, tile_row, tile_data) VALUES(:z, :x, :y, :data)",
                         &tile->key, &binds, pool);
}

static mc_error *
put_mbtiles_tile(mc_handle *handle, sqlite_cache *cache, const mc_tile_write *tile, apr_pool_t *pool)
{
    const mc_tile_key *key = &tile->key;
    sqlite_binds binds = { .id = mbtiles_picture_id(key, pool), .data = tile->data->data, .size = tile->data->size };
    bool view;
    MC_TRY(mc_sqlite_has_view(&view, handle, pool));
    if (!view)
        return put_mbtiles_row(handle, tile, pool);
    const char *images = "INSERT OR REPLACE INTO images(tile_id, tile_data) VALUES(:key, :data)";
    if (tile->uniform) {
        MC_TRY(mc_sqlite_run(handle, remove_picture, key, &binds, pool)); /* what the place had of its own */
        binds.id = apr_psprintf(pool, "#%02x%02x%02x%02x", tile->bgra[0], tile->bgra[1], tile->bgra[2], tile->bgra[3]);
        images = "INSERT OR IGNORE INTO images(tile_id, tile_data) VALUES(:key, :data)";
    }
    const char *shared = NULL;
    if (cache->deduplicate && !tile->uniform)
        MC_TRY(mc_dedup_put_picture(&shared, handle, binds.data, binds.size, pool));
    if (shared != NULL) {
        MC_TRY(mc_sqlite_run(handle, remove_picture, key, &binds, pool)); /* what the place had of its own */
        binds.id = shared;
    } else {
        MC_TRY(mc_sqlite_run(handle, images, key, &binds, pool));
    }
    return mc_sqlite_run(handle,
                         "INSERT OR REPLACE INTO map(tile_column, tile_row, zoom_level, tile_id)"
                         " VALUES(:x, :y, :z, :key)",
                         key, &binds, pool);
}

static mc_error *
remove_mbtiles_tile(mc_handle *handle, const sqlite_cache *cache, const mc_tile_key *key, apr_pool_t *pool)
{
    (void)cache;
    sqlite_binds binds = { .id = mbtiles_picture_id(key, pool) };
    bool view;
    MC_TRY(mc_sqlite_has_view(&view, handle, pool));
    if (!view)
        return mc_sqlite_run(handle, remove_row, key, NULL, pool);
    MC_TRY(mc_sqlite_run(handle, remove_place, key, NULL, pool));
    return mc_sqlite_run(handle, remove_picture, key, &binds, pool);
}

/* A row of the metadata, where there is none of that name. */
static mc_error *
add_metadata(mc_handle *handle, const mc_tile_key *key, const char *name, const char *value, apr_pool_t *pool)
{
    sqlite_binds binds = { .id = name, .color = value };
    return mc_sqlite_run(handle,
                         "INSERT INTO metadata(name, value) SELECT :key, :color"
                         " WHERE NOT EXISTS(SELECT 1 FROM metadata WHERE name = :key)",
                         key, &binds, pool);
}

/* Degrees of the grid's extent; NULL where the CRS is neither in degrees nor spherical Mercator. */
static const char *
mbtiles_bounds_text(const mc_grid *grid, apr_pool_t *pool)
{
    mc_extent box = grid->extent;
    if (grid->epsg == 3857 || grid->epsg == 900913) {
        const double radius = MC_EARTH_RADIUS;
        const double degrees = 180.0 / M_PI;
        box = (mc_extent){ box.minx / radius * degrees, atan(sinh(box.miny / radius)) * degrees,
                           box.maxx / radius * degrees, atan(sinh(box.maxy / radius)) * degrees };
    } else if (grid->epsg != 4326) {
        return NULL;
    }
    return apr_psprintf(pool, "%.6f,%.6f,%.6f,%.6f", box.minx, box.miny, box.maxx, box.maxy);
}

/* As MBTiles calls it (1.3, metadata). A mixed format has pictures of both kinds; the first one is told. */
static const char *
mbtiles_format_name(const mc_tile_write *tile)
{
    const mc_tile_key *key = &tile->key;
    mc_coding coding = mc_image_sniff(tile->data->data, tile->data->size);
    if (mc_coding_format(coding) != NULL)
        return coding == MC_CODING_PNG ? "png" : coding == MC_CODING_JPEG ? "jpg" : "webp";
    if (key->mime != NULL && strcmp(key->mime, "application/vnd.mapbox-vector-tile") == 0)
        return "pbf";
    return strcmp(key->extension, "jpeg") == 0 ? "jpg" : key->extension;
}

/* What vector tiles hold. A database that cannot say so now is asked again with the next tile; what other programs have
 * written stays. */
static mc_error *
put_layers(mc_handle *handle, const mc_tile_write *tile, mc_ctx *ctx)
{
    const char *layers = NULL;
    mc_error *error =
        tile->layers == NULL ? MC_OK : tile->layers(&layers, tile->layers_baton, &tile->key, ctx, ctx->pool);
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_WARN, error);
    if (layers == NULL || strcmp(layers, "[]") == 0) /* not known */
        return MC_OK;
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ctx->pool);
    mc_json_open_object(json, NULL);
    mc_json_raw(json, "vector_layers", layers);
    mc_json_close(json);
    return add_metadata(handle, &tile->key, "json", mc_json_finish_text(json), ctx->pool);
}

mc_error *
mc_mbtiles_put_metadata(mc_handle *handle, sqlite_cache *cache, const mc_tile_write *tile, mc_ctx *ctx)
{
    (void)cache;
    apr_pool_t *pool = ctx->pool;
    const mc_tile_key *key = &tile->key;
    const char *zoom = apr_itoa(pool, key->z);
    const char *bounds = mbtiles_bounds_text(key->grid, pool);
    MC_TRY(add_metadata(handle, key, "name", key->tileset, pool));
    MC_TRY(add_metadata(handle, key, "type", "overlay", pool));
    MC_TRY(add_metadata(handle, key, "version", "1", pool));
    MC_TRY(add_metadata(handle, key, "description", key->tileset, pool));
    MC_TRY(add_metadata(handle, key, "format", mbtiles_format_name(tile), pool));
    if (bounds != NULL)
        MC_TRY(add_metadata(handle, key, "bounds", bounds, pool));
    MC_TRY(put_layers(handle, tile, ctx));
    MC_TRY(add_metadata(handle, key, "minzoom", zoom, pool));
    MC_TRY(add_metadata(handle, key, "maxzoom", zoom, pool));
    return mc_sqlite_run(handle,
                         "UPDATE metadata SET value = :z WHERE (name = 'minzoom' AND CAST(value AS integer) > :z)"
                         " OR (name = 'maxzoom' AND CAST(value AS integer) < :z)",
                         key, NULL, pool);
}

typedef struct json_reading {
    mc_buf **json;
    apr_pool_t *pool;
} json_reading;

/* A mc_handle_work. */
static mc_error *
read_mbtiles_json(void *baton, mc_handle *handle)
{
    const json_reading *reading = baton;
    apr_pool_t *pool = reading->pool;
    sqlite3_stmt *statement;
    mc_error *error = mc_handle_statement(&statement, handle, "SELECT value FROM metadata WHERE name='json'", pool);
    if (error != MC_OK && mc_handle_lacks_table(handle))
        return MC_OK;
    MC_TRY(error);
    int code = sqlite3_step(statement);
    const void *text = code == SQLITE_ROW ? sqlite3_column_text(statement, 0) : NULL;
    if (text != NULL)
        *reading->json = mc_buf_attach(mc_buf_copy(text, (size_t)sqlite3_column_bytes(statement, 0)), pool);
    else if (code != SQLITE_ROW && code != SQLITE_DONE)
        error = mc_handle_error(handle, "the metadata of an MBTiles file cannot be read", pool);
    sqlite3_reset(statement);
    return error;
}

static mc_error *
mbtiles_metadata(mc_buf **json, mc_cache *base, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    const sqlite_cache *cache = (const sqlite_cache *)base;
    char path[MC_PATH_MAX];
    mc_stamp stamp;
    bool present;
    json_reading reading = { json, pool };
    *json = NULL;
    MC_TRY(mc_template_expand(path, cache->template, key, pool));
    if (mc_template_by_tile(cache->template))
        return MC_OK;
    MC_TRY(mc_handle_look(&present, &stamp, path, pool));
    if (!present)
        return MC_OK;
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    return mc_handle_read(handles, path, &stamp, &cache->reading, read_mbtiles_json, &reading, ctx, pool);
}

static void
mbtiles_used_by(mc_cache *cache, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    /* What all readers of MBTiles take for granted (1.3, tiles), rows from the south. */
    if (use->grid->origin != MC_BOTTOM_LEFT || !mc_grid_is_web_mercator(use->grid))
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "grid \"%s\" in an MBTiles file: other programs will find its tiles at wrong places, as they take"
                    " all for those of the world in spherical Mercator, counted from the lower left"
                    " (GoogleMapsCompatible)",
                    use->grid->name);
    mc_sqlite_used_by(cache, use, node, build);
}

static mc_cache *
mbtiles_from_config(const mc_node *node, mc_build *build)
{
    sqlite_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->create = create_sql;
    cache->get = "SELECT tile_data FROM tiles WHERE tile_column=:x AND tile_row=:y AND zoom_level=:z";
    cache->coverage = apr_psprintf(build->pool, "SELECT zoom_level, tile_column, tile_row FROM tiles LIMIT %d",
                                   MC_COVERAGE_TILES + 1);
    cache->exists = "SELECT 1 FROM tiles WHERE tile_column=:x AND tile_row=:y AND zoom_level=:z";
    /* In the order of the index: of the table of other programs (MBTiles 1.3, tiles), and of ours. */
    cache->list = "SELECT tile_column, tile_row FROM tiles WHERE zoom_level=:z AND (tile_column, tile_row) > (:x, :y)"
                  " AND tile_column >= :minx AND tile_column <= :maxx AND tile_row >= :miny AND tile_row <= :maxy"
                  " ORDER BY tile_column, tile_row LIMIT :most";
    cache->list_view =
        "SELECT tile_column, tile_row FROM map WHERE zoom_level=:z AND (tile_row, tile_column) > (:y, :x)"
        " AND tile_column >= :minx AND tile_column <= :maxx AND tile_row >= :miny AND tile_row <= :maxy"
        " ORDER BY tile_row, tile_column LIMIT :most";
    cache->counts = counts;
    cache->put_tile = put_mbtiles_tile;
    cache->remove_tile = remove_mbtiles_tile;
    cache->put_level = mc_mbtiles_put_metadata;
    cache->uses = apr_array_make(build->pool, 2, sizeof(mc_sqlite_use));
    return mc_sqlite_read(cache, &mc_cache_mbtiles, true, node, build) ? &cache->base.cache : NULL;
}

const mc_cache_ops mc_cache_mbtiles = {
    MC_KIND("mbtiles", mc_sqlite_keys, mbtiles_from_config, "Tiles in SQLite files of the MBTiles schema."),
    .sample = "<dbfile>{folder}/sample.mbtiles</dbfile>",
    .used_by = mbtiles_used_by,
    .metadata = mbtiles_metadata,
    MC_SQLITE_OPS,
};
