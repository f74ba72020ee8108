/* `mapcache detail`, or mapcache_detail: how much of an area the SQLite files of a tileset hold
 * (docs/reference/services.md 10). */
#include <apr_hash.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/common/ogr_area.h"
#include "cli/common/style.h"
#include "cli/common/values.h"
#include "detail_area.h"
#include "detail_json.h"
#include "detail_stores.h"
#include "detail_table.h"
#include "mapcache/seed.h"
#include "mapcache/server.h"
#include "text/text.h"

/* Of a level that nobody has named. A store of a file for each 8 x 8 tiles has a thousand million of them at level 18.
 */
enum { MOST_MISSING_FILES = 1000000 };

typedef struct detail {
    apr_pool_t *pool;
    const char *config, *tileset_name, *grid_name, *query;
    apr_table_t *dimensions;
    bool ours;   /* `mapcache detail`: more kinds of stores than mapcache_detail knows, and what it cannot tell */
    bool stores; /* a part about the stores themselves */
    bool brief, has_extent, has_zoom, wants_json;
    bool quiet;
    bool writes_json, shows_progress; /* `mapcache detail` prints a table, and its progress on terminals only */
    int zooms[2];
    mc_detail_area area;

    FILE *out; /* where the report waits until it is whole */
    mc_json_writer *json;
    mc_server *server;
    mc_tileset *tileset;
    const mc_grid_link *link;
    const char **values;
    apr_hash_t *counted; /* files whose size is in the sum */
    int64_t files_bytes, files_tiles, missing_files;
    mc_detail_tiles in_level, in_cache;
    int64_t files_in_level, missing_in_level;
    bool gave_up; /* at this level: more files could be there than are looked for unless the level is named */
    mc_detail_summary summary;
    bool counts_dense;
    apr_array_header_t *dense; /* of mc_detail_summary: of the tiles for fine screens */
    int z;
    double done; /* of the survey, 0..1 */
    double share;
    mc_error *failed; /* while a file was written */
} detail;

static bool
parse_detail_zooms(void *field, const char *text, apr_pool_t *pool)
{
    detail *d = field;
    int *zooms = d->zooms;
    const char *comma = strchr(text, ',');
    const char *first = comma == NULL ? text : apr_pstrmemdup(pool, text, (size_t)(comma - text));
    if (!mc_parse_int(&zooms[0], first, 0, 1000))
        return false;
    zooms[1] = zooms[0];
    if (comma != NULL && !mc_parse_int(&zooms[1], comma + 1, 0, 1000))
        return false;
    if (zooms[0] > zooms[1]) {
        int last = zooms[0];
        zooms[0] = zooms[1];
        zooms[1] = last;
    }
    return d->has_zoom = true;
}

/* Any two corners that lie opposite each other. */
static bool
parse_detail_extent(void *field, const char *text, apr_pool_t *pool)
{
    detail *d = field;
    double n[4];
    if (!mc_cli_parse_corners(n, text, pool))
        return false;
    int left = n[0] < n[2] ? 0 : 2, lower = n[1] < n[3] ? 1 : 3;
    d->area.extent = (mc_extent){ n[left], n[lower], n[2 - left], n[4 - lower] };
    return d->has_extent = mc_extent_valid(&d->area.extent);
}

#define AT(field) offsetof(detail, field)

static const mc_cli_option detail_rows[] = {
    MC_OPTION_HEADING("What"),
    MC_OPTION_TEXT("config", 'c', "FILE", AT(config), "configuration file (required)", .required = true),
    MC_OPTION_TEXT("tileset", 't', "NAME", AT(tileset_name), "tileset (required)", .required = true),
    MC_OPTION_TEXT(
        "grid", 'g', "NAME", AT(grid_name),
        "grid of the tileset; default: its first, and its tiles for fine screens, GRID@2x (mapcache_detail: required)"),
    MC_OPTION_ASSIGNMENT("dimension", 'D', AT(dimensions), "value of a dimension; may be repeated"),
    MC_OPTION_HEADING("Where"),
    MC_OPTION_VALUE("extent", 'e', "MINX,MINY,MAXX,MAXY", 0, parse_detail_extent,
                    "in units of the grid, the corners in any order; default: where the data lie, else all of "
                    "the grid"),
    MC_OPTION_VALUE("zoom", 'z', "MIN[,MAX]", 0, parse_detail_zooms,
                    "zoom levels; default: all of the tileset (mapcache_detail: 0)"),
    MC_OPTION_TEXT("ogr-datasource", 'd', "NAME", AT(area.ogr.source),
                   "vector source of GDAL that limits the area, in units of the grid; not with -e"),
    MC_OPTION_TEXT("ogr-layer", 'l', "NAME", AT(area.ogr.layer), "its layer, needed if it has several"),
    MC_OPTION_TEXT("ogr-where", 'w', "FILTER", AT(area.ogr.where), "only features with these attributes"),
    MC_OPTION_TEXT("ogr-sql", 's', "QUERY", AT(area.ogr.sql), "a query instead of layer and filter"),
    MC_OPTION_HEADING("Report"),
    MC_OPTION_TEXT("query", 0, "SQL", AT(query), "SQL that counts the tiles of a range, for another schema",
                   .drop_in_letter = 'q'),
    MC_OPTION_FLAG("short-output", 0, AT(brief), "leave out files that do not exist", .drop_in_letter = 'o'),
    MC_OPTION_FLAG("stores", 'S', AT(stores), "add what the stores take up, hold of others, and could give back",
                   .names = MC_CLI_OUR_NAME),
    MC_OPTION_HEADING("General"),
    MC_OPTION_FLAG("json", 'j', AT(wants_json), "the report of mapcache_detail, file by file",
                   .names = MC_CLI_OUR_NAME),
    MC_OPTION_END,
};

static void
set_detail_defaults(void *options, apr_pool_t *pool)
{
    detail *d = options;
    d->dimensions = apr_table_make(pool, 4);
    d->counted = apr_hash_make(pool);
    d->summary.levels = apr_array_make(pool, 24, sizeof(mc_detail_level));
    d->summary.stores = apr_array_make(pool, 4, sizeof(const char *));
    d->summary.left_out = -1;
}

const mc_cli_option_table mc_detail_option_table = { detail_rows, sizeof(detail), set_detail_defaults };

const char *
mc_check_detail_options(mc_cli_call *call)
{
    const detail *d = call->options;
    if (call->drop_in && d->grid_name == NULL)
        return "the option --grid is required";
    return mc_ogr_area_check(&d->area.ogr, d->has_extent, NULL);
}

/* Those that the tileset has of the grid. */
static void
choose_all_levels(detail *d)
{
    int last = d->link->grid->level_count - 1;
    d->zooms[0] = d->link->minzoom;
    d->zooms[1] = d->link->maxzoom < last ? d->link->maxzoom : last;
    if (d->link->max_cached_zoom >= 0 && d->link->max_cached_zoom < d->zooms[1])
        d->zooms[1] = d->link->max_cached_zoom;
}

static const char *
load_detail_tileset(detail *d)
{
    mc_error *error = mc_server_load(&d->server, d->config, mc_diagnostics_create(d->pool), d->pool);
    if (error != MC_OK)
        return mc_error_chain(error, d->pool);
    d->tileset = apr_hash_get(mc_server_config(d->server)->tilesets_by_name, d->tileset_name, APR_HASH_KEY_STRING);
    if (d->tileset == NULL)
        return mc_config_lacks_tileset(mc_server_config(d->server), d->tileset_name, d->pool);
    if (d->tileset->cache == NULL)
        return apr_psprintf(d->pool, "tileset \"%s\" has no cache", d->tileset_name);
    d->counts_dense = d->ours && d->grid_name == NULL && d->tileset->dense_link_count > 0;
    if (d->grid_name == NULL)
        d->grid_name = d->tileset->links[0]->grid->name;
    d->link = mc_tileset_link(d->tileset, d->grid_name);
    if (d->link == NULL)
        return mc_tileset_lacks_grid(d->tileset, d->grid_name, d->pool);
    if (d->ours && !d->has_zoom)
        choose_all_levels(d);
    if (d->zooms[1] >= d->link->grid->level_count)
        return apr_psprintf(d->pool, "the zoom levels of grid \"%s\" are 0 to %d", d->grid_name,
                            d->link->grid->level_count - 1);
    return mc_cli_dimension_values(&d->values, d->tileset, d->dimensions, !d->ours, d->pool);
}

static void
add_surveyed_file_counts(detail *d, const mc_survey_file *file)
{
    d->in_level.stored += file->stored;
    d->in_level.most += file->most;
    d->missing_files += !file->present;
    d->missing_in_level += !file->present;
    d->files_in_level++;
    d->done += d->share * (double)(file->wanted.maxx - file->wanted.minx) * (file->wanted.maxy - file->wanted.miny);
    if (!file->present || apr_hash_get(d->counted, file->path, APR_HASH_KEY_STRING) != NULL)
        return;
    apr_hash_set(d->counted, apr_pstrdup(d->pool, file->path), APR_HASH_KEY_STRING, "");
    d->files_bytes += file->bytes;
    d->files_tiles += file->total;
}

static bool
visit_surveyed_file(void *baton, const mc_survey_file *file)
{
    detail *d = baton;
    if (d->shows_progress)
        fprintf(stderr, "\033[2K In progress (z:%d x:%d y:%d): %.3f%% done\r", d->z, file->block.minx, file->block.miny,
                d->done * 100);
    add_surveyed_file_counts(d, file);
    d->gave_up = d->ours && !d->has_zoom && d->missing_in_level > MOST_MISSING_FILES;
    if (d->gave_up)
        return false;
    if ((d->brief || !d->writes_json) && !file->present)
        return true;
    mc_extent region, box = mc_grid_range_extent(d->link->grid, d->z, &file->block);
    const char *geometry;
    apr_pool_t *scratch;
    apr_pool_create(&scratch, d->pool);
    mc_error *error = mc_detail_area_part(&region, &geometry, &d->area, &box, scratch);
    if (error == MC_OK) {
        mc_detail_file(d->json, file, &box, &region, geometry);
        error = mc_json_flush(d->json, d->out);
    }
    d->failed = mc_error_copy(error, d->pool);
    apr_pool_destroy(scratch);
    return error == MC_OK;
}

static mc_survey_share
measure_detail_area_share(void *baton, const mc_tile_range *tiles)
{
    const detail *d = baton;
    return mc_detail_area_share(&d->area, d->z, tiles);
}

static mc_tile_key
make_detail_tile_key(const detail *d)
{
    mc_dimension_value *dimensions =
        apr_palloc(d->pool, sizeof(*dimensions) * (size_t)(d->tileset->dimension_count + 1));
    for (int i = 0; i < d->tileset->dimension_count; i++)
        dimensions[i] = (mc_dimension_value){ d->tileset->dimensions[i]->name, d->values[i], false };
    return (mc_tile_key){ .tileset = d->tileset->name,
                          .grid = d->link->grid,
                          .z = d->z,
                          .dimension_count = d->tileset->dimension_count,
                          .dimensions = dimensions,
                          .extension = mc_tileset_extension(d->tileset) };
}

static mc_error *
write_detail_level(detail *d, const mc_tile_range *area, mc_ctx *ctx)
{
    mc_tile_key key = make_detail_tile_key(d);
    const mc_survey_task task = { .area = *area,
                                  .share = d->area.region == NULL ? NULL : measure_detail_area_share,
                                  .query = d->query,
                                  .any = d->ours,
                                  .visit = visit_surveyed_file,
                                  .baton = d };
    d->in_level = (mc_detail_tiles){ 0, 0 };
    d->files_in_level = d->missing_in_level = 0;
    d->share = 1.0 / (d->zooms[1] - d->zooms[0] + 1) /
               ((double)(area->maxx - area->minx) * (double)(area->maxy - area->miny) + 1e-9);
    const mc_cache *store = mc_cache_whole(d->tileset->cache, &key);
    d->gave_up = d->ours && !d->has_zoom && !mc_cache_lists(store, &key) && store->ops->measure != NULL &&
                 (double)(area->maxx - area->minx) * (area->maxy - area->miny) > MOST_MISSING_FILES;
    if (d->gave_up)
        return MC_OK; /* each tile would have to be looked for */
    mc_json_open_object(d->json, NULL);
    mc_json_integer(d->json, "level", d->z);
    mc_json_open_array(d->json, "files");
    MC_TRY(mc_survey(d->tileset->cache, &key, &task, ctx));
    MC_TRY(d->failed);
    mc_json_close(d->json);
    mc_detail_counts(d->json, "level", &d->in_level);
    mc_json_close(d->json);
    if (d->gave_up)
        return MC_OK;
    d->in_cache.stored += d->in_level.stored;
    d->in_cache.most += d->in_level.most;
    APR_ARRAY_PUSH(d->summary.levels, mc_detail_level) =
        (mc_detail_level){ d->z, d->in_level, d->files_in_level, d->missing_in_level };
    return MC_OK;
}

/* What is worked out of the mean size of a tile: as MapCache words it where there is none. */
static void
write_estimate(const detail *d, const char *name, int64_t bytes)
{
    if (d->files_tiles == 0 && !d->ours)
        mc_json_string(d->json, name, "N/A: cache is empty");
    else
        mc_json_integer(d->json, name, bytes);
}

static int64_t
multiply_saturated(int64_t bytes, int64_t tiles)
{
    int64_t product;
    return __builtin_mul_overflow(bytes, tiles, &product) ? INT64_MAX : product;
}

static void
write_sizes(const detail *d)
{
    int64_t mean = d->files_tiles == 0 ? 0 : d->files_bytes / d->files_tiles;
    mc_json_open_object(d->json, "sizes");
    mc_json_integer(d->json, "total_size_of_files", d->files_bytes);
    mc_json_integer(d->json, "total_nbtiles_in_files", d->files_tiles);
    write_estimate(d, "average_tile_size", mean);
    write_estimate(d, "estimated_max_cache_size", multiply_saturated(mean, d->in_cache.most));
    mc_json_integer(d->json, "estimated_cached_cache_size", multiply_saturated(mean, d->in_cache.stored));
    write_estimate(d, "estimated_missing_cache_size", multiply_saturated(mean, d->in_cache.most - d->in_cache.stored));
    mc_json_close(d->json);
    if (d->brief)
        mc_json_integer(d->json, "nb_missing_files", d->missing_files);
}

/* Degrees, feet or metres: what the grid's <units> say (docs/reference/configuration.md 2). */
static const char *
unit_of(const mc_grid *grid)
{
    return grid->metres_per_unit > 1000 ? "dd" : grid->metres_per_unit < 0.9 ? "ft" : "m";
}

/* All that a fill without an area would make: the tiles of the data, where their box is known. NULL: those of the
 * extent alone. */
static const mc_tile_range *
choose_whole_area(detail *d, mc_ctx *ctx)
{
    const mc_tile_range *limits = NULL;
    d->area.extent = d->ours && d->link->restricted ? d->link->extent : d->link->grid->extent;
    if (d->ours) {
        mc_tileset_ask_place(d->tileset, ctx);
        limits = mc_tileset_data_limits(d->tileset, d->link, d->pool);
    }
    if (limits != NULL)
        (void)mc_tileset_data_extent(&d->area.extent, d->tileset, d->link, d->pool);
    return limits;
}

/* What the tileset holds of d->link: members of the object that is open. */
static mc_error *
write_link_report(detail *d, mc_ctx *ctx)
{
    const mc_grid *grid = d->link->grid;
    const mc_tile_range *data = NULL;
    if (d->area.ogr.source != NULL)
        MC_TRY(mc_detail_area_read(&d->area, grid, d->zooms[1], d->pool));
    else if (!d->has_extent)
        data = choose_whole_area(d, ctx);
    /* Lines and points have tiles that they only touch. */
    double margin = d->area.region == NULL ? 0 : grid->levels[d->zooms[0]].resolution;
    const mc_extent *area = &d->area.extent,
                    around = { area->minx - margin, area->miny - margin, area->maxx + margin, area->maxy + margin };
    const mc_tile_range *limits = data != NULL ? data : mc_seed_limits(grid, &around, d->pool);
    mc_json_string(d->json, "layer", d->tileset->name);
    mc_json_string(d->json, "grid", d->link->grid->name);
    mc_json_string(d->json, "unit", unit_of(d->link->grid));
    mc_detail_region(d->json, "region", area, d->area.geometry);
    mc_json_open_array(d->json, "zoom_levels");
    for (d->z = d->zooms[0]; d->z <= d->zooms[1] && !d->gave_up; d->z++)
        MC_TRY(write_detail_level(d, &limits[d->z], ctx));
    mc_json_close(d->json);
    mc_detail_counts(d->json, "cache", &d->in_cache);
    write_sizes(d);
    d->summary.left_out = d->gave_up ? d->z - 1 : -1;
    d->summary.tileset = d->tileset->name;
    d->summary.grid = grid->name;
    d->summary.tiles = d->in_cache;
    d->summary.bytes = d->files_bytes;
    d->summary.file_tiles = d->files_tiles;
    d->summary.last = d->zooms[1];
    return MC_OK;
}

/* The tiles for fine screens, which are on grids of their own (GRID@2x): counted where no grid is named. */
static mc_error *
write_dense_reports(detail *d, mc_ctx *ctx)
{
    const mc_grid_link *link = d->link;
    if (!d->counts_dense)
        return MC_OK;
    mc_json_open_array(d->json, "fine_screens");
    for (int i = 0; i < d->tileset->dense_link_count; i++) {
        if (mc_tileset_dense_link(d->tileset, link, d->tileset->dense_links[i]->grid->density) !=
            d->tileset->dense_links[i])
            continue;
        d->link = d->tileset->dense_links[i];
        d->in_cache = (mc_detail_tiles){ 0, 0 };
        d->files_bytes = d->files_tiles = d->missing_files = 0;
        d->done = 0;
        d->gave_up = false;
        d->counted = apr_hash_make(d->pool);
        d->summary.levels = apr_array_make(d->pool, 24, sizeof(mc_detail_level));
        mc_json_open_object(d->json, NULL);
        MC_TRY(write_link_report(d, ctx));
        mc_json_close(d->json);
        APR_ARRAY_PUSH(d->dense, mc_detail_summary) = d->summary;
    }
    mc_json_close(d->json);
    return MC_OK;
}

static mc_error *
write_report(detail *d, mc_ctx *ctx)
{
    mc_json_open_object(d->json, NULL);
    MC_TRY(write_link_report(d, ctx));
    const mc_detail_summary first = d->summary;
    d->dense = apr_array_make(d->pool, 2, sizeof(mc_detail_summary));
    MC_TRY(write_dense_reports(d, ctx));
    d->summary = first;
    if (d->stores)
        MC_TRY(mc_detail_stores(d->json, d->writes_json ? NULL : d->summary.stores, mc_server_config(d->server),
                                d->tileset->cache, ctx));
    mc_json_close(d->json);
    mc_json_space(d->json, "\n");
    MC_TRY(mc_json_flush(d->json, d->out));
    if (!d->ours)
        fputs("\033[2K Finished: 100.000% done\n", stderr);
    else if (d->shows_progress)
        fputs("\033[2K\r", stderr);
    return MC_OK;
}

/* Who reads the report gets all of it, or nothing. */
static bool
copy_report_to_stdout(FILE *report)
{
    char piece[65536];
    size_t size;
    rewind(report);
    while ((size = fread(piece, 1, sizeof(piece), report)) > 0)
        if (fwrite(piece, 1, size, stdout) != size)
            return false;
    return !ferror(report) && fflush(stdout) == 0;
}

static void
print_detail_summary(detail *d)
{
    mc_detail_print_table(stdout, &d->summary, d->pool);
    for (int i = 0; i < d->dense->nelts; i++) {
        mc_detail_summary *dense = &APR_ARRAY_IDX(d->dense, i, mc_detail_summary);
        if (dense->tiles.stored > 0)
            puts("");
        if (dense->tiles.stored > 0)
            mc_detail_print_table(stdout, dense, d->pool);
        else
            printf("\ngrid %s, for fine screens: no tile is stored\n", dense->grid);
    }
}

static mc_error *
run_detail_survey(detail *d)
{
    static mc_log log;
    mc_runtime *runtime;
    mc_ctx ctx = { .pool = d->pool, .log = &log };
    log = mc_log_stderr;
    log.level = mc_cli_log_level(false, d->quiet);
    d->out = tmpfile();
    if (d->out == NULL)
        return mc_error_create(d->pool, MC_ERR_IO, "there is no room for the report in the folder for temporary files");
    d->json = mc_json_create(MC_JSON_TABS, d->pool);
    MC_TRY(mc_runtime_create(&runtime, mc_server_config(d->server), 1, false, &log, d->pool));
    ctx.process = mc_runtime_process(runtime);
    mc_error *error = write_report(d, &ctx);
    mc_runtime_destroy(runtime);
    if (error == MC_OK && !d->writes_json)
        print_detail_summary(d);
    else if (error == MC_OK && !copy_report_to_stdout(d->out))
        error = mc_error_create(d->pool, MC_ERR_IO, "the report cannot be written");
    fclose(d->out);
    return error;
}

int
mc_command_detail(mc_cli_call *call)
{
    detail *d = call->options;
    d->pool = call->pool;
    d->ours = !call->drop_in;
    d->quiet = call->quiet && !call->drop_in;
    d->writes_json = !d->ours || d->wants_json;
    d->shows_progress = !d->ours || (!call->quiet && mc_cli_is_screen(stderr));
    const char *problem = load_detail_tileset(d);
    mc_error *error = problem != NULL ? MC_OK : run_detail_survey(d);
    if (error != MC_OK)
        problem = mc_error_chain(error, d->pool);
    if (problem != NULL)
        fprintf(stderr, "%s: %s\n", call->program, problem);
    return problem != NULL;
}
