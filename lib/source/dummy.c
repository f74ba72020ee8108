/* The source "dummy": opaque white maps, to try a configuration without an origin
 * (docs/reference/configuration.md 3.4). */
#include <apr_strings.h>
#include <string.h>

#include "source/source_base.h"

typedef struct dummy_source {
    mc_source_base base;
} dummy_source;

static const mc_key dummy_keys[] = { MC_SOURCE_KEYS(dummy_source, "0"), MC_KEY_END };

static mc_source *
dummy_from_config(const mc_node *node, mc_build *build)
{
    dummy_source *dummy = apr_pcalloc(build->pool, sizeof(*dummy));
    if (!mc_source_read(&dummy->base, &mc_source_dummy, node, build))
        return NULL;
    dummy->base.source.needs_format = true;
    return &dummy->base.source;
}

static mc_error *
dummy_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)source;
    (void)ctx;
    static const uint8_t white[4] = { 255, 255, 255, 255 };
    MC_TRY(mc_pixels_create(&map->pixels, wanted->width, wanted->height, false, pool));
    mc_pixels_attach(map->pixels, pool);
    mc_pixels_fill(map->pixels, white);
    map->pixels->opacity = MC_OPAQUE;
    return MC_OK;
}

const mc_source_ops mc_source_dummy = {
    MC_KIND("dummy", dummy_keys, dummy_from_config, "White maps, for trials."),
    .render = dummy_render,
};
