/* The check of metatiles: draws some of a tileset in several sizes, and encodes their tiles in several formats. Nothing
 * is stored. */
#include <apr_strings.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "doctor/doctor_private.h"
#include "mapcache/tileset.h"

enum { PLACES = 4, SIZES = 4, ENCODED_SIZE = 4, MOST_TILESETS = 4 };

static const int metatile_sizes[SIZES] = { 1, 2, 4, 8 };

typedef struct drawing_trial {
    mc_doctor *doctor;
    const mc_doctor_check *check;
    mc_tileset *tileset;
    const mc_grid_link *link;
    const mc_dimension_value *dimensions;
    mc_extent extent; /* where the data lie, in the grid's CRS */
    int z;
    apr_pool_t *scratch; /* of one drawing */
} drawing_trial;

typedef struct stopwatch {
    double processor, wall; /* milliseconds; of all threads of the process */
} stopwatch;

static double
milliseconds_of(clockid_t clock)
{
    struct timespec now = { 0, 0 };
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static stopwatch
read_stopwatch(void)
{
    return (stopwatch){ milliseconds_of(CLOCK_PROCESS_CPUTIME_ID), milliseconds_of(CLOCK_MONOTONIC) };
}

static void
add_elapsed(stopwatch *sum, const stopwatch *begun)
{
    stopwatch now = read_stopwatch();
    sum->processor += now.processor - begun->processor;
    sum->wall += now.wall - begun->wall;
}

static void
add_cost(const drawing_trial *trial, const char *what, const stopwatch *sum, double bytes, int tiles)
{
    APR_ARRAY_PUSH(trial->doctor->report->costs, mc_doctor_cost) = (mc_doctor_cost){
        trial->tileset->name, what, trial->z, sum->processor / tiles, sum->wall / tiles, bytes / tiles
    };
}

static bool
is_time_up(const drawing_trial *trial)
{
    return mc_clock_now() > trial->doctor->ctx->deadline;
}

/* Draws a metatile of size x size tiles around one of the places, in ctx->pool. */
static mc_error *
draw_metatile(mc_pixels **pixels, const drawing_trial *trial, int size, int place, mc_ctx *ctx)
{
    static const double shares[PLACES][2] = { { 0.5, 0.5 }, { 0.3, 0.4 }, { 0.6, 0.3 }, { 0.4, 0.7 } };
    const mc_grid *grid = trial->link->grid;
    double resolution = grid->levels[trial->z].resolution;
    double width = size * grid->tile_width * resolution, height = size * grid->tile_height * resolution;
    double margin = trial->tileset->metabuffer * resolution;
    double x = trial->extent.minx + shares[place][0] * (trial->extent.maxx - trial->extent.minx);
    double y = trial->extent.miny + shares[place][1] * (trial->extent.maxy - trial->extent.miny);
    const mc_render wanted = { .tileset = trial->tileset->name,
                               .grid = grid,
                               .box = { x - width / 2 - margin, y - height / 2 - margin, x + width / 2 + margin,
                                        y + height / 2 + margin },
                               .width = size * grid->tile_width + 2 * trial->tileset->metabuffer,
                               .height = size * grid->tile_height + 2 * trial->tileset->metabuffer,
                               .dimension_count = trial->tileset->dimension_count,
                               .dimensions = trial->dimensions };
    mc_rendered map = { 0 };
    MC_TRY(mc_source_render(&map, trial->tileset->source, &wanted, ctx, ctx->pool));
    *pixels = map.pixels;
    if (map.pixels == NULL && map.data != NULL)
        MC_TRY(mc_image_decode(pixels, map.data->data, map.data->size, ctx, ctx->pool));
    return *pixels == NULL ? mc_error_create(ctx->pool, MC_ERR_UPSTREAM, "the source has drawn no image") : MC_OK;
}

/* Encodes the tiles of a metatile. */
static mc_error *
encode_tiles(double *bytes, const drawing_trial *trial, const mc_format *format, mc_pixels *map, mc_ctx *ctx)
{
    const mc_grid *grid = trial->link->grid;
    for (int i = 0; i < ENCODED_SIZE * ENCODED_SIZE; i++) {
        int left = trial->tileset->metabuffer + i % ENCODED_SIZE * grid->tile_width;
        int top = trial->tileset->metabuffer + i / ENCODED_SIZE * grid->tile_height;
        mc_pixels *tile;
        mc_buf *data;
        MC_TRY(mc_pixels_create(&tile, grid->tile_width, grid->tile_height, true, ctx->pool));
        mc_pixels_attach(tile, ctx->pool);
        mc_pixels_copy(tile, -left, -top, map);
        MC_TRY(mc_format_encode(&data, format, tile, MC_FOR_STORE, ctx, ctx->pool));
        *bytes += (double)data->size;
    }
    return MC_OK;
}

/* In each image format of the configuration, those that are always there among them. */
static mc_error *
measure_formats(const drawing_trial *trial, mc_ctx *ctx)
{
    const apr_array_header_t *formats = trial->doctor->config->formats;
    mc_pixels *map;
    MC_TRY(draw_metatile(&map, trial, ENCODED_SIZE, 0, ctx));
    for (int i = 0; i < formats->nelts && !is_time_up(trial); i++) {
        const mc_format *format = APR_ARRAY_IDX(formats, i, const mc_format *);
        stopwatch sum = { 0, 0 }, begun = read_stopwatch();
        double bytes = 0;
        if (!mc_format_is_image(format) || encode_tiles(&bytes, trial, format, map, ctx) != MC_OK)
            continue; /* a format whose library is not there */
        add_elapsed(&sum, &begun);
        add_cost(trial, apr_psprintf(trial->doctor->pool, "format %s", format->name), &sum, bytes,
                 ENCODED_SIZE * ENCODED_SIZE);
    }
    return MC_OK;
}

/* Milliseconds a tile by the clock, the database's and the origin's time in them. */
static mc_error *
measure_size(double *cost, const drawing_trial *trial, int size, mc_ctx *ctx)
{
    stopwatch sum = { 0, 0 };
    int drawn = 0;
    for (int place = 0; place < PLACES && !is_time_up(trial); place++, drawn++) {
        mc_pixels *map;
        apr_pool_clear(trial->scratch);
        stopwatch begun = read_stopwatch();
        MC_TRY(draw_metatile(&map, trial, size, place, ctx));
        add_elapsed(&sum, &begun);
    }
    if (drawn < PLACES)
        return mc_error_create(trial->doctor->pool, MC_ERR_TIMEOUT, "the time was up");
    add_cost(trial, apr_psprintf(trial->doctor->pool, "metatile %d x %d", size, size), &sum, 0, PLACES * size * size);
    *cost = sum.wall / (PLACES * size * size);
    return MC_OK;
}

/* The size nearest to the configured one, by its tiles. */
static int
index_of_size(const mc_tileset *tileset)
{
    int tiles = tileset->metatile_columns * tileset->metatile_rows, best = 0;
    for (int i = 1; i < SIZES; i++)
        if (abs(metatile_sizes[i] * metatile_sizes[i] - tiles) <
            abs(metatile_sizes[best] * metatile_sizes[best] - tiles))
            best = i;
    return best;
}

static void
judge_sizes(const drawing_trial *trial, const double *costs)
{
    int now = index_of_size(trial->tileset), best = 0;
    for (int i = 1; i < SIZES; i++)
        if (costs[i] < costs[best] * 0.95)
            best = i;
    double factor = costs[best] > 0 ? costs[now] / costs[best] : 1;
    if (factor < 1.3)
        return;
    apr_pool_t *pool = trial->doctor->pool;
    mc_doctor_find(
        trial->doctor,
        &(mc_finding){ .check = trial->check,
                       .subject = apr_psprintf(pool, "tileset \"%s\", level %d", trial->tileset->name, trial->z),
                       .found = apr_psprintf(pool,
                                             "measured: a tile costs %.2f ms to draw in metatiles of %d x %d, %.2f ms "
                                             "in those of %d x %d",
                                             costs[now], metatile_sizes[now], metatile_sizes[now], costs[best],
                                             metatile_sizes[best], metatile_sizes[best]),
                       .why = "what a drawing costs once is shared by the tiles of a metatile",
                       .todo = apr_psprintf(pool,
                                            "<metatile>%d %d</metatile>; who asks for one tile waits for all of "
                                            "its metatile",
                                            metatile_sizes[best], metatile_sizes[best]),
                       .factor = factor });
}

/* A level at which the data are some 16 tiles wide, if the link has it. */
static int
choose_level(const mc_grid_link *link, const mc_extent *extent)
{
    int last = link->maxzoom < link->grid->level_count - 1 ? link->maxzoom : link->grid->level_count - 1;
    for (int z = link->minzoom; z < last; z++)
        if ((extent->maxx - extent->minx) / link->grid->levels[z].resolution >= 16.0 * link->grid->tile_width)
            return z;
    return last;
}

static mc_error *
prepare_trial(drawing_trial *trial, mc_ctx *ctx)
{
    mc_tileset *tileset = trial->tileset;
    const char **values;
    MC_TRY(mc_tileset_values(&values, tileset, NULL, trial->doctor->pool));
    mc_dimension_value *dimensions =
        apr_pcalloc(trial->doctor->pool, sizeof(*dimensions) * ((size_t)tileset->dimension_count + 1));
    for (int i = 0; i < tileset->dimension_count; i++)
        dimensions[i] = (mc_dimension_value){ tileset->dimensions[i]->name, values[i], false };
    trial->dimensions = dimensions;
    trial->extent = trial->link->restricted ? trial->link->extent : trial->link->grid->extent;
    mc_tileset_ask_place(tileset, ctx);
    (void)mc_tileset_data_extent(&trial->extent, tileset, trial->link, trial->doctor->pool);
    trial->z = choose_level(trial->link, &trial->extent);
    return MC_OK;
}

static mc_error *
measure_tileset(drawing_trial *trial)
{
    double costs[SIZES];
    mc_pixels *map;
    mc_ctx ctx = *trial->doctor->ctx;
    ctx.pool = trial->scratch;
    MC_TRY(prepare_trial(trial, &ctx));
    MC_TRY(draw_metatile(&map, trial, 1, 0, &ctx)); /* connects and reads styles: not measured */
    for (int i = 0; i < SIZES; i++)
        MC_TRY(measure_size(&costs[i], trial, metatile_sizes[i], &ctx));
    judge_sizes(trial, costs);
    apr_pool_clear(trial->scratch);
    return measure_formats(trial, &ctx);
}

void
mc_doctor_check_drawing(mc_doctor *doctor, const mc_doctor_check *check)
{
    int measured = 0;
    for (int i = 0; doctor->options->draw && i < doctor->config->tilesets->nelts; i++) {
        mc_tileset *tileset = APR_ARRAY_IDX(doctor->config->tilesets, i, mc_tileset *);
        bool vector = tileset->format != NULL && mc_format_is_vector(tileset->format);
        if (tileset->source == NULL || vector || !mc_source_draws(tileset->source) || measured++ >= MOST_TILESETS)
            continue;
        drawing_trial trial = { .doctor = doctor, .check = check, .tileset = tileset, .link = tileset->links[0] };
        apr_pool_create(&trial.scratch, doctor->pool);
        mc_error *error = measure_tileset(&trial);
        if (error != MC_OK)
            mc_doctor_miss(doctor, check, "tileset %s: %s", tileset->name, mc_error_chain(error, doctor->pool));
        apr_pool_destroy(trial.scratch);
    }
}
