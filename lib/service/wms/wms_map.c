/* GetMap: one stored tile, several tiles at one place, or a map (docs/reference/services.md 4.1 to 4.4). */
#include <apr_strings.h>
#include <string.h>

#include "service/wms/wms.h"

typedef struct map_parts {
    mc_wms_view view;
    mc_map_request map;
    const char *layers, *styles; /* as requested */
    bool drawn;                  /* a layer is drawn from vector data */
    bool format_named_by_client;
} map_parts;

static mc_error *
add_wms_map_layer(map_parts *parts, const char *name, const mc_call *call, apr_pool_t *pool)
{
    mc_map_request *map = &parts->map;
    const mc_wms_view *view = &parts->view;
    mc_tileset *tileset = mc_call_tileset(call, name, pool);
    if (tileset == NULL || !mc_wms_offers(mc_wms_of(call), tileset))
        return mc_error_located(pool, MC_ERR_LAYER_NOT_DEFINED, "layers", "layer \"%s\" is not known", name);
    MC_TRY(mc_tileset_check_built(tileset, pool));
    if (map->count == MC_LAYERS_MAX)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "layers", "more than %d layers", MC_LAYERS_MAX);
    const mc_grid_link *link;
    if (map->count == 0 || mc_wms_of(call)->full_wms == MC_WMS_FORWARD) {
        MC_TRY(mc_wms_link(&link, call, view, tileset, pool));
    } else {
        const mc_grid *grid = map->layers[0].link->grid;
        link = mc_tileset_link(tileset, grid->name);
        if (link == NULL)
            return mc_error_located(pool, MC_ERR_INVALID_CRS, view->v130 ? "crs" : "srs",
                                    "layer %s has no grid %s, on which layer %s is drawn", name, grid->name,
                                    map->layers[0].tileset->name);
    }
    parts->drawn |= mc_tileset_has_legend(tileset);
    map->layers[map->count++] =
        (mc_map_layer){ .tileset = tileset, .link = link, .values = mc_wms_values(call, tileset, pool) };
    return MC_OK;
}

static mc_error *
read_map_layers(mc_param_reader *reader)
{
    map_parts *parts = reader->target;
    const mc_call *call = reader->call;
    apr_pool_t *pool = reader->pool;
    const char *text = parts->layers;
    size_t most = 1;
    for (const char *at = text; *at != '\0' && most < MC_LAYERS_MAX; at++)
        most += *at == ',';
    parts->map.layers = apr_pcalloc(pool, most * sizeof(mc_map_layer));
    if (call->config->mode == MC_MODE_COMBINED_MIRROR && *text != '\0')
        return add_wms_map_layer(parts, text, call, pool);
    char *rest = apr_pstrdup(pool, text);
    for (char *name = strsep(&rest, ","); name != NULL; name = strsep(&rest, ","))
        if (*name != '\0' || call->service->strict) /* an empty name is passed over, as in MapCache */
            MC_TRY(add_wms_map_layer(parts, name, call, pool));
    return parts->map.count == 0 ? mc_param_refuse(reader) : MC_OK;
}

/* Finds the palette of a layer by its style. Names that are no style are refused by a strict service, of drawn layers,
 * which have one style of their own, and of layers with palettes; else the name is not read, as in MapCache. */
static bool
choose_map_style(mc_map_layer *layer, const char *name, bool strict)
{
    return mc_tileset_find_style(&layer->style, layer->tileset, name) ||
           (!strict && !mc_tileset_has_legend(layer->tileset) && layer->tileset->palette_count == 0);
}

static mc_error *
read_map_styles(mc_param_reader *reader)
{
    map_parts *parts = reader->target;
    bool strict = reader->call->service->strict;
    int count = 0, layers = parts->map.count;
    if (parts->styles == NULL)
        return MC_OK;
    char *rest = apr_pstrdup(reader->pool, parts->styles);
    for (char *style = strsep(&rest, ","); style != NULL; style = strsep(&rest, ","), count++) {
        bool known = count < layers ? choose_map_style(&parts->map.layers[count], style, strict)
                                    : !strict || *style == '\0' || strcmp(style, "default") == 0;
        if (!known) {
            reader->text = style;
            return mc_param_refuse(reader);
        }
    }
    if (strict && *parts->styles != '\0' && count != layers)
        return mc_error_located(reader->pool, MC_ERR_STYLE_NOT_DEFINED, "styles", "STYLES has %d items for %d layers",
                                count, layers);
    return MC_OK;
}

const mc_param_row mc_wms_map_params[] = {
    MC_PARAM_LIST("LAYERS", offsetof(map_parts, layers), "Names of tilesets, the lowest first.",
                  .flags = MC_PARAM_REQUIRED, .locator = "layers", .kind = MC_ERR_LAYER_NOT_DEFINED,
                  .refusal = "LAYERS \"{value}\" names no layer"),
    MC_PARAM_STEP(read_map_layers),
    MC_PARAM_LIST("STYLES", offsetof(map_parts, styles),
                  "A style for each layer: `default`, or nothing, which means the same, or the name of one of its "
                  "palettes. Other names are refused by a strict service, of layers that are drawn and of layers with "
                  "palettes.",
                  .flags = MC_PARAM_STRICT, .locator = "styles", .kind = MC_ERR_STYLE_NOT_DEFINED,
                  .refusal = "style \"{value}\" is not known"),
    MC_PARAM_STEP(read_map_styles),
    MC_PARAM_END,
};

/* Whether the tile's bytes are what the client may expect: a strict service promises the requested format and
 * background also where one tile would do, and drawn layers are to be had as PNG. */
static bool
tile_may_pass(const map_parts *parts, const mc_call *call)
{
    const mc_map_request *map = &parts->map;
    const mc_format *stored = map->layers[0].tileset->format;
    for (int i = 0; i < map->count; i++)
        if (!mc_tileset_is_image(map->layers[i].tileset))
            return false;
    if (!call->service->strict)
        return map->count > 1 || !parts->drawn || !parts->format_named_by_client ||
               (stored != NULL && stored->type == map->format->type);
    if (map->count > 1 || stored == NULL || stored->mime == NULL || map->format->mime == NULL ||
        strcmp(stored->mime, map->format->mime) != 0)
        return false;
    return stored->type == MC_FORMAT_JPEG || map->transparent;
}

/* Layers that are stored for fine screens are taken from there. */
static void
use_dense_links(mc_map_request *map)
{
    int density = (int)map->density;
    for (int i = 0; i < map->count && density == map->density && density > 1; i++) {
        const mc_grid_link *dense = mc_tileset_dense_link(map->layers[i].tileset, map->layers[i].link, density);
        if (dense != NULL)
            map->layers[i].link = dense;
    }
}

/* A tile that is drawn for another screen is no answer. */
static bool
density_fits(const mc_map_request *map)
{
    for (int i = 0; i < map->count; i++) {
        const mc_tileset *tileset = map->layers[i].tileset;
        int stored = map->layers[i].link->grid->density;
        if (tileset->source != NULL && tileset->source->any_srs && (stored > 0 ? stored : 1) != map->density)
            return false;
    }
    return true;
}

static bool
find_cell(int *z, int *x, int *y, const mc_map_request *map)
{
    const mc_grid *grid = map->layers[0].link->grid;
    for (int i = 1; i < map->count; i++)
        if (map->layers[i].link->grid != grid)
            return false;
    return mc_grid_find_tile(grid, &map->box, map->width, map->height, z, x, y);
}

/* The tile of one layer in the format that the client names, where the tileset has it in that one, too. */
static void
use_stored_format(mc_tile_stack *stack, const map_parts *parts)
{
    const char *type = mc_coding_mime(mc_format_coding(parts->map.format));
    mc_tileset *variant = stack->count != 1 || !parts->format_named_by_client || type == NULL
                              ? NULL
                              : mc_tileset_variant_of_type(stack->tiles[0].tileset, type);
    if (variant != NULL)
        stack->tiles[0].tileset = variant;
}

/* True and `stack` filled if the map is exactly one cell of the grid, in which at least one layer has a tile. */
static bool
as_tile(mc_tile_stack *stack, const map_parts *parts, const mc_call *call, apr_pool_t *pool)
{
    const mc_map_request *map = &parts->map;
    int z, x, y;
    if (!tile_may_pass(parts, call) || !density_fits(map) || !find_cell(&z, &x, &y, map))
        return false;
    *stack = (mc_tile_stack){
        .tiles = apr_pcalloc(pool, (size_t)map->count * sizeof(mc_tile_request)),
        .count = map->count,
        .format = map->format,
    };
    if (call->service->strict) {
        stack->exact = map->format;
        stack->mime = map->format->mime;
    } else if (parts->drawn && parts->format_named_by_client) {
        stack->exact = map->format; /* one layer of several may be all that shows, and is stored in its own format */
    }
    for (int i = 0; i < map->count; i++)
        stack->tiles[i] = (mc_tile_request){ map->layers[i].tileset, map->layers[i].link, z, x, y,
                                             map->layers[i].values,  map->layers[i].style };
    use_stored_format(stack, parts);
    return mc_stack_clip(stack, pool) == MC_OK;
}

/* full_wms error: maps that are one tile are served, also where a strict service has to make another image of it. */
static bool
is_map_refused(const map_parts *parts, const mc_call *call)
{
    int z, x, y;
    if (mc_wms_of(call)->full_wms != MC_WMS_ERROR)
        return false;
    return !call->service->strict || !find_cell(&z, &x, &y, &parts->map);
}

/* A box beside the data is an empty map, not an error (docs/reference/conformance.md 1). */
static bool
overlaps_data(const mc_map_request *map)
{
    for (int i = 0; i < map->count; i++)
        if (mc_extent_intersects(&map->box, &map->layers[i].link->extent))
            return true;
    return false;
}

/* Palettes are those of stored tiles: a map in such a style is made of tiles, also where maps are asked of sources.
 * MC_ERR_INVALID_CRS where a layer has no tiles in the map's CRS. */
static mc_error *
choose_map_mode(map_parts *parts, const mc_wms *wms, apr_pool_t *pool)
{
    mc_map_request *map = &parts->map;
    map->mode = wms->full_wms == MC_WMS_ERROR ? MC_WMS_ASSEMBLE : (mc_full_wms)wms->full_wms;
    for (int i = 0; i < map->count; i++)
        if (map->layers[i].style != NULL)
            map->mode = MC_WMS_ASSEMBLE;
    for (int i = 0; map->mode != (mc_full_wms)wms->full_wms && i < map->count; i++)
        if (map->layers[i].link->grid->level_count == 0)
            return mc_error_located(pool, MC_ERR_INVALID_CRS, parts->view.v130 ? "crs" : "srs",
                                    "layer %s has no tiles in this CRS, of which a map in style \"%s\" could be made",
                                    map->layers[i].tileset->name,
                                    map->layers[i].style == NULL ? "default" : map->layers[i].style->name);
    return MC_OK;
}

static mc_error *
finish_map(map_parts *parts, const mc_call *call, apr_pool_t *pool)
{
    const mc_wms *wms = mc_wms_of(call);
    mc_map_request *map = &parts->map;
    if (is_map_refused(parts, call))
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "only maps that are one tile of a grid are served");
    MC_TRY(choose_map_mode(parts, wms, pool));
    for (int i = 0; map->mode == MC_WMS_FORWARD && i < map->count; i++)
        if (map->layers[i].tileset->source == NULL)
            return mc_error_create(pool, MC_ERR_NOT_FOUND, "layer %s has no source for maps",
                                   map->layers[i].tileset->name);
    if ((apr_int64_t)map->width * map->height > wms->max_pixels / map->count)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "width",
                                "a map of %d x %d pixels and %d layers is over this server's limit", map->width,
                                map->height, map->count);
    map->resample = (mc_resample)wms->resample;
    map->max_pixels = wms->max_pixels;
    map->format_named = wms->format_named && !parts->format_named_by_client;
    map->threaded = call->config->threaded_fetching;
    map->empty_is_map = call->service->strict || !overlaps_data(map);
    return MC_OK;
}

mc_error *
mc_wms_get_map(mc_request *request, const mc_call *call, apr_pool_t *pool)
{
    map_parts parts = { 0 };
    mc_map_request *map = &parts.map;
    MC_TRY(mc_wms_view_parse(&parts.view, call, pool));
    map->box = parts.view.box;
    map->width = parts.view.width;
    map->height = parts.view.height;
    map->density = parts.view.screen.density;
    MC_TRY(mc_params_read(&parts, mc_wms_map_params, call, pool));
    use_dense_links(map);
    MC_TRY(mc_wms_format(&map->format, &parts.format_named_by_client, parts.drawn, call, pool));
    MC_TRY(mc_wms_background(map, call, pool));
    mc_tile_stack stack;
    if (as_tile(&stack, &parts, call, pool)) {
        request->kind = MC_REQUEST_TILE;
        request->u.tile = stack;
        return MC_OK;
    }
    MC_TRY(finish_map(&parts, call, pool));
    request->kind = MC_REQUEST_MAP;
    request->u.map = *map;
    return MC_OK;
}
