/* A map of a collection (OGC 20-058, 7 to 12 and 16): its place, its size, its background. */
#include "service/ogcapi/map.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "grid/earth.h"
#include "service/wms/wms.h"
#include "text/color_name.h"
#include "text/text.h"

/* The limits of the wms service where there is none. */
#define USUAL_MAXSIZE 2048
#define USUAL_MAX_PIXELS ((apr_int64_t)64 << 20)
/* Pixels for a pixel of a style at most; at least one for as many. */
#define DENSITY_MAX 8

static const mc_wms *
wms_settings(const mc_call *call)
{
    return (const mc_wms *)mc_call_service(call, "wms");
}

int
mc_ogcapi_map_side_limit(const mc_call *call)
{
    const mc_wms *wms = wms_settings(call);
    return wms == NULL ? USUAL_MAXSIZE : wms->maxsize;
}

int64_t
mc_ogcapi_map_pixel_limit(const mc_call *call)
{
    const mc_wms *wms = wms_settings(call);
    return wms == NULL ? USUAL_MAX_PIXELS : wms->max_pixels;
}

static int
most_map_side(const mc_param_reader *reader)
{
    return mc_ogcapi_map_side_limit(reader->call);
}

/* RRGGBB behind nothing, 0x or #, or a name of CSS; `rgb` stays where nothing is said. */
static mc_error *
read_map_color(uint8_t rgb[3], const char *parameter, const char *text, apr_pool_t *pool)
{
    unsigned number = 0;
    if (text == NULL || mc_color_find_name(rgb, text))
        return MC_OK;
    const char *digits = text + (*text == '#' ? 1 : strncasecmp(text, "0x", 2) == 0 ? 2 : 0);
    if (strlen(digits) != 6 || strspn(digits, "0123456789abcdefABCDEF") != 6)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, parameter,
                                "%s \"%s\" is not RRGGBB, 0xRRGGBB, #RRGGBB or the name of a colour in CSS", parameter,
                                mc_message_text(text, 100, pool));
    for (int i = 0; i < 6; i++)
        number = number * 16 + (unsigned)(digits[i] <= '9' ? digits[i] - '0' : (digits[i] | 32) - 'a' + 10);
    for (int i = 0; i < 3; i++)
        rgb[i] = (uint8_t)(number >> (16 - 8 * i));
    return MC_OK;
}

static mc_error *
read_map_colors(mc_param_reader *reader)
{
    mc_ogcapi_map *map = &((mc_ogcapi_ask *)reader->target)->map;
    memset(map->background, 0xff, sizeof(map->background));
    MC_TRY(read_map_color(map->background, "bgcolor", map->bgcolor, reader->pool));
    memcpy(map->void_rgb, map->background, sizeof(map->void_rgb));
    return read_map_color(map->void_rgb, "void-color", map->void_color, reader->pool);
}

const mc_param_row mc_ogcapi_map_params[] = {
    MC_PARAM_CRS("crs", offsetof(mc_ogcapi_ask, map.crs),
                 "The CRS of the map, as an address of OGC's register or as [EPSG:3857]: one of those of the "
                 "collection; without it CRS84 where a grid has that, else that of the first grid; of several "
                 "collections one that all have.",
                 .flags = MC_PARAM_EMPTY, .locator = "crs"),
    MC_PARAM_LIST("bbox", offsetof(mc_ogcapi_ask, map.bbox),
                  "The area: four numbers, or six with heights, which are passed over, with the axes in the order of "
                  "`bbox-crs`; a west edge that lies east of the east edge means an area across the antimeridian; "
                  "without it all of the collection.",
                  .flags = MC_PARAM_EMPTY, .locator = "bbox"),
    MC_PARAM_CRS("bbox-crs", offsetof(mc_ogcapi_ask, map.bbox_crs),
                 "The CRS of `bbox`: CRS84 without it, longitude first, or one of those of the collection.",
                 .flags = MC_PARAM_EMPTY, .locator = "bbox-crs"),
    MC_PARAM_CRS("subset-crs", offsetof(mc_ogcapi_ask, map.subset_crs),
                 "The CRS of the axes Lon and Lat, or X and Y, in `subset`, which cut the map as `bbox` does: CRS84 "
                 "without it, or one of those of the collection.",
                 .flags = MC_PARAM_EMPTY, .locator = "subset-crs"),
    MC_PARAM_LIST("center", offsetof(mc_ogcapi_ask, map.center),
                  "The middle of the map instead of an area: two numbers, with the axes in the order of `center-crs`; "
                  "the size in pixels and `scale-denominator` say how far the map reaches.",
                  .flags = MC_PARAM_EMPTY, .locator = "center"),
    MC_PARAM_CRS("center-crs", offsetof(mc_ogcapi_ask, map.center_crs),
                 "The CRS of `center`: CRS84 without it, longitude first, or one of those of the collection.",
                 .flags = MC_PARAM_EMPTY, .locator = "center-crs"),
    MC_PARAM_INTEGER("width", offsetof(mc_ogcapi_ask, map.width), "Pixels from left to right.", .flags = MC_PARAM_EMPTY,
                     .min = 1, .most = most_map_side, .limit = "the <maxsize> of the wms service, or 2048",
                     .locator = "width", .refusal = "width \"{value}\" is not a number of pixels",
                     .over = "width {value} is over this server's limit of {max}"),
    MC_PARAM_INTEGER("height", offsetof(mc_ogcapi_ask, map.height), "Pixels from top to bottom.",
                     .flags = MC_PARAM_EMPTY, .min = 1, .most = most_map_side,
                     .limit = "the <maxsize> of the wms service, or 2048", .locator = "height",
                     .refusal = "height \"{value}\" is not a number of pixels",
                     .over = "height {value} is over this server's limit of {max}"),
    MC_PARAM_NUMBER("scale-denominator", offsetof(mc_ogcapi_ask, map.scale),
                    "The scale, of an area instead of width and height: metres in the middle of the map for one on a "
                    "screen whose pixels are `mm-per-pixel`. Without an area, the map reaches as far as its size and "
                    "its scale say.",
                    .flags = MC_PARAM_EMPTY, .max = 1e12, .locator = "scale-denominator"),
    MC_PARAM_NUMBER("mm-per-pixel", offsetof(mc_ogcapi_ask, map.pixel),
                    "Millimetres of a pixel of the client's screen, 0.28 without it: for `scale-denominator`, and "
                    "symbols and text of drawn maps have more pixels where these are smaller.",
                    .flags = MC_PARAM_EMPTY, .max = 1000, .locator = "mm-per-pixel"),
    MC_PARAM_TEXT("bgcolor", offsetof(mc_ogcapi_ask, map.bgcolor),
                  "The colour of what has no data, as 0xRRGGBB or as CSS names it; white without it.", .max = 40,
                  .flags = MC_PARAM_EMPTY, .locator = "bgcolor"),
    MC_PARAM_BOOLEAN("transparent", offsetof(mc_ogcapi_ask, map.transparent),
                     "Whether what has no data is transparent, where the format can have that; true without it, and "
                     "false where there is a `bgcolor`.",
                     .flags = MC_PARAM_EMPTY, .locator = "transparent"),
    MC_PARAM_TEXT(
        "void-color", offsetof(mc_ogcapi_ask, map.void_color),
        "The colour beyond the area in which the CRS is valid, which is known of degrees and of the spherical "
        "Mercator; that of `bgcolor` without it.",
        .max = 40, .flags = MC_PARAM_EMPTY, .locator = "void-color"),
    MC_PARAM_BOOLEAN("void-transparent", offsetof(mc_ogcapi_ask, map.void_transparent),
                     "Whether what lies beyond that area is transparent, where the format can have that; without it as "
                     "`transparent` says, and false where there is a `void-color`.",
                     .flags = MC_PARAM_EMPTY, .locator = "void-transparent"),
    MC_PARAM_STEP(read_map_colors),
    MC_PARAM_END,
};

/* Maps in the colours of a palette are made of stored tiles. */
static bool
can_draw_layers(const mc_wms *wms, const mc_ogcapi_ask *ask)
{
    bool draws = wms != NULL && wms->full_wms == MC_WMS_FORWARD;
    for (int i = 0; i < ask->layer_count; i++)
        draws = draws && ask->layers[i].tileset->source != NULL && ask->layers[i].style == NULL;
    return draws;
}

/* Pixels for one of a style; tiles that are stored for fine screens are taken where the number is a whole one. */
static void
choose_density(mc_map_request *wanted, const mc_ogcapi_map *map)
{
    double density = map->pixel > 0 ? MC_PIXEL_METRES * 1000 / map->pixel : 1, whole = rint(density);
    wanted->density = fmin(fmax(density, 1.0 / DENSITY_MAX), DENSITY_MAX);
    if (fabs(density - whole) <= 0.08 * whole && whole >= 1 && whole <= DENSITY_MAX)
        wanted->density = whole;
    for (int i = 0; i < wanted->count && wanted->density > 1; i++) {
        mc_map_layer *layer = &wanted->layers[i];
        const mc_grid_link *dense = mc_tileset_dense_link(layer->tileset, layer->link, (int)wanted->density);
        if (dense != NULL && wanted->density <= floor(wanted->density))
            layer->link = dense;
    }
}

/* Of a map over the antimeridian each layer lies there twice: in its place, and once around the earth further on. Its
 * tiles are put together, whoever draws them. */
static void
double_layers(mc_map_request *wanted, const mc_grid *grid, apr_pool_t *pool)
{
    mc_map_layer *layers = apr_palloc(pool, 2 * (size_t)wanted->count * sizeof(*layers));
    for (int i = 0; i < wanted->count; i++) {
        layers[2 * i] = layers[2 * i + 1] = wanted->layers[i];
        layers[2 * i + 1].shift = 2 * mc_ogcapi_half_round(grid);
    }
    wanted->layers = layers;
    wanted->count *= 2;
    wanted->mode = MC_WMS_ASSEMBLE;
}

static mc_error *
apply_map_settings(mc_map_request *wanted, const mc_ogcapi_place *place, const mc_ogcapi_ask *ask)
{
    const mc_wms *wms = wms_settings(ask->call);
    wanted->max_pixels = mc_ogcapi_map_pixel_limit(ask->call);
    wanted->resample = wms == NULL ? MC_BILINEAR : (mc_resample)wms->resample;
    wanted->mode = can_draw_layers(wms, ask) ? MC_WMS_FORWARD : MC_WMS_ASSEMBLE;
    wanted->threaded = ask->call->config->threaded_fetching;
    wanted->empty_is_map = true;
    MC_TRY(mc_ogcapi_map_size(wanted, place, ask, mc_ogcapi_map_side_limit(ask->call)));
    if ((apr_int64_t)wanted->width * wanted->height > wanted->max_pixels / wanted->count)
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "width",
                                "a map of %d x %d pixels and %d collections is over this server's limit", wanted->width,
                                wanted->height, wanted->count);
    choose_density(wanted, &ask->map);
    if (place->across)
        double_layers(wanted, ask->link->grid, ask->pool);
    return MC_OK;
}

/* --- the answer ------------------------------------------------------------------------------------------------- */

/* East of the antimeridian the numbers begin anew, at the other edge of the CRS. */
static const char *
box_text(const mc_extent *whole, double round, bool yx, apr_pool_t *pool)
{
    const mc_extent own = { whole->minx, whole->miny, whole->maxx - round, whole->maxy }, *box = &own;
    const double numbers[] = { yx ? box->miny : box->minx, yx ? box->minx : box->miny, yx ? box->maxy : box->maxx,
                               yx ? box->maxx : box->maxy };
    const char *text = "";
    for (int i = 0; i < 4; i++)
        text = apr_pstrcat(pool, text, i == 0 ? "" : ",", mc_double_text('g', 15, numbers[i], pool), NULL);
    return text;
}

/* What the map shows (OGC 20-058, 8.2.3): CRS84 is not named. */
static void
write_map_headers(mc_ogcapi_ask *ask, const mc_ogcapi_crs *crs, const mc_ogcapi_place *place,
                  const mc_map_request *wanted)
{
    double round = place->across ? 2 * mc_ogcapi_half_round(ask->link->grid) : 0;
    apr_table_t *headers = apr_table_make(ask->pool, 4);
    const mc_dimension *time = mc_ogcapi_time(ask->tileset);
    if (strcmp(crs->uri, MC_OGCAPI_CRS84) != 0)
        apr_table_setn(headers, "Content-Crs", apr_pstrcat(ask->pool, "<", crs->uri, ">", NULL));
    apr_table_setn(headers, "Content-Bbox", box_text(&wanted->box, round, crs->yx, ask->pool));
    for (int i = 0; i < ask->tileset->dimension_count; i++)
        if (ask->tileset->dimensions[i] == time)
            apr_table_setn(headers, "Content-Datetime", mc_header_value(wanted->layers[0].values[i], ask->pool));
    ask->request->headers = headers;
}

static void
choose_background(mc_map_request *wanted, const mc_ogcapi_map *map)
{
    wanted->background_set = true;
    wanted->transparent = map->transparent >= 0 ? map->transparent == 1 : map->bgcolor == NULL;
    memcpy(wanted->background, map->background, sizeof(wanted->background));
}

/* The area in which the CRS of a grid is valid, where that is known. */
static bool
find_valid_area(mc_extent *valid, const mc_grid *grid)
{
    if (mc_grid_is_mercator(grid))
        *valid =
            (mc_extent){ -MC_WEB_MERCATOR_HALF, -MC_WEB_MERCATOR_HALF, MC_WEB_MERCATOR_HALF, MC_WEB_MERCATOR_HALF };
    else
        *valid = (mc_extent){ -180, -90, 180, 90 };
    return mc_grid_is_mercator(grid) || grid->epsg == 4326;
}

/* What lies beyond that area needs pixels of its own only where the request says how it looks, and the map reaches
 * there. */
static void
choose_beyond(mc_map_request *wanted, const mc_ogcapi_place *place, const mc_ogcapi_ask *ask)
{
    const mc_ogcapi_map *map = &ask->map;
    const mc_extent *box = &wanted->box;
    mc_extent valid;
    if ((map->void_color == NULL && map->void_transparent < 0) || !find_valid_area(&valid, ask->link->grid))
        return;
    if (place->across)
        valid.maxx = box->maxx;
    if ((box->minx >= valid.minx && box->miny >= valid.miny && box->maxx <= valid.maxx && box->maxy <= valid.maxy))
        return;
    mc_map_beyond *beyond = apr_pcalloc(ask->pool, sizeof(*beyond));
    beyond->valid = valid;
    beyond->transparent =
        map->void_transparent >= 0 ? map->void_transparent == 1 : map->void_color == NULL && wanted->transparent;
    memcpy(beyond->rgb, map->void_rgb, sizeof(beyond->rgb));
    wanted->beyond = beyond;
}

/* The one layer of a map of a collection. */
static mc_error *
add_own_layer(mc_ogcapi_ask *ask)
{
    if (mc_ogcapi_is_vector(ask->tileset))
        return mc_error_create(ask->pool, MC_ERR_NOT_FOUND, "collection %s has vector tiles, and no maps",
                               ask->tileset->name);
    ask->layers = apr_pcalloc(ask->pool, sizeof(mc_map_layer));
    ask->layers[0] = (mc_map_layer){ .tileset = ask->tileset, .style = ask->style };
    ask->layer_count = 1;
    return MC_OK;
}

mc_error *
mc_ogcapi_answer_map(mc_ogcapi_ask *ask)
{
    mc_ogcapi_crs crs;
    mc_ogcapi_place place = { .given = false };
    if (ask->layer_count == 0)
        MC_TRY(add_own_layer(ask));
    MC_TRY(mc_ogcapi_map_crs(&crs, ask));
    MC_TRY(mc_ogcapi_map_place(&place, ask));
    for (int i = 0; i < ask->layer_count; i++) {
        const char **values;
        MC_TRY(mc_ogcapi_values(&values, ask, ask->layers[i].tileset));
        ask->layers[i].values = values;
    }
    mc_map_request wanted = { .layers = ask->layers, .count = ask->layer_count, .density = 1 };
    MC_TRY(mc_ogcapi_choose_image(&wanted.format, ask, true));
    MC_TRY(apply_map_settings(&wanted, &place, ask));
    choose_background(&wanted, &ask->map);
    choose_beyond(&wanted, &place, ask);
    write_map_headers(ask, &crs, &place, &wanted);
    ask->request->kind = MC_REQUEST_MAP;
    ask->request->u.map = wanted;
    return MC_OK;
}
