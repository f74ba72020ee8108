/* See overview_splice.h. The features of a block follow each other in drawing order, so that those of a block without
 * new features are written as they come. */
#include "overview/update/overview_splice.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_FEATURES_MOST = 1 << 18, /* of a block, */
    BLOCK_BYTES_MOST = 8 << 20,    /* and bytes of their geometry */
    SPLICE_TUPLES = 1024,          /* of which the place in memory is remembered */
};

/* A changed block, or a new feature. */
typedef struct splice_part {
    int window;
    mc_overview_cell cell;
    const mc_patch_block *block; /* NULL: none, but */
    const mc_patch_entry *entry; /* this one */
} splice_part;

typedef struct level_splice {
    mc_patch_blocks *blocks;
    apr_array_header_t *parts;   /* splice_part */
    apr_array_header_t *entries; /* of one block that is written: const mc_patch_entry * */
    apr_pool_t *pool;            /* of that block */
    apr_hash_t *tuples;          /* numbers of its tuples, from 0, by their bytes */
    uint32_t tuple_count;
    mc_wkb_buffer tuple_bytes, features, block;
    struct {
        const char *const *values;
        uint32_t number;
    } known[SPLICE_TUPLES]; /* by the place of values in memory, which the features of a block share */
} level_splice;

static apr_status_t
free_level_splice(void *data)
{
    level_splice *splice = data;
    free(splice->tuple_bytes.data);
    free(splice->features.data);
    free(splice->block.data);
    return APR_SUCCESS;
}

/* ---- What is written ---- */

static void
push_splice_entry(level_splice *splice, const mc_patch_entry *entry)
{
    const mc_overview_level *level = splice->blocks->level;
    if (entry->bounded)
        APR_ARRAY_PUSH(splice->parts, splice_part) =
            (splice_part){ .window = (int)(entry->feature.ordinal / level->window),
                           .cell = mc_overview_find_cell(&entry->feature.bounds, level->cell),
                           .entry = entry };
}

/* A block lies in the cell of any of its features. */
static void
push_splice_block(level_splice *splice, mc_patch_block *block)
{
    mc_patch_blocks *blocks = splice->blocks;
    if (mc_patch_bound(blocks, &block->sample)) {
        APR_ARRAY_PUSH(splice->parts, splice_part) =
            (splice_part){ .window = block->part,
                           .cell = mc_overview_find_cell(&block->sample.bounds, blocks->level->cell),
                           .block = block };
        return;
    }
    for (int i = block->first; i < block->first + block->count; i++) {
        mc_patch_entry *entry = &APR_ARRAY_IDX(blocks->entries, i, mc_patch_entry);
        entry->bounded = entry->bounded || mc_patch_bound(blocks, &entry->feature);
        if (!entry->gone)
            push_splice_entry(splice, entry);
    }
}

static int
compare_splice_places(const splice_part *left, const splice_part *right)
{
    if (left->window != right->window)
        return left->window < right->window ? -1 : 1;
    if (left->cell.wideness != right->cell.wideness)
        return left->cell.wideness < right->cell.wideness ? -1 : 1;
    if (left->cell.row != right->cell.row)
        return left->cell.row < right->cell.row ? -1 : 1;
    return left->cell.column < right->cell.column ? -1 : left->cell.column > right->cell.column;
}

static int
compare_splice_parts(const void *a, const void *b)
{
    return compare_splice_places(a, b);
}

static int
compare_splice_entries(const void *a, const void *b)
{
    const mc_patch_entry *left = *(const mc_patch_entry *const *)a, *right = *(const mc_patch_entry *const *)b;
    return left->feature.ordinal < right->feature.ordinal ? -1 : left->feature.ordinal > right->feature.ordinal;
}

/* Bounds of features in pixels as the box of a block: a pixel wider, in units of the CRS. */
static mc_extent
box_of_feature(const mc_patch_blocks *blocks, const mc_extent *bounds)
{
    const mc_extent first = mc_grid_tile_extent(blocks->table->job.grid, 0, 0, 0);
    const double side = blocks->level->resolution;
    return (mc_extent){ first.minx + (bounds->minx - 1) * side, first.maxy - (bounds->maxy + 1) * side,
                        first.minx + (bounds->maxx + 1) * side, first.maxy - (bounds->miny - 1) * side };
}

/* The features of parts that are one block, in drawing order, and its box, which does not shrink. */
static mc_extent
take_parts(level_splice *splice, const splice_part *parts, int count)
{
    mc_extent box = { INFINITY, INFINITY, -INFINITY, -INFINITY };
    apr_array_clear(splice->entries);
    for (int p = 0; p < count; p++) {
        const mc_patch_block *block = parts[p].block;
        const mc_extent more =
            block != NULL ? block->box : box_of_feature(splice->blocks, &parts[p].entry->feature.bounds);
        box = (mc_extent){ fmin(box.minx, more.minx), fmin(box.miny, more.miny), fmax(box.maxx, more.maxx),
                           fmax(box.maxy, more.maxy) };
        if (block == NULL)
            APR_ARRAY_PUSH(splice->entries, const mc_patch_entry *) = parts[p].entry;
        for (int i = block == NULL ? 0 : block->first; block != NULL && i < block->first + block->count; i++) {
            const mc_patch_entry *entry = &APR_ARRAY_IDX(splice->blocks->entries, i, mc_patch_entry);
            if (!entry->gone)
                APR_ARRAY_PUSH(splice->entries, const mc_patch_entry *) = entry;
        }
    }
    if (count > 1)
        qsort(splice->entries->elts, (size_t)splice->entries->nelts, sizeof(const mc_patch_entry *),
              compare_splice_entries);
    return box;
}

/* ---- A block ---- */

/* As number_of_tuple of overview_blocks.c packs them; of levels for maps alone, which have no ids. */
static uint32_t
number_of_values(level_splice *splice, const char *const *values)
{
    const int count = splice->blocks->table->job.attribute_count;
    const size_t before = splice->tuple_bytes.size;
    for (int i = 0; i < count; i++) {
        const size_t length = values[i] == NULL ? 0 : strlen(values[i]);
        mc_wkb_append_packed(&splice->tuple_bytes, values[i] == NULL ? 0 : length + 1);
        mc_wkb_append(&splice->tuple_bytes, values[i] == NULL ? "" : values[i], length);
    }
    if (splice->tuple_bytes.failed)
        return 0;
    const size_t size = splice->tuple_bytes.size - before;
    const char *bytes = size == 0 ? "" : (const char *)splice->tuple_bytes.data + before;
    const uint32_t *known = apr_hash_get(splice->tuples, bytes, (apr_ssize_t)size);
    if (known != NULL) {
        splice->tuple_bytes.size = before;
        return *known;
    }
    uint32_t *number = apr_palloc(splice->pool, sizeof(*number));
    *number = splice->tuple_count++;
    apr_hash_set(splice->tuples, apr_pmemdup(splice->pool, bytes, size), (apr_ssize_t)size, number);
    return *number;
}

static uint32_t
number_of_known(level_splice *splice, const char *const *values)
{
    const size_t at = ((uintptr_t)values / sizeof(void *)) % SPLICE_TUPLES;
    if (splice->known[at].values != values) {
        splice->known[at].number = number_of_values(splice, values);
        splice->known[at].values = values;
    }
    return splice->known[at].number;
}

static void
begin_splice_block(level_splice *splice)
{
    apr_pool_clear(splice->pool);
    splice->tuples = apr_hash_make(splice->pool);
    splice->tuple_count = 0;
    splice->tuple_bytes.size = splice->features.size = splice->block.size = 0;
    memset(splice->known, 0, sizeof(splice->known));
}

/* Appends features from `from` on, and tells where those begin that the block has no room for. */
static int
append_features(level_splice *splice, int from)
{
    const int64_t window = splice->blocks->level->window;
    int64_t place = 0;
    int i = from;
    for (; i < splice->entries->nelts && i - from < BLOCK_FEATURES_MOST && splice->features.size < BLOCK_BYTES_MOST;
         i++) {
        const mc_overview_feature *feature = &APR_ARRAY_IDX(splice->entries, i, const mc_patch_entry *)->feature;
        mc_wkb_append_packed(&splice->features, (uint64_t)(feature->ordinal % window - place));
        mc_wkb_append_packed(&splice->features, number_of_known(splice, feature->values));
        mc_wkb_append_packed(&splice->features, (uint64_t)feature->size * 2 + feature->packed);
        mc_wkb_append(&splice->features, feature->geometry, feature->size);
        place = feature->ordinal % window;
    }
    return i;
}

static mc_error *
write_splice_block(level_splice *splice, int window, const mc_extent *box, int count)
{
    const mc_overview_job *job = &splice->blocks->table->job;
    mc_wkb_buffer *bytes = &splice->block;
    mc_wkb_append_packed(bytes, (uint64_t)job->attribute_count);
    mc_wkb_append_packed(bytes, splice->tuple_count);
    mc_wkb_append(bytes, splice->tuple_bytes.size == 0 ? (const uint8_t *)"" : splice->tuple_bytes.data,
                  splice->tuple_bytes.size);
    mc_wkb_append(bytes, splice->features.data, splice->features.size);
    if (bytes->failed || splice->features.failed || splice->tuple_bytes.failed)
        return mc_error_create(job->pool, MC_ERR_UNAVAILABLE, "there is no memory for the blocks of a level");
    splice->blocks->level->kept += count;
    const mc_overview_block block = {
        .part = window, .box = *box, .count = count, .bytes = bytes->data, .size = bytes->size
    };
    return job->store->write(job, splice->blocks->level, &block);
}

static mc_error *
splice_block(level_splice *splice, const splice_part *parts, int count)
{
    const mc_extent box = take_parts(splice, parts, count);
    for (int from = 0, to; from < splice->entries->nelts; from = to) {
        begin_splice_block(splice);
        to = append_features(splice, from);
        MC_TRY(write_splice_block(splice, parts[0].window, &box, to - from));
    }
    return MC_OK;
}

/* ---- All of them ---- */

static void
find_parts(level_splice *splice)
{
    mc_patch_blocks *blocks = splice->blocks;
    for (int i = 0; i < blocks->blocks->nelts; i++) {
        mc_patch_block *block = &APR_ARRAY_IDX(blocks->blocks, i, mc_patch_block);
        if (!block->changed)
            continue;
        blocks->level->kept -= block->count;
        push_splice_block(splice, block);
    }
    for (int i = 0; i < blocks->added->nelts; i++)
        push_splice_entry(splice, &APR_ARRAY_IDX(blocks->added, i, mc_patch_entry));
    qsort(splice->parts->elts, (size_t)splice->parts->nelts, sizeof(splice_part), compare_splice_parts);
}

mc_error *
mc_overview_splice(mc_patch_blocks *blocks)
{
    const mc_overview_job *job = &blocks->table->job;
    level_splice *splice = apr_pcalloc(blocks->pool, sizeof(*splice));
    splice->blocks = blocks;
    splice->parts = apr_array_make(blocks->pool, 256, sizeof(splice_part));
    splice->entries = apr_array_make(blocks->pool, 4096, sizeof(const mc_patch_entry *));
    apr_pool_create(&splice->pool, blocks->pool);
    apr_pool_cleanup_register(blocks->pool, splice, free_level_splice, apr_pool_cleanup_null);
    find_parts(splice);
    const splice_part *parts = (const splice_part *)splice->parts->elts;
    if (splice->parts->nelts == 0)
        return MC_OK;
    MC_TRY(job->store->begin(job, blocks->level));
    for (int i = 0, end; i < splice->parts->nelts; i = end) {
        for (end = i + 1; end < splice->parts->nelts && compare_splice_places(&parts[i], &parts[end]) == 0;)
            end++;
        MC_TRY(mc_ctx_check(job->ctx, blocks->pool));
        MC_TRY(splice_block(splice, &parts[i], end - i));
    }
    return job->store->end(job, blocks->level);
}
