/*
 * A level is patched where its table has changed. New rows are added, whether or not they are hidden; features whose
 * rows have gone are removed. Where that lets others be seen (overview_reveal.h), these are looked for in the table.
 * Features that the level has stay, hidden or not, as long as their rows do. So nothing is ever missing, and the level
 * grows until it is built anew.
 */
#include "overview/update/overview_patch.h"

#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>

#include "base/workers.h"
#include "overview/overview_planes.h"
#include "overview/reveal/overview_items.h"
#include "overview/update/overview_gone.h"
#include "overview/update/overview_patch_blocks.h"
#include "overview/update/overview_splice.h"
#include "overview/update/overview_wanted.h"
#include "text/text.h"

/* Features that are remembered, and their bytes. */
enum { GONE_MOST = 20000, GONE_BYTES_MOST = 32 << 20 };
/* Features that are looked at between two looks at the deadline. */
enum { ENTRIES_AT_ONCE = 1024 };
/* Of a pixel: by how much bounds in a level may lie beside those of the row. */
#define BOUNDS_OFF 0.5

typedef struct level_patch {
    const mc_overview_table *table;
    mc_overview_level *level;
    mc_overview_changed *changed;
    const mc_box_set *boxes; /* near which blocks are read */
    mc_patch_blocks *blocks;
    apr_array_header_t *before; /* mc_overview_feature: what went before and is remembered */
    apr_array_header_t *gone;   /* pointers to mc_reveal_item: all that has gone, near what goes now */
    mc_overview_patched *done;
    mc_overview_packing packing;
    apr_pool_t *pool;
} level_patch;

typedef struct table_patch {
    const mc_overview_table *table;
    mc_overview_changed *changed;
    level_patch *levels;
    mc_reveal_level *sides; /* of the levels, as they are looked at */
    int count;
    mc_overview_reveal *reveal;
    struct mc_workers *workers; /* NULL: none */
    const char *reason;
    apr_pool_t *pool;
} table_patch;

static apr_status_t
free_level_patch(void *data)
{
    level_patch *patch = data;
    mc_overview_free_packing(&patch->packing);
    return APR_SUCCESS;
}

/* ---- What has gone before ---- */

static bool
lies_near(const mc_extent *bounds, const mc_box_set *boxes, double by)
{
    for (int i = 0; i < boxes->count; i++) {
        const mc_extent *box = &boxes->boxes[i];
        if (bounds->minx <= box->maxx + by && bounds->maxx >= box->minx - by && bounds->miny <= box->maxy + by &&
            bounds->maxy >= box->miny - by)
            return true;
    }
    return false;
}

/* Bounds in pixels of the level as units of the CRS. */
static mc_extent
extent_of_bounds(const level_patch *patch, const mc_extent *bounds)
{
    const mc_extent first = mc_grid_tile_extent(patch->table->job.grid, 0, 0, 0);
    const double side = patch->level->resolution;
    return (mc_extent){ first.minx + bounds->minx * side, first.maxy - bounds->maxy * side,
                        first.minx + bounds->maxx * side, first.maxy - bounds->miny * side };
}

static void
push_gone(level_patch *patch, const mc_overview_feature *feature, mc_reveal_role role)
{
    mc_reveal_push_item(patch->gone, &(mc_reveal_item){ .feature = feature, .role = role });
}

/* What went before counts where it can lie over what goes now, and blocks are read there as well. */
static mc_error *
read_gone_before(level_patch *patch)
{
    const mc_box_set *changed = patch->changed->boxes;
    const double near =
        2 * (mc_overview_planes_margin(patch->level, &patch->table->job) + 1) * patch->level->resolution;
    mc_box_set *boxes = mc_box_set_create(patch->pool);
    MC_TRY(mc_overview_gone_read(patch->before, patch->done->went.bytes, patch->done->went.size, &patch->table->job,
                                 patch->pool));
    for (int i = 0; i < changed->count; i++)
        mc_box_set_add(boxes, &changed->boxes[i]);
    for (int i = 0; i < patch->before->nelts; i++) {
        mc_overview_feature *feature = &APR_ARRAY_IDX(patch->before, i, mc_overview_feature);
        if (!mc_patch_bound(patch->blocks, feature))
            continue;
        const mc_extent extent = extent_of_bounds(patch, &feature->bounds);
        if (!patch->changed->everywhere && !lies_near(&extent, changed, near))
            continue;
        mc_box_set_add(boxes, &extent);
        push_gone(patch, feature, MC_REVEAL_WENT);
    }
    patch->boxes = patch->changed->everywhere ? NULL : boxes;
    return MC_OK;
}

/* ---- What has changed ---- */

/* Whether all of a feature lies in a changed box, as that of a row that has gone does. */
static bool
lies_in_change(level_patch *patch, mc_patch_entry *entry)
{
    const mc_box_set *boxes = patch->changed->boxes;
    const double off = BOUNDS_OFF * patch->level->resolution;
    entry->bounded = entry->bounded || mc_patch_bound(patch->blocks, &entry->feature);
    if (!entry->bounded)
        return true; /* no map shows it */
    const mc_extent at = extent_of_bounds(patch, &entry->feature.bounds);
    for (int i = 0; i < boxes->count; i++) {
        const mc_extent *box = &boxes->boxes[i];
        if (at.minx >= box->minx - off && at.maxx <= box->maxx + off && at.miny >= box->miny - off &&
            at.maxy <= box->maxy + off)
            return true;
    }
    return false;
}

static mc_error *
remove_gone(level_patch *patch)
{
    const mc_overview_changed *changed = patch->changed;
    for (int i = 0; i < patch->blocks->entries->nelts; i++) {
        mc_patch_entry *entry = &APR_ARRAY_IDX(patch->blocks->entries, i, mc_patch_entry);
        const int64_t ordinal = entry->feature.ordinal;
        if (i % ENTRIES_AT_ONCE == 0)
            MC_TRY(mc_ctx_check(patch->table->job.ctx, patch->pool));
        if (mc_overview_ordinals_have(changed->old, ordinal) ||
            (!changed->everywhere && !mc_overview_ordinals_have(changed->fresh, ordinal) &&
             !lies_in_change(patch, entry)))
            continue;
        mc_patch_remove(patch->blocks, entry);
        patch->done->removed++;
        entry->bounded = entry->bounded || mc_patch_bound(patch->blocks, &entry->feature);
        if (entry->bounded)
            push_gone(patch, &entry->feature, MC_REVEAL_GONE);
    }
    return MC_OK;
}

static mc_error *
add_row_to_level(level_patch *patch, const mc_overview_row *row)
{
    mc_overview_feature feature = {
        .ordinal = row->ordinal, .values = row->values, .geometry = row->geometry, .size = row->size
    };
    MC_TRY(mc_overview_pack(&feature, &patch->packing, patch->level, &patch->table->job));
    mc_patch_add(patch->blocks, &feature);
    patch->done->added++;
    return MC_OK;
}

/* Whether all of a row lies in reach of the grid by which features are read. */
static bool
is_row_in_reach(const level_patch *patch, const mc_overview_row *row)
{
    const mc_pixel_grid *grid = &patch->blocks->grid;
    const double most = MC_SHAPE_REACH / 2 / MC_SUBPIXELS - 1, left = (double)grid->left, top = (double)grid->top;
    mc_extent extent;
    if (!mc_wkb_bounds(&extent, row->geometry, row->size))
        return true; /* curves and collections: mc_patch_bound looks at what was read */
    const mc_extent at = mc_overview_level_bounds(patch->level, &patch->table->job, &extent);
    return at.minx - left > -most && at.maxx - left < most && at.miny - top > -most && at.maxy - top < most;
}

/* Else maps leave the row out. No rule begins or ends among the scales of a level. What lies too far from the other
 * changes to be read on their grid is taken for drawn. */
static bool
is_row_drawn(const level_patch *patch, mc_sieve *sieve, const mc_overview_row *row, apr_pool_t *scratch)
{
    mc_geometry *geometry = &patch->blocks->geometry;
    const mc_feature_query query = { .pixel_grid = patch->blocks->grid,
                                     .resolution = patch->level->resolution,
                                     .scale = mc_overview_scale(&patch->table->job, patch->level->resolution) };
    const mc_feature feature = { .geometry = geometry, .values = row->values, .query = &query };
    if (!is_row_in_reach(patch, row))
        return true;
    mc_error *error = mc_wkb_read(geometry, row->geometry, row->size, &patch->blocks->grid, scratch);
    mc_error_ignore(error);
    return error == MC_OK && !mc_geometry_is_empty(geometry) && mc_sieve_draws(sieve, &feature);
}

/* Rows that are new are in the level where a rule draws them. */
static mc_error *
add_fresh_rows(level_patch *patch)
{
    const double scale = mc_overview_scale(&patch->table->job, patch->level->resolution);
    apr_pool_t *scratch;
    mc_sieve *sieve;
    apr_pool_create(&scratch, patch->pool);
    MC_TRY(mc_sieve_create(&sieve, patch->table->job.layer->style, scale, 0, 1, 1, patch->pool));
    for (int i = 0; i < patch->changed->rows->nelts; i++) {
        const mc_overview_row *row = &APR_ARRAY_IDX(patch->changed->rows, i, mc_overview_row);
        apr_pool_clear(scratch);
        MC_TRY(mc_ctx_check(patch->table->job.ctx, patch->pool));
        if (is_row_drawn(patch, sieve, row, scratch))
            MC_TRY(add_row_to_level(patch, row));
    }
    apr_pool_destroy(scratch);
    return MC_OK;
}

/* ---- What is seen for that ---- */

static mc_error *
look_at_entries(const table_patch *all, int level, const apr_array_header_t *entries, mc_reveal_role role, mc_ctx *ctx)
{
    const level_patch *patch = &all->levels[level];
    for (int i = 0; i < entries->nelts; i++) {
        mc_patch_entry *entry = &APR_ARRAY_IDX(entries, i, mc_patch_entry);
        if (i % ENTRIES_AT_ONCE == 0)
            MC_TRY(mc_ctx_check(ctx, ctx->pool));
        entry->bounded = entry->bounded || mc_patch_bound(patch->blocks, &entry->feature);
        if (entry->bounded)
            mc_overview_reveal_add(all->reveal, level, &entry->feature, entry->gone ? MC_REVEAL_GONE : role);
    }
    return MC_OK;
}

static mc_error *
look_at_level(void *baton, int level, mc_ctx *ctx)
{
    const table_patch *all = baton;
    const mc_patch_blocks *blocks = all->levels[level].blocks;
    MC_TRY(look_at_entries(all, level, blocks->entries, MC_REVEAL_STAYS, ctx));
    return look_at_entries(all, level, blocks->added, MC_REVEAL_NEW, ctx);
}

/* Rows that are seen now are added to the levels that do not have them. */
static mc_error *
add_seen_rows(table_patch *all, const apr_array_header_t *rows, const apr_array_header_t *looked)
{
    for (int i = 0; i < looked->nelts; i++) {
        const mc_reveal_row *row = &APR_ARRAY_IDX(looked, i, mc_reveal_row);
        for (int k = 0; k < all->count; k++) {
            level_patch *patch = &all->levels[k];
            patch->done->looked += row->looked >> k & 1;
            if ((row->seen >> k & 1) != 0 && !mc_overview_ordinals_have(patch->blocks->known, row->feature.ordinal))
                MC_TRY(add_row_to_level(patch, &APR_ARRAY_IDX(rows, i, mc_overview_row)));
        }
    }
    return MC_OK;
}

static mc_error *
sift_wanted_rows(table_patch *all, const apr_array_header_t *rows)
{
    apr_array_header_t *looked = apr_array_make(all->pool, rows->nelts + 1, sizeof(mc_reveal_row));
    for (int i = 0; i < rows->nelts; i++) {
        const mc_overview_row *row = &APR_ARRAY_IDX(rows, i, mc_overview_row);
        mc_reveal_row *made = &APR_ARRAY_PUSH(looked, mc_reveal_row);
        *made = (mc_reveal_row){
            .feature = { .ordinal = row->ordinal, .values = row->values, .geometry = row->geometry, .size = row->size }
        };
        if (!mc_wkb_bounds(&made->extent, row->geometry, row->size)) /* curves and collections: anywhere */
            made->extent = (mc_extent){ -INFINITY, -INFINITY, INFINITY, INFINITY };
    }
    MC_TRY(mc_overview_reveal_sift(all->reveal, looked));
    return add_seen_rows(all, rows, looked);
}

static mc_error *
add_uncovered_rows(table_patch *all)
{
    apr_array_header_t *ordinals = NULL, *rows;
    apr_array_header_t *wanted = apr_array_make(all->pool, 64, sizeof(mc_reveal_wanted));
    int64_t kept = 0;
    for (int k = 0; k < all->count; k++)
        kept += all->levels[k].level->kept;
    MC_TRY(mc_workers_run(all->workers, look_at_level, all, all->count,
                          all->workers != NULL ? mc_workers_count(all->workers) : 0, all->table->job.ctx, all->pool));
    MC_TRY(mc_overview_reveal_find(wanted, all->reveal));
    if (wanted->nelts == 0)
        return MC_OK;
    MC_TRY(mc_overview_limit_reason(&all->reason, mc_overview_find_wanted(&ordinals, wanted, all->reveal, kept,
                                                                          all->changed, all->table, all->pool)));
    if (all->reason == NULL && ordinals == NULL)
        all->reason = "what has gone lets too many others be seen";
    if (all->reason != NULL || ordinals->nelts == 0)
        return MC_OK;
    MC_TRY(mc_overview_limit_reason(&all->reason, mc_overview_read_ordinals(&rows, ordinals, all->table, all->pool)));
    return all->reason != NULL ? MC_OK : sift_wanted_rows(all, rows);
}

/* ---- What has gone is remembered ---- */

/* As bytes in SQL. */
static const char *
text_of_bytes(const mc_wkb_buffer *bytes, apr_pool_t *pool)
{
    static const char hex[] = "0123456789abcdef";
    char *text = apr_palloc(pool, 2 * bytes->size + 3);
    text[0] = '\\';
    text[1] = 'x';
    for (size_t i = 0; i < bytes->size; i++) {
        text[2 + 2 * i] = hex[bytes->data[i] >> 4];
        text[3 + 2 * i] = hex[bytes->data[i] & 15];
    }
    text[2 + 2 * bytes->size] = '\0';
    return text;
}

/* All that has gone is remembered: it may have hidden what is not in the level. */
static mc_error *
remember_gone(const char **reason, level_patch *patch)
{
    apr_array_header_t *features = apr_array_make(patch->pool, 64, sizeof(const mc_overview_feature *));
    mc_wkb_buffer bytes = { 0 };
    for (int i = 0; i < patch->before->nelts; i++)
        APR_ARRAY_PUSH(features, const mc_overview_feature *) = &APR_ARRAY_IDX(patch->before, i, mc_overview_feature);
    for (int i = 0; i < patch->blocks->entries->nelts; i++)
        if (APR_ARRAY_IDX(patch->blocks->entries, i, mc_patch_entry).gone)
            APR_ARRAY_PUSH(features, const mc_overview_feature *) =
                &APR_ARRAY_IDX(patch->blocks->entries, i, mc_patch_entry).feature;
    if (!mc_overview_hides(&patch->table->job, patch->level->resolution))
        apr_array_clear(features);
    if (features->nelts > GONE_MOST) {
        *reason = "too many features have gone since they were built";
        return MC_OK;
    }
    mc_overview_gone_write(&bytes, features, &patch->table->job, patch->pool);
    if (bytes.size > GONE_BYTES_MOST)
        *reason = "the features that have gone since they were built are too large";
    else if (!bytes.failed)
        patch->done->gone = text_of_bytes(&bytes, patch->pool);
    free(bytes.data);
    return bytes.failed ? mc_error_create(patch->pool, MC_ERR_UNAVAILABLE, "there is no memory for what has gone")
                        : MC_OK;
}

/* ---- All of it ---- */

static mc_extent
area_of_boxes(const mc_box_set *boxes)
{
    mc_extent all = boxes->boxes[0];
    for (int i = 1; i < boxes->count; i++) {
        const mc_extent *next = &boxes->boxes[i];
        all = (mc_extent){ fmin(all.minx, next->minx), fmin(all.miny, next->miny), fmax(all.maxx, next->maxx),
                           fmax(all.maxy, next->maxy) };
    }
    return all;
}

/* *fits false: what is there is too much. */
static mc_error *
begin_patched_level(bool *fits, level_patch *patch)
{
    MC_TRY(read_gone_before(patch));
    MC_TRY(mc_patch_blocks_read(fits, patch->blocks, patch->boxes));
    if (!*fits)
        return MC_OK;
    MC_TRY(remove_gone(patch));
    return add_fresh_rows(patch);
}

/* Whether features went that may have hidden others. */
static bool
may_have_hidden(const level_patch *patch)
{
    return patch->done->removed > 0 && patch->gone->nelts > 0 &&
           mc_overview_hides(&patch->table->job, patch->level->resolution);
}

static mc_error *
find_uncovered(bool *fits, table_patch *all)
{
    bool any = false, far = false;
    for (int k = 0; k < all->count; k++) {
        level_patch *patch = &all->levels[k];
        all->sides[k] = (mc_reveal_level){ .level = patch->level, .gone = patch->gone, .known = patch->blocks->known };
        any = any || may_have_hidden(patch);
        far = far || patch->blocks->far;
    }
    if (!any || far)
        return MC_OK;
    MC_TRY(mc_overview_reveal_create(&all->reveal, fits, all->sides, all->count, &all->table->job, all->workers,
                                     all->pool));
    return *fits ? add_uncovered_rows(all) : MC_OK;
}

static mc_error *
end_patched_level(table_patch *all, level_patch *patch)
{
    if (all->reason == NULL)
        MC_TRY(remember_gone(&all->reason, patch));
    if (all->reason == NULL)
        MC_TRY(mc_patch_delete_changed(patch->blocks));
    if (all->reason == NULL && !patch->blocks->far)
        MC_TRY(mc_overview_splice(patch->blocks));
    if (patch->blocks->far)
        all->reason = "what has changed reaches too far";
    return MC_OK;
}

static mc_error *
patch_table(table_patch *all)
{
    bool fits = true;
    for (int k = 0, others = 0; k < all->count && fits; k++) {
        mc_patch_blocks *blocks = all->levels[k].blocks;
        blocks->others = others;
        MC_TRY(begin_patched_level(&fits, &all->levels[k]));
        others += blocks->entries->nelts;
    }
    if (fits)
        MC_TRY(find_uncovered(&fits, all));
    if (!fits)
        all->reason = "what has changed reaches too far";
    for (int k = 0; k < all->count && all->reason == NULL; k++)
        MC_TRY(end_patched_level(all, &all->levels[k]));
    return MC_OK;
}

/* Commands have workers of their own. A server updates beside its requests, in one thread. */
static mc_error *
patch_on_threads(table_patch *all)
{
    const int helpers = all->table->job.options->bounds != NULL ? 0 : mc_processors() - 1;
    if (helpers > 0)
        MC_TRY(mc_workers_create(&all->workers, helpers, all->pool));
    mc_error *error = patch_table(all);
    if (all->workers != NULL)
        mc_workers_destroy(all->workers);
    return error;
}

mc_error *
mc_overview_patch_levels(const char **reason, mc_overview_patched *levels, int count, mc_overview_changed *changed,
                         const mc_overview_table *table, apr_pool_t *pool)
{
    const mc_extent centre = area_of_boxes(changed->boxes);
    table_patch all = { .table = table, .changed = changed, .count = count, .pool = pool };
    all.levels = apr_pcalloc(pool, sizeof(*all.levels) * (size_t)count);
    all.sides = apr_pcalloc(pool, sizeof(*all.sides) * (size_t)count);
    for (int k = 0; k < count; k++) {
        level_patch *patch = &all.levels[k];
        *patch = (level_patch){
            .table = table, .level = levels[k].level, .changed = changed, .done = &levels[k], .pool = pool
        };
        patch->blocks = mc_patch_blocks_create(patch->level, levels[k].name, &centre, changed->old, table, pool);
        patch->before = apr_array_make(pool, 64, sizeof(mc_overview_feature));
        patch->gone = apr_array_make(pool, 64, sizeof(mc_reveal_item *));
        apr_pool_cleanup_register(pool, patch, free_level_patch, apr_pool_cleanup_null);
    }
    MC_TRY(patch_on_threads(&all));
    *reason = all.reason;
    return MC_OK;
}
