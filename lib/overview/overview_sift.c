/*
 * Which features the levels keep. The table is read once, in pieces of some pages, the last one first, because the
 * feature that is painted last hides the others. Each piece is read whole and looked at from its end: a feature goes
 * through the sieves of all levels.
 */
#include <apr_strings.h>
#include <math.h>

#include "draw/paint/sieve.h"
#include "grid/earth.h"
#include "overview/overview_blocks.h"
#include "overview/overview_pieces.h"
#include "text/text.h"

typedef struct sifted_level {
    mc_overview_level *level;
    mc_sieve *sieve;
    mc_pixel_grid grid; /* the plane of the sieve on the lattice of the tileset's grid */
    mc_feature_query query;
    mc_overview_blocks *blocks;
} sifted_level;

typedef struct sifting {
    const mc_overview_job *job;
    sifted_level *levels;
    int count;
    double worth;
    mc_geometry geometry;
    mc_overview_packing packing;
    int64_t unreadable;
    apr_pool_t *scratch; /* of a row */
} sifting;

/* The plane holds all geometry with room for the symbols around it; its corner is a whole pixel of the lattice. */
static mc_error *
make_plane(sifted_level *s, const mc_overview_job *job, apr_pool_t *pool)
{
    const mc_grid *grid = job->grid;
    const double resolution = s->level->resolution / s->level->fineness; /* of the plane */
    const double scale = s->level->resolution * grid->metres_per_unit / MC_PIXEL_METRES;
    const mc_extent first = mc_grid_tile_extent(grid, 0, 0, 0);
    const int margin = mc_sieve_margin(job->layer->style, scale, s->level->fineness) + 1;
    const double left = floor((job->bounds.minx - first.minx) / resolution) - margin;
    const double top = floor((first.maxy - job->bounds.maxy) / resolution) - margin;
    const double right = ceil((job->bounds.maxx - first.minx) / resolution) + margin;
    const double bottom = ceil((first.maxy - job->bounds.miny) / resolution) + margin;
    if (!(right - left < MC_SIEVE_PIXELS_MAX && bottom - top < MC_SIEVE_PIXELS_MAX && fabs(left) < 1e15 &&
          fabs(top) < 1e15))
        return mc_error_create(pool, MC_ERR_LIMIT, "the table is too large for a plane");
    s->grid = (mc_pixel_grid){ .x0 = first.minx,
                               .y0 = first.maxy,
                               .per_x = 1 / resolution,
                               .per_y = 1 / resolution,
                               .left = (int64_t)left,
                               .top = (int64_t)top,
                               .thinning = MC_SIEVE_THINNING * s->level->fineness,
                               .keep_small = true };
    s->query = (mc_feature_query){ .pixel_grid = s->grid, .resolution = resolution, .scale = scale };
    return mc_sieve_create(&s->sieve, job->layer->style, scale, s->level->fineness, (int)(right - left),
                           (int)(bottom - top), pool);
}

/* Bounds of the geometry in pixels of the level, on the lattice of the grid. */
static mc_extent
bounds_in_level(const sifting *s, const sifted_level *level)
{
    int32_t bounds[4] = { 0 };
    const double fineness = level->level->fineness, side = MC_SUBPIXELS * fineness;
    (void)mc_geometry_bounds(&s->geometry, &bounds[0], &bounds[1], &bounds[2], &bounds[3]);
    const double left = (double)level->grid.left / fineness, top = (double)level->grid.top / fineness;
    return (mc_extent){ left + bounds[0] / side, top + bounds[1] / side, left + bounds[2] / side,
                        top + bounds[3] / side };
}

static mc_error *
keep_row(sifting *s, sifted_level *level, const mc_overview_row *row)
{
    mc_overview_feature feature = { .ordinal = row->ordinal,
                                    .bounds = bounds_in_level(s, level),
                                    .values = row->values,
                                    .geometry = row->geometry,
                                    .size = row->size };
    MC_TRY(mc_overview_pack(&feature, &s->packing, level->level, s->job));
    MC_TRY(mc_overview_blocks_add(level->blocks, &feature));
    if ((double)level->level->bytes > s->worth) {
        mc_overview_tell_level(s->job, level->level, 0, "no level, which would not be much smaller than the table");
        level->level->given_up = true;
    }
    return MC_OK;
}

/* Each level is sifted from the table: what is left out would else add up from level to level. */
static mc_error *
sift_row(sifting *s, sifted_level *level, const mc_overview_row *row)
{
    mc_error *error = mc_wkb_read(&s->geometry, row->geometry, row->size, &level->grid, s->scratch);
    bool keeps;
    if (error != MC_OK) { /* maps leave it out, too */
        mc_error_ignore(error);
        s->unreadable += level == s->levels;
        return MC_OK;
    }
    if (mc_geometry_is_empty(&s->geometry))
        return MC_OK;
    const mc_feature feature = { .geometry = &s->geometry, .values = row->values, .query = &level->query };
    MC_TRY(mc_sieve_keeps(&keeps, level->sieve, &feature, s->job->ctx));
    return keeps ? keep_row(s, level, row) : MC_OK;
}

/* A piece, from its end. */
static mc_error *
sift_rows(void *baton, const apr_array_header_t *rows)
{
    sifting *s = baton;
    for (int i = rows->nelts - 1; i >= 0; i--) {
        for (int k = 0; k < s->count; k++)
            if (!s->levels[k].level->given_up)
                MC_TRY(
                    mc_error_copy(sift_row(s, &s->levels[k], &APR_ARRAY_IDX(rows, i, mc_overview_row)), s->job->pool));
        apr_pool_clear(s->scratch);
    }
    return MC_OK;
}

static mc_error *
sift_pieces(sifting *s)
{
    MC_TRY(mc_overview_read_pieces(s->job, sift_rows, s, s->job->pool));
    for (int k = 0; k < s->count; k++)
        if (!s->levels[k].level->given_up)
            MC_TRY(mc_overview_blocks_finish(s->levels[k].blocks));
    return MC_OK;
}

static mc_error *
sift_into(sifting *s, mc_overview_level *levels, apr_pool_t *pool)
{
    s->levels = apr_pcalloc(pool, sizeof(*s->levels) * (size_t)(s->count + 1));
    for (int k = 0; k < s->count; k++) {
        s->levels[k].level = &levels[k];
        MC_TRY(make_plane(&s->levels[k], s->job, pool));
        s->levels[k].blocks = mc_overview_blocks_create(&levels[k], s->job, pool);
    }
    return sift_pieces(s);
}

mc_error *
mc_overview_sift(mc_overview_level *levels, int count, double worth, const mc_overview_job *job)
{
    sifting s = { .job = job, .count = count, .worth = worth };
    apr_pool_t *pool;
    apr_pool_create(&pool, job->pool);
    apr_pool_create(&s.scratch, pool);
    mc_error *error = mc_error_copy(sift_into(&s, levels, pool), job->pool);
    if (s.unreadable > 0)
        mc_overview_tell(job, false, "%" APR_INT64_T_FMT " geometries cannot be read, and are left out",
                         (apr_int64_t)s.unreadable);
    mc_geometry_free(&s.geometry);
    mc_overview_free_packing(&s.packing);
    apr_pool_destroy(pool);
    return error;
}
