/*
 * The source "cube": maps of a cube at one date. Pixels of the cube are taken as they are, or blended by their
 * distance; where a map shows many of them in one of its own, across or down, they are averaged before.
 */
#include "source/cube.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "mapcache/trace.h"

/* Pixels of the cube that one map may be made of. They stream by: what is kept is of the map's size. */
#define MOST_PIXELS ((int64_t)1 << 26)

static const mc_key cube_keys[] = {
    MC_SOURCE_KEYS(mc_cube_source, "0"),
    MC_KEY_TEXT("cube", offsetof(mc_cube_source, cube_name), "Name of the cube.",
                .flags = MC_KEY_OURS | MC_KEY_REQUIRED),
    MC_KEY_TEXT("dimension", offsetof(mc_cube_source, dimension),
                "The tileset's dimension whose value is the date; without it maps show the latest date.",
                .flags = MC_KEY_OURS, .fallback = "time"),
    MC_KEY_CHOICE_CI(
        "resample", offsetof(mc_cube_source, resample), "nearest|bilinear",
        "nearest: pixels as they are; bilinear: blended, and averaged where maps are coarser than the cube.",
        .flags = MC_KEY_OURS, .fallback = "bilinear"),
    MC_KEY_END,
};

static mc_source *
cube_source_from_config(const mc_node *node, mc_build *build)
{
    mc_cube_source *source = apr_pcalloc(build->pool, sizeof(*source));
    if (!mc_source_read(&source->base, &mc_source_cube, node, build))
        return NULL;
    source->cube =
        mc_config_find(build->cubes, "cube", source->cube_name, mc_node_child(node, "cube"), build->diagnostics);
    if (source->cube == NULL)
        return NULL;
    source->base.source.needs_format = true;
    source->base.source.info_formats = mc_cube_source_info_formats(build->pool);
    return &source->base.source;
}

/* Whole numbers around from..to in steps of `step`, inside 0..limit. */
static void
whole_range(int *first, int *end, double from, double to, int step, int limit)
{
    double low = floor(from / step) * step, high = ceil(to / step) * step;
    *first = low < 0 ? 0 : low > limit ? limit : (int)low;
    *end = high < 0 ? 0 : high > limit ? limit : (int)high;
}

/* How many pixels of a level are averaged to one before the map is interpolated between these. */
typedef struct steps {
    int x, y;
} steps;

/*
 * The level that a map is made of; the same all over the cube, so that maps beside each other fit. Of 2, 3, 4, 6, 8,
 * 12, ... pixels of the cube the most that one of the map has, where 3 are three of a finer level: what is left for
 * interpolation is less than a half more. (Overviews are means, so not for nearest.)
 */
static int
choose_cube_level(const mc_cube_source *source, const mc_cube_view *view)
{
    double least = view->step_x < view->step_y ? view->step_x : view->step_y;
    int level = 0;
    while (source->resample != MC_NEAREST && level < source->cube->overview_count && least >= 2) {
        least /= 2;
        level++;
    }
    return level > 0 && least >= 1.5 && least < 2 ? level - 1 : level;
}

static int
choose_step(const mc_cube_source *source, double pixels)
{
    return source->resample == MC_NEAREST || pixels < 2 ? 1 : pixels > 4096 ? 4096 : (int)pixels;
}

/* In pixels of the level. */
static mc_cube_view
at_level(const mc_cube_view *view, int level)
{
    double scale = ldexp(1, -level);
    return (mc_cube_view){ view->left * scale, view->top * scale, view->step_x * scale, view->step_y * scale };
}

static mc_error *
choose_window(mc_cube_window *window, const mc_cube_source *source, int level, const mc_cube_view *view, steps step,
              const mc_render *wanted, apr_pool_t *pool)
{
    const mc_cube_shape *shape = mc_cube_level(source->cube, level);
    whole_range(&window->x0, &window->x1, view->left - step.x, view->left + view->step_x * wanted->width + step.x,
                step.x, shape->width);
    whole_range(&window->y0, &window->y1, view->top - step.y, view->top + view->step_y * wanted->height + step.y,
                step.y, shape->height);
    int64_t pixels = (int64_t)(window->x1 - window->x0) * (window->y1 - window->y0);
    if (pixels > MOST_PIXELS)
        return mc_error_create(pool, MC_ERR_LIMIT,
                               "a map would need %" APR_INT64_T_FMT
                               " pixels of cube \"%s\", more than %" APR_INT64_T_FMT
                               ": give it <overviews>, or let its tileset begin at a deeper level (minzoom)",
                               (apr_int64_t)pixels, source->cube->name, (apr_int64_t)MOST_PIXELS);
    return MC_OK;
}

/* A pixel of the cube as premultiplied B, G, R, A. */
static inline void
to_bgra(uint8_t bgra[4], const uint8_t *sample, int bands)
{
    bgra[0] = sample[bands == 1 ? 0 : 2];
    bgra[1] = sample[bands == 1 ? 0 : 1];
    bgra[2] = sample[0];
    bgra[3] = bands == 4 ? sample[3] : 255;
    if (bgra[3] != 255)
        for (int i = 0; i < 3; i++)
            bgra[i] = (uint8_t)((bgra[i] * bgra[3] + 127) / 255);
}

/* What is made of the runs of a window. */
typedef struct drawing {
    const mc_cube_window *window;
    int bands;
    steps step;
    mc_pixels *pixels;
    uint32_t *sums; /* B, G, R, A of each of the pixels: where several make one */
    /* nearest: the map's columns that column x of the window shows in are columns[x] to before columns[x + 1]. */
    const int *columns, *rows;
} drawing;

static uint8_t *
drawing_pixel_at(const drawing *d, int x, int y)
{
    return d->pixels->data + (size_t)y * d->pixels->stride + (size_t)x * 4;
}

static void
copy_run(void *baton, const mc_cube_run *run)
{
    const drawing *d = baton;
    uint8_t *out = drawing_pixel_at(d, run->x - d->window->x0, run->y - d->window->y0);
    for (int i = 0; i < run->count; i++, out += 4)
        if (mc_cube_run_knows(run, i))
            to_bgra(out, run->samples + i * d->bands, d->bands);
}

/* 4096 * 4096 * 255 are less than 2^32. */
static void
add_run(void *baton, const mc_cube_run *run)
{
    const drawing *d = baton;
    uint32_t *row = d->sums + (size_t)((run->y - d->window->y0) / d->step.y) * (size_t)d->pixels->width * 4;
    for (int i = 0; i < run->count; i++) {
        uint8_t bgra[4];
        if (!mc_cube_run_knows(run, i))
            continue;
        uint32_t *sum = row + (size_t)((run->x + i - d->window->x0) / d->step.x) * 4;
        to_bgra(bgra, run->samples + i * d->bands, d->bands);
        for (int band = 0; band < 4; band++)
            sum[band] += bgra[band];
    }
}

static int
lesser_step(int a, int b)
{
    return a < b ? a : b;
}

/* What is not known counts as transparent. */
static void
average_cube_pixels(const drawing *d)
{
    int across = d->window->x1 - d->window->x0, down = d->window->y1 - d->window->y0;
    for (int y = 0; y < d->pixels->height; y++)
        for (int x = 0; x < d->pixels->width; x++) {
            const uint32_t *sum = d->sums + ((size_t)y * (size_t)d->pixels->width + (size_t)x) * 4;
            uint64_t count = (uint64_t)lesser_step(d->step.x, across - x * d->step.x) *
                             (uint64_t)lesser_step(d->step.y, down - y * d->step.y);
            for (int band = 0; band < 4; band++)
                drawing_pixel_at(d, x, y)[band] = (uint8_t)((sum[band] + count / 2) / count);
        }
}

static mc_error *
draw_bilinear(mc_pixels *map, const mc_cube *cube, int level, int64_t time_us, const mc_cube_window *window,
              const mc_cube_view *view, steps step, mc_ctx *ctx, apr_pool_t *pool)
{
    drawing d = { .window = window, .bands = cube->shape.bands, .step = step };
    bool several = step.x > 1 || step.y > 1;
    MC_TRY(mc_pixels_create(&d.pixels, (window->x1 - window->x0 + step.x - 1) / step.x,
                            (window->y1 - window->y0 + step.y - 1) / step.y, true, pool));
    mc_pixels_attach(d.pixels, pool);
    if (several)
        d.sums = apr_pcalloc(pool, (size_t)d.pixels->width * (size_t)d.pixels->height * 4 * sizeof(*d.sums));
    MC_TRY(mc_cube_scan(cube, level, time_us, window, several ? add_run : copy_run, &d, ctx, pool));
    if (several)
        average_cube_pixels(&d);
    d.pixels->opacity = MC_OPACITY_UNKNOWN;
    mc_pixels_resample(map, d.pixels, (view->left - window->x0) / step.x, (view->top - window->y0) / step.y,
                       view->step_x / step.x, view->step_y / step.y, MC_BILINEAR);
    return MC_OK;
}

/* Which of the map's columns (or rows) have their centre in each of the window's: see drawing. */
static const int *
window_positions(double from, double step, int size, int first, int end, apr_pool_t *pool)
{
    int *list = apr_palloc(pool, sizeof(*list) * (size_t)(end - first + 1)), at = 0;
    for (int x = first; x <= end; x++) {
        while (at < size && floor(from + (at + 0.5) * step) < x)
            at++;
        list[x - first] = at;
    }
    return list;
}

static void
show_run(void *baton, const mc_cube_run *run)
{
    const drawing *d = baton;
    int row = run->y - d->window->y0;
    for (int y = d->rows[row]; y < d->rows[row + 1]; y++)
        for (int i = 0; i < run->count; i++) {
            int column = run->x + i - d->window->x0;
            if (d->columns[column] == d->columns[column + 1] || !mc_cube_run_knows(run, i))
                continue;
            for (int x = d->columns[column]; x < d->columns[column + 1]; x++)
                to_bgra(drawing_pixel_at(d, x, y), run->samples + i * d->bands, d->bands);
        }
}

/* The cube's pixel under the centre of each of the map's. */
static mc_error *
draw_nearest(mc_pixels *map, const mc_cube *cube, int64_t time_us, const mc_cube_window *window,
             const mc_cube_view *view, mc_ctx *ctx, apr_pool_t *pool)
{
    drawing d = { .window = window, .bands = cube->shape.bands, .pixels = map };
    d.columns = window_positions(view->left, view->step_x, map->width, window->x0, window->x1, pool);
    d.rows = window_positions(view->top, view->step_y, map->height, window->y0, window->y1, pool);
    map->opacity = MC_OPACITY_UNKNOWN;
    return mc_cube_scan(cube, 0, time_us, window, show_run, &d, ctx, pool);
}

/* The wanted date: one that begins exactly then, else the latest in its period ("2010-03" is March). */
static mc_error *
find_cube_time(int64_t *time_us, const mc_cube_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *spans, *dates;
    MC_TRY(mc_cube_source_times(&spans, source, wanted, pool));
    const mc_time_span *list = spans == NULL ? NULL : (const mc_time_span *)(const void *)spans->elts;
    int count = spans == NULL ? 0 : spans->nelts;
    if (count == 1) {
        const mc_time_span exactly = { list->start_us, list->start_us + 1 };
        *time_us = list->start_us;
        MC_TRY(mc_cube_dates(&dates, source->cube, &exactly, 1, 1, ctx, pool));
        if (dates->nelts > 0)
            return MC_OK;
    }
    MC_TRY(mc_cube_dates(&dates, source->cube, list, count, 1, ctx, pool));
    if (dates->nelts == 0)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "cube \"%s\" has nothing at the time that is asked for",
                               source->cube->name);
    *time_us = APR_ARRAY_IDX(dates, 0, mc_cube_date).time_us;
    return MC_OK;
}

static mc_error *
draw_cube_map(mc_pixels *map, const mc_cube_source *source, int level, const mc_cube_view *view,
              const mc_cube_window *window, steps step, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    int64_t time_us = 0;
    MC_TRY(find_cube_time(&time_us, source, wanted, ctx, pool));
    if (source->resample == MC_NEAREST)
        return draw_nearest(map, source->cube, time_us, window, view, ctx, pool);
    return draw_bilinear(map, source->cube, level, time_us, window, view, step, ctx, pool);
}

static mc_error *
cube_render(mc_rendered *map, mc_source *base, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_source_cube_render");
    const mc_cube_source *source = (const mc_cube_source *)base;
    mc_cube_view view;
    mc_cube_window window;
    MC_TRY(mc_cube_source_view(&view, source, wanted, pool));
    int level = choose_cube_level(source, &view);
    view = at_level(&view, level);
    const steps step = { choose_step(source, view.step_x), choose_step(source, view.step_y) };
    MC_TRY(choose_window(&window, source, level, &view, step, wanted, pool));
    MC_TRY(mc_pixels_create(&map->pixels, wanted->width, wanted->height, true, pool));
    mc_pixels_attach(map->pixels, pool);
    if (window.x0 >= window.x1 || window.y0 >= window.y1)
        return MC_OK;
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    mc_error *error = draw_cube_map(map->pixels, source, level, &view, &window, step, wanted, ctx, scratch);
    error = mc_error_copy(error, pool);
    apr_pool_destroy(scratch);
    return error;
}

const mc_source_ops mc_source_cube = {
    MC_KIND("cube", cube_keys, cube_source_from_config,
            "Maps of a cube at one date; feature info is what a place was at many."),
    .render = cube_render,
    .info = mc_cube_source_info,
};
