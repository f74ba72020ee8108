/*
 * The builder's own check: some maps are drawn from the source and from the levels that serve them, and their pixels
 * compared. They are maps of both ends of each level and of its middle, at places of features, whose pixels lie between
 * those of the lattices that the sieve looks at. Source and levels are read in the snapshot that the levels are made
 * of.
 */
#include <math.h>
#include <stdlib.h>

#include "draw/paint/sieve.h"
#include "overview/overview_planes.h"

enum {
    MAPS_MOST = 3,             /* of a resolution */
    EDGE_LEAST = 48,           /* pixels of a map's side */
    EDGE_MOST = 160,           /* at most */
    ROWS_OF_MAP = 4000,        /* a map has that many rows, or */
    PART_OF_MAP = 24,          /* that part of the source; more of them where EDGE_LEAST needs it */
    PART_OF_RESOLUTION = 8,    /* part of the source that the maps of a resolution may have, but for the first one */
    PIXELS_OF_FARTHEST = 1024, /* the source has so many pixels on the furthest map, or more */
    OFF = 16,                  /* of 255: a pixel that differs by more is off */
    PLACES_TRIED = 8,          /* pieces that are looked at for a place: they may be empty */
    SEED = 0x6d617073,
};
/* A level is given up where more than that part of the painted pixels is off, as far as so few maps tell: by more than
 * what a count of that size differs by from its mean (in standard deviations). */
#define OFF_MOST 0.005
#define CERTAIN 3.0

/* The features of one map: of the source, or of the level. */
typedef struct compared_data {
    mc_feature_data base;
    const mc_overview_job *job;
    const mc_overview_level *level; /* NULL: of the source */
} compared_data;

typedef struct comparison {
    const mc_overview_job *job;
    mc_overview_level *levels[2]; /* that serve the maps; the second one may be NULL */
    uint32_t state;               /* of the random numbers */
} comparison;

static mc_error *
read_compared(mc_feature_data *data, const mc_feature_query *query, mc_feature_visitor *visit, void *baton,
              int64_t *skipped, mc_ctx *ctx, apr_pool_t *pool)
{
    const compared_data *d = (const compared_data *)data;
    (void)ctx;
    return d->level == NULL ? d->job->source->draw(d->job, query, visit, baton, skipped, pool)
                            : d->job->store->draw(d->job, d->level, query, visit, baton, skipped, pool);
}

/* As a server draws it, with the layer alone. Without a process: a command's own process makes no palettes. */
static mc_error *
draw_compared(mc_pixels **pixels, const mc_overview_job *job, const mc_overview_level *level, const mc_render *wanted,
              apr_pool_t *pool)
{
    static const mc_feature_ops ops = { .type = "compared", .read = read_compared };
    compared_data data = { .base = { .ops = &ops, .name = job->layer->name }, .job = job, .level = level };
    mc_vector_layer layer = *job->layer, *layers[] = { &layer };
    mc_vector_source source = { .layers = layers, .layer_count = 1 };
    mc_rendered map = { 0 };
    mc_ctx ctx = *job->ctx;
    ctx.process = NULL;
    layer.data = &data.base;
    MC_TRY(mc_vector_render(&map, &source.base.source, wanted, &ctx, pool));
    *pixels = map.pixels;
    return MC_OK;
}

/* Whether a pixel of premultiplied colours differs by more than OFF, with plain colours as in a PNG. */
static bool
is_pixel_off(const uint8_t *a, const uint8_t *b)
{
    if (abs(a[3] - b[3]) > OFF)
        return true;
    for (int i = 0; i < 3; i++) {
        const int one = a[3] == 0 ? 0 : a[i] * 255 / a[3], other = b[3] == 0 ? 0 : b[i] * 255 / b[3];
        if (abs(one - other) > OFF)
            return true;
    }
    return false;
}

static void
count_differing_pixels(mc_overview_level *level, const mc_pixels *a, const mc_pixels *b)
{
    for (int y = 0; y < a->height; y++)
        for (int x = 0; x < a->width; x++) {
            const uint8_t *one = a->data + (size_t)y * a->stride + 4 * (size_t)x;
            const uint8_t *other = b->data + (size_t)y * b->stride + 4 * (size_t)x;
            level->painted += one[3] > 0 || other[3] > 0;
            level->off += is_pixel_off(one, other);
        }
}

/* From 0 to below 1. */
static double
random_share(comparison *c)
{
    c->state = c->state * 1664525U + 1013904223U;
    return (c->state >> 8) / (double)(1 << 24);
}

/* A place in the bounds of a feature. *found: there is one. */
static mc_error *
find_place(bool *found, double *x, double *y, comparison *c, apr_pool_t *pool)
{
    const mc_overview_job *job = c->job;
    *found = false;
    for (int i = 0; i < PLACES_TRIED && !*found; i++) {
        const int64_t piece = (int64_t)(random_share(c) * (double)job->pieces);
        apr_array_header_t *rows;
        mc_extent box;
        MC_TRY(job->source->read(&rows, job, piece, piece + 1, pool));
        if (rows->nelts == 0)
            continue;
        const mc_overview_row *row = &APR_ARRAY_IDX(rows, (int)(random_share(c) * rows->nelts), mc_overview_row);
        *found = mc_wkb_bounds(&box, row->geometry, row->size);
        *x = box.minx + random_share(c) * (box.maxx - box.minx);
        *y = box.miny + random_share(c) * (box.maxy - box.miny);
    }
    return MC_OK;
}

/* One map of the source and of each level that serves it. */
static mc_error *
compare_one_map(comparison *c, double resolution, int edge, apr_pool_t *pool)
{
    double x, y;
    bool found;
    MC_TRY(find_place(&found, &x, &y, c, pool));
    if (!found)
        return MC_OK;
    const double half = resolution * edge / 2;
    const mc_render wanted = { .tileset = "",
                               .grid = c->job->grid,
                               .box = { x - half, y - half, x + half, y + half },
                               .width = edge,
                               .height = edge };
    mc_pixels *source, *drawn;
    MC_TRY(draw_compared(&source, c->job, NULL, &wanted, pool));
    for (int i = 0; i < 2 && c->levels[i] != NULL; i++) {
        MC_TRY(draw_compared(&drawn, c->job, c->levels[i], &wanted, pool));
        count_differing_pixels(c->levels[i], source, drawn);
    }
    return MC_OK;
}

/* Pixels of a map's side, such that it has few rows; *part: which part of the source it will have. */
static int
choose_edge(double *part, const mc_overview_job *job, double resolution)
{
    const double pixels = fmax(mc_overview_pixels(job, resolution), 1),
                 margins = 2 * mc_overview_symbol_margin(job, resolution);
    const double rows = fmax(ROWS_OF_MAP, job->rows / PART_OF_MAP);
    const double edge = fmin(fmax(sqrt(rows / job->rows * pixels) - margins, EDGE_LEAST), EDGE_MOST);
    *part = fmin((edge + margins) * (edge + margins) / pixels, 1);
    return (int)edge;
}

/* Some maps of a resolution, or one, where that has much of the source. `dear`: even that one. */
static mc_error *
compare_resolution(comparison *c, double resolution, bool dear, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    double part, parts = 0;
    const int edge = choose_edge(&part, c->job, resolution);
    const int least = dear || part <= 1.0 / PART_OF_RESOLUTION ? 1 : 0;
    mc_error *error = MC_OK;
    apr_pool_create(&scratch, pool);
    for (int i = 0; i < MAPS_MOST && error == MC_OK && (i < least || parts + part <= 1.0 / PART_OF_RESOLUTION); i++) {
        error = mc_error_copy(compare_one_map(c, resolution, edge, scratch), c->job->pool);
        apr_pool_clear(scratch);
        parts += part;
    }
    apr_pool_destroy(scratch);
    return error;
}

/* Whether the maps of a resolution are those of two levels, in the same style. */
static bool
meets_coarser(const mc_overview_level *finer, const mc_overview_level *coarser, const mc_overview_job *job)
{
    return finer != NULL && fabs(finer->until / coarser->resolution - 1) < 1e-6 &&
           mc_sieve_refusal(job->layer->style, mc_overview_scale(job, finer->resolution),
                            mc_overview_scale(job, coarser->until), job->points) == NULL;
}

/* The resolution of the furthest maps of a level that are compared. */
static double
farthest_of_level(const mc_overview_level *level, const mc_overview_job *job)
{
    const double small = level->resolution * sqrt(mc_overview_pixels(job, level->resolution) / PIXELS_OF_FARTHEST);
    return fmin(level->until * (1 - 1e-6), fmax(2 * level->resolution, small));
}

static mc_error *
compare_level(mc_overview_level *finer, mc_overview_level *level, const mc_overview_level *coarser,
              const mc_overview_job *job)
{
    comparison c = { .job = job, .state = SEED, .levels = { level, finer } };
    const double end = farthest_of_level(level, job);
    mc_overview_tell(job, true, "maps of %g a pixel are compared", level->resolution);
    MC_TRY(compare_resolution(&c, level->resolution, true, job->pool));
    c.levels[1] = NULL;
    MC_TRY(compare_resolution(&c, sqrt(level->resolution * end), false, job->pool));
    return coarser != NULL && meets_coarser(level, coarser, job) ? MC_OK : compare_resolution(&c, end, true, job->pool);
}

mc_error *
mc_overview_compare(mc_overview_level *levels, const bool *chosen, int count, const mc_overview_job *job)
{
    mc_overview_level *before = NULL;
    for (int k = 0; k < count; k++) {
        int next = k + 1;
        while (next < count && !chosen[next])
            next++;
        if (!chosen[k])
            continue;
        mc_overview_level *finer = meets_coarser(before, &levels[k], job) ? before : NULL;
        MC_TRY(compare_level(finer, &levels[k], next < count ? &levels[next] : NULL, job));
        before = &levels[k];
    }
    return MC_OK;
}

bool
mc_overview_looks_good(const mc_overview_level *level)
{
    const double expected = OFF_MOST * (double)level->painted;
    return (double)level->off <= expected + CERTAIN * sqrt(expected);
}
