/*
 * Which features the levels keep. The source is read once, in pieces of some pages, the last one first, because the
 * feature that is painted last hides the others. Each piece is read whole and looked at from its end: a feature goes
 * through the sieves of all levels, which look at a batch of rows each, on all processors.
 */
#include <apr_strings.h>
#include <math.h>

#include "base/workers.h"
#include "overview/overview_blocks.h"
#include "overview/overview_pieces.h"
#include "overview/overview_planes.h"
#include "text/text.h"

typedef struct sifted_level {
    mc_overview_level *level;
    mc_overview_blocks *blocks;
} sifted_level;

typedef struct sifting {
    const mc_overview_job *job;
    sifted_level *levels;
    int count;
    double worth;
    mc_overview_planes *planes;
    bool *keeps; /* of a row, for each level */
    mc_overview_packing packing;
    int64_t unreadable;
    struct mc_workers *workers; /* of its own */
} sifting;

static mc_error *
keep_row(sifting *s, sifted_level *level, const mc_overview_row *row, const mc_extent *bounds)
{
    mc_overview_feature feature = { .ordinal = row->ordinal,
                                    .bounds = mc_overview_level_bounds(level->level, s->job, bounds),
                                    .values = row->values,
                                    .geometry = row->geometry,
                                    .size = row->size };
    MC_TRY(mc_overview_pack(&feature, &s->packing, level->level, s->job));
    MC_TRY(mc_overview_blocks_add(level->blocks, &feature));
    if ((double)level->level->bytes > s->worth) {
        mc_overview_tell_level(s->job, level->level, 0, "no level, which would not be much smaller than the %s",
                               s->job->kind);
        level->level->given_up = true;
    }
    return MC_OK;
}

/* Each level is sifted from the table: what is left out would else add up from level to level. `at`: of the batch. */
static mc_error *
sift_row(sifting *s, const mc_overview_row *row, int at)
{
    mc_extent bounds;
    bool unreadable;
    MC_TRY(mc_overview_planes_tell(s->keeps, &bounds, &unreadable, s->planes, at));
    s->unreadable += unreadable;
    for (int k = 0; k < s->count; k++)
        if (s->keeps[k])
            MC_TRY(keep_row(s, &s->levels[k], row, &bounds));
    return MC_OK;
}

/* A piece, from its end. */
static mc_error *
sift_rows(void *baton, const apr_array_header_t *rows)
{
    sifting *s = baton;
    const mc_overview_row *all = (const mc_overview_row *)rows->elts;
    for (int end = rows->nelts, begin; end > 0; end = begin) {
        begin = end > MC_OVERVIEW_BATCH ? end - MC_OVERVIEW_BATCH : 0;
        MC_TRY(mc_overview_planes_look(s->planes, all + begin, end - begin));
        for (int i = end - 1; i >= begin; i--)
            MC_TRY(sift_row(s, &all[i], i - begin));
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
    s->keeps = apr_pcalloc(pool, sizeof(*s->keeps) * (size_t)(s->count + 1));
    MC_TRY(mc_overview_planes_create(&s->planes, levels, s->count, s->job, pool));
    MC_TRY(mc_workers_create(&s->workers, mc_processors() - 1, pool));
    mc_overview_planes_share(s->planes, s->workers, mc_processors() - 1);
    for (int k = 0; k < s->count; k++) {
        s->levels[k].level = &levels[k];
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
    mc_error *error = mc_error_copy(sift_into(&s, levels, pool), job->pool);
    if (s.unreadable > 0)
        mc_overview_tell(job, false, "%" APR_INT64_T_FMT " geometries cannot be read, and are left out",
                         (apr_int64_t)s.unreadable);
    if (s.workers != NULL)
        mc_workers_destroy(s.workers);
    mc_overview_free_packing(&s.packing);
    apr_pool_destroy(pool);
    return error;
}
