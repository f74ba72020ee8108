/* The source "wmts": tiles of a WMTS, asked for by KVP or by the RESTful template of its capabilities. */
#include <apr_strings.h>
#include <string.h>

#include "source/tiles/tile_origin.h"
#include "text/text.h"

static const mc_key wmts_source_keys[] = {
    MC_SOURCE_KEYS(mc_tile_origin, "1"),
    MC_TILE_ORIGIN_KEYS,
    MC_KEY_TEXT("layer", offsetof(mc_tile_origin, layer), "Identifier of the layer.",
                .flags = MC_KEY_REQUIRED | MC_KEY_OURS),
    MC_KEY_TEXT("style", offsetof(mc_tile_origin, style), "Identifier of the style.", .flags = MC_KEY_OURS,
                .fallback = "default"),
    MC_KEY_TEXT("matrix_set", offsetof(mc_tile_origin, matrix_set), "Identifier of the tile matrix set.",
                .flags = MC_KEY_REQUIRED | MC_KEY_OURS),
    MC_KEY_TEXT("matrix", offsetof(mc_tile_origin, matrix),
                "Identifiers of the tile matrices: a pattern with {z} for the number of the level (EPSG:3857:{z}), or "
                "one for each level of the grid, separated by blanks, the coarsest first. By default the number.",
                .flags = MC_KEY_OURS),
    MC_KEY_TEXT("format", offsetof(mc_tile_origin, media_type), "Media type of the tiles, for KVP.",
                .flags = MC_KEY_OURS, .fallback = "image/png"),
    MC_KEY_END,
};

static const char *
encode_value(const char *value, apr_pool_t *pool)
{
    return mc_url_encode(value, NULL, true, false, pool);
}

/* `text` with every `name` (braces included, in any case) replaced. */
static const char *
replace_name(const char *text, const char *name, const char *value, apr_pool_t *pool)
{
    const char *result = "";
    size_t length = strlen(name);
    for (;;) {
        const char *found = strcasestr(text, name);
        if (found == NULL)
            return apr_pstrcat(pool, result, text, NULL);
        result = apr_pstrcat(pool, result, apr_pstrmemdup(pool, text, (size_t)(found - text)), value, NULL);
        text = found + length;
    }
}

/* An address with names in braces is RESTful (OGC 07-057r7, 10.2); any other one gets parameters. */
static const char *
template_of_wmts(mc_tile_origin *wmts, apr_pool_t *pool)
{
    const char *url = wmts->http->url;
    const char *layer = encode_value(wmts->layer, pool), *style = encode_value(wmts->style, pool);
    const char *set = encode_value(wmts->matrix_set, pool);
    if (strstr(url, "{TileMatrix}") != NULL || strcasestr(url, "{tilecol}") != NULL) {
        wmts->url_rules.dimension_names = true;
        url = replace_name(url, "{Layer}", layer, pool);
        url = replace_name(url, "{Style}", style, pool);
        return replace_name(url, "{TileMatrixSet}", set, pool);
    }
    wmts->url_rules.append_dimensions = true;
    char last = url[strlen(url) - 1];
    const char *separator = strchr(url, '?') == NULL ? "?" : last == '?' || last == '&' ? "" : "&";
    return apr_pstrcat(pool, url, separator, "SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER=", layer,
                       "&STYLE=", style, "&FORMAT=", encode_value(wmts->media_type, pool), "&TILEMATRIXSET=", set,
                       "&TILEMATRIX={TileMatrix}&TILEROW={TileRow}&TILECOL={TileCol}", NULL);
}

static mc_source *
wmts_source_from_config(const mc_node *node, mc_build *build)
{
    mc_tile_origin *wmts = apr_pcalloc(build->pool, sizeof(*wmts));
    if (!mc_tile_origin_read(wmts, &mc_source_wmts, node, build) ||
        !mc_tile_origin_set_url(wmts, template_of_wmts(wmts, build->pool), build))
        return NULL;
    return &wmts->base.source;
}

const mc_source_ops mc_source_wmts = {
    MC_KIND("wmts", wmts_source_keys, wmts_source_from_config,
            "A WMTS. The <url> is the address for KVP, or the template of a ResourceURL: {TileMatrix}, {TileRow} and "
            "{TileCol}, and {Style}, {TileMatrixSet} and names of dimensions where it has them."),
    .connect = mc_tile_origin_connect,
    .no_vector_tiles = mc_tile_origin_no_vector_tiles,
    .render = mc_tile_origin_render,
    .inspect = mc_tile_origin_inspect,
};
