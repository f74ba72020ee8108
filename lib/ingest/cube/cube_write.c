/* From decoded images to chunks in the store. */
#include <apr_strings.h>
#include <string.h>

#include "ingest/cube/cube_overview.h"

/* Chunks that are taken out of the store at a time to be put back changed: so many, and so many bytes. */
enum { TAKEN_AT_ONCE = 256, TAKEN_BYTES = 4 << 20 };

/* An image that lies in a row of chunks. */
typedef struct cube_write_entry {
    int stack, number; /* of the batch, of the stack */
    const mc_cube_image *image;
} cube_write_entry;

typedef struct writing {
    mc_cube_writer *writer;
    const mc_cube *cube;
    const mc_cube_shape *shape; /* of the level that is written */
    const mc_cube_batch *batch;
    mc_spool *spool;            /* NULL: images of the cube itself are in the store already */
    mc_cube_overview *overview; /* of the next level; NULL: there is none */
    mc_cube_overview overviews[2];
    const volatile int *stop; /* of what can be left undone; NULL: nothing can */
    mc_cube_report *report;
    cube_write_entry *row; /* images of the row of chunks that is written, in the order of the batch */
    int row_count;
    /* A chunk that is being made. */
    uint8_t *data, *cover, *block, *masks;
    mc_cover *covers;
    const uint8_t **mask_list;
    /* Chunks that were in the store, in the columns of a run. */
    mc_cube_chunk *old;
    int run_x0, run_most;
    apr_pool_t *scratch;
} writing;

/* The images of a row with the same chunk number t: entries from first to before end. */
typedef struct cube_write_group {
    int t, first, end;
} cube_write_group;

/* A chunk's place and size. */
typedef struct spot {
    const cube_write_group *group;
    int y, x;
    size_t pixels, bytes; /* of one date */
} spot;

static int
t_of(const writing *w, int index)
{
    return w->batch->stacks[w->row[index].stack].date.t;
}

/* The one that begins with an entry; an empty one behind the last. */
static cube_write_group
group_at(const writing *w, int first)
{
    cube_write_group g = { first < w->row_count ? t_of(w, first) : 0, first, first };
    while (g.end < w->row_count && t_of(w, g.end) == g.t)
        g.end++;
    return g;
}

static bool
is_touched(const writing *w, const cube_write_group *g, int y, int x)
{
    for (int i = g->first; i < g->end; i++)
        if (mc_cube_image_shows(w->row[i].image, x, y))
            return true;
    return false;
}

/* Pixels whose bit is set. */
static void
copy_some(uint8_t *out, const uint8_t *from, const uint8_t *mask, size_t pixels, size_t bands)
{
    for (size_t i = 0; i < pixels; i++)
        if (mask[i / 8] >> i % 8 & 1)
            memcpy(out + i * bands, from + i * bands, bands);
}

/* Lays samples over what the slot has; mask NULL: all of them. What nobody knows is zero, not what was there before. */
static void
copy_chunk_samples(writing *w, const spot *at, int slot, const uint8_t *samples, const uint8_t *mask)
{
    uint8_t *out = w->data + (size_t)slot * at->bytes, *known = w->masks + (size_t)slot * mc_mask_size(at->pixels);
    if (mask == NULL) {
        memcpy(out, samples, at->bytes);
        w->covers[slot] = MC_COVER_ALL;
        return;
    }
    if (w->covers[slot] == MC_COVER_NONE)
        memset(out, 0, at->bytes);
    copy_some(out, samples, mask, at->pixels, (size_t)w->shape->bands);
    if (w->covers[slot] == MC_COVER_ALL)
        return;
    for (size_t i = 0; i < mc_mask_size(at->pixels); i++)
        known[i] |= mask[i];
    w->covers[slot] = mc_cover_of(mc_mask_count(known, at->pixels), at->pixels);
}

static mc_error *
lay_image(writing *w, const spot *at, const mc_cube_image *image, int slot)
{
    const uint8_t *samples;
    if (!mc_cube_image_shows(image, at->x, at->y))
        return MC_OK;
    bool some = image->covers[mc_cube_image_chunk(image, at->x, at->y)] == MC_COVER_SOME;
    MC_TRY(mc_spool_look(&samples, w->spool, mc_cube_image_offset(image, w->shape, at->x, at->y),
                         some ? mc_block_size(at->pixels, w->shape->bands) : at->bytes, w->block, w->writer->pool));
    copy_chunk_samples(w, at, slot, samples, some ? samples + at->bytes : NULL);
    return MC_OK;
}

/* What the store had in the chunk; *slots: dates of it. */
static mc_error *
lay_old(writing *w, const spot *at, const mc_cube_chunk *old, int *slots)
{
    *slots = (int)(old->data_size / at->bytes);
    if (old->data_size % at->bytes != 0 || *slots > w->shape->chunk_dates)
        return mc_error_create(w->writer->pool, MC_ERR_CORRUPT, "chunk %d in column %d, row %d has %lu bytes",
                               at->group->t, at->x, at->y, (unsigned long)old->data_size);
    for (int slot = 0; slot < *slots; slot++) {
        mc_cover cover;
        const uint8_t *mask = NULL;
        if (!mc_cover_read(&cover, &mask, old->cover, old->cover_size, slot, at->pixels))
            return mc_error_create(w->writer->pool, MC_ERR_CORRUPT, "chunk %d in column %d, row %d cannot be read",
                                   at->group->t, at->x, at->y);
        if (cover != MC_COVER_NONE)
            copy_chunk_samples(w, at, slot, (const uint8_t *)old->data + (size_t)slot * at->bytes,
                               cover == MC_COVER_SOME ? mask : NULL);
    }
    return MC_OK;
}

/* The images of one date: what they make of the chunk, and that again for the level above. */
static mc_error *
lay_date(writing *w, const spot *at, int first, int end)
{
    int slot = w->batch->stacks[w->row[first].stack].date.slot;
    const uint8_t *samples = w->data + (size_t)slot * at->bytes;
    const uint8_t *mask = w->masks + (size_t)slot * mc_mask_size(at->pixels);
    for (int i = first; i < end; i++)
        MC_TRY(lay_image(w, at, w->row[i].image, slot));
    for (int i = first; i < end && w->overview != NULL; i++)
        if (mc_cube_image_shows(w->row[i].image, at->x, at->y))
            MC_TRY(mc_cube_overview_add(w->overview, w->row[i].stack, w->row[i].number, at->x, at->y, samples,
                                        w->covers[slot] == MC_COVER_ALL ? NULL : mask, w->writer->pool));
    return MC_OK;
}

static mc_error *
lay_new(writing *w, const spot *at)
{
    for (int first = at->group->first, end; first < at->group->end; first = end) {
        for (end = first + 1; end < at->group->end && w->row[end].stack == w->row[first].stack;)
            end++;
        MC_TRY(lay_date(w, at, first, end));
    }
    return MC_OK;
}

/* Begins with what the store had; `old` NULL: nothing. *slots: dates of it. */
static mc_error *
begin_chunk(writing *w, const spot *at, const mc_cube_chunk *old, int *slots)
{
    int dates = w->shape->chunk_dates;
    *slots = 0;
    for (int i = 0; i < dates; i++)
        w->covers[i] = MC_COVER_NONE;
    memset(w->masks, 0, (size_t)dates * mc_mask_size(at->pixels));
    return old != NULL ? lay_old(w, at, old, slots) : MC_OK;
}

/* Makes the chunk and puts it; `old` NULL: it is new. */
static mc_error *
put_cube_chunk(writing *w, const spot *at, const mc_cube_chunk *old)
{
    int dates = w->shape->chunk_dates, slots;
    MC_TRY(begin_chunk(w, at, old, &slots));
    MC_TRY(lay_new(w, at));
    for (int i = 0; i < dates; i++) {
        slots = w->covers[i] != MC_COVER_NONE && i >= slots ? i + 1 : slots;
        w->mask_list[i] = w->masks + (size_t)i * mc_mask_size(at->pixels);
    }
    for (int i = 0; i < slots; i++)
        if (w->covers[i] == MC_COVER_NONE)
            memset(w->data + (size_t)i * at->bytes, 0, at->bytes);
    mc_cube_chunk chunk = {
        .t = at->group->t, .y = at->y + w->shape->first_row, .x = at->x, .cover = w->cover, .data = w->data
    };
    chunk.cover_size = mc_cover_write(w->cover, w->covers, w->mask_list, slots, at->pixels);
    chunk.data_size = (size_t)slots * at->bytes;
    w->report->chunks++;
    w->report->rewritten += old != NULL;
    return w->writer->ops->put(w->writer, &chunk);
}

static spot
spot_of(const writing *w, const cube_write_group *g, int y, int x)
{
    mc_cube_window window = mc_chunk_window(w->shape, x, y);
    size_t pixels = mc_cube_window_pixels(&window);
    return (spot){ g, y, x, pixels, pixels * (size_t)w->shape->bands };
}

/* --- chunks that are there already -------------------------------------------------------------------------------- */

static mc_error *
remember_old_chunk(void *baton, const mc_cube_chunk *chunk)
{
    writing *w = baton;
    int index = chunk->x - w->run_x0;
    MC_ASSERT(index >= 0 && index < TAKEN_AT_ONCE);
    w->old[index] = *chunk;
    w->old[index].data = apr_pmemdup(w->scratch, chunk->data, chunk->data_size);
    w->old[index].cover = chunk->cover_size == 0 ? NULL : apr_pmemdup(w->scratch, chunk->cover, chunk->cover_size);
    return MC_OK;
}

/* Makes w->old what the store has in columns x0 <= x < x1. */
static mc_error *
extract_chunk_run(writing *w, int t, int y, int x0, int x1, bool keep)
{
    apr_pool_clear(w->scratch);
    memset(w->old, 0, sizeof(*w->old) * TAKEN_AT_ONCE);
    w->run_x0 = x0;
    return w->writer->ops->take_out(w->writer, t, y + w->shape->first_row, x0, x1, keep, remember_old_chunk, w);
}

/* Columns x0 <= x < x1, all of which change. */
static mc_error *
change_run(writing *w, const cube_write_group *g, int y, int x0, int x1)
{
    MC_TRY(extract_chunk_run(w, g->t, y, x0, x1, false));
    for (int x = x0; x < x1; x++) {
        spot at = spot_of(w, g, y, x);
        MC_TRY(put_cube_chunk(w, &at, w->old[x - x0].data == NULL ? NULL : &w->old[x - x0]));
    }
    return MC_OK;
}

static mc_error *
change_row(writing *w, const cube_write_group *g, int y, int x0, int x1)
{
    for (int x = x0, end; x < x1; x = end) {
        end = x + 1;
        if (!is_touched(w, g, y, x))
            continue;
        while (end < x1 && end - x < w->run_most && is_touched(w, g, y, end))
            end++;
        MC_TRY(change_run(w, g, y, x, end));
    }
    return MC_OK;
}

/* --- the batch ---------------------------------------------------------------------------------------------------- */

static void
prepare_cube_writing(writing *w, apr_pool_t *pool)
{
    size_t dates = (size_t)w->shape->chunk_dates;
    size_t pixels = (size_t)w->shape->chunk_width * (size_t)w->shape->chunk_height;
    size_t bytes = pixels * (size_t)w->shape->bands, images = 1;
    for (int i = 0; i < w->batch->count; i++)
        images += (size_t)w->batch->stacks[i].count;
    w->row = apr_palloc(pool, sizeof(*w->row) * images);
    w->data = apr_palloc(pool, bytes * dates);
    w->block = apr_palloc(pool, mc_block_size(pixels, w->shape->bands));
    w->cover = apr_palloc(pool, mc_cover_size((int)dates, pixels));
    w->masks = apr_palloc(pool, mc_mask_size(pixels) * dates);
    w->covers = apr_palloc(pool, sizeof(*w->covers) * dates);
    w->mask_list = apr_palloc(pool, sizeof(*w->mask_list) * dates);
    w->old = apr_palloc(pool, sizeof(*w->old) * TAKEN_AT_ONCE);
    w->run_most = bytes * dates >= TAKEN_BYTES ? 1 : (int)(TAKEN_BYTES / (bytes * dates));
    w->run_most = w->run_most > TAKEN_AT_ONCE ? TAKEN_AT_ONCE : w->run_most;
    apr_pool_create(&w->scratch, pool);
}

/* Chunks: rows that any image of the batch lies in. */
static void
find_batch_rows(int *first, int *end, const mc_cube_batch *batch)
{
    *first = INT32_MAX;
    *end = 0;
    for (int i = 0; i < batch->count; i++)
        for (int j = 0; j < batch->stacks[i].count && !batch->stacks[i].failed; j++) {
            const mc_cube_window *one = &batch->stacks[i].images[j].chunks;
            *first = one->y0 < *first ? one->y0 : *first;
            *end = one->y1 > *end ? one->y1 : *end;
        }
}

/* Makes w->row the images of row y, and finds the columns that they lie in. */
static void
find_chunk_row(writing *w, int y, int *first, int *end)
{
    const mc_cube_batch *batch = w->batch;
    *first = INT32_MAX;
    *end = 0;
    w->row_count = 0;
    for (int i = 0; i < batch->count; i++)
        for (int j = 0; j < batch->stacks[i].count && !batch->stacks[i].failed; j++) {
            const mc_cube_image *image = &batch->stacks[i].images[j];
            if (y < image->chunks.y0 || y >= image->chunks.y1)
                continue;
            w->row[w->row_count++] = (cube_write_entry){ i, j, image };
            *first = image->chunks.x0 < *first ? image->chunks.x0 : *first;
            *end = image->chunks.x1 > *end ? image->chunks.x1 : *end;
        }
}

/* The chunks of a place one behind the other, as time lines are read. */
static mc_error *
put_chunk_row(writing *w, int y, int x0, int x1)
{
    for (int x = x0; x < x1; x++)
        for (cube_write_group g = group_at(w, 0); g.first < g.end; g = group_at(w, g.end)) {
            spot at = spot_of(w, &g, y, x);
            if (is_touched(w, &g, y, x))
                MC_TRY(put_cube_chunk(w, &at, NULL));
        }
    return MC_OK;
}

static mc_error *
write_cube_level(writing *w)
{
    int first, end, x0, x1;
    find_batch_rows(&first, &end, w->batch);
    for (int y = first; y < end; y++) {
        find_chunk_row(w, y, &x0, &x1);
        if (!w->batch->patch)
            MC_TRY(put_chunk_row(w, y, x0, x1));
        for (cube_write_group g = group_at(w, 0); w->batch->patch && g.first < g.end; g = group_at(w, g.end))
            MC_TRY(change_row(w, &g, y, x0, x1));
    }
    return MC_OK;
}

/* A chunk as it is in the store, at the dates of the batch, for the level above. */
static mc_error *
lift_cube_chunk(writing *w, const spot *at, const mc_cube_chunk *old)
{
    int slots;
    MC_TRY(begin_chunk(w, at, old, &slots));
    for (int i = 0; i < w->batch->count; i++) {
        int slot = w->batch->stacks[i].date.slot;
        if (w->covers[slot] != MC_COVER_NONE)
            MC_TRY(mc_cube_overview_add(
                w->overview, i, 0, at->x, at->y, w->data + (size_t)slot * at->bytes,
                w->covers[slot] == MC_COVER_ALL ? NULL : w->masks + (size_t)slot * mc_mask_size(at->pixels),
                w->writer->pool));
    }
    return MC_OK;
}

/* The cube itself, which stays as it is. */
static mc_error *
lift_all(writing *w)
{
    const cube_write_group g = { .t = w->batch->first_t };
    for (int y = 0; y < w->shape->rows; y++) {
        if (w->stop != NULL && *w->stop != 0)
            return mc_error_create(w->writer->pool, MC_ERR_UNAVAILABLE, "interrupted");
        for (int x0 = 0, x1; x0 < w->shape->columns; x0 = x1) {
            x1 = x0 + w->run_most < w->shape->columns ? x0 + w->run_most : w->shape->columns;
            MC_TRY(extract_chunk_run(w, g.t, y, x0, x1, true));
            for (int x = x0; x < x1; x++) {
                spot at = spot_of(w, &g, y, x);
                if (w->old[x - x0].data != NULL)
                    MC_TRY(lift_cube_chunk(w, &at, &w->old[x - x0]));
            }
        }
    }
    return MC_OK;
}

/* Level after level: each leaves behind what the next one is made of, in one of two overviews that take turns. */
static mc_error *
write_cube_levels(writing *w, size_t room, const char *scratch, apr_pool_t *pool)
{
    const mc_cube *cube = w->cube;
    for (int level = 0;; level++) {
        mc_cube_overview *next = &w->overviews[level % 2];
        w->overview = NULL;
        if (level < cube->overview_count) {
            MC_TRY(
                mc_cube_overview_begin(next, w->batch, w->shape, mc_cube_level(cube, level + 1), room, scratch, pool));
            w->overview = next;
        }
        MC_TRY(level == 0 && w->spool == NULL ? lift_all(w) : write_cube_level(w));
        if (level == cube->overview_count)
            return MC_OK;
        if (level > 0)
            mc_cube_overview_end(&w->overviews[(level - 1) % 2]);
        w->shape = next->shape;
        w->batch = &next->batch;
        w->spool = &next->spool;
    }
}

static mc_error *
write_cube_batch(writing *w, size_t room, const char *scratch, apr_pool_t *pool)
{
    prepare_cube_writing(w, pool);
    mc_error *error = write_cube_levels(w, room, scratch, pool);
    for (int i = 0; i < 2; i++)
        mc_cube_overview_end(&w->overviews[i]);
    return error;
}

mc_error *
mc_cube_batch_write(mc_cube_writer *writer, const mc_cube_batch *batch, mc_spool *spool, size_t room,
                    const char *scratch, mc_cube_report *report, apr_pool_t *pool)
{
    const mc_cube *cube = writer->cube;
    writing w = { writer, cube, &cube->shape, batch, spool, .report = report };
    mc_error *error = write_cube_batch(&w, room, scratch, pool);
    for (int i = 0; i < batch->count && error == MC_OK; i++)
        if (!batch->stacks[i].failed)
            error = writer->ops->put_date(writer, &batch->stacks[i].date);
    return error;
}

mc_error *
mc_cube_batch_lift(mc_cube_writer *writer, const mc_cube *cube, const mc_cube_batch *batch,
                   const mc_cube_ingest_options *options, mc_cube_report *report, apr_pool_t *pool)
{
    writing w = { writer, cube, &cube->shape, batch, .stop = options->stop, .report = report };
    return write_cube_batch(&w, (size_t)(options->memory / 6), options->scratch, pool);
}
