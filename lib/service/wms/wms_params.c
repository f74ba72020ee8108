/* Parameters that WMS requests have in common: version, place, size, format, background, dimensions. */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "grid/earth.h"
#include "service/wms/wms.h"
#include "text/text.h"

enum { DENSITY_MAX = 8 };

const char *
mc_wms_version(const mc_call *call)
{
    const char *version = mc_param(call, "VERSION");
    if (version == NULL || *version == '\0')
        version = mc_param(call, "WMTVER");
    return version != NULL && *version != '\0' ? version : NULL;
}

mc_error *
mc_wms_omitted(const mc_call *call, const char *name, apr_pool_t *pool)
{
    if (!call->service->strict)
        return MC_OK;
    return mc_error_located(pool, MC_ERR_MISSING_PARAMETER, name, "the parameter %s is missing", name);
}

/* WMS 1.3.0 6.2.4: from 1.3.0 on: 1.3.0. Below: 1.1.1, the next lower or the lowest that we have. */
static bool
negotiate_130(const char *version, bool without)
{
    if (version == NULL)
        return without;
    char *end;
    long major = strtol(version, &end, 10);
    if (end == version || *end != '.' || end[1] < '0' || end[1] > '9')
        return without;
    return major > 1 || (major == 1 && strtol(end + 1, NULL, 10) >= 3);
}

/* Without a version that can be read, capabilities of a strict service are 1.3.0 as the standard wants; all else is
 * 1.1.1 as MapCache has it. */
bool
mc_wms_is_130(const mc_call *call)
{
    const char *operation = mc_param(call, "REQUEST");
    bool capabilities = operation != NULL && strcasecmp(operation, "GetCapabilities") == 0;
    return negotiate_130(mc_wms_version(call), capabilities && call->service->strict);
}

static bool
is_view_130(const mc_param_reader *reader)
{
    return ((const mc_wms_view *)reader->target)->v130;
}

static bool
is_view_111(const mc_param_reader *reader)
{
    return !is_view_130(reader);
}

static int
most_side(const mc_param_reader *reader)
{
    return mc_wms_of(reader->call)->maxsize;
}

static mc_error *
check_version(mc_param_reader *reader)
{
    return reader->text == NULL || mc_is_version(reader->text) ? MC_OK : mc_param_refuse(reader);
}

/* The box in x, y order. */
static mc_error *
turn_box(mc_param_reader *reader)
{
    mc_wms_view *view = reader->target;
    bool xy_order = false;
    view->epsg = mc_crs_epsg(view->srs, &xy_order);
    if (view->v130 && !xy_order && mc_crs_axes_swapped(view->epsg))
        view->box = (mc_extent){ view->box.miny, view->box.minx, view->box.maxy, view->box.maxx };
    return MC_OK;
}

/* dpi:NUMBER in GeoServer's list, "key:value;key:value"; 0: not there. */
static double
dpi_of_options(const char *options, apr_pool_t *pool)
{
    for (const char *at = options; at != NULL && *at != '\0';) {
        double dpi;
        if (strncasecmp(at, "dpi:", 4) == 0)
            return mc_parse_double(&dpi, apr_pstrmemdup(pool, at + 4, strcspn(at + 4, ";"))) ? dpi : 0;
        at = strchr(at, ';');
        at = at == NULL ? NULL : at + 1;
    }
    return 0;
}

/*
 * How many pixels the client has for one of a style. Clients reckon with 90 (OpenLayers, GeoServer) or 96 (QGIS) for a
 * screen with one, and multiply: so what is near a whole number is that number, and 72 is an old screen, not a coarse
 * one.
 */
static mc_error *
find_density(mc_param_reader *reader)
{
    mc_wms_screen *screen = reader->target;
    double dpi = screen->dpi > 0 ? screen->dpi : screen->map_resolution > 0 ? screen->map_resolution : 0;
    if (dpi == 0)
        dpi = dpi_of_options(screen->format_options, reader->pool);
    double density = dpi * MC_PIXEL_METRES / 0.0254, whole = rint(density);
    if (density > DENSITY_MAX && !reader->call->service->strict)
        density = whole = DENSITY_MAX; /* print layouts name more, also for layers that do not depend on it */
    if (!(density <= DENSITY_MAX))
        return mc_error_located(reader->pool, MC_ERR_INVALID_PARAMETER, "dpi", "%g dots to the inch are more than %d",
                                dpi, (int)(DENSITY_MAX * 0.0254 / MC_PIXEL_METRES));
    screen->density = density < 1 ? 1 : fabs(density - whole) <= 0.08 * whole ? whole : density;
    return MC_OK;
}

const mc_param_row mc_wms_view_params[] = {
    MC_PARAM_TEXT("VERSION", offsetof(mc_wms_view, version),
                  "The version of the protocol: below 1.3.0 the request is read as 1.1.1, else as 1.3.0.",
                  .other = "WMTVER", .flags = MC_PARAM_STRICT | MC_PARAM_EMPTY, .locator = "version",
                  .refusal = "VERSION \"{value}\" is not a version such as 1.3.0"),
    MC_PARAM_STEP(check_version),
    MC_PARAM_BOX(
        "BBOX", offsetof(mc_wms_view, box),
        "The area in units of the CRS: minx,miny,maxx,maxy, in WMS 1.3.0 with the axes in the order of the CRS.",
        .flags = MC_PARAM_REQUIRED, .locator = "bbox"),
    MC_PARAM_INTEGER("width", offsetof(mc_wms_view, width), "Pixels from left to right.", .flags = MC_PARAM_REQUIRED,
                     .min = 1, .most = most_side, .limit = "the service's <maxsize>", .locator = "width",
                     .refusal = "{name} \"{value}\" is not a number of pixels",
                     .over = "{name} {value} is over this server's limit of {max}"),
    MC_PARAM_INTEGER("height", offsetof(mc_wms_view, height), "Pixels from top to bottom.", .flags = MC_PARAM_REQUIRED,
                     .min = 1, .most = most_side, .limit = "the service's <maxsize>", .locator = "height",
                     .refusal = "{name} \"{value}\" is not a number of pixels",
                     .over = "{name} {value} is over this server's limit of {max}"),
    MC_PARAM_CRS("crs", offsetof(mc_wms_view, srs),
                 "The coordinate reference system of the map, in WMS 1.3.0; one of those of the layer's grids.",
                 .applies = is_view_130, .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY, .locator = "crs",
                 .kind = MC_ERR_INVALID_CRS),
    MC_PARAM_CRS("srs", offsetof(mc_wms_view, srs), "The same in WMS 1.1.1.", .applies = is_view_111,
                 .flags = MC_PARAM_REQUIRED | MC_PARAM_EMPTY, .locator = "srs", .kind = MC_ERR_INVALID_CRS),
    MC_PARAM_STEP(turn_box),
    MC_PARAM_END,
};

const mc_param_row mc_wms_screen_params[] = {
    MC_PARAM_NUMBER("DPI", offsetof(mc_wms_screen, dpi),
                    "Dots to the inch of the client's screen, up to 725 (more is 725 where the service is not strict): "
                    "symbols and text of drawn layers are so much "
                    "larger. 90 and 96, as well as less, are a screen with one pixel for a pixel of a style.",
                    .flags = MC_PARAM_EMPTY | MC_PARAM_LENIENT, .max = 1e9),
    MC_PARAM_NUMBER("MAP_RESOLUTION", offsetof(mc_wms_screen, map_resolution),
                    "The same, as MapServer's clients write it.", .flags = MC_PARAM_EMPTY | MC_PARAM_LENIENT,
                    .max = 1e9),
    MC_PARAM_TEXT("FORMAT_OPTIONS", offsetof(mc_wms_screen, format_options),
                  "`dpi:180`: the same, as GeoServer's clients write it; other options are passed over.",
                  .other = "LEGEND_OPTIONS", .flags = MC_PARAM_EMPTY),
    MC_PARAM_STEP(find_density),
    MC_PARAM_END,
};

mc_error *
mc_wms_screen_parse(mc_wms_screen *screen, const mc_call *call, apr_pool_t *pool)
{
    return mc_params_read(screen, mc_wms_screen_params, call, pool);
}

mc_error *
mc_wms_view_parse(mc_wms_view *view, const mc_call *call, apr_pool_t *pool)
{
    *view = (mc_wms_view){ .v130 = mc_wms_is_130(call) };
    MC_TRY(mc_params_read(view, mc_wms_view_params, call, pool));
    return mc_wms_screen_parse(&view->screen, call, pool);
}

/* "auto:42001,<unit>,<lon>,<lat>": the UTM zone of the longitude, north or south (WMS 1.1.1 annex E). */
static bool
parse_auto_utm(int *zone, bool *north, const char *srs)
{
    double numbers[3];
    int found = 0;
    if (strncasecmp(srs, "auto:42001,", 11) != 0 || !mc_parse_doubles(numbers, 3, &found, srs + 11, ",") ||
        found != 3 || !(fabs(numbers[1]) <= 180) || !(fabs(numbers[2]) <= 90))
        return false;
    *zone = (int)floor((numbers[1] + 180) / 6);
    if (*zone > 59)
        *zone = 59;
    *north = numbers[2] >= 0;
    return true;
}

static bool
same_auto_utm(const char *a, const char *b)
{
    int zone_a, zone_b;
    bool north_a, north_b;
    return parse_auto_utm(&zone_a, &north_a, a) && parse_auto_utm(&zone_b, &north_b, b) && zone_a == zone_b &&
           north_a == north_b;
}

/* CRS:84 and its like: the EPSG:4326 grid is in lon, lat order inside. */
static bool
same_crs84(const mc_wms_view *view, const mc_grid *grid)
{
    bool xy_order = false;
    return grid->epsg == 4326 && mc_crs_epsg(view->srs, &xy_order) == 4326 && xy_order;
}

mc_grid_link *
mc_wms_view_link(const mc_wms_view *view, const mc_tileset *tileset)
{
    for (int i = 0; i < tileset->link_count; i++)
        if (strcasecmp(tileset->links[i]->grid->srs, view->srs) == 0)
            return tileset->links[i];
    for (int i = 0; i < tileset->link_count; i++) {
        const mc_grid *grid = tileset->links[i]->grid;
        if (mc_grid_has_srs(grid, view->srs) || same_crs84(view, grid) || same_auto_utm(view->srs, grid->srs))
            return tileset->links[i];
    }
    return NULL;
}

bool
mc_wms_offers(const mc_wms *wms, const mc_tileset *tileset)
{
    if (mc_tileset_is_image(tileset))
        return true;
    return wms->full_wms == MC_WMS_FORWARD && tileset->format->type == MC_FORMAT_MVT && tileset->source != NULL &&
           tileset->source->no_images == NULL;
}

const char **
mc_wms_values(const mc_call *call, const mc_tileset *tileset, apr_pool_t *pool)
{
    const char **values = mc_tileset_defaults(tileset, pool);
    for (int i = 0; i < tileset->dimension_count; i++) {
        const mc_dimension *dimension = tileset->dimensions[i];
        const char *text = NULL;
        if (strcasecmp(dimension->name, "TIME") != 0 && strcasecmp(dimension->name, "ELEVATION") != 0)
            text = mc_param(call, apr_pstrcat(pool, "DIM_", dimension->name, NULL));
        if (text == NULL)
            text = mc_param(call, dimension->name);
        values[i] = mc_dimension_wanted(dimension, text);
    }
    return values;
}

/* What shows where a map has nothing. */
typedef struct wms_background {
    int transparent;
    mc_param_colour colour;
} wms_background;

const mc_param_row mc_wms_background_params[] = {
    MC_PARAM_BOOLEAN("TRANSPARENT", offsetof(wms_background, transparent),
                     "Whether pixels without data are transparent, where the format can have such pixels.",
                     .flags = MC_PARAM_EMPTY, .locator = "transparent"),
    MC_PARAM_COLOUR("BGCOLOR", offsetof(wms_background, colour), "The colour of pixels without data; white without it.",
                    .flags = MC_PARAM_EMPTY, .locator = "bgcolor"),
    MC_PARAM_END,
};

mc_error *
mc_wms_background(mc_map_request *map, const mc_call *call, apr_pool_t *pool)
{
    wms_background background = { .transparent = -1 };
    mc_error *error = mc_params_read(&background, mc_wms_background_params, call, pool);
    memset(map->background, 0xff, sizeof(map->background));
    map->background_set = call->service->strict || background.transparent >= 0 || background.colour.given;
    if (background.transparent >= 0)
        map->transparent = background.transparent == 1;
    if (background.colour.given)
        memcpy(map->background, background.colour.rgb, sizeof(background.colour.rgb));
    return error;
}
