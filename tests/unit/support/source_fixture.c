#include "source_fixture.h"

mc_build source_build;

void
source_fixture_reset(void)
{
    source_build = config_build();
}

mc_source *
source_from_text(const char *xml)
{
    if (source_build.pool != pool)
        source_fixture_reset();
    mc_source *source = NULL;
    for (const mc_node *node = mc_node_child(config_root(xml), "source"); node != NULL; node = mc_node_next(node)) {
        source = mc_source_from_config(node, &source_build);
        if (source != NULL)
            apr_hash_set(source_build.sources, source->name, APR_HASH_KEY_STRING, source);
    }
    return source;
}

void
source_refused(const char *xml, const char *words)
{
    source_fixture_reset();
    ck_assert_msg(source_from_text(xml) == NULL, "accepted: %s", xml);
    mc_error *error = mc_diagnostics_error(source_build.diagnostics, pool);
    ck_assert_msg(error != MC_OK, "no complaint: %s", xml);
    ck_assert_msg(strstr(error->message, words) != NULL, "\"%s\" is not in: %s", words, error->message);
}

const mc_grid fixture_mercator = {
    .name = "g",
    .srs = "EPSG:3857",
    .extent = { -20037508.3427892, -20037508.3427892, 20037508.3427892, 20037508.3427892 },
    .metres_per_unit = 1,
    .tile_width = 256,
    .tile_height = 256,
    .epsg = 3857,
};
const mc_grid fixture_wgs84 = {
    .name = "WGS84",
    .srs = "EPSG:4326",
    .extent = { -180, -90, 180, 90 },
    .metres_per_unit = 111118.7516,
    .tile_width = 256,
    .tile_height = 256,
    .epsg = 4326,
    .axes_swapped = true,
};
mc_render
fixture_map(const mc_grid *grid, double minx, double miny, double maxx, double maxy, int width, int height)
{
    return (mc_render){
        .tileset = "roads & rails", .grid = grid, .box = { minx, miny, maxx, maxy }, .width = width, .height = height
    };
}
