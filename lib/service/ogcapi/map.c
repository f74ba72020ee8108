/* A map of a collection (OGC 20-058, 7 to 12 and 16): its place, its size, its background. */
#include "service/ogcapi/map.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "grid/earth.h"
#include "service/wms/wms.h"
#include "text/text.h"

/* Pixels: of the longer side where the client says nothing of the size. */
#define USUAL_SIDE 1024
/* The limits of the wms service where there is none. */
#define USUAL_MAXSIZE 2048
#define USUAL_MAX_PIXELS ((apr_int64_t)64 << 20)
#define COORDINATE_MAX 1e12

static const mc_wms *
wms_settings(const mc_call *call)
{
    return (const mc_wms *)mc_call_service(call, "wms");
}

static int
most_map_side(const mc_param_reader *reader)
{
    const mc_wms *wms = wms_settings(reader->call);
    return wms == NULL ? USUAL_MAXSIZE : wms->maxsize;
}

/* RRGGBB, behind nothing, 0x or #. */
static mc_error *
read_bgcolor(mc_param_reader *reader)
{
    mc_ogcapi_map *map = &((mc_ogcapi_ask *)reader->target)->map;
    const char *text = map->bgcolor;
    unsigned rgb = 0;
    if (text == NULL)
        return MC_OK;
    text += *text == '#' ? 1 : strncasecmp(text, "0x", 2) == 0 ? 2 : 0;
    if (strlen(text) != 6 || strspn(text, "0123456789abcdefABCDEF") != 6)
        return mc_error_located(reader->pool, MC_ERR_INVALID_PARAMETER, "bgcolor",
                                "bgcolor \"%s\" is not RRGGBB, 0xRRGGBB or #RRGGBB",
                                mc_message_text(map->bgcolor, 100, reader->pool));
    for (int i = 0; i < 6; i++)
        rgb = rgb * 16 + (unsigned)(text[i] <= '9' ? text[i] - '0' : (text[i] | 32) - 'a' + 10);
    map->background[0] = (uint8_t)(rgb >> 16);
    map->background[1] = (uint8_t)(rgb >> 8);
    map->background[2] = (uint8_t)rgb;
    return MC_OK;
}

const mc_param_row mc_ogcapi_map_params[] = {
    MC_PARAM_CRS("crs", offsetof(mc_ogcapi_ask, map.crs),
                 "The CRS of the map, as an address of OGC's register or as [EPSG:3857]: one of those of the "
                 "collection; without it CRS84 where a grid has that, else that of the first grid.",
                 .flags = MC_PARAM_EMPTY, .locator = "crs"),
    MC_PARAM_LIST("bbox", offsetof(mc_ogcapi_ask, map.bbox),
                  "The area: four numbers, or six with heights, which are passed over, with the axes in the order of "
                  "`bbox-crs`; without it all of the collection.",
                  .flags = MC_PARAM_EMPTY, .locator = "bbox"),
    MC_PARAM_CRS("bbox-crs", offsetof(mc_ogcapi_ask, map.bbox_crs),
                 "The CRS of `bbox`: CRS84 without it, longitude first, or one of those of the collection.",
                 .flags = MC_PARAM_EMPTY, .locator = "bbox-crs"),
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
                    "The scale, instead of width and height: metres in the middle of the map for one on a screen "
                    "whose pixels are 0.28 mm.",
                    .flags = MC_PARAM_EMPTY, .max = 1e12, .locator = "scale-denominator"),
    MC_PARAM_TEXT("bgcolor", offsetof(mc_ogcapi_ask, map.bgcolor),
                  "The colour of what has no data, as 0xRRGGBB; white without it.", .max = 20, .flags = MC_PARAM_EMPTY,
                  .locator = "bgcolor"),
    MC_PARAM_STEP(read_bgcolor),
    MC_PARAM_BOOLEAN("transparent", offsetof(mc_ogcapi_ask, map.transparent),
                     "Whether what has no data is transparent, where the format can have that; true without it, and "
                     "false where there is a `bgcolor`.",
                     .flags = MC_PARAM_EMPTY, .locator = "transparent"),
    MC_PARAM_END,
};

/* --- place ------------------------------------------------------------------------------------------------------ */

static mc_error *
refuse_crs(const char *parameter, const char *text, apr_pool_t *pool)
{
    return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, parameter,
                            "%s \"%s\" is not one of the CRSs that the collection lists", parameter,
                            mc_message_text(text, 100, pool));
}

static mc_error *
find_map_crs(mc_ogcapi_crs *crs, mc_ogcapi_ask *ask)
{
    const mc_tileset *tileset = ask->tileset;
    ask->link = mc_ogcapi_storage_link(tileset);
    if (ask->link == NULL)
        return mc_error_create(ask->pool, MC_ERR_NOT_FOUND, "collection %s has no grid", tileset->name);
    *crs = mc_ogcapi_crs_of(ask->link->grid, ask->pool);
    if (ask->map.crs == NULL)
        return MC_OK;
    if (mc_ogcapi_crs_parse(crs, ask->map.crs, ask->pool))
        ask->link = mc_ogcapi_crs_link(crs, tileset);
    else
        ask->link = NULL;
    return ask->link == NULL ? refuse_crs("crs", ask->map.crs, ask->pool) : MC_OK;
}

static mc_error *
read_map_numbers(mc_extent *box, const mc_ogcapi_ask *ask)
{
    double numbers[6];
    int found = 0;
    const char *text = ask->map.bbox;
    bool parsed = mc_parse_doubles(numbers, 6, &found, text, ",") && (found == 4 || found == 6);
    for (int i = 0; parsed && i < found; i++)
        parsed = isfinite(numbers[i]) && fabs(numbers[i]) <= COORDINATE_MAX;
    if (!parsed)
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "bbox", "bbox \"%s\" is not four numbers",
                                mc_message_text(text, 100, ask->pool));
    *box = (mc_extent){ numbers[0], numbers[1], numbers[found / 2], numbers[found / 2 + 1] };
    if (mc_extent_valid(box))
        return MC_OK;
    return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "bbox",
                            "bbox \"%s\": the minimum must be below the maximum; an area across the antimeridian is "
                            "asked for as two maps",
                            mc_message_text(text, 100, ask->pool));
}

/* The box of the map, x first, in the CRS of its grid. */
static mc_error *
find_map_box(mc_extent *box, mc_ogcapi_ask *ask)
{
    mc_ogcapi_crs crs = { MC_OGCAPI_CRS84, 4326, false };
    if (ask->map.bbox == NULL) {
        *box = ask->link->extent;
        mc_tileset_ask_place(ask->tileset, ask->ctx);
        (void)mc_tileset_data_extent(box, ask->tileset, ask->link, ask->pool);
        return MC_OK;
    }
    if (ask->map.bbox_crs != NULL && (!mc_ogcapi_crs_parse(&crs, ask->map.bbox_crs, ask->pool) ||
                                      (crs.epsg != 4326 && mc_ogcapi_crs_link(&crs, ask->tileset) == NULL)))
        return refuse_crs("bbox-crs", ask->map.bbox_crs, ask->pool);
    MC_TRY(read_map_numbers(box, ask));
    return mc_ogcapi_crs_box(box, &crs, ask->link->grid, ask->pool);
}

/* --- size ------------------------------------------------------------------------------------------------------- */

/* How many metres the box is wide and high, measured in its middle. */
static void
measure_box(double *width, double *height, const mc_extent *box, const mc_grid *grid)
{
    mc_extent degrees;
    double unit = grid->metres_per_unit, shrink = 1;
    bool has_degrees = mc_grid_degrees(&degrees, grid, box);
    if (has_degrees)
        shrink = fmax(cos((degrees.miny + degrees.maxy) / 2 * 3.14159265358979323846 / 180), 1e-6);
    *width = (box->maxx - box->minx) * unit * shrink;
    *height = (box->maxy - box->miny) * unit * (mc_grid_is_mercator(grid) ? shrink : 1);
}

static mc_error *
settle_map_size(mc_map_request *wanted, const mc_ogcapi_ask *ask, int maxsize)
{
    const mc_extent *box = &wanted->box;
    double aspect = (box->maxy - box->miny) / (box->maxx - box->minx), width = ask->map.width, height = ask->map.height;
    if (ask->map.scale > 0 && (ask->map.width > 0 || ask->map.height > 0))
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "scale-denominator",
                                "scale-denominator stands instead of width and height, not beside them");
    if (ask->map.scale > 0) {
        measure_box(&width, &height, box, ask->link->grid);
        width = rint(width / (ask->map.scale * MC_PIXEL_METRES));
        height = rint(height / (ask->map.scale * MC_PIXEL_METRES));
    } else if (ask->map.width == 0 && ask->map.height == 0) {
        double side = maxsize < USUAL_SIDE ? maxsize : USUAL_SIDE;
        width = aspect > 1 ? rint(side / aspect) : side;
        height = aspect > 1 ? side : rint(side * aspect);
    } else if (ask->map.width == 0) {
        width = rint(height / aspect);
    } else if (ask->map.height == 0) {
        height = rint(width * aspect);
    }
    width = fmax(width, 1);
    height = fmax(height, 1);
    if (!(width <= maxsize) || !(height <= maxsize))
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "width",
                                "a map of %.0f x %.0f pixels is over this server's limit of %d a side", width, height,
                                maxsize);
    wanted->width = (int)width;
    wanted->height = (int)height;
    return MC_OK;
}

static mc_error *
apply_map_settings(mc_map_request *wanted, const mc_ogcapi_ask *ask)
{
    const mc_wms *wms = wms_settings(ask->call);
    wanted->max_pixels = wms == NULL ? USUAL_MAX_PIXELS : wms->max_pixels;
    wanted->resample = wms == NULL ? MC_BILINEAR : (mc_resample)wms->resample;
    bool draws = wms != NULL && wms->full_wms == MC_WMS_FORWARD && ask->tileset->source != NULL;
    wanted->mode = draws ? MC_WMS_FORWARD : MC_WMS_ASSEMBLE;
    wanted->threaded = ask->call->config->threaded_fetching;
    wanted->empty_is_map = true;
    MC_TRY(settle_map_size(wanted, ask, wms == NULL ? USUAL_MAXSIZE : wms->maxsize));
    if ((apr_int64_t)wanted->width * wanted->height > wanted->max_pixels)
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "width",
                                "a map of %d x %d pixels is over this server's limit", wanted->width, wanted->height);
    return MC_OK;
}

/* --- the answer ------------------------------------------------------------------------------------------------- */

static const char *
box_text(const mc_extent *box, bool yx, apr_pool_t *pool)
{
    const double numbers[] = { yx ? box->miny : box->minx, yx ? box->minx : box->miny, yx ? box->maxy : box->maxx,
                               yx ? box->maxx : box->maxy };
    const char *text = "";
    for (int i = 0; i < 4; i++)
        text = apr_pstrcat(pool, text, i == 0 ? "" : ",", mc_double_text('g', 15, numbers[i], pool), NULL);
    return text;
}

/* What the map shows (OGC 20-058, 8.2.3): CRS84 is not named. */
static void
write_map_headers(mc_ogcapi_ask *ask, const mc_ogcapi_crs *crs, const mc_map_request *wanted)
{
    apr_table_t *headers = apr_table_make(ask->pool, 4);
    const mc_dimension *time = mc_ogcapi_time(ask->tileset);
    if (strcmp(crs->uri, MC_OGCAPI_CRS84) != 0)
        apr_table_setn(headers, "Content-Crs", apr_pstrcat(ask->pool, "<", crs->uri, ">", NULL));
    apr_table_setn(headers, "Content-Bbox", box_text(&wanted->box, crs->yx, ask->pool));
    for (int i = 0; i < ask->tileset->dimension_count; i++)
        if (ask->tileset->dimensions[i] == time)
            apr_table_setn(headers, "Content-Datetime", mc_header_value(wanted->layers[0].values[i], ask->pool));
    ask->request->headers = headers;
}

static void
choose_background(mc_map_request *wanted, const mc_ogcapi_map *map)
{
    bool coloured = map->bgcolor != NULL;
    wanted->background_set = true;
    wanted->transparent = map->transparent >= 0 ? map->transparent == 1 : !coloured;
    memset(wanted->background, 0xff, sizeof(wanted->background));
    if (coloured)
        memcpy(wanted->background, map->background, sizeof(wanted->background));
}

mc_error *
mc_ogcapi_answer_map(mc_ogcapi_ask *ask)
{
    mc_ogcapi_crs crs;
    mc_map_layer *layer = apr_pcalloc(ask->pool, sizeof(*layer));
    mc_map_request wanted = { .layers = layer, .count = 1, .density = 1 };
    const char **values;
    if (mc_ogcapi_is_vector(ask->tileset))
        return mc_error_create(ask->pool, MC_ERR_NOT_FOUND, "collection %s has vector tiles, and no maps",
                               ask->tileset->name);
    MC_TRY(find_map_crs(&crs, ask));
    MC_TRY(find_map_box(&wanted.box, ask));
    MC_TRY(mc_ogcapi_values(&values, ask, ask->tileset));
    *layer = (mc_map_layer){ .tileset = ask->tileset, .link = ask->link, .values = values };
    MC_TRY(mc_ogcapi_choose_image(&wanted.format, ask, true));
    MC_TRY(apply_map_settings(&wanted, ask));
    choose_background(&wanted, &ask->map);
    write_map_headers(ask, &crs, &wanted);
    ask->request->kind = MC_REQUEST_MAP;
    ask->request->u.map = wanted;
    return MC_OK;
}
