/*
 * The source "mapserver" of MapCache draws map files in the server's own process. This build does not have it: the
 * configuration loads, stored tiles are served, and a map that would have to be drawn is answered with a clear error.
 */
#include <apr_strings.h>

#include "source/source_base.h"

typedef struct mapserver_source {
    mc_source_base base;
    const char *mapfile;
} mapserver_source;

static const mc_key mapserver_keys[] = {
    MC_SOURCE_KEYS(mapserver_source, "0"),
    MC_KEY_TEXT("mapfile", offsetof(mapserver_source, mapfile), "The map file.",
                .flags = MC_KEY_REQUIRED | MC_KEY_WORKDIR),
    MC_KEY_END,
};

static mc_source *
mapserver_from_config(const mc_node *node, mc_build *build)
{
    mapserver_source *mapserver = apr_pcalloc(build->pool, sizeof(*mapserver));
    if (!mc_source_read(&mapserver->base, &mc_source_mapserver, node, build))
        return NULL;
    mc_complain(build->diagnostics, MC_NOT_BUILT, node,
                "source \"%s\": this build has no type \"mapserver\"; reach the map file through a source of type "
                "\"wms\"",
                mapserver->base.source.name);
    return &mapserver->base.source;
}

static mc_error *
mapserver_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)map;
    (void)wanted;
    (void)ctx;
    return mc_error_create(pool, MC_ERR_NOT_BUILT, "source \"%s\": this build has no type \"mapserver\"", source->name);
}

const mc_source_ops mc_source_mapserver = {
    MC_KIND("mapserver", mapserver_keys, mapserver_from_config,
            "Map files, drawn in the server's own process; known, not built."),
    .render = mapserver_render,
};
