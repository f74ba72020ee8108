/* See overview_blocks.h. */
#include "overview/overview_blocks.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vector/levels/level_blocks.h"

enum {
    ENTRIES_MAX = 1 << 18, /* features of a window that are written at once, */
    ENTRY_BYTES = 8 << 20, /* and bytes of their geometry */
    BLOCK_OVERHEAD = 200,  /* bytes of a row beside its features: the head of the row, the box, their index */
};

typedef struct blocks_entry {
    mc_overview_cell cell;
    mc_extent bounds;
    uint32_t place, tuple;
    size_t at, size; /* its geometry */
    bool packed;
} blocks_entry;

struct mc_overview_blocks {
    const mc_overview_job *job;
    mc_overview_level *level;
    int part;                    /* the window of the features that are not written yet */
    apr_pool_t *pool;            /* of these */
    apr_array_header_t *entries; /* blocks_entry */
    apr_hash_t *tuples;          /* number of a tuple, from 0, by its bytes */
    apr_array_header_t *texts;   /* mc_wkb_buffer of each tuple: its bytes in a block */
    mc_wkb_buffer geometry, block, tuple;
    uint32_t *numbers; /* of the tuples, in the block that is written, plus one */
};

static apr_status_t
free_blocks(void *data)
{
    mc_overview_blocks *blocks = data;
    free(blocks->geometry.data);
    free(blocks->block.data);
    free(blocks->tuple.data);
    return APR_SUCCESS;
}

/* Memory of the window before is given back. */
static void
begin_window(mc_overview_blocks *blocks)
{
    apr_pool_clear(blocks->pool);
    blocks->entries = apr_array_make(blocks->pool, 1024, sizeof(blocks_entry));
    blocks->tuples = apr_hash_make(blocks->pool);
    blocks->texts = apr_array_make(blocks->pool, 16, sizeof(mc_wkb_buffer));
    blocks->geometry.size = 0;
}

mc_overview_blocks *
mc_overview_blocks_create(mc_overview_level *level, const mc_overview_job *job, apr_pool_t *pool)
{
    mc_overview_blocks *made = apr_pcalloc(pool, sizeof(*made));
    made->job = job;
    made->level = level;
    apr_pool_create(&made->pool, pool);
    apr_pool_cleanup_register(pool, made, free_blocks, apr_pool_cleanup_null);
    begin_window(made);
    return made;
}

/* ---- A window is filled ---- */

static uint32_t
number_of_tuple(mc_overview_blocks *blocks, const char *const *values)
{
    blocks->tuple.size = 0;
    for (int i = 0; i < blocks->job->attribute_count + blocks->job->ids; i++) {
        const size_t length = values[i] == NULL ? 0 : strlen(values[i]);
        mc_wkb_append_packed(&blocks->tuple, values[i] == NULL ? 0 : length + 1);
        mc_wkb_append(&blocks->tuple, values[i] == NULL ? "" : values[i], length);
    }
    const mc_wkb_buffer *tuple = &blocks->tuple;
    const char *bytes = tuple->size == 0 ? "" : (const char *)tuple->data;
    const uint32_t *known = apr_hash_get(blocks->tuples, bytes, (apr_ssize_t)tuple->size);
    if (known != NULL)
        return *known;
    uint32_t *number = apr_palloc(blocks->pool, sizeof(*number));
    *number = (uint32_t)blocks->texts->nelts;
    uint8_t *copy = apr_pmemdup(blocks->pool, bytes, tuple->size);
    APR_ARRAY_PUSH(blocks->texts, mc_wkb_buffer) = (mc_wkb_buffer){ .data = copy, .size = tuple->size };
    apr_hash_set(blocks->tuples, copy, (apr_ssize_t)tuple->size, number);
    blocks->level->bytes += (int64_t)tuple->size; /* once more in each further block that has the tuple */
    return *number;
}

/* The cell in which the middle of a feature lies, at least as wide as the feature. */
mc_overview_cell
mc_overview_find_cell(const mc_extent *bounds, int smallest)
{
    mc_overview_cell cell = { 0 };
    const double extent = fmax(bounds->maxx - bounds->minx, bounds->maxy - bounds->miny);
    while (extent > (double)((int64_t)smallest << cell.wideness) && cell.wideness < 32)
        cell.wideness++;
    const double side = (double)((int64_t)smallest << cell.wideness);
    cell.column = (int64_t)floor((bounds->minx + bounds->maxx) / 2 / side);
    cell.row = (int64_t)floor((bounds->miny + bounds->maxy) / 2 / side);
    return cell;
}

static mc_error *write_window(mc_overview_blocks *blocks);

mc_error *
mc_overview_blocks_add(mc_overview_blocks *blocks, const mc_overview_feature *feature)
{
    const int64_t window = blocks->level->window;
    const int part = (int)(feature->ordinal / window);
    if (blocks->entries->nelts > 0 &&
        (part != blocks->part || blocks->entries->nelts >= ENTRIES_MAX || blocks->geometry.size >= ENTRY_BYTES))
        MC_TRY(write_window(blocks));
    blocks->part = part;
    blocks_entry *entry = &APR_ARRAY_PUSH(blocks->entries, blocks_entry);
    *entry = (blocks_entry){ .cell = mc_overview_find_cell(&feature->bounds, blocks->level->cell),
                             .bounds = feature->bounds,
                             .place = (uint32_t)(feature->ordinal % window),
                             .tuple = number_of_tuple(blocks, feature->values),
                             .at = blocks->geometry.size,
                             .size = feature->size,
                             .packed = feature->packed };
    mc_wkb_append(&blocks->geometry, feature->geometry, feature->size);
    blocks->level->kept++;
    blocks->level->bytes += (int64_t)feature->size + 4;
    return MC_OK;
}

mc_error *
mc_overview_blocks_finish(mc_overview_blocks *blocks)
{
    return blocks->entries->nelts == 0 ? MC_OK : write_window(blocks);
}

/* ---- A window is written ---- */

static int
compare_cells(const mc_overview_cell *a, const mc_overview_cell *b)
{
    if (a->wideness != b->wideness)
        return a->wideness < b->wideness ? -1 : 1;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return a->column == b->column ? 0 : a->column < b->column ? -1 : 1;
}

static int
compare_entries(const void *a, const void *b)
{
    const blocks_entry *left = a, *right = b;
    int cells = compare_cells(&left->cell, &right->cell);
    return cells != 0 ? cells : left->place < right->place ? -1 : left->place > right->place;
}

/* Bounds in pixels, a pixel wider, in units of the CRS. */
static mc_extent
box_of_bounds(const mc_overview_blocks *blocks, const mc_extent *bounds)
{
    const double side = blocks->level->resolution;
    const mc_extent first = mc_grid_tile_extent(blocks->job->grid, 0, 0, 0);
    return (mc_extent){ first.minx + (bounds->minx - 1) * side, first.maxy - (bounds->maxy + 1) * side,
                        first.minx + (bounds->maxx + 1) * side, first.maxy - (bounds->miny - 1) * side };
}

/* Tuples that occur in the block get numbers in the order in which they come. */
static void
append_block_tuples(mc_overview_blocks *blocks, const blocks_entry *entries, int count)
{
    mc_wkb_buffer *tuples = &blocks->tuple;
    uint32_t known = 0;
    tuples->size = 0;
    memset(blocks->numbers, 0, sizeof(*blocks->numbers) * (size_t)blocks->texts->nelts);
    for (int i = 0; i < count; i++) {
        const mc_wkb_buffer *text = &APR_ARRAY_IDX(blocks->texts, (int)entries[i].tuple, mc_wkb_buffer);
        if (blocks->numbers[entries[i].tuple] != 0)
            continue;
        blocks->numbers[entries[i].tuple] = ++known;
        mc_wkb_append(tuples, text->data, text->size);
    }
    mc_wkb_append_packed(&blocks->block, (uint64_t)(blocks->job->attribute_count + blocks->job->ids));
    mc_wkb_append_packed(&blocks->block, known);
    mc_wkb_append(&blocks->block, tuples->size == 0 ? (const uint8_t *)"" : tuples->data, tuples->size);
}

static mc_error *
write_level_block(mc_overview_blocks *blocks, const blocks_entry *entries, int count)
{
    mc_extent bounds = entries[0].bounds;
    uint32_t place = 0;
    blocks->block.size = 0;
    append_block_tuples(blocks, entries, count);
    for (int i = 0; i < count; i++) {
        const blocks_entry *entry = &entries[i];
        mc_wkb_append_packed(&blocks->block, entry->place - place);
        mc_wkb_append_packed(&blocks->block, blocks->numbers[entry->tuple] - 1);
        mc_wkb_append_packed(&blocks->block, (uint64_t)entry->size * 2 + entry->packed);
        mc_wkb_append(&blocks->block, blocks->geometry.data + entry->at, entry->size);
        place = entry->place;
        bounds.minx = fmin(bounds.minx, entry->bounds.minx);
        bounds.miny = fmin(bounds.miny, entry->bounds.miny);
        bounds.maxx = fmax(bounds.maxx, entry->bounds.maxx);
        bounds.maxy = fmax(bounds.maxy, entry->bounds.maxy);
    }
    if (blocks->block.failed || blocks->tuple.failed || blocks->geometry.failed)
        return mc_error_create(blocks->job->pool, MC_ERR_UNAVAILABLE, "there is no memory for the blocks of a level");
    const mc_overview_block block = { .part = blocks->part,
                                      .box = box_of_bounds(blocks, &bounds),
                                      .count = count,
                                      .bytes = blocks->block.data,
                                      .size = blocks->block.size };
    blocks->level->bytes += BLOCK_OVERHEAD;
    return blocks->job->store->write(blocks->job, blocks->level, &block);
}

static mc_error *
write_window(mc_overview_blocks *blocks)
{
    const mc_overview_job *job = blocks->job;
    const blocks_entry *entries = (const blocks_entry *)blocks->entries->elts;
    const int count = blocks->entries->nelts;
    qsort(blocks->entries->elts, (size_t)count, sizeof(blocks_entry), compare_entries);
    blocks->numbers = apr_palloc(blocks->pool, sizeof(*blocks->numbers) * (size_t)blocks->texts->nelts);
    MC_TRY(job->store->begin(job, blocks->level));
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && compare_cells(&entries[i].cell, &entries[end].cell) == 0;)
            end++;
        MC_TRY(write_level_block(blocks, &entries[i], end - i));
    }
    MC_TRY(job->store->end(job, blocks->level));
    begin_window(blocks);
    return MC_OK;
}
