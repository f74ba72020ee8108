/*
 * The cache "geopackage": SQLite files with one tile pyramid each, as OGC 12-128 (GeoPackage 1.3, clause 2.2) has them.
 * Columns count from the west and rows from the north, whatever the grid's own origin is.
 */
#include <apr_strings.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "cache/sqlite/sqlite_base.h"
#include "text/text.h"

#define OF_TILE " WHERE zoom_level=:z AND tile_column=:column AND tile_row=:row"

#define WGS_84                                                                                                         \
    "GEOGCS[\"WGS 84\",DATUM[\"WGS_1984\",SPHEROID[\"WGS 84\",6378137,298.257223563,AUTHORITY[\"EPSG\",\"7030\"]],"    \
    "AUTHORITY[\"EPSG\",\"6326\"]],PRIMEM[\"Greenwich\",0,AUTHORITY[\"EPSG\",\"8901\"]],UNIT[\"degree\","              \
    "0.0174532925199433,AUTHORITY[\"EPSG\",\"9122\"]],AUTHORITY[\"EPSG\",\"4326\"]]"

#define MERCATOR                                                                                                       \
    "PROJCS[\"WGS 84 / Pseudo-Mercator\"," WGS_84 ",PROJECTION[\"Mercator_1SP\"],PARAMETER[\"central_meridian\",0],"   \
    "PARAMETER[\"scale_factor\",1],PARAMETER[\"false_easting\",0],PARAMETER[\"false_northing\",0],UNIT[\"metre\",1,"   \
    "AUTHORITY[\"EPSG\",\"9001\"]],AXIS[\"Easting\",EAST],AXIS[\"Northing\",NORTH],EXTENSION[\"PROJ4\",\"+proj=merc "  \
    "+a=6378137 +b=6378137 +lat_ts=0 +lon_0=0 +x_0=0 +y_0=0 +k=1 +units=m +nadgrids=@null +wktext +no_defs\"],"        \
    "AUTHORITY[\"EPSG\",\"3857\"]]"

/* Tables of clauses 1.1.2, 1.1.3, 2.2.6 and 2.2.7; %s: the tile table, quoted. */
static const char create_sql[] =
    "CREATE TABLE IF NOT EXISTS gpkg_spatial_ref_sys(srs_name TEXT NOT NULL, srs_id INTEGER NOT NULL PRIMARY KEY,"
    " organization TEXT NOT NULL, organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL,"
    " description TEXT);"
    "CREATE TABLE IF NOT EXISTS gpkg_contents(table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL,"
    " identifier TEXT UNIQUE, description TEXT DEFAULT '',"
    " last_change DATETIME NOT NULL DEFAULT (strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ','now')),"
    " min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER,"
    " CONSTRAINT fk_gc_r_srs_id FOREIGN KEY(srs_id) REFERENCES gpkg_spatial_ref_sys(srs_id));"
    "CREATE TABLE IF NOT EXISTS gpkg_tile_matrix_set(table_name TEXT NOT NULL PRIMARY KEY, srs_id INTEGER NOT NULL,"
    " min_x DOUBLE NOT NULL, min_y DOUBLE NOT NULL, max_x DOUBLE NOT NULL, max_y DOUBLE NOT NULL,"
    " CONSTRAINT fk_gtms_table_name FOREIGN KEY(table_name) REFERENCES gpkg_contents(table_name),"
    " CONSTRAINT fk_gtms_srs FOREIGN KEY(srs_id) REFERENCES gpkg_spatial_ref_sys(srs_id));"
    "CREATE TABLE IF NOT EXISTS gpkg_tile_matrix(table_name TEXT NOT NULL, zoom_level INTEGER NOT NULL,"
    " matrix_width INTEGER NOT NULL, matrix_height INTEGER NOT NULL, tile_width INTEGER NOT NULL,"
    " tile_height INTEGER NOT NULL, pixel_x_size DOUBLE NOT NULL, pixel_y_size DOUBLE NOT NULL,"
    " CONSTRAINT pk_ttm PRIMARY KEY(table_name, zoom_level),"
    " CONSTRAINT fk_tmm_table_name FOREIGN KEY(table_name) REFERENCES gpkg_contents(table_name));"
    "CREATE TABLE IF NOT EXISTS %s(id INTEGER PRIMARY KEY AUTOINCREMENT, zoom_level INTEGER NOT NULL,"
    " tile_column INTEGER NOT NULL, tile_row INTEGER NOT NULL, tile_data BLOB NOT NULL,"
    " UNIQUE(zoom_level, tile_column, tile_row))";

/* Clause 2.3.2.1.1. */
static const char create_extensions_sql[] =
    "CREATE TABLE IF NOT EXISTS gpkg_extensions(table_name TEXT, column_name TEXT, extension_name TEXT NOT NULL,"
    " definition TEXT NOT NULL, scope TEXT NOT NULL,"
    " CONSTRAINT ge_tce UNIQUE(table_name, column_name, extension_name))";

/* Where the north-west corner of a level lies: CRS units, x first. */
static void
geopackage_top_left(double *left, double *top, const mc_grid *grid, int z)
{
    const mc_level *level = &grid->levels[z];
    bool east = grid->origin == MC_TOP_RIGHT || grid->origin == MC_BOTTOM_RIGHT;
    bool north = grid->origin == MC_TOP_LEFT || grid->origin == MC_TOP_RIGHT;
    *left = east ? grid->extent.maxx - level->columns * (level->resolution * grid->tile_width) : grid->extent.minx;
    *top = north ? grid->extent.maxy : grid->extent.miny + level->rows * (level->resolution * grid->tile_height);
}

/* What all levels begin at and, in a GeoPackage that keeps to requirement 45, end at: the tiles of the coarsest one. */
static mc_extent
geopackage_matrix_box(const mc_grid *grid)
{
    const mc_level *coarsest = &grid->levels[0];
    double left, top;
    geopackage_top_left(&left, &top, grid, 0);
    return (mc_extent){ left, top - coarsest->rows * (coarsest->resolution * grid->tile_height),
                        left + coarsest->columns * (coarsest->resolution * grid->tile_width), top };
}

/* So many tiles of that length fill the box (requirement 45), also those that the grid has no use for; `own`, as the
 * grid has them, where no whole number does. */
static int
geopackage_tiles_across(double box, double tile, int own)
{
    double count = round(box / tile);
    bool whole = fabs(count * tile - box) <= box * 1e-6 && count >= own && count <= INT_MAX;
    return whole ? (int)count : own;
}

static int
geopackage_matrix_width(const mc_grid *grid, int z)
{
    const mc_extent box = geopackage_matrix_box(grid);
    const mc_level *level = &grid->levels[z];
    return geopackage_tiles_across(box.maxx - box.minx, level->resolution * grid->tile_width, level->columns);
}

static int
height_of(const mc_grid *grid, int z)
{
    const mc_extent box = geopackage_matrix_box(grid);
    const mc_level *level = &grid->levels[z];
    return geopackage_tiles_across(box.maxy - box.miny, level->resolution * grid->tile_height, level->rows);
}

/* Requirement 35: pixels of half the size with each level; others need an extension. */
static bool
grid_levels_halve(const mc_grid *grid)
{
    for (int z = 1; z < grid->level_count; z++)
        if (fabs(grid->levels[z - 1].resolution / grid->levels[z].resolution - 2) > 1e-5)
            return false;
    return true;
}

static int
srs_of(const mc_grid *grid)
{
    return grid->epsg == 900913 ? 3857 : grid->epsg == 0 ? -1 : grid->epsg;
}

/* Clause 1.1.2.1.2: three rows must be there; ours comes with them. */
static mc_error *
describe_srs(mc_handle *handle, const mc_grid *grid, apr_pool_t *pool)
{
    static const char required[] =
        "INSERT OR IGNORE INTO gpkg_spatial_ref_sys VALUES"
        "('Undefined cartesian SRS', -1, 'NONE', -1, 'undefined', NULL),"
        "('Undefined geographic SRS', 0, 'NONE', 0, 'undefined', NULL), ('WGS 84', 4326, 'EPSG', 4326, '" WGS_84
        "', NULL)";
    int srs = srs_of(grid);
    MC_TRY(mc_sqlite_run(handle, required, NULL, NULL, pool));
    if (srs == -1 || srs == 4326)
        return MC_OK;
    sqlite_binds binds = { .id = apr_psprintf(pool, "EPSG:%d", srs), .color = srs == 3857 ? MERCATOR : "undefined" };
    return mc_sqlite_run(
        handle,
        apr_psprintf(pool, "INSERT OR IGNORE INTO gpkg_spatial_ref_sys VALUES(:key, %d, 'EPSG', %d, :color, NULL)", srs,
                     srs),
        NULL, &binds, pool);
}

static const char *
geopackage_number_text(double value, apr_pool_t *pool)
{
    return mc_double_text('g', 17, value, pool);
}

static mc_error *
describe_matrices(mc_handle *handle, const sqlite_cache *cache, const mc_grid *grid, apr_pool_t *pool)
{
    sqlite_binds binds = { .id = cache->table };
    for (int z = 0; z < grid->level_count; z++) {
        const mc_level *level = &grid->levels[z];
        const char *size = geopackage_number_text(level->resolution, pool);
        const char *sql = apr_psprintf(
            pool, "INSERT OR IGNORE INTO gpkg_tile_matrix VALUES(:key, %d, %d, %d, %d, %d, %s, %s)", z,
            geopackage_matrix_width(grid, z), height_of(grid, z), grid->tile_width, grid->tile_height, size, size);
        MC_TRY(mc_sqlite_run(handle, sql, NULL, &binds, pool));
    }
    if (grid_levels_halve(grid))
        return MC_OK;
    MC_TRY(mc_sqlite_run(handle, create_extensions_sql, NULL, NULL, pool));
    return mc_sqlite_run(handle,
                         "INSERT OR IGNORE INTO gpkg_extensions VALUES(:key, 'tile_data', 'gpkg_zoom_other',"
                         " 'http://www.geopackage.org/spec130/#extension_zoom_other_intervals', 'read-write')",
                         NULL, &binds, pool);
}

/* A new file is a GeoPackage 1.3 (clause 1.1.1.1.1; 0x47504B47 is "GPKG"); one that is there keeps its version. */
static mc_error *
set_geopackage_pragmas(mc_handle *handle, apr_pool_t *pool)
{
    sqlite3_stmt *statement;
    MC_TRY(mc_handle_statement(&statement, handle, "PRAGMA application_id", pool));
    bool marked = sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) != 0;
    sqlite3_reset(statement);
    if (marked)
        return MC_OK;
    MC_TRY(mc_sqlite_run(handle, "PRAGMA application_id=1196444487", NULL, NULL, pool));
    return mc_sqlite_run(handle, "PRAGMA user_version=10300", NULL, NULL, pool);
}

static const char *
geopackage_box_text(const mc_extent *box, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%s, %s, %s, %s", geopackage_number_text(box->minx, pool),
                        geopackage_number_text(box->miny, pool), geopackage_number_text(box->maxx, pool),
                        geopackage_number_text(box->maxy, pool));
}

/* What the file says of its tiles, with the first of them, or the first of a level that it does not tell yet.
 * Identifiers are unique in a file: that of a second table of a tileset is the table's name. */
static mc_error *
describe_geopackage_grid(mc_handle *handle, const sqlite_cache *cache, const mc_tile_key *key, apr_pool_t *pool)
{
    const mc_grid *grid = key->grid;
    const mc_extent box = geopackage_matrix_box(grid);
    /* What is of use to a reader: without what the last tiles have beyond the grid. Pixels count from the corner. */
    const mc_extent content = { box.minx, fmax(box.miny, grid->extent.miny), fmin(box.maxx, grid->extent.maxx),
                                box.maxy };
    sqlite_binds binds = { .id = cache->table };
    MC_TRY(set_geopackage_pragmas(handle, pool));
    MC_TRY(describe_srs(handle, grid, pool));
    static const char *const identifiers[] = { ":tileset", ":key" };
    for (int i = 0; i < 2; i++)
        MC_TRY(
            mc_sqlite_run(handle,
                          apr_psprintf(pool,
                                       "INSERT OR IGNORE INTO gpkg_contents(table_name, data_type, identifier, min_x,"
                                       " min_y, max_x, max_y, srs_id) VALUES(:key, 'tiles', %s, %s, %d)",
                                       identifiers[i], geopackage_box_text(&content, pool), srs_of(grid)),
                          key, &binds, pool));
    MC_TRY(mc_sqlite_run(handle,
                         apr_psprintf(pool, "INSERT OR IGNORE INTO gpkg_tile_matrix_set VALUES(:key, %d, %s)",
                                      srs_of(grid), geopackage_box_text(&box, pool)),
                         NULL, &binds, pool));
    return describe_matrices(handle, cache, grid, pool);
}

/* A tile of another pyramid would lie at a wrong place for all who read the file. */
static mc_error *
check_matrix(sqlite3_stmt *statement, const mc_tile_key *key, apr_pool_t *pool)
{
    double left, top;
    const mc_level *level = &key->grid->levels[key->z];
    geopackage_top_left(&left, &top, key->grid, key->z);
    bool fits = sqlite3_column_int(statement, 0) == srs_of(key->grid) &&
                fabs(sqlite3_column_double(statement, 1) - left) < level->resolution / 100 &&
                fabs(sqlite3_column_double(statement, 2) - top) < level->resolution / 100 &&
                sqlite3_column_int(statement, 3) >= level->columns && sqlite3_column_int(statement, 4) >= level->rows &&
                fabs(sqlite3_column_double(statement, 5) / level->resolution - 1) < 1e-9 &&
                fabs(sqlite3_column_double(statement, 6) / level->resolution - 1) < 1e-9 &&
                sqlite3_column_int(statement, 7) == key->grid->tile_width &&
                sqlite3_column_int(statement, 8) == key->grid->tile_height;
    if (fits)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_CONFIG,
                           "the tile matrix set of a GeoPackage file is not that of grid %s at level %d: another"
                           " <dbfile> or <table> keeps them apart",
                           key->grid->name, key->z);
}

/* *found: the file has the tile matrix; an error where it is another one than the tile's. */
static mc_error *
look_up_geopackage_level(bool *found, mc_handle *handle, const sqlite_cache *cache, const mc_tile_key *key,
                         apr_pool_t *pool)
{
    static const char sql[] =
        "SELECT s.srs_id, s.min_x, s.max_y, m.matrix_width, m.matrix_height, m.pixel_x_size, m.pixel_y_size,"
        " m.tile_width, m.tile_height FROM gpkg_tile_matrix_set s JOIN gpkg_tile_matrix m USING(table_name) WHERE "
        "table_name=:key AND zoom_level=:z";
    sqlite_binds binds = { .id = cache->table };
    sqlite3_stmt *statement;
    MC_TRY(mc_handle_statement(&statement, handle, sql, pool));
    MC_TRY(mc_sqlite_bind(statement, handle, key, &binds, pool));
    int code = sqlite3_step(statement);
    *found = code == SQLITE_ROW;
    mc_error *error = MC_OK;
    if (code == SQLITE_ROW)
        error = check_matrix(statement, key, pool);
    else if (code != SQLITE_DONE)
        error = mc_handle_error(handle, "a tile store cannot be read", pool);
    sqlite3_reset(statement);
    return error;
}

/* What others have stored may be of another pyramid, too. A file without these tables is none of a GeoPackage's. */
static mc_error *
check_geopackage_level(mc_handle *handle, const sqlite_cache *cache, const mc_tile_key *key, apr_pool_t *pool)
{
    bool found;
    mc_error *error = look_up_geopackage_level(&found, handle, cache, key, pool);
    return error != MC_OK && mc_handle_lacks_table(handle) ? MC_OK : error;
}

static mc_error *
put_geopackage_tile(mc_handle *handle, sqlite_cache *cache, const mc_tile_write *tile, apr_pool_t *pool)
{
    bool described;
    MC_TRY(look_up_geopackage_level(&described, handle, cache, &tile->key, pool));
    if (!described) {
        MC_TRY(describe_geopackage_grid(handle, cache, &tile->key, pool));
        MC_TRY(look_up_geopackage_level(&described, handle, cache, &tile->key,
                                        pool)); /* what was there already may be of another grid */
    }
    sqlite_binds binds = { .data = tile->data->data, .size = tile->data->size };
    return mc_sqlite_run(handle, cache->set, &tile->key, &binds, pool);
}

static mc_error *
put_change(mc_handle *handle, sqlite_cache *cache, const mc_tile_write *tile, mc_ctx *ctx)
{
    sqlite_binds binds = { .id = cache->table };
    return mc_sqlite_run(handle,
                         "UPDATE gpkg_contents SET last_change = strftime('%Y-%m-%dT%H:%M:%fZ','now')"
                         " WHERE table_name = :key",
                         &tile->key, &binds, ctx->pool);
}

/* All levels of a tile matrix set share their north-west corner (clause 2.2.6.1.2). */
static void
geopackage_used_by(mc_cache *base, const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    const mc_grid *grid = use->grid;
    double left, top, first_left, first_top;
    geopackage_top_left(&first_left, &first_top, grid, 0);
    for (int z = 1; z < grid->level_count; z++) {
        geopackage_top_left(&left, &top, grid, z);
        double slack = grid->levels[z].resolution / 100;
        if (fabs(left - first_left) < slack && fabs(top - first_top) < slack)
            continue;
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "grid \"%s\" does not fit into a GeoPackage: its levels 0 and %d begin at different north-west"
                    " corners (an <origin> of top-left makes them the same)",
                    grid->name, z);
        return;
    }
    bool filled = true;
    const mc_extent box = geopackage_matrix_box(grid);
    for (int z = 1; z < grid->level_count; z++) {
        double size = grid->levels[z].resolution;
        filled = filled &&
                 fabs(geopackage_matrix_width(grid, z) * size * grid->tile_width / (box.maxx - box.minx) - 1) < 1e-3 &&
                 fabs(height_of(grid, z) * size * grid->tile_height / (box.maxy - box.miny) - 1) < 1e-3;
    }
    if (!filled)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "the tiles of the levels of grid \"%s\" do not end at the same edges: GDAL and QGIS read such a"
                    " GeoPackage, stricter programs refuse it (OGC 12-128, requirement 45)",
                    grid->name);
    mc_sqlite_used_by(base, use, node, build);
}

/* Names of the standard's own tables, of SQLite's, and of indexes. */
static bool
is_taken(const char *name)
{
    return strncasecmp(name, "gpkg_", 5) == 0 || strncasecmp(name, "sqlite_", 7) == 0 ||
           strncasecmp(name, "rtree_", 6) == 0;
}

/* table: quoted. */
static void
set_statements(sqlite_cache *cache, const char *table, apr_pool_t *pool)
{
    cache->create = apr_psprintf(pool, create_sql, table);
    cache->get = apr_psprintf(pool, "SELECT tile_data FROM %s" OF_TILE, table);
    cache->exists = apr_psprintf(pool, "SELECT 1 FROM %s" OF_TILE, table);
    cache->remove = apr_psprintf(pool, "DELETE FROM %s" OF_TILE, table);
    cache->set = apr_psprintf(pool,
                              "INSERT INTO %s(zoom_level, tile_column, tile_row, tile_data) VALUES(:z, :column, :row,"
                              " :data) ON CONFLICT(zoom_level, tile_column, tile_row) DO UPDATE SET tile_data ="
                              " excluded.tile_data",
                              table);
    cache->north_west = true;
    cache->list = apr_psprintf(pool,
                               "SELECT tile_column, tile_row FROM %s WHERE zoom_level=:z AND (tile_column, tile_row) >"
                               " (:column, :row) AND tile_column >= :mincolumn AND tile_column <= :maxcolumn"
                               " AND tile_row >= :minrow AND tile_row <= :maxrow"
                               " ORDER BY tile_column, tile_row LIMIT :most",
                               table);
    cache->counts.area = apr_psprintf(pool,
                                      "SELECT count(*) FROM %s WHERE zoom_level=:z AND tile_column >= :mincolumn"
                                      " AND tile_column <= :maxcolumn AND tile_row >= :minrow AND tile_row <= :maxrow",
                                      table);
    cache->counts.series = apr_psprintf(pool, "SELECT count(*) FROM %s", table);
    cache->counts.groups =
        apr_psprintf(pool,
                     "SELECT NULL, NULL, NULL, zoom_level, count(*), 0, sum(length(tile_data)) FROM %s"
                     " GROUP BY zoom_level",
                     table);
    cache->counts.remove = apr_psprintf(
        pool, "DELETE FROM %s WHERE rowid IN (SELECT rowid FROM %s WHERE zoom_level IS :z LIMIT 2000)", table, table);
}

static mc_cache *
geopackage_from_config(const mc_node *node, mc_build *build)
{
    sqlite_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    const mc_node *named = mc_node_child(node, "table");
    const char *name = named == NULL || named->text == NULL ? "tiles" : named->text;
    if (is_taken(name)) {
        mc_complain(build->diagnostics, MC_REFUSED, named,
                    "a table of tiles cannot be called %s: names that begin with gpkg_, rtree_ or sqlite_ are taken",
                    mc_config_quote(name, build->pool));
        return NULL;
    }
    set_statements(cache, mc_sql_name(name, build->pool), build->pool);
    cache->put_tile = put_geopackage_tile;
    const char *get = cache->get;
    cache->put_level = put_change;
    cache->uses = apr_array_make(build->pool, 2, sizeof(mc_sqlite_use));
    if (!mc_sqlite_read(cache, &mc_cache_geopackage, true, node, build))
        return NULL;
    cache->table = name;
    cache->check_level = cache->get == get ? check_geopackage_level : NULL;
    if (cache->detect_blank)
        mc_complain(build->diagnostics, MC_WARNING, mc_node_child(node, "detect_blank"),
                    "a GeoPackage holds pictures only: <detect_blank> does nothing here");
    return &cache->base.cache;
}

const mc_cache_ops mc_cache_geopackage = {
    MC_KIND("geopackage", mc_geopackage_keys, geopackage_from_config,
            "Tiles in GeoPackage files, as GDAL and QGIS read them: one tileset and grid for each file."),
    .sample = "<dbfile>{folder}/sample.gpkg</dbfile>",
    .pictures_only = true,
    .used_by = geopackage_used_by,
    MC_SQLITE_OPS,
};
