/*
 * The source "cube": maps of a cube at one date. Pixels of the cube are taken as they are, or blended by their
 * distance; where a map shows many of them in one of its own, they are averaged before.
 */
#include "source/cube.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "mapcache/trace.h"

/* Pixels of the cube that one map may be made of: 48 to 80 MB. */
#define MOST_PIXELS ((int64_t)1 << 24)

static const mc_key cube_keys[] = {
    MC_SOURCE_KEYS(mc_cube_source, "0"),
    { "cube", MC_TEXT, MC_KEY_OURS | MC_KEY_REQUIRED, 0, 0, NULL, NULL, offsetof(mc_cube_source, cube_name), NULL,
      "Name of the cube." },
    { "dimension", MC_TEXT, MC_KEY_OURS, 0, 0, NULL, "time", offsetof(mc_cube_source, dimension), NULL,
      "The tileset's dimension whose value is the date; without it maps show the latest date." },
    { "resample", MC_CHOICE_CI, MC_KEY_OURS, 0, 0, "nearest|bilinear", "bilinear", offsetof(mc_cube_source, resample),
      NULL, "nearest: pixels as they are; bilinear: blended, and averaged where maps are coarser than the cube." },
    MC_KEY_END,
};

static mc_source *
cube_from_config(const mc_node *node, mc_build *build)
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

mc_error *
mc_cube_source_times(apr_array_header_t **spans, const mc_cube_source *source, const mc_render *wanted,
                     apr_pool_t *pool)
{
    *spans = NULL;
    for (int i = 0; i < wanted->dimension_count; i++) {
        const mc_dimension_value *value = &wanted->dimensions[i];
        if (strcasecmp(value->name, source->dimension) != 0 || value->value == NULL)
            continue;
        /* The revision that a dimension of type cube adds tells tiles apart, not pixels: there is only the latest. */
        const char *text = apr_pstrmemdup(pool, value->value, strcspn(value->value, (char[]){ MC_CUBE_REVISION, 0 }));
        return mc_time_parse_list(spans, source->dimension, text, apr_time_now(), pool);
    }
    return MC_OK;
}

mc_error *
mc_cube_source_view(mc_cube_view *view, const mc_cube_source *source, const mc_render *wanted, apr_pool_t *pool)
{
    const mc_cube_shape *shape = &source->cube->shape;
    if (!mc_grid_has_srs(wanted->grid, shape->srs))
        return mc_error_create(pool, MC_ERR_CONFIG, "cube \"%s\" is in %s and cannot be drawn in %s",
                               source->cube->name, shape->srs, wanted->grid->srs);
    const mc_extent *box = &wanted->box;
    *view = (mc_cube_view){ (box->minx - shape->extent.minx) / shape->resolution,
                            (shape->extent.maxy - box->maxy) / shape->resolution,
                            (box->maxx - box->minx) / shape->resolution / wanted->width,
                            (box->maxy - box->miny) / shape->resolution / wanted->height };
    return MC_OK;
}

/* Whole numbers around from..to in steps of `step`, inside 0..limit. */
static void
whole_range(int *first, int *end, double from, double to, int step, int limit)
{
    double low = floor(from / step) * step, high = ceil(to / step) * step;
    *first = low < 0 ? 0 : low > limit ? limit : (int)low;
    *end = high < 0 ? 0 : high > limit ? limit : (int)high;
}

/* How many pixels of the cube, along each side, are averaged to one; the same all over the cube, so that maps beside
 * each other fit. */
static int
reduction(const mc_cube_source *source, const mc_cube_view *view)
{
    double least = view->step_x < view->step_y ? view->step_x : view->step_y;
    return source->resample == MC_NEAREST || least < 2 ? 1 : least > 4096 ? 4096 : (int)least;
}

static mc_error *
choose_window(mc_cube_window *window, const mc_cube_source *source, const mc_cube_view *view, int step,
              const mc_render *wanted, apr_pool_t *pool)
{
    const mc_cube_shape *shape = &source->cube->shape;
    whole_range(&window->x0, &window->x1, view->left - step, view->left + view->step_x * wanted->width + step, step,
                shape->width);
    whole_range(&window->y0, &window->y1, view->top - step, view->top + view->step_y * wanted->height + step, step,
                shape->height);
    int64_t pixels = (int64_t)(window->x1 - window->x0) * (window->y1 - window->y0);
    if (pixels > MOST_PIXELS)
        return mc_error_create(pool, MC_ERR_LIMIT,
                               "a map would need %" APR_INT64_T_FMT
                               " pixels of cube \"%s\", more than %" APR_INT64_T_FMT
                               ": let its tileset begin at a deeper level (minzoom)",
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

/* Columns x0 to x1 of a row of the window, averaged with the rows below it to one pixel; those that nothing is known of
 * count as transparent. */
static void
average(uint8_t bgra[4], const mc_cube_plane *plane, int bands, int across, const mc_cube_window *block)
{
    uint32_t sums[4] = { 0 };
    uint32_t count = (uint32_t)(block->x1 - block->x0) * (uint32_t)(block->y1 - block->y0);
    for (int y = block->y0; y < block->y1; y++)
        for (int x = block->x0; x < block->x1; x++) {
            size_t at = (size_t)y * (size_t)across + (size_t)x;
            uint8_t one[4];
            if (!plane->present[at])
                continue;
            to_bgra(one, plane->samples + at * (size_t)bands, bands);
            for (int i = 0; i < 4; i++)
                sums[i] += one[i];
        }
    for (int i = 0; i < 4; i++)
        bgra[i] = (uint8_t)((sums[i] + count / 2) / count);
}

static int
least(int a, int b)
{
    return a < b ? a : b;
}

/* The plane as pixels, `step` x `step` of it to one. */
static mc_error *
reduce(mc_pixels **pixels, const mc_cube_plane *plane, const mc_cube_source *source, const mc_cube_window *window,
       int step, apr_pool_t *pool)
{
    int across = window->x1 - window->x0, down = window->y1 - window->y0;
    MC_TRY(mc_pixels_create(pixels, (across + step - 1) / step, (down + step - 1) / step, false, pool));
    mc_pixels_attach(*pixels, pool);
    for (int y = 0; y < (*pixels)->height; y++)
        for (int x = 0; x < (*pixels)->width; x++) {
            mc_cube_window block = { x * step, y * step, least((x + 1) * step, across), least((y + 1) * step, down) };
            average((*pixels)->data + (size_t)y * (*pixels)->stride + (size_t)x * 4, plane, source->cube->shape.bands,
                    across, &block);
        }
    return MC_OK;
}

static mc_error *
draw_bilinear(mc_pixels *map, const mc_cube_plane *plane, const mc_cube_source *source, const mc_cube_window *window,
              const mc_cube_view *view, int step, apr_pool_t *pool)
{
    mc_pixels *pixels;
    MC_TRY(reduce(&pixels, plane, source, window, step, pool));
    mc_pixels_resample(map, pixels, (view->left - window->x0) / step, (view->top - window->y0) / step,
                       view->step_x / step, view->step_y / step, MC_BILINEAR);
    return MC_OK;
}

/* The cube's pixel under the centre of each of the map's. */
static void
draw_nearest(mc_pixels *map, const mc_cube_plane *plane, const mc_cube_source *source, const mc_cube_window *window,
             const mc_cube_view *view)
{
    int bands = source->cube->shape.bands, across = window->x1 - window->x0;
    for (int y = 0; y < map->height; y++) {
        double row = floor(view->top + (y + 0.5) * view->step_y);
        if (row < window->y0 || row >= window->y1)
            continue;
        for (int x = 0; x < map->width; x++) {
            double column = floor(view->left + (x + 0.5) * view->step_x);
            if (column < window->x0 || column >= window->x1)
                continue;
            size_t at = (size_t)((int)row - window->y0) * (size_t)across + (size_t)((int)column - window->x0);
            if (plane->present[at])
                to_bgra(map->data + (size_t)y * map->stride + (size_t)x * 4, plane->samples + at * (size_t)bands,
                        bands);
        }
    }
}

/* The plane of the wanted date: one that begins exactly then, else the latest in its period ("2010-03" is March).
 * *plane NULL: there is none. */
static mc_error *
read_plane(mc_cube_plane **plane, const mc_cube_source *source, const mc_render *wanted, const mc_cube_window *window,
           mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *spans, *planes;
    MC_TRY(mc_cube_source_times(&spans, source, wanted, pool));
    const mc_time_span *list = spans == NULL ? NULL : (const mc_time_span *)(const void *)spans->elts;
    int count = spans == NULL ? 0 : spans->nelts;
    if (count == 1) {
        const mc_time_span exactly = { list->start_us, list->start_us + 1 };
        MC_TRY(mc_cube_read(&planes, source->cube, &exactly, 1, 1, window, ctx, pool));
        *plane = planes->nelts > 0 ? &APR_ARRAY_IDX(planes, 0, mc_cube_plane) : NULL;
        if (*plane != NULL || list->end_us <= exactly.end_us)
            return MC_OK;
    }
    MC_TRY(mc_cube_read(&planes, source->cube, list, count, 1, window, ctx, pool));
    *plane = planes->nelts > 0 ? &APR_ARRAY_IDX(planes, 0, mc_cube_plane) : NULL;
    return MC_OK;
}

static mc_error *
cube_render(mc_rendered *map, mc_source *base, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_source_cube_render");
    const mc_cube_source *source = (const mc_cube_source *)base;
    mc_cube_view view;
    mc_cube_window window;
    mc_cube_plane *plane;
    MC_TRY(mc_cube_source_view(&view, source, wanted, pool));
    int step = reduction(source, &view);
    MC_TRY(choose_window(&window, source, &view, step, wanted, pool));
    MC_TRY(mc_pixels_create(&map->pixels, wanted->width, wanted->height, true, pool));
    mc_pixels_attach(map->pixels, pool);
    if (window.x0 >= window.x1 || window.y0 >= window.y1)
        return MC_OK;
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    mc_error *error = read_plane(&plane, source, wanted, &window, ctx, scratch);
    if (error == MC_OK && plane == NULL)
        error = mc_error_create(scratch, MC_ERR_NOT_FOUND, "cube \"%s\" has nothing at the time that is asked for",
                                source->cube->name);
    if (error == MC_OK && source->resample == MC_NEAREST)
        draw_nearest(map->pixels, plane, source, &window, &view);
    else if (error == MC_OK)
        error = draw_bilinear(map->pixels, plane, source, &window, &view, step, scratch);
    error = mc_error_copy(error, pool);
    apr_pool_destroy(scratch);
    return error;
}

const mc_source_ops mc_source_cube = {
    .type = "cube",
    .keys = cube_keys,
    .help = "Maps of a cube at one date; feature info is what a place was at many.",
    .from_config = cube_from_config,
    .render = cube_render,
    .info = mc_cube_source_info,
};
