/* The source "xyz": a server of tiles that are addressed by level, column and row. */
#include "source/tiles/tile_origin.h"

static const mc_key xyz_keys[] = {
    MC_SOURCE_KEYS(mc_tile_origin, "1"),
    MC_TILE_ORIGIN_KEYS,
    MC_KEY_END,
};

static mc_source *
xyz_source_from_config(const mc_node *node, mc_build *build)
{
    mc_tile_origin *xyz = apr_pcalloc(build->pool, sizeof(*xyz));
    if (!mc_tile_origin_read(xyz, &mc_source_xyz, node, build) || !mc_tile_origin_set_url(xyz, xyz->http->url, build))
        return NULL;
    return &xyz->base.source;
}

const mc_source_ops mc_source_xyz = {
    MC_KIND(
        "xyz", xyz_keys, xyz_source_from_config,
        "A server of tiles. The <url> is a template: {z} level, {x} column from the west, {y} row from the north, "
        "{-y} row from the south (TMS), {q} quadkey, {s} one of <subdomains>, {dim:NAME} the value of a dimension."),
    .connect = mc_tile_origin_connect,
    .no_vector_tiles = mc_tile_origin_no_vector_tiles,
    .render = mc_tile_origin_render,
    .inspect = mc_tile_origin_inspect,
};
