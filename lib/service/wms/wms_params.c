/* Parameters that WMS requests have in common: version, place, size, format, background, dimensions. */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "service/wms/wms.h"
#include "text/text.h"

/* Coordinates beyond it belong to no CRS, and tile numbers could not be computed from them. */
#define COORDINATE_MAX 1e12

const char *
mc_wms_version(const mc_call *call)
{
    const char *version = mc_param(call, "VERSION");
    if (version == NULL || *version == '\0')
        version = mc_param(call, "WMTVER");
    return version != NULL && *version != '\0' ? version : NULL;
}

/* WMS 1.3.0 6.2.4: none, unreadable or from 1.3.0 on: 1.3.0. Below: 1.1.1, the next lower or the lowest that we have.
 */
static bool
negotiate_130(const char *version)
{
    if (version == NULL)
        return true;
    char *end;
    long major = strtol(version, &end, 10);
    if (end == version || *end != '.' || end[1] < '0' || end[1] > '9')
        return true;
    return major > 1 || (major == 1 && strtol(end + 1, NULL, 10) >= 3);
}

bool
mc_wms_is_130(const mc_call *call)
{
    const char *version = mc_wms_version(call);
    const char *operation = mc_param(call, "REQUEST");
    if (operation != NULL && strcasecmp(operation, "GetCapabilities") == 0)
        return negotiate_130(version);
    return version != NULL && strcmp(version, "1.3.0") == 0;
}

static mc_error *
check_version(const mc_call *call, apr_pool_t *pool)
{
    const char *version = mc_wms_version(call);
    if (version == NULL)
        return mc_wms_omitted(call, "version", pool);
    if (strlen(version) == 5 && strncmp(version, "1.", 2) == 0 && version[2] >= '0' && version[2] <= '3' &&
        version[3] == '.' && version[4] >= '0' && version[4] <= '9')
        return MC_OK;
    return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "version", "VERSION \"%s\" is not 1.1.1 or 1.3.0", version);
}

static mc_error *
parse_box(mc_extent *box, const mc_call *call, apr_pool_t *pool)
{
    const char *text = mc_param(call, "BBOX");
    double numbers[4];
    int found = 0;
    if (text == NULL)
        return mc_error_located(pool, MC_ERR_MISSING_PARAMETER, "bbox", "the parameter BBOX is missing");
    bool parsed = mc_parse_doubles(numbers, 4, &found, text, ",") && found == 4;
    for (int i = 0; parsed && i < 4; i++)
        parsed = isfinite(numbers[i]) && fabs(numbers[i]) <= COORDINATE_MAX;
    if (!parsed)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "bbox", "BBOX \"%s\" is not four coordinates", text);
    *box = (mc_extent){ numbers[0], numbers[1], numbers[2], numbers[3] };
    if (!mc_extent_valid(box))
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "bbox", "BBOX \"%s\": minimum must be below maximum",
                                text);
    return MC_OK;
}

static mc_error *
parse_wms_image_side(int *side, const mc_call *call, const char *name, apr_pool_t *pool)
{
    const char *text = mc_param(call, name);
    int64_t number;
    if (text == NULL)
        return mc_error_located(pool, MC_ERR_MISSING_PARAMETER, name, "the parameter %s is missing", name);
    if (strspn(text, "0123456789") == strlen(text) && strlen(text) > 18)
        number = INT64_MAX;
    else if (!mc_parse_int64(&number, text, 1, INT64_MAX))
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, name, "%s \"%s\" is not a number of pixels", name,
                                text);
    if (number > mc_wms_of(call)->maxsize)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, name, "%s %s is over this server's limit of %d", name,
                                text, mc_wms_of(call)->maxsize);
    *side = (int)number;
    return MC_OK;
}

mc_error *
mc_wms_view_parse(mc_wms_view *view, const mc_call *call, apr_pool_t *pool)
{
    *view = (mc_wms_view){ .v130 = mc_wms_is_130(call) };
    MC_TRY(check_version(call, pool));
    MC_TRY(parse_box(&view->box, call, pool));
    MC_TRY(parse_wms_image_side(&view->width, call, "width", pool));
    MC_TRY(parse_wms_image_side(&view->height, call, "height", pool));
    const char *name = view->v130 ? "crs" : "srs";
    view->srs = mc_param(call, name);
    if (view->srs == NULL || *view->srs == '\0')
        return mc_error_located(pool, MC_ERR_MISSING_PARAMETER, name, "the parameter %s is missing", name);
    bool xy_order = false;
    view->epsg = mc_crs_epsg(view->srs, &xy_order);
    if (view->v130 && !xy_order && mc_crs_axes_swapped(view->epsg))
        view->box = (mc_extent){ view->box.miny, view->box.minx, view->box.maxy, view->box.maxx };
    return MC_OK;
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
    return wms->full_wms == MC_WMS_FORWARD && tileset->format->type == MC_FORMAT_MVT && tileset->source != NULL;
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

static void
add_format(apr_array_header_t *formats, const mc_format *format)
{
    if (format->type == MC_FORMAT_MIXED) {
        add_format(formats, format->transparent);
        add_format(formats, format->opaque);
        return;
    }
    if (format->type == MC_FORMAT_RAW || format->mime == NULL)
        return;
    for (int i = 0; i < formats->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(formats, i, const mc_format *)->mime, format->mime) == 0)
            return;
    APR_ARRAY_PUSH(formats, const mc_format *) = format;
}

const apr_array_header_t *
mc_wms_formats(const mc_call *call, apr_pool_t *pool)
{
    const mc_wms *wms = mc_wms_of(call);
    apr_array_header_t *formats = apr_array_make(pool, 8, sizeof(const mc_format *));
    add_format(formats, wms->format);
    for (int i = 0; wms->allow_client_override && i < call->config->formats->nelts; i++)
        add_format(formats, APR_ARRAY_IDX(call->config->formats, i, const mc_format *));
    return formats;
}

static bool
format_answers(const mc_format *format, const char *text)
{
    return strcmp(format->name, text) == 0 || (format->mime != NULL && strcmp(format->mime, text) == 0);
}

static const mc_format *
find_format(const mc_call *call, const char *text)
{
    const mc_wms *wms = mc_wms_of(call);
    if (format_answers(wms->format, text))
        return wms->format;
    for (int i = 0; i < call->config->formats->nelts; i++) {
        const mc_format *format = APR_ARRAY_IDX(call->config->formats, i, const mc_format *);
        if (format->type != MC_FORMAT_RAW && format_answers(format, text))
            return format;
    }
    return NULL;
}

static const mc_format *
find_advertised(const mc_call *call, const char *text, apr_pool_t *pool)
{
    const apr_array_header_t *formats = mc_wms_formats(call, pool);
    for (int i = 0; i < formats->nelts; i++) {
        const mc_format *format = APR_ARRAY_IDX(formats, i, const mc_format *);
        if (strcmp(format->mime, text) == 0)
            return format;
    }
    return NULL;
}

mc_error *
mc_wms_format(const mc_format **format, bool *named, const mc_call *call, apr_pool_t *pool)
{
    const mc_wms *wms = mc_wms_of(call);
    const char *text = mc_param(call, "FORMAT");
    *format = wms->format;
    *named = false;
    if (text == NULL || (*text == '\0' && !wms->allow_client_override))
        return mc_wms_omitted(call, "format", pool);
    const mc_format *found = call->service->strict ? find_advertised(call, text, pool) : find_format(call, text);
    if (found == NULL)
        return mc_error_located(pool, MC_ERR_INVALID_FORMAT, "format", "FORMAT \"%s\" is not offered", text);
    if (!wms->allow_client_override && !call->service->strict)
        return MC_OK; /* known, but the configuration decides */
    *format = found;
    *named = true;
    return MC_OK;
}

mc_error *
mc_wms_background(mc_map_request *map, const mc_call *call, apr_pool_t *pool)
{
    const char *transparent = mc_param(call, "TRANSPARENT");
    const char *color = mc_param(call, "BGCOLOR");
    memset(map->background, 0xff, sizeof(map->background));
    map->background_set = call->service->strict;
    if (transparent != NULL && *transparent != '\0') {
        map->transparent = strcasecmp(transparent, "TRUE") == 0;
        map->background_set = true;
        if (!map->transparent && strcasecmp(transparent, "FALSE") != 0)
            return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "transparent",
                                    "TRANSPARENT \"%s\" is not TRUE or FALSE", transparent);
    }
    if (color != NULL && *color != '\0') {
        bool prefixed = color[0] == '0' && (color[1] == 'x' || color[1] == 'X');
        if (!prefixed || strlen(color) != 8 || strspn(color + 2, "0123456789abcdefABCDEF") != 6)
            return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "bgcolor", "BGCOLOR \"%s\" is not 0xRRGGBB", color);
        unsigned long rgb = strtoul(color + 2, NULL, 16);
        map->background[0] = (uint8_t)(rgb >> 16);
        map->background[1] = (uint8_t)(rgb >> 8);
        map->background[2] = (uint8_t)rgb;
        map->background_set = true;
    }
    return MC_OK;
}
