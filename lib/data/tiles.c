/* Files of tiles: MBTiles, GeoPackage and the SQLite caches of ours and of MapCache. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/stamp.h"
#include "data/data_private.h"
#include "db/sqlite/handles.h"
#include "grid/earth.h"
#include "mapcache/image.h"
#include "text/text.h"

enum { TABLES_MAX = 200, LEVELS_MAX = 30, SAMPLED_ROWS = 100000 };

/* A file that is open. */
typedef struct tile_file {
    mc_data_search *search;
    mc_handle *handle;
    const char *path;
    apr_pool_t *pool;
} tile_file;

/* Told of a row; false ends the list. */
typedef bool row_visitor(void *baton, sqlite3_stmt *row);

static mc_error *
visit_rows(tile_file *file, const char *sql, row_visitor *visit, void *baton)
{
    sqlite3_stmt *statement;
    MC_TRY(mc_handle_statement(&statement, file->handle, sql, file->pool));
    int status = sqlite3_step(statement);
    while (status == SQLITE_ROW && visit(baton, statement))
        status = sqlite3_step(statement);
    mc_error *error = status == SQLITE_ROW || status == SQLITE_DONE
                          ? MC_OK
                          : mc_handle_error(file->handle, "the file cannot be read", file->pool);
    sqlite3_reset(statement);
    return error;
}

static const char *
text_column(sqlite3_stmt *row, int column, apr_pool_t *pool)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text == NULL ? NULL : apr_pstrndup(pool, text, 4000);
}

/* Whether there is a table or view with these columns. */
static bool
has_columns(tile_file *file, const char *table, const char *columns)
{
    sqlite3_stmt *statement = NULL;
    const char *sql = apr_psprintf(file->pool, "SELECT %s FROM %s LIMIT 0", columns, table);
    bool found = sqlite3_prepare_v2(mc_handle_db(file->handle), sql, -1, &statement, NULL) == SQLITE_OK;
    sqlite3_finalize(statement);
    return found;
}

/* --- formats ------------------------------------------------------------------------------------------------------ */

static bool
take_format(void *baton, sqlite3_stmt *row)
{
    const uint8_t *bytes = sqlite3_column_blob(row, 0);
    size_t size = (size_t)sqlite3_column_bytes(row, 0);
    const char **format = baton;
    mc_coding coding = bytes == NULL ? MC_CODING_UNKNOWN : mc_image_sniff(bytes, size);
    if (size > 0 && bytes[0] == '#')
        *format = "PNG"; /* one colour, as our caches store it */
    else if (mc_coding_format(coding) != NULL)
        *format = mc_coding_format(coding);
    else if (size > 2 && ((bytes[0] == 0x1f && bytes[1] == 0x8b) || bytes[0] == 0x1a))
        *format = "MVT";
    else
        *format = NULL;
    return *format == NULL;
}

/* Of the first tile that tells. */
static const char *
sniff_format(tile_file *file, const char *table, const char *column)
{
    const char *format = NULL;
    const char *sql = apr_psprintf(file->pool, "SELECT %s FROM %s LIMIT 20", column, table);
    return visit_rows(file, sql, take_format, &format) == MC_OK ? format : NULL;
}

/* --- MBTiles (1.3) ------------------------------------------------------------------------------------------------ */

static bool
take_metadata(void *baton, sqlite3_stmt *row)
{
    apr_table_t *values = baton;
    const char *name = (const char *)sqlite3_column_text(row, 0), *value = (const char *)sqlite3_column_text(row, 1);
    if (name != NULL && value != NULL && strlen(value) < 4000 && strcmp(name, "json") != 0)
        apr_table_set(values, name, value);
    return true;
}

typedef struct level_span {
    bool any;
    int first, last;
    mc_tile_range coarsest; /* tiles of the first level, inclusive */
} level_span;

static bool
take_levels(void *baton, sqlite3_stmt *row)
{
    level_span *span = baton;
    span->any = sqlite3_column_type(row, 0) == SQLITE_INTEGER && sqlite3_column_int64(row, 0) >= 0 &&
                sqlite3_column_int64(row, 1) <= LEVELS_MAX;
    span->first = sqlite3_column_int(row, 0);
    span->last = sqlite3_column_int(row, 1);
    return false;
}

static bool
take_range(void *baton, sqlite3_stmt *row)
{
    level_span *span = baton;
    span->coarsest = (mc_tile_range){ sqlite3_column_int(row, 0), sqlite3_column_int(row, 1),
                                      sqlite3_column_int(row, 2), sqlite3_column_int(row, 3) };
    return false;
}

/* Rows from the south. */
static mc_extent
box_of_tiles(const mc_tile_range *tiles, int level)
{
    double side = 2 * MC_WEB_MERCATOR_HALF / ldexp(1, level), half = MC_WEB_MERCATOR_HALF;
    return (mc_extent){ tiles->minx * side - half, tiles->miny * side - half, (tiles->maxx + 1) * side - half,
                        (tiles->maxy + 1) * side - half };
}

/* Where the file does not say it: by the tiles of its coarsest level, which are few. */
static void
measure_mbtiles(mc_data_layer *layer, tile_file *file)
{
    level_span span = { 0 };
    if (visit_rows(file, "SELECT min(zoom_level), max(zoom_level) FROM tiles", take_levels, &span) != MC_OK ||
        !span.any)
        return;
    if (layer->minzoom < 0)
        layer->minzoom = span.first;
    if (layer->maxzoom < 0)
        layer->maxzoom = span.last;
    const char *sql = apr_psprintf(file->pool,
                                   "SELECT min(tile_column), min(tile_row), max(tile_column), max(tile_row) FROM tiles "
                                   "WHERE zoom_level = %d",
                                   span.first);
    if (layer->has_extent || visit_rows(file, sql, take_range, &span) != MC_OK)
        return;
    layer->extent = box_of_tiles(&span.coarsest, span.first);
    layer->srs = "EPSG:3857";
    layer->has_extent = true;
}

static int
level_of_text(const char *text)
{
    int level;
    return text != NULL && mc_parse_int(&level, text, 0, LEVELS_MAX) ? level : -1;
}

static void
describe_mbtiles(mc_data_layer *layer, tile_file *file, const apr_table_t *values)
{
    double box[4];
    int found = 0;
    const char *bounds = apr_table_get(values, "bounds");
    layer->title = apr_table_get(values, "name");
    layer->description = apr_table_get(values, "description");
    layer->attribution = apr_table_get(values, "attribution");
    layer->minzoom = level_of_text(apr_table_get(values, "minzoom"));
    layer->maxzoom = level_of_text(apr_table_get(values, "maxzoom"));
    if (bounds != NULL && mc_parse_doubles(box, 4, &found, bounds, " ,") && found == 4) {
        layer->extent = (mc_extent){ box[0], box[1], box[2], box[3] };
        layer->has_extent = mc_extent_valid(&layer->extent);
        layer->srs = "CRS:84";
    }
    if (!layer->has_extent || layer->minzoom < 0 || layer->maxzoom < layer->minzoom)
        measure_mbtiles(layer, file);
    mc_data_place(layer, 0, file->pool);
}

static mc_error *
look_at_mbtiles(tile_file *file)
{
    mc_data_search *search = file->search;
    apr_table_t *values = apr_table_make(search->pool, 16);
    MC_TRY(visit_rows(file, "SELECT name, value FROM metadata LIMIT 1000", take_metadata, values));
    const char *format = sniff_format(file, "tiles", "tile_data");
    if (format == NULL) {
        mc_data_note(search, "%s: its tiles are neither PNG nor JPEG nor WebP nor MVT", file->path);
        return MC_OK;
    }
    mc_data_layer *layer = mc_data_add(search, MC_DATA_TILES, "mbtiles");
    if (layer == NULL)
        return MC_OK;
    layer->format = format;
    layer->data = file->path;
    layer->name = mc_data_stem(file->path, search->pool);
    describe_mbtiles(layer, file, values);
    return MC_OK;
}

/* --- GeoPackage (OGC 12-128r17, 2.2) ------------------------------------------------------------------------------ */

typedef struct tile_tables {
    tile_file *file;
    apr_array_header_t *layers; /* of mc_data_layer, not added yet */
    bool features;
} tile_tables;

static bool
take_contents(void *baton, sqlite3_stmt *row)
{
    tile_tables *tables = baton;
    apr_pool_t *pool = tables->file->search->pool;
    const char *type = (const char *)sqlite3_column_text(row, 1);
    if (type == NULL || strcmp(type, "tiles") != 0) {
        tables->features = tables->features || (type != NULL && strcmp(type, "features") == 0);
        return true;
    }
    mc_data_layer *layer = apr_array_push(tables->layers);
    *layer = (mc_data_layer){ .kind = MC_DATA_TILES, .type = "geopackage", .minzoom = -1, .maxzoom = -1 };
    layer->table = text_column(row, 0, pool);
    layer->title = text_column(row, 2, pool);
    layer->description = text_column(row, 3, pool);
    layer->extent = (mc_extent){ sqlite3_column_double(row, 4), sqlite3_column_double(row, 5),
                                 sqlite3_column_double(row, 6), sqlite3_column_double(row, 7) };
    layer->has_extent = sqlite3_column_type(row, 4) != SQLITE_NULL && mc_extent_valid(&layer->extent);
    layer->srs = apr_psprintf(pool, "EPSG:%d", sqlite3_column_int(row, 8));
    return tables->layers->nelts < TABLES_MAX;
}

/* Whether a table's levels are those of GoogleMapsCompatible. */
typedef struct matrix_check {
    bool suits;
    int first, last;
} matrix_check;

static bool
check_tile_matrix(void *baton, sqlite3_stmt *row)
{
    matrix_check *check = baton;
    int level = sqlite3_column_int(row, 0);
    bool suits = level >= 0 && level <= LEVELS_MAX && sqlite3_column_int64(row, 1) == (int64_t)1 << level &&
                 sqlite3_column_int64(row, 2) == (int64_t)1 << level && sqlite3_column_int(row, 3) == 256 &&
                 sqlite3_column_int(row, 4) == 256 && fabs(sqlite3_column_double(row, 5) + MC_WEB_MERCATOR_HALF) < 1 &&
                 fabs(sqlite3_column_double(row, 6) - MC_WEB_MERCATOR_HALF) < 1 && sqlite3_column_int(row, 7) == 3857;
    check->suits = suits && (check->last < 0 || check->suits);
    check->first = check->last < 0 || level < check->first ? level : check->first;
    check->last = level > check->last ? level : check->last;
    return suits;
}

/* Served as they are stored where they lie as those of web maps do; else drawn, as GDAL reads them. */
static void
add_tile_table(tile_file *file, const mc_data_layer *about)
{
    mc_data_search *search = file->search;
    matrix_check check = { .last = -1 };
    const char *format = sniff_format(file, mc_sql_name(about->table, file->pool), "tile_data");
    const char *literal = mc_replace_all(about->table, "'", "''", file->pool);
    const char *sql = apr_psprintf(file->pool,
                                   "SELECT m.zoom_level, m.matrix_width, m.matrix_height, m.tile_width, m.tile_height, "
                                   "s.min_x, s.max_y, s.srs_id FROM gpkg_tile_matrix m JOIN gpkg_tile_matrix_set s "
                                   "USING(table_name) WHERE m.table_name = '%s' LIMIT 100",
                                   literal);
    bool known = visit_rows(file, sql, check_tile_matrix, &check) == MC_OK;
    bool plain = strpbrk(about->table, ":") == NULL;
    bool stored =
        known && check.suits && format != NULL && strcmp(format, "MVT") != 0 && strchr(file->path, '{') == NULL;
    if (!stored && !plain) {
        mc_data_note(search, "%s: the table \"%s\" has tiles that are not those of web maps", file->path, about->table);
        return;
    }
    mc_data_layer *layer = mc_data_add(search, stored ? MC_DATA_TILES : MC_DATA_RASTER, stored ? "geopackage" : "gdal");
    if (layer == NULL)
        return;
    mc_data_kind kind = layer->kind;
    const char *type = layer->type;
    *layer = *about;
    layer->kind = kind;
    layer->type = type;
    layer->name = about->table;
    layer->format = format;
    layer->data = stored ? file->path : apr_pstrcat(search->pool, "GPKG:", file->path, ":", about->table, NULL);
    layer->minzoom = stored ? check.first : -1;
    layer->maxzoom = stored ? check.last : -1;
    layer->transparent = true;
    if (!stored)
        layer->table = NULL;
    mc_data_place(layer, 0, search->pool);
}

static mc_error *
look_at_geopackage(tile_file *file, const char *part)
{
    tile_tables tables = { file, apr_array_make(file->pool, 4, sizeof(mc_data_layer)), false };
    bool taken = false;
    MC_TRY(visit_rows(file,
                      "SELECT table_name, data_type, identifier, description, min_x, min_y, max_x, max_y, srs_id FROM "
                      "gpkg_contents ORDER BY rowid LIMIT 1000",
                      take_contents, &tables));
    for (int i = 0; i < tables.layers->nelts; i++) {
        const mc_data_layer *about = &APR_ARRAY_IDX(tables.layers, i, mc_data_layer);
        if (about->table == NULL || (part != NULL && strcmp(part, about->table) != 0))
            continue;
        add_tile_table(file, about);
        taken = true;
    }
    if (!tables.features || (part != NULL && taken))
        return MC_OK;
    return mc_data_look_gdal(file->search, file->path, part);
}

/* --- caches of ours and of MapCache ------------------------------------------------------------------------------- */

static bool
take_group(void *baton, sqlite3_stmt *row)
{
    tile_file *file = baton;
    mc_data_search *search = file->search;
    const char *tileset = text_column(row, 0, search->pool), *grid = text_column(row, 1, search->pool);
    bool builtin = grid != NULL &&
                   (strcmp(grid, "GoogleMapsCompatible") == 0 || strcmp(grid, "WGS84") == 0 || strcmp(grid, "g") == 0);
    if (tileset == NULL || !builtin) {
        mc_data_note(search, "%s: the tiles of grid \"%s\" need a configuration that has this grid", file->path,
                     grid == NULL ? "" : grid);
        return true;
    }
    mc_data_layer *layer = mc_data_add(search, MC_DATA_TILES, "sqlite3");
    if (layer == NULL)
        return false;
    layer->name = layer->tileset = tileset;
    layer->grid = grid;
    layer->data = file->path;
    return true;
}

static mc_error *
look_at_sqlite_cache(tile_file *file)
{
    int first = file->search->layers->nelts;
    const char *sql = apr_psprintf(file->pool,
                                   "SELECT DISTINCT tileset, grid FROM (SELECT tileset, grid FROM tiles LIMIT %d) "
                                   "WHERE grid NOT LIKE '%%@_x' LIMIT %d",
                                   SAMPLED_ROWS, TABLES_MAX);
    MC_TRY(visit_rows(file, sql, take_group, file));
    const char *format = sniff_format(file, "tiles", "data");
    for (int i = first; i < file->search->layers->nelts; i++)
        APR_ARRAY_IDX(file->search->layers, i, mc_data_layer *)->format = format;
    return MC_OK;
}

/* --- a file ------------------------------------------------------------------------------------------------------- */

static mc_error *
look_into_file(bool *known, tile_file *file, const char *part)
{
    bool template = strchr(file->path, '{') != NULL;
    bool geopackage = has_columns(file, "gpkg_contents", "table_name, data_type");
    bool mbtiles = !geopackage && has_columns(file, "tiles", "zoom_level, tile_column, tile_row, tile_data") &&
                   has_columns(file, "metadata", "name, value");
    bool cache = !geopackage && !mbtiles && has_columns(file, "tiles", "tileset, grid, x, y, z, data, dim");
    *known = geopackage || mbtiles || cache;
    if (geopackage)
        return look_at_geopackage(file, part);
    if (*known && template) {
        mc_data_note(file->search, "%s: a file of tiles cannot have { in its name", file->path);
        return MC_OK;
    }
    return mbtiles ? look_at_mbtiles(file) : cache ? look_at_sqlite_cache(file) : MC_OK;
}

mc_error *
mc_data_look_tiles(bool *known, mc_data_search *search, const char *path, const char *part)
{
    mc_stamp stamp;
    mc_open_options how = { 0 };
    tile_file file = { .search = search, .path = apr_pstrdup(search->pool, path), .pool = search->pool };
    *known = false;
    if (!mc_stamp_take(&stamp, path))
        return mc_error_create(search->pool, MC_ERR_UNAVAILABLE, "there is no file \"%s\"", path);
    how.profile = mc_open_options_profile(&how);
    MC_TRY(mc_handle_acquire(&file.handle, NULL, path, &stamp, &how, search->ctx, search->pool));
    mc_error *error = look_into_file(known, &file, part);
    mc_handle_release(file.handle, false);
    return error;
}
