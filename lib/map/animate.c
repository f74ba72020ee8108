/* Maps with animated layers: one picture for each value, as an animated PNG. */
#include "map/plan.h"
#include "mapcache/trace.h"

/* What lies below the first animated layer is drawn once. */
static int
first_animated(const mc_plan *plan)
{
    int first = 0;
    while (plan->layers[first].frames == 0)
        first++;
    return first;
}

static mc_error *
draw_frame(mc_pixels **frame, mc_plan *plan, const mc_pixels *ground, int first, int index, mc_ctx *ctx,
           apr_pool_t *pool)
{
    MC_TRY(mc_ctx_check(ctx, pool));
    MC_TRY(mc_pixels_create(frame, ground->width, ground->height, false, pool));
    mc_pixels_attach(*frame, pool);
    mc_pixels_copy(*frame, 0, 0, ground);
    return mc_plan_draw_layers(*frame, plan, first, plan->layer_count, index, ctx, pool);
}

mc_error *
mc_plan_animate(mc_buf **data, mc_plan *plan, mc_ctx *ctx, apr_pool_t *scratch, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_map_animate");
    const mc_map_request *wanted = plan->wanted;
    apr_int64_t most = wanted->max_pixels > 0 ? wanted->max_pixels : MC_MAX_PIXELS;
    if (plan->frames > mc_frames_max || (apr_int64_t)plan->frames * wanted->width * wanted->height > most)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "width",
                                "an animation of %d frames of %d x %d pixels is over this server's limit", plan->frames,
                                wanted->width, wanted->height);
    mc_pixels *ground;
    int first = first_animated(plan);
    MC_TRY(mc_map_canvas(&ground, wanted, scratch));
    MC_TRY(mc_plan_draw_layers(ground, plan, 0, first, -1, ctx, scratch));
    mc_pixels **frames = apr_palloc(scratch, sizeof(*frames) * (size_t)plan->frames);
    for (int i = 0; i < plan->frames; i++)
        MC_TRY(draw_frame(&frames[i], plan, ground, first, i, ctx, scratch));
    mc_animation animation = { .frames = frames, .count = plan->frames, .delay = MC_FRAME_DELAY };
    return mc_apng_encode(data, &animation, MC_ON_THE_FLY, ctx, pool);
}
