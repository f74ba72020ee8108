/*
 * Which features the levels for vector tiles keep: those that a tile of the level shows, or a tile of a coarser level.
 * The coarser ones are looked at because any level may serve the tiles of coarser ones, where a feature can be rounded
 * into something although it is nothing here.
 *
 * Where the source has more features than a tile may have, it is read twice: first the claims of all features are
 * counted (tile_claims.h).
 */
#include <math.h>
#include <stdlib.h>

#include "overview/overview_blocks.h"
#include "overview/overview_pieces.h"
#include "overview/overview_tiles.h"
#include "overview/tile_claims.h"
#include "overview/tile_probe.h"

typedef struct sifted_tile_level {
    mc_overview_level *level;
    mc_pixel_grid grid;
    mc_tile_probe *probe;
    mc_tile_claims *claims; /* NULL: all are kept */
    mc_overview_blocks *blocks;
} sifted_tile_level;

typedef struct tile_sifting {
    const mc_overview_job *job;
    sifted_tile_level *levels; /* the finest first */
    int count;
    double worth;
    bool counting; /* of the two readings it is the first one */
    mc_wkb_buffer snapped, packed;
    int64_t unreadable;
} tile_sifting;

/* Pixels of a level that are told apart: cells of blocks are counted beyond them, too. */
#define PIXELS_MOST 1e11

static double
bounded_pixels(double pixels)
{
    return fmax(-PIXELS_MOST, fmin(pixels, PIXELS_MOST));
}

/* In pixels of the level, from the upper left corner of the grid's first tile. Of what has no plain bounds those of the
 * whole source. */
static mc_extent
pixel_bounds_of_row(const tile_sifting *s, const sifted_tile_level *level, const mc_overview_row *row)
{
    const mc_extent first = mc_grid_tile_extent(s->job->grid, 0, 0, 0);
    const double side = level->level->resolution;
    mc_extent bounds;
    if (!mc_wkb_bounds(&bounds, row->geometry, row->size) || !isfinite(bounds.maxx - bounds.minx) ||
        !isfinite(bounds.maxy - bounds.miny))
        bounds = s->job->extent;
    return (mc_extent){ bounded_pixels((bounds.minx - first.minx) / side),
                        bounded_pixels((first.maxy - bounds.maxy) / side),
                        bounded_pixels((bounds.maxx - first.minx) / side),
                        bounded_pixels((first.maxy - bounds.miny) / side) };
}

/* Snapped and packed. What cannot be stays as it is. */
static mc_error *
keep_tile_row(tile_sifting *s, const sifted_tile_level *level, const mc_overview_row *row)
{
    mc_overview_feature feature = { .ordinal = row->ordinal,
                                    .bounds = pixel_bounds_of_row(s, level, row),
                                    .values = row->values,
                                    .geometry = row->geometry,
                                    .size = row->size };
    s->snapped.size = s->packed.size = 0;
    if (mc_wkb_snap(&s->snapped, row->geometry, row->size, &level->grid)) {
        feature.packed = mc_wkb_pack(&s->packed, s->snapped.data, s->snapped.size, level->level->digits);
        feature.geometry = feature.packed ? s->packed.data : s->snapped.data;
        feature.size = feature.packed ? s->packed.size : s->snapped.size;
    }
    if (s->snapped.failed || s->packed.failed)
        return mc_error_create(s->job->pool, MC_ERR_UNAVAILABLE, "there is no memory for a feature of a level");
    MC_TRY(mc_overview_blocks_add(level->blocks, &feature));
    if ((double)level->level->bytes > s->worth) {
        mc_overview_tell_level(s->job, level->level, 0, "no level, which would not be much smaller than the %s",
                               s->job->kind);
        level->level->given_up = true;
    }
    return MC_OK;
}

static mc_error *
count_claims(tile_sifting *s, const sifted_tile_level *level, const mc_overview_row *row)
{
    mc_tile_look look;
    MC_TRY(mc_tile_probe_look(&look, level->probe, row, s->job->ctx));
    for (int i = 0; i < look.count; i++)
        mc_tile_claims_count(level->claims, look.tiles[i].column, look.tiles[i].row, look.size);
    return MC_OK;
}

/* Whether tiles of the level show the row: asked in any case where claims are to be told. */
static mc_error *
is_row_in_tiles(bool *is, tile_sifting *s, const sifted_tile_level *level, const mc_overview_row *row)
{
    mc_tile_look look;
    MC_TRY(mc_tile_probe_look(&look, level->probe, row, s->job->ctx));
    *is = look.shown && (look.count == 0 || level->claims == NULL);
    for (int i = 0; i < look.count && level->claims != NULL; i++)
        *is |= mc_tile_claims_hold(level->claims, look.tiles[i].column, look.tiles[i].row, look.size);
    s->unreadable += look.unreadable && level == &s->levels[s->count - 1];
    return MC_OK;
}

static mc_error *
sift_tile_row(tile_sifting *s, const mc_overview_row *row)
{
    bool kept = false, is;
    int finest = 0;
    while (finest < s->count && s->levels[finest].level->given_up)
        finest++;
    for (int k = s->count - 1; k >= finest; k--) {
        const sifted_tile_level *level = &s->levels[k];
        if (s->counting) {
            MC_TRY(count_claims(s, level, row));
            continue;
        }
        if (!kept || level->claims != NULL) {
            MC_TRY(is_row_in_tiles(&is, s, level, row));
            kept |= is;
        }
        if (kept && !level->level->given_up)
            MC_TRY(keep_tile_row(s, level, row));
    }
    return MC_OK;
}

/* Visits a piece, from its end. */
static mc_error *
sift_tile_rows(void *baton, const apr_array_header_t *rows)
{
    tile_sifting *s = baton;
    for (int i = rows->nelts - 1; i >= 0; i--)
        MC_TRY(sift_tile_row(s, &APR_ARRAY_IDX(rows, i, mc_overview_row)));
    return MC_OK;
}

/* The first of two readings. */
static mc_error *
count_all_claims(tile_sifting *s, apr_pool_t *pool)
{
    for (int k = 0; k < s->count; k++)
        s->levels[k].claims = mc_tile_claims_create(s->job->tiles->options->max_features, pool);
    s->counting = true;
    MC_TRY(mc_overview_read_pieces(s->job, sift_tile_rows, s, pool));
    s->counting = false;
    for (int k = 0; k < s->count; k++)
        if (!mc_tile_claims_settle(s->levels[k].claims))
            s->levels[k].claims = NULL;
    return MC_OK;
}

static mc_error *
sift_into_tile_levels(tile_sifting *s, mc_overview_level *levels, const int *zooms, apr_pool_t *pool)
{
    const mc_mvt_options *options = s->job->tiles->options;
    s->levels = apr_pcalloc(pool, sizeof(*s->levels) * (size_t)(s->count + 1));
    for (int k = 0; k < s->count; k++) {
        const mc_vector_tile_lattice at = mc_vector_tile_lattice_of(s->job->grid, zooms[k]);
        s->levels[k] = (sifted_tile_level){ .level = &levels[k],
                                            .grid = mc_mvt_pixel_grid(options, at.x0, at.y0, at.width, at.height, 0, 0),
                                            .probe = mc_tile_probe_create(options, &at, pool),
                                            .blocks = mc_overview_blocks_create(&levels[k], s->job, pool) };
    }
    if (s->job->rows > options->max_features)
        MC_TRY(count_all_claims(s, pool));
    MC_TRY(mc_overview_read_pieces(s->job, sift_tile_rows, s, pool));
    for (int k = 0; k < s->count; k++)
        if (!levels[k].given_up)
            MC_TRY(mc_overview_blocks_finish(s->levels[k].blocks));
    return MC_OK;
}

mc_error *
mc_overview_sift_tiles(mc_overview_level *levels, const int *zooms, int count, double worth, const mc_overview_job *job)
{
    tile_sifting s = { .job = job, .count = count, .worth = worth };
    apr_pool_t *pool;
    apr_pool_create(&pool, job->pool);
    mc_error *error = mc_error_copy(sift_into_tile_levels(&s, levels, zooms, pool), job->pool);
    if (s.unreadable > 0)
        mc_overview_tell(job, false, "%" APR_INT64_T_FMT " geometries cannot be read, and are left out",
                         (apr_int64_t)s.unreadable);
    free(s.snapped.data);
    free(s.packed.data);
    apr_pool_destroy(pool);
    return error;
}
