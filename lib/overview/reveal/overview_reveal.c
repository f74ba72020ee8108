/*
 * See overview_reveal.h. A row that is not in the level is hidden in each pixel by what lies over it there. Once
 * features have gone, more shines through in their pixels: twice as much, say, where one of them covered half. As long
 * as that is little for all that have gone since the level was built, nothing is done in a pixel. Else what goes
 * now, what is new and what is left are laid over it from the top (what went in earlier updates is not). Below the
 * place where it was hidden before, and above the one where it is hidden now, rows may be seen.
 */
#include "overview/reveal/overview_reveal_private.h"

#include <math.h>

#include "base/workers.h"
#include "overview/reveal/overview_items.h"

static apr_status_t
free_reveal(void *data)
{
    const mc_overview_reveal *reveal = data;
    for (int k = 0; k < reveal->level_count; k++)
        mc_task_pool_release(reveal->items[k]->pool);
    return APR_SUCCESS;
}

mc_error *
mc_reveal_run(mc_overview_reveal *reveal, mc_task *task, int count)
{
    const int helpers = reveal->workers == NULL ? 0 : mc_workers_count(reveal->workers);
    return mc_workers_run(reveal->workers, task, reveal, count, helpers, reveal->job->ctx, reveal->pool);
}

/* What has gone is laid over an empty plane: where it hid much, the plane is opened. */
static mc_error *
uncover_plane(void *baton, int index, mc_ctx *ctx)
{
    const mc_overview_reveal *reveal = baton;
    mc_reveal_plane *look = &reveal->looks[index];
    apr_pool_t *pool = look->plane->pool;
    mc_feature read;
    const apr_array_header_t *gone = reveal->levels[look->level].gone;
    for (int i = 0; i < gone->nelts; i++) {
        const mc_reveal_item *item = APR_ARRAY_IDX(gone, i, const mc_reveal_item *);
        MC_TRY(mc_ctx_check(ctx, ctx->pool));
        if (mc_reveal_read(&read, look->plane, item->feature))
            MC_TRY(mc_sieve_lay(look->plane->sieve, &read, item->role == MC_REVEAL_GONE, ctx));
    }
    look->reach = mc_sieve_reach(reveal->job->layer->style, mc_overview_scale(reveal->job, look->plane->resolution));
    look->columns = (look->plane->width + MC_REVEAL_SQUARE - 1) / MC_REVEAL_SQUARE;
    look->rows = (look->plane->height + MC_REVEAL_SQUARE - 1) / MC_REVEAL_SQUARE;
    look->squares = apr_pcalloc(pool, sizeof(*look->squares) * (size_t)look->columns * (size_t)look->rows);
    look->words = (size_t)(look->columns + MC_REVEAL_SQUARE_BITS - 1) / MC_REVEAL_SQUARE_BITS;
    look->bits = apr_palloc(pool, sizeof(*look->bits) * look->words * (size_t)look->rows);
    if (mc_sieve_uncover(look->plane->sieve))
        mc_reveal_note_squares(look);
    return MC_OK;
}

/* In units of the CRS. */
static void
add_area_of_gone(mc_extent *area, const mc_overview_reveal *reveal, const mc_reveal_level *level)
{
    const mc_extent first = mc_grid_tile_extent(reveal->job->grid, 0, 0, 0);
    const double side = level->level->resolution;
    mc_extent all = { INFINITY, INFINITY, -INFINITY, -INFINITY };
    for (int i = 0; i < level->gone->nelts; i++) {
        const mc_extent *bounds = &APR_ARRAY_IDX(level->gone, i, const mc_reveal_item *)->feature->bounds;
        all = (mc_extent){ fmin(all.minx, bounds->minx), fmin(all.miny, bounds->miny), fmax(all.maxx, bounds->maxx),
                           fmax(all.maxy, bounds->maxy) };
    }
    area->minx = fmin(area->minx, first.minx + (all.minx - 1) * side);
    area->miny = fmin(area->miny, first.maxy - (all.maxy + 1) * side);
    area->maxx = fmax(area->maxx, first.minx + (all.maxx + 1) * side);
    area->maxy = fmax(area->maxy, first.maxy - (all.miny - 1) * side);
}

static mc_error *
create_looks(mc_overview_reveal *reveal)
{
    reveal->count = mc_overview_planes_count(reveal->planes);
    reveal->looks = apr_pcalloc(reveal->pool, sizeof(*reveal->looks) * (size_t)reveal->count);
    reveal->items = apr_palloc(reveal->pool, sizeof(*reveal->items) * (size_t)reveal->level_count);
    for (int k = 0; k < reveal->level_count; k++)
        reveal->items[k] = apr_array_make(mc_task_pool_acquire(), 1024, sizeof(mc_reveal_item *));
    apr_pool_cleanup_register(reveal->pool, reveal, free_reveal, apr_pool_cleanup_null);
    for (int p = 0; p < reveal->count; p++) {
        mc_reveal_plane *look = &reveal->looks[p];
        look->plane = mc_overview_planes_at(reveal->planes, p);
        for (int k = reveal->level_count - 1; k >= 0; k--)
            if (mc_overview_planes_serve(reveal->planes, p, k)) {
                look->level = look->levels == 0 ? k : look->level;
                look->finest = k;
                look->levels |= (uint32_t)1 << k;
            }
    }
    return mc_reveal_run(reveal, uncover_plane, reveal->count);
}

mc_error *
mc_overview_reveal_create(mc_overview_reveal **reveal, bool *fits, const mc_reveal_level *levels, int count,
                          const mc_overview_job *job, struct mc_workers *workers, apr_pool_t *pool)
{
    mc_overview_reveal *made = apr_pcalloc(pool, sizeof(*made));
    mc_overview_level *own = apr_pcalloc(pool, sizeof(*own) * (size_t)count);
    mc_extent area = { INFINITY, INFINITY, -INFINITY, -INFINITY };
    *made =
        (mc_overview_reveal){ .job = job, .levels = levels, .level_count = count, .workers = workers, .pool = pool };
    *reveal = made;
    *fits = true;
    for (int k = 0; k < count; k++) {
        own[k] = *levels[k].level;
        add_area_of_gone(&area, made, &levels[k]);
    }
    for (int k = 0; k < count; k++)
        *fits = *fits && mc_overview_plane_fits(job, own[k].resolution, &area);
    if (!*fits)
        return MC_OK;
    MC_TRY(mc_overview_planes_of_area(&made->planes, own, count, &area, job, pool));
    return create_looks(made);
}

/* ---- Features ---- */

uint32_t
mc_overview_reveal_levels(const mc_overview_reveal *reveal, int64_t ordinal)
{
    uint32_t levels = 0;
    for (int k = 0; k < reveal->level_count; k++)
        levels |= (uint32_t)mc_overview_ordinals_have(reveal->levels[k].known, ordinal) << k;
    return levels;
}

bool
mc_overview_reveal_knows(const mc_overview_reveal *reveal, uint32_t plane, int64_t ordinal)
{
    return plane >= (uint32_t)reveal->count ||
           (reveal->looks[plane].levels & ~mc_overview_reveal_levels(reveal, ordinal)) == 0;
}

void
mc_overview_reveal_add(mc_overview_reveal *reveal, int level, const mc_overview_feature *feature, mc_reveal_role role)
{
    const mc_reveal_item item = { .feature = feature, .values = feature->values, .role = role };
    mc_sieve_box box;
    for (int p = 0; p < reveal->count; p++) {
        mc_reveal_plane *look = &reveal->looks[p];
        if (look->looked_at && look->level == level && mc_reveal_may_be_shown(&box, reveal, look, &item)) {
            mc_reveal_push_item(reveal->items[level], &item);
            return;
        }
    }
}
