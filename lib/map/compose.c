/* From fetched tiles to the pixels of a map: decode, place, resample. */
#include <math.h>

#include "base/workers.h"
#include "map/map_private.h"
#include "map/plan.h"
#include "mapcache/trace.h"

/* Rows of a strip when a layer is resampled by several threads: about 0.5 ms of work at 1024 columns. */
#define STRIP_ROWS 128

/* Below so many microseconds of work nobody is woken (docs/reference/design.md 3.6). */
#define WORTH_A_HELPER 200

/* A part of an image as an image of its own: jobs that draw into disjoint parts share no state. */
static mc_pixels
make_pixels_view(const mc_pixels *pixels, int x, int y, int width, int height)
{
    return (mc_pixels){ .width = width,
                        .height = height,
                        .stride = pixels->stride,
                        .data = pixels->data + (size_t)y * pixels->stride + (size_t)x * 4,
                        .opacity = MC_OPACITY_UNKNOWN };
}

typedef struct compose_drawing {
    mc_plan *plan;
    mc_plan_layer *layer;
    mc_pixels *target; /* the canvas, or the layer's mosaic */
    int left, top;     /* of the mosaic's corner in the target */
    int frame;         /* -1: all parts of an assembly */
} compose_drawing;

/* Decodes a tile and draws it into its own part of the target. */
static mc_error *
draw_tile(void *baton, int index, mc_ctx *ctx)
{
    compose_drawing *draw = baton;
    mc_plan_tile *entry = &draw->plan->tiles[draw->layer->first + index];
    const mc_grid *grid = draw->layer->link->grid;
    if (!mc_plan_tile_shows(entry))
        return MC_OK;
    int left = entry->left + draw->left, top = entry->top + draw->top;
    int x0 = left > 0 ? left : 0, y0 = top > 0 ? top : 0;
    int x1 = left + grid->tile_width, y1 = top + grid->tile_height;
    x1 = x1 < draw->target->width ? x1 : draw->target->width;
    y1 = y1 < draw->target->height ? y1 : draw->target->height;
    if (x0 >= x1 || y0 >= y1)
        return MC_OK;
    mc_pixels own = make_pixels_view(draw->target, x0, y0, x1 - x0, y1 - y0);
    if (entry->assembled != NULL) {
        mc_assembled_draw(&own, left - x0, top - y0, entry->assembled, draw->frame, ctx);
        return MC_OK;
    }
    const mc_buf *data = entry->tile.data;
    mc_error *error = mc_tile_check(&entry->tile, grid, ctx, ctx->pool);
    if (error == MC_OK)
        error = mc_image_draw(&own, left - x0, top - y0, data->data, data->size, ctx, ctx->pool);
    return mc_tileset_name_broken(error, &entry->request, ctx->pool);
}

/* Microseconds for the tiles of an assembled layer. */
static int
drawing_cost(const compose_drawing *draw)
{
    int sum = 0;
    for (int i = 0; i < draw->layer->count; i++)
        sum += mc_assembled_cost(&draw->layer->assembly->tiles[i]);
    return sum;
}

static mc_error *
draw_tiles(compose_drawing *draw, mc_ctx *ctx, apr_pool_t *pool)
{
    int count = draw->layer->count;
    int helpers = mc_map_helpers(ctx->process->workers, draw->plan->wanted->threaded, count);
    if (draw->layer->assembly != NULL && draw->plan->wanted->threaded != 1 && drawing_cost(draw) < WORTH_A_HELPER)
        helpers = 0;
    if (helpers > 0)
        return mc_workers_run(ctx->process->workers, draw_tile, draw, count, helpers, ctx, pool);
    for (int i = 0; i < count; i++)
        MC_TRY(draw_tile(draw, i, ctx));
    return MC_OK;
}

typedef struct resampling {
    const mc_plan_layer *layer;
    const mc_pixels *mosaic;
    mc_pixels *canvas;
    mc_resample mode;
    double x0, y0;
} resampling;

static mc_error *
resample_strip(void *baton, int index, mc_ctx *ctx)
{
    const resampling *job = baton;
    MC_TRY(mc_ctx_check(ctx, ctx->pool));
    int y = index * STRIP_ROWS;
    int rows = job->canvas->height - y < STRIP_ROWS ? job->canvas->height - y : STRIP_ROWS;
    mc_pixels strip = make_pixels_view(job->canvas, 0, y, job->canvas->width, rows);
    mc_pixels_resample(&strip, job->mosaic, job->x0, job->y0 + y * job->layer->scale_y, job->layer->scale_x,
                       job->layer->scale_y, job->mode);
    return MC_OK;
}

/* JPEG tiles of the grid's size, none missing: they leave no pixel of the mosaic as it was. */
static bool
is_filled(const mc_plan *plan, const mc_plan_layer *layer, apr_pool_t *pool)
{
    int width, height;
    for (int i = layer->first; i < layer->first + layer->count; i++) {
        const mc_tile *tile = &plan->tiles[i].tile;
        if (plan->tiles[i].assembled != NULL || !mc_plan_tile_shows(&plan->tiles[i]) ||
            tile->coding != MC_CODING_JPEG ||
            mc_image_size(&width, &height, tile->data->data, tile->data->size, pool) != MC_OK ||
            width < layer->link->grid->tile_width || height < layer->link->grid->tile_height)
            return false;
    }
    return true;
}

static mc_error *
resample_layer(mc_pixels *canvas, mc_plan *plan, mc_plan_layer *layer, int frame, mc_ctx *ctx, apr_pool_t *pool)
{
    compose_drawing draw = { plan, layer, NULL, 0, 0, frame };
    bool filled = is_filled(plan, layer, pool);
    MC_TRY(mc_pixels_create(&draw.target, layer->width, layer->height, !filled, pool));
    mc_error *error = draw_tiles(&draw, ctx, pool);
    /* The tiles were drawn through views, which the whole knows nothing of. */
    draw.target->opacity = filled ? MC_OPAQUE : MC_OPACITY_UNKNOWN;
    resampling job = { layer, draw.target, canvas, plan->wanted->resample, layer->x0, layer->y0 };
    int strips = (canvas->height + STRIP_ROWS - 1) / STRIP_ROWS;
    if (error == MC_OK && ctx->process->workers != NULL)
        error = mc_workers_run(ctx->process->workers, resample_strip, &job, strips,
                               mc_map_helpers(ctx->process->workers, plan->wanted->threaded, strips), ctx, pool);
    else
        for (int i = 0; i < strips && error == MC_OK; i++)
            error = resample_strip(&job, i, ctx);
    mc_pixels_unref(draw.target);
    return error;
}

mc_error *
mc_plan_draw_layers(mc_pixels *canvas, mc_plan *plan, int first, int end, int frame, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int i = first; i < end; i++) {
        mc_plan_layer *layer = &plan->layers[i];
        if (layer->count == 0)
            continue;
        int own = layer->frames == 0 ? -1 : frame < layer->frames ? frame : layer->frames - 1;
        MC_SPAN(ctx, "mapcache_tileset_assemble_map_tiles");
        if (layer->exact) {
            compose_drawing draw = { plan, layer, canvas, (int)lround(-layer->x0), (int)lround(-layer->y0), own };
            MC_TRY(draw_tiles(&draw, ctx, pool));
        } else {
            MC_TRY(resample_layer(canvas, plan, layer, own, ctx, pool));
        }
    }
    canvas->opacity = MC_OPACITY_UNKNOWN;
    return MC_OK;
}

mc_error *
mc_plan_draw(mc_pixels *canvas, mc_plan *plan, mc_ctx *ctx, apr_pool_t *pool)
{
    /* A still of an animation shows its end, which a stack has on top. */
    return mc_plan_draw_layers(canvas, plan, 0, plan->layer_count, plan->frames - 1, ctx, pool);
}

bool
mc_map_ground(uint8_t bgra[4], const mc_map_request *wanted)
{
    const uint8_t white[3] = { 255, 255, 255 };
    const uint8_t *rgb = wanted->background_set ? wanted->background : white;
    for (int i = 0; i < 3; i++)
        bgra[i] = rgb[2 - i];
    bgra[3] = 255;
    return wanted->format->type == MC_FORMAT_JPEG || (wanted->background_set && !wanted->transparent);
}

mc_error *
mc_map_canvas(mc_pixels **canvas, const mc_map_request *wanted, apr_pool_t *pool)
{
    uint8_t bgra[4];
    MC_TRY(mc_pixels_create(canvas, wanted->width, wanted->height, true, pool));
    mc_pixels_attach(*canvas, pool);
    if (mc_map_ground(bgra, wanted))
        mc_pixels_fill(*canvas, bgra);
    return MC_OK;
}
