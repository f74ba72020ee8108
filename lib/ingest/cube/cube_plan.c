/* Which images go into a cube, at which dates, and what is written together. */
#include "ingest/cube/cube_plan.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/text.h"
#include "vector/crs/projection.h"

/* Parts of a pixel that an image may be off at its corners. */
#define SLACK 0.1

/* Pixels of the cube as a number that fits, whatever an image claims. */
enum { FAR = 1 << 30 };

static mc_error *cube_misfit_error(const mc_cube_image *image, apr_pool_t *pool, const char *format, ...)
    MC_PRINTF(3, 4);

static mc_error *
cube_misfit_error(const mc_cube_image *image, apr_pool_t *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *words = apr_pvsprintf(pool, format, args);
    va_end(args);
    return mc_error_create(pool, MC_ERR_CORRUPT, "%s: %s", image->input->path, words);
}

/* --- where an image lies ------------------------------------------------------------------------------------------ */

/* Whatever names the CRSs have, codes or WKT: they are one where the image's corners lie at the same place in both. */
static mc_error *
check_srs(const mc_cube_image *image, const mc_raster_info *info, const mc_cube *cube, apr_pool_t *pool)
{
    const mc_cube_shape *shape = &cube->shape;
    const mc_extent *box = &info->extent;
    const double corners[8] = {
        box->minx, box->miny, box->maxx, box->miny, box->minx, box->maxy, box->maxx, box->maxy
    };
    mc_projection *projection = NULL;
    double moved[8];
    if (info->srs == NULL || mc_projection_same(info->srs, shape->srs) == 1)
        return MC_OK;
    const char *name = mc_message_text(info->srs, 60, pool);
    mc_error *error = mc_projection_open(&projection, info->srs, shape->srs, pool);
    if (error != MC_OK)
        return cube_misfit_error(image, pool, "whether %s is the CRS of cube \"%s\" cannot be told: %s", name,
                                 cube->name, mc_error_chain(error, pool));
    memcpy(moved, corners, sizeof(moved));
    if (projection != NULL)
        mc_projection_points(projection, moved, 4);
    for (int i = 0; i < 8; i++)
        if (!(fabs(moved[i] - corners[i]) <= SLACK * shape->resolution))
            return cube_misfit_error(image, pool, "it is in %s, cube \"%s\" in %s", name, cube->name, shape->srs);
    return MC_OK;
}

static mc_error *
check_georeference(const mc_cube_image *image, const mc_raster_info *info, const mc_cube *cube, apr_pool_t *pool)
{
    const mc_cube_shape *shape = &cube->shape;
    MC_TRY(check_srs(image, info, cube, pool));
    if (!info->upright)
        return cube_misfit_error(image, pool, "its rows do not run from west to east, or north is not up");
    double off_x = fabs(info->affine[1] / shape->resolution - 1) * info->width;
    double off_y = fabs(-info->affine[5] / shape->resolution - 1) * info->height;
    if (off_x > SLACK || off_y > SLACK)
        return cube_misfit_error(image, pool, "its pixels are %.9f x %.9f units (%s), those of cube \"%s\" %.9f",
                                 info->affine[1], -info->affine[5], info->origin, cube->name, shape->resolution);
    return MC_OK;
}

/* The corner of its first pixel, in units of the CRS. */
static mc_error *
find_corner(double *left, double *top, const mc_cube_image *image, const mc_raster_info *info, const mc_cube *cube,
            apr_pool_t *pool)
{
    const mc_cube_shape *shape = &cube->shape;
    *left = image->input->placed ? image->input->left : shape->extent.minx;
    *top = image->input->placed ? image->input->top : shape->extent.maxy;
    if (image->input->placed || (!info->georeferenced && info->width == shape->width && info->height == shape->height))
        return MC_OK;
    if (!info->georeferenced)
        return cube_misfit_error(image, pool,
                                 "nothing says where its %d x %d pixels lie: a world file, tags of a GeoTIFF, or the "
                                 "size of the whole cube (%d x %d)",
                                 info->width, info->height, shape->width, shape->height);
    *left = info->affine[0];
    *top = info->affine[3];
    return check_georeference(image, info, cube, pool);
}

static int
clip_cube_index(double value, int limit)
{
    return value < 0 ? 0 : value > limit ? limit : (int)value;
}

static mc_error *
place_cube_image(mc_cube_image *image, const mc_raster_info *info, const mc_cube *cube, apr_pool_t *pool)
{
    const mc_cube_shape *shape = &cube->shape;
    double left, top;
    image->width = info->width;
    image->height = info->height;
    MC_TRY(find_corner(&left, &top, image, info, cube, pool));
    double column = (left - shape->extent.minx) / shape->resolution;
    double row = (shape->extent.maxy - top) / shape->resolution;
    double whole_column = rint(column), whole_row = rint(row);
    if (!(fabs(whole_column) < FAR && fabs(whole_row) < FAR))
        return cube_misfit_error(image, pool, "it lies far outside cube \"%s\"", cube->name);
    if (fabs(column - whole_column) > SLACK || fabs(row - whole_row) > SLACK)
        return cube_misfit_error(image, pool,
                                 "its pixels lie between those of cube \"%s\": %.3f columns, %.3f rows from its corner",
                                 cube->name, column, row);
    image->left = (int)whole_column;
    image->top = (int)whole_row;
    image->window =
        (mc_cube_window){ clip_cube_index(whole_column, shape->width), clip_cube_index(whole_row, shape->height),
                          clip_cube_index(whole_column + info->width, shape->width),
                          clip_cube_index(whole_row + info->height, shape->height) };
    if (image->window.x0 >= image->window.x1 || image->window.y0 >= image->window.y1)
        return cube_misfit_error(image, pool, "it lies outside cube \"%s\"", cube->name);
    image->chunks = mc_cube_window_chunks(shape, &image->window);
    return MC_OK;
}

static mc_error *
read_cube_image_header(mc_cube_image *image, const mc_cube *cube, const mc_raster_options *options, apr_pool_t *pool,
                       apr_pool_t *scratch)
{
    mc_raster *raster;
    MC_TRY(mc_raster_open(&raster, image->input->path, options, scratch));
    mc_error *error = place_cube_image(image, mc_raster_about(raster), cube, pool);
    mc_raster_close(raster);
    return error;
}

/* --- dates -------------------------------------------------------------------------------------------------------- */

static int
compare_image_times(const void *a, const void *b)
{
    const mc_cube_image *one = a, *other = b;
    if (one->input->time_us != other->input->time_us)
        return one->input->time_us < other->input->time_us ? -1 : 1;
    return one->input < other->input ? -1 : one->input > other->input;
}

static int
by_slot(const void *a, const void *b)
{
    const mc_cube_date *one = &((const mc_cube_stack *)a)->date, *other = &((const mc_cube_stack *)b)->date;
    return one->t != other->t ? (one->t < other->t ? -1 : 1) : one->slot - other->slot;
}

/* Images that lie on the same place at the same date: nobody can know which one is meant. */
static void
find_collisions(mc_cube_stack *stack, apr_pool_t *pool, apr_pool_t *scratch)
{
    apr_hash_t *places = apr_hash_make(scratch);
    for (int i = 0; i < stack->count && stack->count > 1; i++) {
        mc_cube_image *image = &stack->images[i];
        if (image->failure != MC_OK)
            continue;
        const int place[4] = { image->left, image->top, image->width, image->height };
        const mc_cube_image *first = apr_hash_get(places, place, sizeof(place));
        if (first != NULL)
            image->failure = cube_misfit_error(image, pool, "%s has the same date and place", first->input->path);
        else
            apr_hash_set(places, apr_pmemdup(scratch, place, sizeof(place)), sizeof(place), image);
    }
    apr_pool_clear(scratch);
}

static void
make_stacks(mc_cube_plan *plan, apr_pool_t *pool, apr_pool_t *scratch)
{
    qsort(plan->images, (size_t)plan->image_count, sizeof(*plan->images), compare_image_times);
    plan->stacks = apr_pcalloc(pool, sizeof(*plan->stacks) * (size_t)(plan->image_count + 1));
    for (int i = 0; i < plan->image_count; i++) {
        mc_cube_image *image = &plan->images[i];
        mc_cube_stack *last = plan->stack_count == 0 ? NULL : &plan->stacks[plan->stack_count - 1];
        if (last == NULL || last->date.time_us != image->input->time_us) {
            last = &plan->stacks[plan->stack_count++];
            *last = (mc_cube_stack){ .date.time_us = image->input->time_us, .images = image };
        }
        last->count++;
    }
    for (int i = 0; i < plan->stack_count; i++) {
        mc_cube_stack *stack = &plan->stacks[i];
        find_collisions(stack, pool, scratch);
        for (int j = 0; j < stack->count; j++)
            stack->failed = stack->failed || stack->images[j].failure != MC_OK;
    }
}

/* Dates that the cube has keep their slots; the others follow behind its last one. Returns the chunk number of the
 * first new one whose chunks are not begun yet. */
static int
assign_slots(mc_cube_plan *plan, const apr_array_header_t *dates, apr_pool_t *pool)
{
    int depth = plan->cube->shape.chunk_dates;
    int64_t next = 0;
    apr_hash_t *known = apr_hash_make(pool);
    for (int i = 0; i < dates->nelts; i++) {
        mc_cube_date *date = &APR_ARRAY_IDX(dates, i, mc_cube_date);
        apr_hash_set(known, &date->time_us, sizeof(date->time_us), date);
        int64_t place = (int64_t)date->t * depth + date->slot;
        next = place >= next ? place + 1 : next;
    }
    int first_new = (int)((next + depth - 1) / depth);
    for (int i = 0; i < plan->stack_count; i++) {
        mc_cube_stack *stack = &plan->stacks[i];
        const mc_cube_date *date = apr_hash_get(known, &stack->date.time_us, sizeof(stack->date.time_us));
        stack->known = date != NULL;
        if (stack->failed)
            continue;
        if (date == NULL) {
            stack->date.t = (int)(next / depth);
            stack->date.slot = (int)(next++ % depth);
        } else {
            stack->date = *date;
        }
    }
    return first_new;
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

static size_t
block_bytes(const mc_cube_shape *shape, int x, int y)
{
    mc_cube_window chunk = mc_chunk_window(shape, x, y);
    return mc_block_size(mc_cube_window_pixels(&chunk), shape->bands);
}

/* Of the image's blocks in row y. Only the last column and row of a cube are cut off. */
static size_t
row_bytes(const mc_cube_image *image, const mc_cube_shape *shape, int y)
{
    size_t before = (size_t)(image->chunks.x1 - image->chunks.x0 - 1);
    return before * block_bytes(shape, image->chunks.x0, y) + block_bytes(shape, image->chunks.x1 - 1, y);
}

/* Bytes of all blocks of an image, of a cube or of an overview with that shape. */
static size_t
cube_image_bytes(const mc_cube_image *image, const mc_cube_shape *shape)
{
    size_t above = (size_t)(image->chunks.y1 - image->chunks.y0 - 1);
    return above * row_bytes(image, shape, image->chunks.y0) + row_bytes(image, shape, image->chunks.y1 - 1);
}

size_t
mc_cube_image_offset(const mc_cube_image *image, const mc_cube_shape *shape, int x, int y)
{
    return image->offset + (size_t)(y - image->chunks.y0) * row_bytes(image, shape, image->chunks.y0) +
           (size_t)(x - image->chunks.x0) * block_bytes(shape, image->chunks.x0, y);
}

/* Stacks of one chunk number, from `first` on: how many, and how large. */
static int
measure_stack_group(size_t *bytes, const mc_cube_plan *plan, int first)
{
    int end = first;
    for (*bytes = 0; end < plan->stack_count && plan->stacks[end].date.t == plan->stacks[first].date.t; end++)
        for (int i = 0; i < plan->stacks[end].count; i++)
            *bytes += cube_image_bytes(&plan->stacks[end].images[i], &plan->cube->shape);
    return end - first;
}

void
mc_cube_batch_arrange(mc_cube_batch *batch, const mc_cube_shape *shape)
{
    batch->bytes = 0;
    for (int i = 0; i < batch->count; i++)
        for (int j = 0; j < batch->stacks[i].count; j++) {
            batch->stacks[i].images[j].offset = batch->bytes;
            batch->bytes += cube_image_bytes(&batch->stacks[i].images[j], shape);
        }
}

static void
make_batches(mc_cube_plan *plan, int first_new, size_t most, apr_pool_t *pool)
{
    plan->batches = apr_array_make(pool, 16, sizeof(mc_cube_batch));
    mc_cube_batch *last = NULL;
    for (int i = 0, count; i < plan->stack_count; i += count) {
        size_t bytes;
        count = measure_stack_group(&bytes, plan, i);
        int t = plan->stacks[i].date.t;
        bool patch = t < first_new;
        if (last == NULL || last->patch != patch || last->bytes + bytes > most) {
            last = &APR_ARRAY_PUSH(plan->batches, mc_cube_batch);
            *last = (mc_cube_batch){ .stacks = &plan->stacks[i], .first_t = t, .patch = patch };
        }
        last->count += count;
        last->bytes += bytes;
        last->end_t = t + 1;
    }
    for (int i = 0; i < plan->batches->nelts; i++) {
        mc_cube_batch *batch = &APR_ARRAY_IDX(plan->batches, i, mc_cube_batch);
        mc_cube_batch_arrange(batch, &plan->cube->shape);
        plan->largest = batch->bytes > plan->largest ? batch->bytes : plan->largest;
    }
}

/* Stacks that fail stay behind the others: nothing is decoded of them. */
static void
sort_out(mc_cube_plan *plan, apr_pool_t *pool)
{
    mc_cube_stack *sorted = apr_palloc(pool, sizeof(*sorted) * (size_t)(plan->stack_count + 1));
    int good = 0, bad = plan->stack_count;
    for (int i = 0; i < plan->stack_count; i++)
        sorted[plan->stacks[i].failed ? --bad : good++] = plan->stacks[i];
    plan->stacks = sorted;
    plan->failed_count = plan->stack_count - good;
    plan->stack_count = good;
    qsort(plan->stacks, (size_t)good, sizeof(*plan->stacks), by_slot);
}

static bool
cube_plan_stopped(const mc_cube_ingest_options *options)
{
    return options->stop != NULL && *options->stop != 0;
}

void
mc_cube_plan_make(mc_cube_plan *plan, const mc_cube *cube, const mc_cube_input *inputs, int count,
                  const apr_array_header_t *dates, size_t bytes, const mc_cube_ingest_options *options,
                  apr_pool_t *pool)
{
    apr_pool_t *scratch;
    *plan = (mc_cube_plan){ .cube = cube, .image_count = count };
    plan->images = apr_pcalloc(pool, sizeof(*plan->images) * (size_t)(count + 1));
    apr_pool_create(&scratch, pool);
    for (int i = 0; i < count && !cube_plan_stopped(options); i++) {
        plan->images[i].input = &inputs[i];
        plan->images[i].failure =
            mc_error_copy(read_cube_image_header(&plan->images[i], cube, &options->raster, pool, scratch), pool);
        apr_pool_clear(scratch);
    }
    if (cube_plan_stopped(options))
        plan->image_count = 0; /* nothing is going to be done */
    make_stacks(plan, pool, scratch);
    int first_new = assign_slots(plan, dates, pool);
    sort_out(plan, pool);
    make_batches(plan, first_new, bytes, pool);
    apr_pool_destroy(scratch);
}
