/* A source from configuration text, and a map to ask it for. */
#ifndef MC_UNIT_SOURCE_FIXTURE_H
#define MC_UNIT_SOURCE_FIXTURE_H

#include <apr_strings.h>
#include <string.h>

#include "mapcache/source.h"
#include "unit.h"

static mc_build build;

__attribute__((unused)) static void
fixture_reset(void)
{
    build = (mc_build){ .pool = pool, .diagnostics = mc_diagnostics_create(pool), .sources = apr_hash_make(pool) };
}

/* Builds every <source> of the text, in order; returns the last, NULL if it was refused. */
__attribute__((unused)) static mc_source *
fixture_sources(const char *xml)
{
    if (build.pool != pool)
        fixture_reset();
    const char *text = apr_pstrcat(pool, "<mapcache>", xml, "</mapcache>", NULL);
    mc_node *root;
    ck_ok(mc_config_parse_text(&root, "test.xml", text, strlen(text), pool));
    mc_source *source = NULL;
    for (const mc_node *node = mc_node_child(root, "source"); node != NULL; node = mc_node_next(node)) {
        source = mc_source_from_config(node, &build);
        if (source != NULL)
            apr_hash_set(build.sources, source->name, APR_HASH_KEY_STRING, source);
    }
    return source;
}

/* Whether the text is refused with a complaint that holds `words`. */
__attribute__((unused)) static void
fixture_refused(const char *xml, const char *words)
{
    fixture_reset();
    ck_assert_msg(fixture_sources(xml) == NULL, "accepted: %s", xml);
    mc_error *error = mc_diagnostics_error(build.diagnostics, pool);
    ck_assert_msg(error != MC_OK, "no complaint: %s", xml);
    ck_assert_msg(strstr(error->message, words) != NULL, "\"%s\" is not in: %s", words, error->message);
}

static const mc_grid fixture_mercator = {
    .name = "g",
    .srs = "EPSG:3857",
    .extent = { -20037508.3427892, -20037508.3427892, 20037508.3427892, 20037508.3427892 },
    .metres_per_unit = 1,
    .tile_width = 256,
    .tile_height = 256,
    .epsg = 3857,
};

static const mc_grid fixture_wgs84 = {
    .name = "WGS84",
    .srs = "EPSG:4326",
    .extent = { -180, -90, 180, 90 },
    .metres_per_unit = 111118.7516,
    .tile_width = 256,
    .tile_height = 256,
    .epsg = 4326,
    .axes_swapped = true,
};

__attribute__((unused)) static mc_render
fixture_map(const mc_grid *grid, double minx, double miny, double maxx, double maxy, int width, int height)
{
    return (mc_render){
        .tileset = "roads & rails", .grid = grid, .box = { minx, miny, maxx, maxy }, .width = width, .height = height
    };
}

#endif
