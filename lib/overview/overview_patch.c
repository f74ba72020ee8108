/*
 * A level is patched where its table has changed. What the map shows there has changed only near the changed boxes: the
 * planes of the sieve are closed but for these. A row that can be seen there is kept; features that the level has stay,
 * hidden or not, as long as their rows do. So nothing is ever missing, and the level grows until it is built anew.
 */
#include "overview/overview_patch.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/paint/sieve.h"
#include "overview/overview_cover.h"
#include "overview/overview_planes.h"
#include "text/text.h"
#include "vector/levels/level_blocks.h"

enum {
    ENTRIES_MAX = 1 << 22,    /* features that are in memory at once */
    SQUARE_PIXELS = 32,       /* sides of the squares that are marked where anything has changed */
    FARTHEST = (1 << 26) - 1, /* 1/256 pixel; bounds beyond that may have been cut */
    SQUARES_MAX = 1 << 24,
};

/* A feature of the level. */
typedef struct patch_entry {
    mc_overview_feature feature; /* its bounds are not set */
    int block;                   /* below 0: none, it is new */
    bool found;                  /* its row is there */
} patch_entry;

/* A block that was read. */
typedef struct patch_block {
    const char *ctid;
    int part;
    mc_overview_feature sample; /* one of its features */
    bool changed;
} patch_block;

struct mc_overview_patch {
    const mc_overview_table *table;
    mc_overview_level *level;
    const char *name;
    const mc_box_set *changed;
    mc_overview_planes *planes;
    double margin;      /* pixels of the level by which symbols reach over their geometry */
    mc_pixel_grid grid; /* of the level's pixels, on the lattice of the tileset's grid */
    uint8_t *squares;   /* of these, row by row: 1 where a changed box lies */
    int columns, rows;
    apr_array_header_t *blocks;  /* patch_block */
    apr_array_header_t *entries; /* patch_entry, the last ordinal first */
    apr_array_header_t *added;   /* patch_entry */
    int at;                      /* entries before this one lie behind the last row */
    mc_overview_patched done;
    mc_geometry geometry;
    mc_overview_packing packing;
    apr_pool_t *pool;
};

static apr_status_t
free_patch(void *data)
{
    mc_overview_patch *patch = data;
    mc_geometry_free(&patch->geometry);
    mc_overview_free_packing(&patch->packing);
    return APR_SUCCESS;
}

const char *
mc_overview_boxes_sql(const mc_box_set *boxes, double reach, apr_pool_t *pool)
{
    const apr_array_header_t *cover = mc_overview_cover(boxes, reach, pool);
    apr_array_header_t *texts = apr_array_make(pool, cover->nelts, sizeof(const char *));
    for (int i = 0; i < cover->nelts; i++) {
        const mc_extent *box = &APR_ARRAY_IDX(cover, i, mc_extent);
        APR_ARRAY_PUSH(texts, const char *) =
            apr_psprintf(pool, "(%s::float8,%s::float8,%s::float8,%s::float8)",
                         mc_double_text('g', 17, box->minx, pool), mc_double_text('g', 17, box->miny, pool),
                         mc_double_text('g', 17, box->maxx, pool), mc_double_text('g', 17, box->maxy, pool));
    }
    return apr_array_pstrcat(pool, texts, ',');
}

/* ---- The planes ---- */

double
mc_overview_patch_reach(const mc_overview_level *level, const mc_overview_job *job)
{
    return 2.0 * (mc_overview_planes_margin(level, job) + 1) * level->resolution;
}

/* A box in pixels of the level, on the lattice of the grid. */
static void
find_lattice_box(double lattice[4], const mc_overview_patch *patch, const mc_extent *box, double margin)
{
    mc_overview_lattice_box(lattice, &patch->table->job, patch->level->resolution, box, margin);
}

static void
mark_changed_box(mc_overview_patch *patch, const mc_extent *box)
{
    double at[4];
    const double left = (double)patch->grid.left, top = (double)patch->grid.top;
    find_lattice_box(at, patch, box, patch->margin);
    for (int y = (int)(at[1] - top) / SQUARE_PIXELS; y <= (int)(at[3] - top) / SQUARE_PIXELS; y++)
        for (int x = (int)(at[0] - left) / SQUARE_PIXELS; x <= (int)(at[2] - left) / SQUARE_PIXELS; x++)
            if (x < patch->columns && y < patch->rows)
                patch->squares[y * patch->columns + x] = 1;
}

static mc_extent
area_of_changes(const mc_box_set *boxes)
{
    mc_extent all = boxes->boxes[0];
    for (int i = 1; i < boxes->count; i++) {
        const mc_extent *next = &boxes->boxes[i];
        all = (mc_extent){ fmin(all.minx, next->minx), fmin(all.miny, next->miny), fmax(all.maxx, next->maxx),
                           fmax(all.maxy, next->maxy) };
    }
    return all;
}

/* *fits false: the changes lie too far from each other. */
static mc_error *
make_patch_planes(bool *fits, mc_overview_patch *patch)
{
    const mc_overview_job *job = &patch->table->job;
    const double side = patch->level->resolution;
    const mc_extent first = mc_grid_tile_extent(job->grid, 0, 0, 0), all = area_of_changes(patch->changed);
    double box[4];
    patch->margin = mc_overview_planes_margin(patch->level, job);
    find_lattice_box(box, patch, &all, patch->margin);
    const double width = box[2] - box[0], height = box[3] - box[1];
    *fits = mc_overview_plane_fits(job, side, &all) && fmax(width, height) * MC_SUBPIXELS <= FARTHEST &&
            width / SQUARE_PIXELS * (height / SQUARE_PIXELS) <= SQUARES_MAX;
    if (!*fits)
        return MC_OK;
    patch->grid = (mc_pixel_grid){ .x0 = first.minx,
                                   .y0 = first.maxy,
                                   .per_x = 1 / side,
                                   .per_y = 1 / side,
                                   .left = (int64_t)box[0],
                                   .top = (int64_t)box[1],
                                   .thinning = MC_SIEVE_THINNING,
                                   .keep_small = true };
    patch->columns = (int)width / SQUARE_PIXELS + 1;
    patch->rows = (int)height / SQUARE_PIXELS + 1;
    patch->squares = apr_pcalloc(patch->pool, (size_t)patch->columns * (size_t)patch->rows);
    for (int i = 0; i < patch->changed->count; i++)
        mark_changed_box(patch, &patch->changed->boxes[i]);
    return mc_overview_planes_open(&patch->planes, patch->level, patch->changed, &all, job, patch->pool);
}

/* ---- The blocks ---- */

static const char *
blocks_sql(const mc_overview_patch *patch)
{
    const double near =
        mc_overview_patch_reach(patch->level, &patch->table->job) + patch->level->cell * patch->level->resolution;
    return apr_psprintf(patch->pool,
                        "SELECT ctid, part, features FROM " MC_LEVELS_SCHEMA
                        ".%s WHERE ctid IN (SELECT l.ctid FROM (VALUES %s) AS c(x0, y0, x1, y1) JOIN " MC_LEVELS_SCHEMA
                        ".%s l ON l.box && ST_MakeEnvelope(c.x0, c.y0, c.x1, c.y1, %d))",
                        patch->name, mc_overview_boxes_sql(patch->changed, near, patch->pool), patch->name,
                        patch->table->job.srid);
}

static uint32_t
number_of_bytes(const char *bytes, int size)
{
    uint32_t number = 0;
    for (int i = 0; i < size; i++)
        number = number << 8 | (uint8_t)bytes[i];
    return number;
}

static mc_error *
take_block(mc_overview_patch *patch, apr_array_header_t *features, const mc_postgres_row *row)
{
    const mc_postgres_field *fields = row->fields;
    const int attributes = patch->table->job.attribute_count;
    if (row->columns != 3 || fields[0].size != 6 || fields[1].size != 4 || fields[2].size < 0)
        return mc_error_create(patch->pool, MC_ERR_CORRUPT, "a level is broken");
    apr_array_clear(features);
    MC_TRY(mc_level_read_block(features, fields[2].data, (size_t)fields[2].size, attributes, patch->pool));
    patch_block *block = &APR_ARRAY_PUSH(patch->blocks, patch_block);
    *block = (patch_block){ .ctid = apr_psprintf(patch->pool, "\"(%u,%u)\"", number_of_bytes(fields[0].data, 4),
                                                 number_of_bytes(fields[0].data + 4, 2)),
                            .part = (int)number_of_bytes(fields[1].data, 4) };
    for (int i = 0; i < features->nelts; i++) {
        const mc_level_feature *feature = &APR_ARRAY_IDX(features, i, mc_level_feature);
        patch_entry *entry = &APR_ARRAY_PUSH(patch->entries, patch_entry);
        *entry = (patch_entry){ .feature = { .ordinal = block->part * patch->level->window + feature->place,
                                             .values = feature->values,
                                             .geometry = feature->geometry,
                                             .size = feature->size,
                                             .packed = feature->packed },
                                .block = patch->blocks->nelts - 1 };
        block->sample = entry->feature;
    }
    return MC_OK;
}

static int
compare_patch_entries(const void *a, const void *b)
{
    const patch_entry *left = a, *right = b;
    return left->feature.ordinal > right->feature.ordinal ? -1 : left->feature.ordinal < right->feature.ordinal;
}

static mc_error *
read_blocks(bool *fits, mc_overview_patch *patch)
{
    const mc_overview_job *job = &patch->table->job;
    const mc_postgres_query query = {
        .session = patch->table->session, .sql = blocks_sql(patch), .binary = true, .copy = true
    };
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    apr_array_header_t *features = apr_array_make(patch->pool, 64, sizeof(mc_level_feature));
    *fits = true;
    mc_error *error = mc_postgres_start(&result, job->ctx->process->postgres, &query, job->ctx, patch->pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL && *fits) {
        error = take_block(patch, features, row);
        *fits = patch->entries->nelts < ENTRIES_MAX;
    }
    mc_postgres_end(result);
    qsort(patch->entries->elts, (size_t)patch->entries->nelts, sizeof(patch_entry), compare_patch_entries);
    return error;
}

mc_error *
mc_overview_patch_begin(mc_overview_patch **patch, const char **reason, mc_overview_level *level, const char *name,
                        const mc_box_set *changed, const mc_overview_table *table, apr_pool_t *pool)
{
    mc_overview_patch *made = apr_pcalloc(pool, sizeof(*made));
    bool fits;
    *made = (mc_overview_patch){ .table = table, .level = level, .name = name, .changed = changed, .pool = pool };
    made->blocks = apr_array_make(pool, 64, sizeof(patch_block));
    made->entries = apr_array_make(pool, 1024, sizeof(patch_entry));
    made->added = apr_array_make(pool, 64, sizeof(patch_entry));
    apr_pool_cleanup_register(pool, made, free_patch, apr_pool_cleanup_null);
    mc_overview_open_level(level, name, pool);
    *patch = made;
    *reason = NULL;
    MC_TRY(make_patch_planes(&fits, made));
    if (fits)
        MC_TRY(read_blocks(&fits, made));
    if (!fits)
        *reason = "what has changed reaches too far";
    return MC_OK;
}

/* ---- The rows ---- */

static bool
is_near_change(const mc_overview_patch *patch, const int32_t bounds[4])
{
    const int side = SQUARE_PIXELS * MC_SUBPIXELS;
    const int left = bounds[0] < 0 ? 0 : bounds[0] / side, top = bounds[1] < 0 ? 0 : bounds[1] / side;
    const int right = bounds[2] / side, bottom = bounds[3] / side;
    if (bounds[2] < 0 || bounds[3] < 0)
        return false;
    for (int y = top; y <= bottom && y < patch->rows; y++)
        for (int x = left; x <= right && x < patch->columns; x++)
            if (patch->squares[y * patch->columns + x] != 0)
                return true;
    return false;
}

/* Whether a row can reach a pixel that is looked at. Most rows that the coarsest level needs no other one does. */
static bool
may_be_seen(const mc_overview_patch *patch, const mc_overview_row *row)
{
    mc_extent extent;
    double box[4];
    int32_t bounds[4];
    if (!mc_wkb_bounds(&extent, row->geometry, row->size))
        return true;
    find_lattice_box(box, patch, &extent, patch->margin);
    for (int i = 0; i < 4; i++) {
        const double at = (box[i] - (double)(i % 2 == 0 ? patch->grid.left : patch->grid.top)) * MC_SUBPIXELS;
        bounds[i] = (int32_t)fmin(fmax(at, -FARTHEST), FARTHEST);
    }
    return is_near_change(patch, bounds);
}

static bool
has_same_values(const mc_overview_patch *patch, const char *const *a, const char *const *b)
{
    for (int i = 0; i < patch->table->job.attribute_count; i++)
        if ((a[i] == NULL) != (b[i] == NULL) || (a[i] != NULL && strcmp(a[i], b[i]) != 0))
            return false;
    return true;
}

/* What the level has of a row, in memory of the patch. */
static mc_error *
make_feature(mc_overview_feature *feature, mc_overview_patch *patch, const mc_overview_row *row)
{
    *feature = (mc_overview_feature){
        .ordinal = row->ordinal, .values = row->values, .geometry = row->geometry, .size = row->size
    };
    return mc_overview_pack(feature, &patch->packing, patch->level, &patch->table->job);
}

static void
copy_patch_feature(mc_overview_feature *feature, const mc_overview_patch *patch)
{
    const int count = patch->table->job.attribute_count;
    const char **values = apr_palloc(patch->pool, sizeof(*values) * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        values[i] = feature->values[i] == NULL ? NULL : apr_pstrdup(patch->pool, feature->values[i]);
    feature->values = values;
    feature->geometry = apr_pmemdup(patch->pool, feature->geometry, feature->size);
}

/* The level's entry for the row; NULL: it has none. */
static patch_entry *
find_entry(mc_overview_patch *patch, int64_t ordinal)
{
    patch_entry *entries = (patch_entry *)patch->entries->elts;
    while (patch->at < patch->entries->nelts && entries[patch->at].feature.ordinal > ordinal)
        patch->at++;
    return patch->at < patch->entries->nelts && entries[patch->at].feature.ordinal == ordinal ? &entries[patch->at]
                                                                                              : NULL;
}

static void
change_block(mc_overview_patch *patch, const patch_entry *entry)
{
    APR_ARRAY_IDX(patch->blocks, entry->block, patch_block).changed = true;
}

/* The row of an entry, which may be another one than before. */
static mc_error *
renew_entry(mc_overview_patch *patch, patch_entry *entry, const mc_overview_row *row)
{
    mc_overview_feature feature;
    const mc_overview_feature *had = &entry->feature;
    entry->found = true;
    MC_TRY(make_feature(&feature, patch, row));
    if (feature.packed == had->packed && feature.size == had->size &&
        memcmp(feature.geometry, had->geometry, feature.size) == 0 &&
        has_same_values(patch, feature.values, had->values))
        return MC_OK;
    copy_patch_feature(&feature, patch);
    entry->feature = feature;
    change_block(patch, entry);
    patch->done.replaced++;
    return MC_OK;
}

static mc_error *
add_patch_entry(mc_overview_patch *patch, const mc_overview_row *row)
{
    patch_entry added = { .block = -1, .found = true };
    MC_TRY(make_feature(&added.feature, patch, row));
    copy_patch_feature(&added.feature, patch);
    APR_ARRAY_PUSH(patch->added, patch_entry) = added;
    patch->done.added++;
    return MC_OK;
}

/* Else maps leave it out. */
static bool
is_readable(mc_overview_patch *patch, const mc_overview_row *row, apr_pool_t *scratch)
{
    mc_error *error = mc_wkb_read(&patch->geometry, row->geometry, row->size, &patch->grid, scratch);
    mc_error_ignore(error);
    return error == MC_OK && !mc_geometry_is_empty(&patch->geometry);
}

mc_error *
mc_overview_patch_row(mc_overview_patch *patch, const mc_overview_row *row, apr_pool_t *scratch)
{
    if (!may_be_seen(patch, row))
        return MC_OK;
    patch_entry *entry = find_entry(patch, row->ordinal);
    mc_extent bounds;
    bool keeps, unreadable;
    MC_TRY(mc_overview_planes_sift(&keeps, &bounds, &unreadable, patch->planes, row, scratch));
    if (entry != NULL)
        return is_readable(patch, row, scratch) ? renew_entry(patch, entry, row) : MC_OK;
    return keeps ? add_patch_entry(patch, row) : MC_OK;
}

/* ---- Writing ---- */

/* Bounds in 1/256 pixel of the plane; false: it has none. */
static bool
read_bounds(int32_t bounds[4], mc_overview_patch *patch, const mc_overview_feature *feature, apr_pool_t *scratch)
{
    mc_error *error = (feature->packed ? mc_twkb_read : mc_wkb_read)(&patch->geometry, feature->geometry, feature->size,
                                                                     &patch->grid, scratch);
    mc_error_ignore(error);
    return error == MC_OK && mc_geometry_bounds(&patch->geometry, &bounds[0], &bounds[1], &bounds[2], &bounds[3]);
}

/* Whether the geometry touches a changed box, or nearly so. Rows that do were all read. */
static bool
touches_change(const mc_overview_patch *patch, const int32_t bounds[4])
{
    if (!is_near_change(patch, bounds))
        return false;
    for (int i = 0; i < patch->changed->count; i++) {
        double box[4];
        find_lattice_box(box, patch, &patch->changed->boxes[i], 1);
        if (bounds[0] <= (box[2] - (double)patch->grid.left) * MC_SUBPIXELS &&
            bounds[2] >= (box[0] - (double)patch->grid.left) * MC_SUBPIXELS &&
            bounds[1] <= (box[3] - (double)patch->grid.top) * MC_SUBPIXELS &&
            bounds[3] >= (box[1] - (double)patch->grid.top) * MC_SUBPIXELS)
            return true;
    }
    return false;
}

/* Features whose rows have gone. */
static void
remove_entries(mc_overview_patch *patch, apr_pool_t *scratch)
{
    patch_entry *entries = (patch_entry *)patch->entries->elts;
    for (int i = 0; i < patch->entries->nelts; i++) {
        int32_t bounds[4];
        apr_pool_clear(scratch);
        if (entries[i].found ||
            (read_bounds(bounds, patch, &entries[i].feature, scratch) && !touches_change(patch, bounds))) {
            entries[i].found = true;
            continue;
        }
        change_block(patch, &entries[i]);
        patch->done.removed++;
    }
}

/* Sets the bounds of a feature, in pixels of the level. False: it has none. *far: they may have been cut. */
static bool
set_level_bounds(bool *far, mc_overview_patch *patch, mc_overview_feature *feature, apr_pool_t *scratch)
{
    int32_t bounds[4] = { 0 };
    const double side = MC_SUBPIXELS, left = (double)patch->grid.left, top = (double)patch->grid.top;
    apr_pool_clear(scratch);
    if (!read_bounds(bounds, patch, feature, scratch))
        return false;
    for (int i = 0; i < 4; i++)
        *far = *far || bounds[i] < -FARTHEST || bounds[i] > FARTHEST;
    feature->bounds =
        (mc_extent){ left + bounds[0] / side, top + bounds[1] / side, left + bounds[2] / side, top + bounds[3] / side };
    return true;
}

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
change_blocks_of_added(mc_overview_patch *patch, apr_pool_t *scratch)
{
    apr_hash_t *places = apr_hash_make(patch->pool);
    int64_t place[PLACE_NUMBERS];
    bool far = false;
    for (int i = 0; i < patch->added->nelts; i++) {
        mc_overview_feature *feature = &APR_ARRAY_IDX(patch->added, i, patch_entry).feature;
        (void)set_level_bounds(&far, patch, feature, scratch);
        name_block_place(place, patch->level, feature->ordinal / patch->level->window, &feature->bounds);
        apr_hash_set(places, apr_pmemdup(patch->pool, place, sizeof(place)), sizeof(place), patch);
    }
    for (int i = 0; patch->added->nelts > 0 && i < patch->blocks->nelts; i++) {
        patch_block *block = &APR_ARRAY_IDX(patch->blocks, i, patch_block);
        if (block->changed || !set_level_bounds(&far, patch, &block->sample, scratch))
            continue;
        name_block_place(place, patch->level, block->part, &block->sample.bounds);
        block->changed = apr_hash_get(places, place, sizeof(place)) != NULL;
    }
}

static mc_error *
delete_changed_blocks(mc_overview_patch *patch)
{
    apr_array_header_t *gone = apr_array_make(patch->pool, 64, sizeof(const char *));
    for (int i = 0; i < patch->blocks->nelts; i++)
        if (APR_ARRAY_IDX(patch->blocks, i, patch_block).changed)
            APR_ARRAY_PUSH(gone, const char *) = APR_ARRAY_IDX(patch->blocks, i, patch_block).ctid;
    if (gone->nelts == 0)
        return MC_OK;
    return mc_overview_run(
        patch->table, apr_psprintf(patch->pool, "DELETE FROM " MC_LEVELS_SCHEMA ".%s WHERE ctid = ANY('{%s}'::tid[])",
                                   patch->name, apr_array_pstrcat(patch->pool, gone, ',')));
}

/* What is written: new features, and those of changed blocks whose rows are there. In drawing order, backwards. */
static mc_error *
write_changed_blocks(bool *far, mc_overview_patch *patch, apr_pool_t *scratch)
{
    mc_overview_blocks *blocks = mc_overview_blocks_create(patch->level, &patch->table->job, patch->pool);
    apr_array_header_t *all = apr_array_make(patch->pool, 1024, sizeof(patch_entry));
    for (int i = 0; i < patch->entries->nelts; i++) {
        const patch_entry *entry = &APR_ARRAY_IDX(patch->entries, i, patch_entry);
        if (!APR_ARRAY_IDX(patch->blocks, entry->block, patch_block).changed)
            continue;
        patch->level->kept--;
        if (entry->found)
            APR_ARRAY_PUSH(all, patch_entry) = *entry;
    }
    apr_array_cat(all, patch->added);
    qsort(all->elts, (size_t)all->nelts, sizeof(patch_entry), compare_patch_entries);
    for (int i = 0; i < all->nelts && !*far; i++)
        if (set_level_bounds(far, patch, &APR_ARRAY_IDX(all, i, patch_entry).feature, scratch))
            MC_TRY(mc_overview_blocks_add(blocks, &APR_ARRAY_IDX(all, i, patch_entry).feature));
    return mc_overview_blocks_finish(blocks);
}

mc_error *
mc_overview_patch_end(mc_overview_patched *patched, const char **reason, mc_overview_patch *patch)
{
    apr_pool_t *scratch;
    bool far = false;
    apr_pool_create(&scratch, patch->pool);
    remove_entries(patch, scratch);
    change_blocks_of_added(patch, scratch);
    MC_TRY(delete_changed_blocks(patch));
    MC_TRY(write_changed_blocks(&far, patch, scratch));
    apr_pool_destroy(scratch);
    *patched = patch->done;
    *reason = far ? "what has changed reaches too far" : NULL;
    return MC_OK;
}
