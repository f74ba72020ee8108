/* What windows and places are at dates: rows of the store put together to planes. */
#include <apr_hash.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "cube/chunk.h"
#include "cube/store.h"
#include "mapcache/trace.h"

/* The span from the first to the last of several, and whether a time is in one of them. */
typedef struct spans {
    const mc_time_span *list;
    int count; /* 0: all times */
} spans;

static mc_time_span
time_spans_hull(const spans *s)
{
    mc_time_span all = { INT64_MAX, INT64_MIN };
    for (int i = 0; i < s->count; i++) {
        if (s->list[i].start_us < all.start_us)
            all.start_us = s->list[i].start_us;
        if (s->list[i].end_us > all.end_us)
            all.end_us = s->list[i].end_us;
    }
    return s->count > 0 ? all : (mc_time_span){ INT64_MIN, INT64_MAX };
}

static bool
time_spans_contain(const spans *s, int64_t time_us)
{
    for (int i = 0; i < s->count; i++)
        if (time_us >= s->list[i].start_us && time_us < s->list[i].end_us)
            return true;
    return s->count == 0;
}

/* Between spans lie dates that nobody asked for: they must not use up the bound of a statement. */
static int
date_limit_of(const spans *s, int most)
{
    return s->count > 1 ? INT32_MAX : most;
}

typedef struct dates {
    apr_array_header_t *list; /* latest first */
    const spans *spans;
    int most;
} dates;

static mc_error *
collect_wanted_date(void *baton, const mc_cube_date *date)
{
    dates *d = baton;
    if (d->list->nelts < d->most && time_spans_contain(d->spans, date->time_us))
        APR_ARRAY_PUSH(d->list, mc_cube_date) = *date;
    return MC_OK;
}

mc_error *
mc_cube_dates(apr_array_header_t **result, const mc_cube *cube, const mc_time_span *list, int count, int most,
              mc_ctx *ctx, apr_pool_t *pool)
{
    const spans s = { list, count };
    dates d = { apr_array_make(pool, 16, sizeof(mc_cube_date)), &s, most };
    mc_cube_query query = { .span = time_spans_hull(&s), .most = date_limit_of(&s, most) };
    MC_TRY(cube->ops->dates(cube, &query, collect_wanted_date, &d, ctx, pool));
    *result = apr_array_make(pool, d.list->nelts, sizeof(mc_cube_date));
    for (int i = d.list->nelts; i-- > 0;)
        APR_ARRAY_PUSH(*result, mc_cube_date) = APR_ARRAY_IDX(d.list, i, mc_cube_date);
    return MC_OK;
}

typedef struct cube_reading {
    const mc_cube *cube;
    const mc_cube_shape *shape; /* of the level */
    const mc_cube_window *window;
    const spans *spans;
    mc_cube_take_run *take; /* of pieces that have been checked */
    void *baton;
    apr_hash_t *planes;   /* by time */
    mc_cube_plane *last;  /* the one that pieces belong to now */
    size_t pixels, bytes; /* of the window; of all planes */
    apr_pool_t *pool;
} cube_reading;

/* Makes r->last the plane of that date. */
static mc_error *
find_plane(cube_reading *r, int64_t time_us)
{
    if (r->last == NULL || r->last->time_us != time_us)
        r->last = apr_hash_get(r->planes, &time_us, sizeof(time_us));
    if (r->last != NULL)
        return MC_OK;
    r->bytes += r->pixels * (size_t)(r->cube->shape.bands + 1) + sizeof(*r->last);
    if (r->bytes > mc_cube_read_max)
        return mc_error_create(r->pool, MC_ERR_LIMIT, "more than %d MB of cube \"%s\" are asked for at once",
                               (int)mc_cube_read_max >> 20, r->cube->name);
    r->last = apr_palloc(r->pool, sizeof(*r->last));
    r->last->time_us = time_us;
    r->last->samples = apr_palloc(r->pool, r->pixels * (size_t)r->cube->shape.bands);
    r->last->present = apr_pcalloc(r->pool, r->pixels);
    apr_hash_set(r->planes, &r->last->time_us, sizeof(r->last->time_us), r->last);
    return MC_OK;
}

/* `chunk`: all of its pixels; the piece has the rows of `part`, in their full width. */
static void
give_runs(const cube_reading *r, const mc_cube_window *chunk, const mc_cube_window *part, const uint8_t *data,
          const uint8_t *mask)
{
    size_t bands = (size_t)r->cube->shape.bands, width = (size_t)(chunk->x1 - chunk->x0);
    size_t left = (size_t)(part->x0 - chunk->x0);
    for (int y = part->y0; y < part->y1; y++) {
        const mc_cube_run run = { .x = part->x0,
                                  .y = y,
                                  .count = part->x1 - part->x0,
                                  .samples = data + ((size_t)(y - part->y0) * width + left) * bands,
                                  .mask = mask,
                                  .bit = (size_t)(y - chunk->y0) * width + left };
        r->take(r->baton, &run);
    }
}

static mc_error *
corrupt_chunk_error(const cube_reading *r, const mc_cube_piece *piece)
{
    return mc_error_create(r->pool, MC_ERR_CORRUPT, "cube \"%s\": the chunk in column %d, row %d cannot be read",
                           r->cube->name, piece->x, piece->y);
}

static mc_error *
check_piece(const cube_reading *r, const mc_cube_piece *piece)
{
    const mc_cube_shape *shape = r->shape;
    mc_cover cover;
    const uint8_t *mask = NULL;
    if (!piece->stored)
        return MC_OK;
    if (piece->x < 0 || piece->x >= shape->columns || piece->y < 0 || piece->y >= shape->rows || piece->slot < 0)
        return corrupt_chunk_error(r, piece);
    mc_cube_window chunk = mc_chunk_window(shape, piece->x, piece->y),
                   part = mc_cube_window_intersection(&chunk, r->window);
    size_t size = (size_t)(part.y1 - part.y0) * (size_t)(chunk.x1 - chunk.x0) * (size_t)shape->bands;
    if (!mc_cover_read(&cover, &mask, piece->cover, piece->cover_size, piece->slot, mc_cube_window_pixels(&chunk)))
        return corrupt_chunk_error(r, piece);
    /* The dates of a chunk end with the last that has something in it. */
    if (cover == MC_COVER_NONE || (cover == MC_COVER_ALL && piece->data_size == 0))
        return MC_OK;
    if (part.x0 >= part.x1 || part.y0 >= part.y1 || piece->data_size != size)
        return corrupt_chunk_error(r, piece);
    give_runs(r, &chunk, &part, piece->data, cover == MC_COVER_SOME ? mask : NULL);
    return MC_OK;
}

static mc_error *
take_scanned(void *baton, const mc_cube_piece *piece)
{
    return check_piece(baton, piece);
}

mc_error *
mc_cube_scan(const mc_cube *cube, int level, int64_t time_us, const mc_cube_window *window, mc_cube_take_run *take,
             void *baton, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_ABOUT(ctx, "mc_cube_scan", cube->name);
    cube_reading r = {
        .cube = cube, .shape = mc_cube_level(cube, level), .window = window, .take = take, .baton = baton, .pool = pool
    };
    const mc_cube_query query = { .span = { time_us, time_us + 1 }, .most = 1, .level = level, .window = *window };
    return cube->ops->read(cube, &query, take_scanned, &r, ctx, pool);
}

static void
place_cube_run(void *baton, const mc_cube_run *run)
{
    const cube_reading *r = baton;
    size_t bands = (size_t)r->cube->shape.bands, across = (size_t)(r->window->x1 - r->window->x0);
    size_t to = (size_t)(run->y - r->window->y0) * across + (size_t)(run->x - r->window->x0);
    memcpy(r->last->samples + to * bands, run->samples, (size_t)run->count * bands);
    for (int i = 0; i < run->count; i++)
        r->last->present[to + (size_t)i] = mc_cube_run_knows(run, i);
}

static mc_error *
take_piece(void *baton, const mc_cube_piece *piece)
{
    cube_reading *r = baton;
    if (!time_spans_contain(r->spans, piece->time_us))
        return MC_OK;
    MC_TRY(find_plane(r, piece->time_us));
    return check_piece(r, piece);
}

static int
compare_plane_times(const void *a, const void *b)
{
    int64_t one = ((const mc_cube_plane *)a)->time_us, other = ((const mc_cube_plane *)b)->time_us;
    return (one > other) - (one < other);
}

mc_error *
mc_cube_read(apr_array_header_t **planes, const mc_cube *cube, const mc_time_span *list, int count, int most,
             const mc_cube_window *window, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_ABOUT(ctx, "mc_cube_read", cube->name);
    MC_ASSERT(window->x0 >= 0 && window->x0 < window->x1 && window->x1 <= cube->shape.width && window->y0 >= 0 &&
              window->y0 < window->y1 && window->y1 <= cube->shape.height);
    const spans s = { list, count };
    cube_reading r = { .cube = cube,
                       .shape = &cube->shape,
                       .window = window,
                       .spans = &s,
                       .take = place_cube_run,
                       .planes = apr_hash_make(pool),
                       .pixels = mc_cube_window_pixels(window),
                       .pool = pool };
    mc_cube_query query = { .span = time_spans_hull(&s), .most = date_limit_of(&s, most), .window = *window };
    r.baton = &r;
    MC_TRY(cube->ops->read(cube, &query, take_piece, &r, ctx, pool));
    apr_array_header_t *found = apr_array_make(pool, (int)apr_hash_count(r.planes), sizeof(mc_cube_plane));
    for (apr_hash_index_t *i = apr_hash_first(pool, r.planes); i != NULL; i = apr_hash_next(i))
        APR_ARRAY_PUSH(found, mc_cube_plane) = *(const mc_cube_plane *)apr_hash_this_val(i);
    qsort(found->elts, (size_t)found->nelts, sizeof(mc_cube_plane), compare_plane_times);
    if (found->nelts > most) { /* of several spans: the latest */
        memmove(found->elts, found->elts + (size_t)(found->nelts - most) * sizeof(mc_cube_plane),
                (size_t)most * sizeof(mc_cube_plane));
        found->nelts = most;
    }
    *planes = found;
    return MC_OK;
}
