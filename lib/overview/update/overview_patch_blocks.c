/* See overview_patch_blocks.h. */
#include "overview/update/overview_patch_blocks.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>

#include "base/workers.h"
#include "draw/paint/sieve.h"
#include "overview/overview_planes.h"
#include "overview/update/overview_changed.h"
#include "vector/levels/level_blocks.h"

enum {
    ENTRIES_MAX = 1 << 23,    /* features of all levels that are in memory at once */
    FARTHEST = (1 << 26) - 1, /* 1/256 pixel; bounds beyond that may have been cut */
};

static apr_status_t
free_blocks_of_patch(void *data)
{
    mc_patch_blocks *blocks = data;
    mc_geometry_free(&blocks->geometry);
    mc_task_pool_release(blocks->scratch);
    return APR_SUCCESS;
}

mc_patch_blocks *
mc_patch_blocks_create(mc_overview_level *level, const char *name, const mc_extent *centre,
                       const mc_overview_ordinals *like, const mc_overview_table *table, apr_pool_t *pool)
{
    mc_patch_blocks *made = apr_pcalloc(pool, sizeof(*made));
    const mc_extent first = mc_grid_tile_extent(table->job.grid, 0, 0, 0);
    double box[4];
    mc_overview_lattice_box(box, &table->job, level->resolution, centre, 0);
    *made = (mc_patch_blocks){ .table = table, .level = level, .name = name, .pool = pool };
    made->grid = (mc_pixel_grid){ .x0 = first.minx,
                                  .y0 = first.maxy,
                                  .per_x = 1 / level->resolution,
                                  .per_y = 1 / level->resolution,
                                  .left = (int64_t)floor((box[0] + box[2]) / 2),
                                  .top = (int64_t)floor((box[1] + box[3]) / 2),
                                  .thinning = MC_SIEVE_THINNING,
                                  .keep_small = true };
    made->blocks = apr_array_make(pool, 64, sizeof(mc_patch_block));
    made->entries = apr_array_make(pool, 1024, sizeof(mc_patch_entry));
    made->added = apr_array_make(pool, 64, sizeof(mc_patch_entry));
    made->known = mc_overview_ordinals_create(like->most, pool);
    made->scratch = mc_task_pool_acquire();
    apr_pool_cleanup_register(pool, made, free_blocks_of_patch, apr_pool_cleanup_null);
    mc_overview_open_level(level, name, pool);
    return made;
}

/* ---- Reading ---- */

static const char *
blocks_sql(const mc_patch_blocks *blocks, const mc_box_set *boxes)
{
    const mc_overview_level *level = blocks->level;
    if (boxes == NULL)
        return apr_psprintf(blocks->pool, "SELECT ctid, part, features, box FROM " MC_LEVELS_SCHEMA ".%s",
                            blocks->name);
    const double pixels = 2 * (mc_overview_planes_margin(level, &blocks->table->job) + 1) + level->cell;
    return apr_psprintf(blocks->pool,
                        "SELECT ctid, part, features, box FROM " MC_LEVELS_SCHEMA
                        ".%s WHERE ctid IN (SELECT l.ctid FROM (VALUES %s) AS c(x0, y0, x1, y1) JOIN " MC_LEVELS_SCHEMA
                        ".%s l ON l.box && ST_MakeEnvelope(c.x0, c.y0, c.x1, c.y1, %d))",
                        blocks->name, mc_overview_boxes_sql(boxes, pixels * level->resolution, blocks->pool),
                        blocks->name, blocks->table->job.srid);
}

static uint32_t
number_of_bytes(const char *bytes, int size)
{
    uint32_t number = 0;
    for (int i = 0; i < size; i++)
        number = number << 8 | (uint8_t)bytes[i];
    return number;
}

/* *fits: whether its features are no more than may be in memory; else nothing of it is taken. */
static mc_error *
take_block(bool *fits, mc_patch_blocks *blocks, apr_array_header_t *features, const mc_postgres_row *row)
{
    const mc_postgres_field *fields = row->fields;
    const int attributes = blocks->table->job.attribute_count;
    if (row->columns != 4 || fields[0].size != 6 || fields[1].size != 4 || fields[2].size < 0 || fields[3].size < 0)
        return mc_error_create(blocks->pool, MC_ERR_CORRUPT, "a level is broken");
    apr_array_clear(features);
    MC_TRY(mc_level_read_block(features, fields[2].data, (size_t)fields[2].size, attributes, blocks->pool));
    *fits = features->nelts < ENTRIES_MAX - blocks->others - blocks->entries->nelts;
    if (!*fits)
        return MC_OK;
    mc_patch_block *block = &APR_ARRAY_PUSH(blocks->blocks, mc_patch_block);
    *block = (mc_patch_block){ .first = blocks->entries->nelts,
                               .count = features->nelts,
                               .ctid = apr_psprintf(blocks->pool, "\"(%u,%u)\"", number_of_bytes(fields[0].data, 4),
                                                    number_of_bytes(fields[0].data + 4, 2)),
                               .part = (int)number_of_bytes(fields[1].data, 4) };
    if (!mc_wkb_bounds(&block->box, fields[3].data, (size_t)fields[3].size))
        return mc_error_create(blocks->pool, MC_ERR_CORRUPT, "a level is broken");
    for (int i = 0; i < features->nelts; i++) {
        const mc_level_feature *feature = &APR_ARRAY_IDX(features, i, mc_level_feature);
        mc_patch_entry *entry = &APR_ARRAY_PUSH(blocks->entries, mc_patch_entry);
        *entry = (mc_patch_entry){ .feature = { .ordinal = block->part * blocks->level->window + feature->place,
                                                .values = feature->values,
                                                .geometry = feature->geometry,
                                                .size = feature->size,
                                                .packed = feature->packed },
                                   .block = blocks->blocks->nelts - 1 };
        (void)mc_overview_ordinals_add(blocks->known, entry->feature.ordinal);
        block->sample = entry->feature;
    }
    return MC_OK;
}

mc_error *
mc_patch_blocks_read(bool *fits, mc_patch_blocks *blocks, const mc_box_set *boxes)
{
    const mc_overview_job *job = &blocks->table->job;
    const mc_postgres_query query = {
        .session = blocks->table->session, .sql = blocks_sql(blocks, boxes), .binary = true, .copy = true
    };
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    apr_array_header_t *features = apr_array_make(blocks->pool, 64, sizeof(mc_level_feature));
    *fits = blocks->known != NULL;
    if (!*fits)
        return MC_OK;
    if (boxes == NULL) /* all features of the level: there is room for them from the beginning */
        blocks->entries =
            apr_array_make(blocks->pool, (int)fmin((double)blocks->level->kept + 1, ENTRIES_MAX - blocks->others + 1),
                           sizeof(mc_patch_entry));
    mc_error *error = mc_postgres_start(&result, job->ctx->process->postgres, &query, job->ctx, blocks->pool);
    /* Also what does not fit is read to its end: the session goes on. */
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        if (*fits)
            error = take_block(fits, blocks, features, row);
    mc_postgres_end(result);
    return error;
}

/* ---- Features ---- */

/* Of curves, collections, and what is broken. */
static bool
bound_by_reading(mc_patch_blocks *blocks, mc_overview_feature *feature)
{
    int32_t bounds[4] = { 0 };
    const double side = MC_SUBPIXELS, left = (double)blocks->grid.left, top = (double)blocks->grid.top;
    apr_pool_clear(blocks->scratch);
    mc_error *error = (feature->packed ? mc_twkb_read : mc_wkb_read)(&blocks->geometry, feature->geometry,
                                                                     feature->size, &blocks->grid, blocks->scratch);
    mc_error_ignore(error);
    if (error != MC_OK || !mc_geometry_bounds(&blocks->geometry, &bounds[0], &bounds[1], &bounds[2], &bounds[3]))
        return false;
    for (int i = 0; i < 4; i++)
        blocks->far = blocks->far || bounds[i] < -FARTHEST || bounds[i] > FARTHEST;
    feature->bounds =
        (mc_extent){ left + bounds[0] / side, top + bounds[1] / side, left + bounds[2] / side, top + bounds[3] / side };
    return true;
}

bool
mc_patch_bound(mc_patch_blocks *blocks, mc_overview_feature *feature)
{
    mc_extent extent;
    if (!(feature->packed ? mc_twkb_bounds : mc_wkb_bounds)(&extent, feature->geometry, feature->size) ||
        !isfinite(extent.maxx - extent.minx) || !isfinite(extent.maxy - extent.miny))
        return bound_by_reading(blocks, feature);
    feature->bounds = mc_overview_level_bounds(blocks->level, &blocks->table->job, &extent);
    return true;
}

void
mc_patch_remove(mc_patch_blocks *blocks, mc_patch_entry *entry)
{
    entry->gone = true;
    APR_ARRAY_IDX(blocks->blocks, entry->block, mc_patch_block).changed = true;
}

void
mc_patch_add(mc_patch_blocks *blocks, const mc_overview_feature *feature)
{
    const int count = blocks->table->job.attribute_count;
    const char **values = apr_palloc(blocks->pool, sizeof(*values) * (size_t)(count + 1));
    mc_patch_entry *added = &APR_ARRAY_PUSH(blocks->added, mc_patch_entry);
    *added = (mc_patch_entry){ .feature = *feature, .block = -1 };
    for (int i = 0; i < count; i++)
        values[i] = feature->values[i] == NULL ? NULL : apr_pstrdup(blocks->pool, feature->values[i]);
    added->feature.values = values;
    added->feature.geometry = apr_pmemdup(blocks->pool, feature->geometry, feature->size);
    added->bounded = mc_patch_bound(blocks, &added->feature);
    (void)mc_overview_ordinals_add(blocks->known, feature->ordinal);
}

/* ---- Writing ---- */

enum { PLACE_NUMBERS = 4 };

static void
name_block_place(int64_t place[PLACE_NUMBERS], const mc_overview_level *level, int64_t part, const mc_extent *bounds)
{
    const mc_overview_cell cell = mc_overview_find_cell(bounds, level->cell);
    place[0] = part;
    place[1] = cell.wideness;
    place[2] = cell.column;
    place[3] = cell.row;
}

/* Blocks of the windows and cells of new features are written anew with these, so that small blocks do not pile up. */
static void
change_blocks_of_added(mc_patch_blocks *blocks)
{
    apr_hash_t *places = apr_hash_make(blocks->pool);
    int64_t place[PLACE_NUMBERS];
    for (int i = 0; i < blocks->added->nelts; i++) {
        const mc_overview_feature *feature = &APR_ARRAY_IDX(blocks->added, i, mc_patch_entry).feature;
        name_block_place(place, blocks->level, feature->ordinal / blocks->level->window, &feature->bounds);
        apr_hash_set(places, apr_pmemdup(blocks->pool, place, sizeof(place)), sizeof(place), blocks);
    }
    for (int i = 0; blocks->added->nelts > 0 && i < blocks->blocks->nelts; i++) {
        mc_patch_block *block = &APR_ARRAY_IDX(blocks->blocks, i, mc_patch_block);
        if (block->changed || !mc_patch_bound(blocks, &block->sample))
            continue;
        name_block_place(place, blocks->level, block->part, &block->sample.bounds);
        block->changed = apr_hash_get(places, place, sizeof(place)) != NULL;
    }
}

static mc_error *
delete_changed_blocks(const mc_patch_blocks *blocks)
{
    apr_array_header_t *gone = apr_array_make(blocks->pool, 64, sizeof(const char *));
    for (int i = 0; i < blocks->blocks->nelts; i++)
        if (APR_ARRAY_IDX(blocks->blocks, i, mc_patch_block).changed)
            APR_ARRAY_PUSH(gone, const char *) = APR_ARRAY_IDX(blocks->blocks, i, mc_patch_block).ctid;
    if (gone->nelts == 0)
        return MC_OK;
    return mc_overview_run(
        blocks->table, apr_psprintf(blocks->pool, "DELETE FROM " MC_LEVELS_SCHEMA ".%s WHERE ctid = ANY('{%s}'::tid[])",
                                    blocks->name, apr_array_pstrcat(blocks->pool, gone, ',')));
}

mc_error *
mc_patch_delete_changed(mc_patch_blocks *blocks)
{
    change_blocks_of_added(blocks);
    return delete_changed_blocks(blocks);
}
