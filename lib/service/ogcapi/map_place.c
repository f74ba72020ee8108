/* Where a map lies: its CRS, and its area by a box, by intervals of its axes or around a point (OGC 20-058, 13 and 16).
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "grid/earth.h"
#include "service/ogcapi/map.h"
#include "service/ogcapi/subset.h"
#include "text/text.h"

#define COORDINATE_MAX 1e12

static mc_error *
refuse_crs(const char *parameter, const char *text, apr_pool_t *pool)
{
    return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, parameter,
                            "%s \"%s\" is not one of the CRSs that the collection lists", parameter,
                            mc_message_text(text, 100, pool));
}

static bool
have_crs(const mc_ogcapi_crs *crs, const mc_ogcapi_ask *ask)
{
    for (int i = 0; i < ask->layer_count; i++)
        if (mc_ogcapi_crs_link(crs, ask->layers[i].tileset) == NULL)
            return false;
    return true;
}

/* The link whose CRS a map has without `crs`: that of the lowest collection, or the first of its others that all
 * collections have. */
static const mc_grid_link *
find_common_link(const mc_ogcapi_ask *ask)
{
    const mc_grid_link *first = mc_ogcapi_storage_link(ask->tileset);
    for (int i = -1; ask->layer_count > 1 && i < ask->tileset->link_count; i++) {
        const mc_grid_link *link = i < 0 ? first : ask->tileset->links[i];
        const mc_ogcapi_crs crs = mc_ogcapi_crs_of(link->grid, ask->pool);
        if (have_crs(&crs, ask))
            return link;
    }
    return first;
}

mc_error *
mc_ogcapi_map_crs(mc_ogcapi_crs *crs, mc_ogcapi_ask *ask)
{
    ask->link = find_common_link(ask);
    if (ask->link == NULL)
        return mc_error_create(ask->pool, MC_ERR_NOT_FOUND, "collection %s has no grid", ask->tileset->name);
    *crs = mc_ogcapi_crs_of(ask->link->grid, ask->pool);
    if (ask->map.crs != NULL && !mc_ogcapi_crs_parse(crs, ask->map.crs, ask->pool))
        return refuse_crs("crs", ask->map.crs, ask->pool);
    for (int i = 0; i < ask->layer_count; i++) {
        mc_map_layer *layer = &ask->layers[i];
        layer->link = mc_ogcapi_crs_link(crs, layer->tileset);
        if (layer->link == NULL && i > 0)
            return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, ask->map.crs != NULL ? "crs" : "collections",
                                    "collection %s has no maps in the CRS %s", layer->tileset->name, crs->uri);
        if (layer->link == NULL && ask->map.crs != NULL)
            return refuse_crs("crs", ask->map.crs, ask->pool);
        if (layer->link == NULL) /* a CRS without a code */
            layer->link = ask->link;
    }
    ask->link = ask->layers[0].link;
    return MC_OK;
}

/* The CRS of coordinates: CRS84 without a parameter, else that of a grid. */
static mc_error *
read_place_crs(mc_ogcapi_crs *crs, const char *parameter, const char *text, const mc_ogcapi_ask *ask)
{
    *crs = (mc_ogcapi_crs){ MC_OGCAPI_CRS84, 4326, false };
    if (text == NULL)
        return MC_OK;
    if (mc_ogcapi_place_crs_parse(crs, text, ask->pool) &&
        (crs->epsg == 4326 || mc_ogcapi_crs_link(crs, ask->tileset) != NULL))
        return MC_OK;
    return refuse_crs(parameter, text, ask->pool);
}

static bool
are_coordinates(const double *numbers, int count)
{
    for (int i = 0; i < count; i++)
        if (!isfinite(numbers[i]) || fabs(numbers[i]) > COORDINATE_MAX)
            return false;
    return true;
}

/* --- bbox ------------------------------------------------------------------------------------------------------- */

static mc_error *
read_map_numbers(mc_extent *box, const mc_ogcapi_ask *ask)
{
    double numbers[6];
    int found = 0;
    const char *text = ask->map.bbox;
    if (!mc_parse_doubles(numbers, 6, &found, text, ",") || (found != 4 && found != 6) ||
        !are_coordinates(numbers, found))
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "bbox", "bbox \"%s\" is not four numbers",
                                mc_message_text(text, 100, ask->pool));
    *box = (mc_extent){ numbers[0], numbers[1], numbers[found / 2], numbers[found / 2 + 1] };
    return MC_OK;
}

static mc_error *
find_bbox_place(mc_extent *box, bool *across, const mc_ogcapi_ask *ask)
{
    mc_ogcapi_crs crs;
    MC_TRY(read_place_crs(&crs, "bbox-crs", ask->map.bbox_crs, ask));
    MC_TRY(read_map_numbers(box, ask));
    return mc_ogcapi_crs_box(box, across, &crs, ask->link->grid, "bbox", ask->pool);
}

/* --- subset ----------------------------------------------------------------------------------------------------- */

/* Where the collections lie in a CRS, x first: for the sides that no interval bounds. */
static mc_extent
find_whole_extent(const mc_ogcapi_crs *crs, const mc_ogcapi_ask *ask)
{
    mc_extent whole = { 0, 0, 0, 0 };
    for (int i = 0; i < ask->layer_count; i++) {
        const mc_tileset *tileset = ask->layers[i].tileset;
        const mc_grid_link *link = crs->epsg == 4326 ? NULL : mc_ogcapi_crs_link(crs, tileset);
        mc_extent box = link == NULL ? mc_tileset_degrees(tileset) : link->extent;
        if (link != NULL)
            (void)mc_tileset_data_extent(&box, tileset, link, ask->pool);
        whole = i == 0 ? box : mc_extent_union(&whole, &box);
    }
    return whole;
}

static mc_error *
refuse_interval(const mc_subset *subset, const char *why, apr_pool_t *pool)
{
    return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "subset", "subset of the axis %s: %s",
                            mc_message_text(subset->axis, 100, pool), why);
}

/* Whether an interval lies beyond all values that its axis can have, where these are known. */
static bool
is_beyond_axis(double low, double high, int which, int epsg)
{
    double end = epsg == 4326 ? (which == 0 ? 180 : 90) : epsg == 3857 ? MC_WEB_MERCATOR_HALF : 0;
    return end > 0 && (fmin(low, high) > end || fmax(low, high) < -end);
}

/* Cuts one side of the box; `seen` has the axes that were there before. From west to east the low end may be above the
 * high one, where the axis leads around the earth. */
static mc_error *
cut_place_side(mc_extent *box, bool seen[2], const mc_subset *subset, int epsg, apr_pool_t *pool)
{
    int which;
    bool degrees = epsg == 4326, around = degrees || epsg == 3857;
    if (!mc_subset_is_place(&which, subset->axis, degrees))
        return refuse_interval(
            subset, degrees ? "the axes of the CRS are Lon and Lat" : "the axes of the CRS are X and Y", pool);
    double *low = which == 0 ? &box->minx : &box->miny, *high = which == 0 ? &box->maxx : &box->maxy;
    if (seen[which])
        return refuse_interval(subset, "it is given twice", pool);
    seen[which] = true;
    if (!subset->interval)
        return refuse_interval(subset, "a map has an interval LOW:HIGH, not one point", pool);
    if ((subset->low != NULL && (!mc_parse_double(low, subset->low) || !are_coordinates(low, 1))) ||
        (subset->high != NULL && (!mc_parse_double(high, subset->high) || !are_coordinates(high, 1))))
        return refuse_interval(subset, "its ends are numbers, or * for an open one", pool);
    if (is_beyond_axis(*low, *high, which, epsg))
        return mc_error_located(pool, MC_ERR_NOT_FOUND, "subset", "subset of the axis %s: there is nothing there",
                                mc_message_text(subset->axis, 100, pool));
    if (*low == *high || (*low > *high && !(around && which == 0)))
        return refuse_interval(subset,
                               "the low end must be below the high one; only longitudes across the antimeridian stand "
                               "the other way round",
                               pool);
    return MC_OK;
}

/* *given: whether the request cuts a side. The axes are named, so that their order in the CRS does not matter. */
static mc_error *
find_subset_place(mc_extent *box, bool *across, bool *given, const mc_ogcapi_ask *ask)
{
    mc_subset list[MC_SUBSET_AXES_MAX];
    mc_ogcapi_crs crs;
    bool seen[2] = { false, false };
    int count;
    *given = false;
    MC_TRY(mc_ogcapi_subsets(list, &count, ask));
    for (int i = 0; i < count; i++)
        *given = *given || mc_ogcapi_is_place_axis(list[i].axis, ask);
    if (!*given)
        return MC_OK; /* of other axes alone, `subset-crs` does not matter */
    MC_TRY(read_place_crs(&crs, "subset-crs", ask->map.subset_crs, ask));
    crs.yx = false;
    *box = find_whole_extent(&crs, ask);
    for (int i = 0; i < count; i++)
        if (mc_ogcapi_is_place_axis(list[i].axis, ask))
            MC_TRY(cut_place_side(box, seen, &list[i], crs.epsg, ask->pool));
    return mc_ogcapi_crs_box(box, across, &crs, ask->link->grid, "subset", ask->pool);
}

/* --- center ----------------------------------------------------------------------------------------------------- */

/* A point goes into the CRS of the map as the middle of a small box. */
static mc_error *
find_center(mc_ogcapi_place *place, const mc_ogcapi_ask *ask)
{
    mc_ogcapi_crs crs;
    double numbers[3];
    int found = 0;
    bool across;
    const char *text = ask->map.center;
    MC_TRY(read_place_crs(&crs, "center-crs", ask->map.center_crs, ask));
    if (!mc_parse_doubles(numbers, 3, &found, text, ",") || found < 2 || !are_coordinates(numbers, found))
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "center", "center \"%s\" is not two numbers",
                                mc_message_text(text, 100, ask->pool));
    double half = crs.epsg == 4326 ? 1e-6 : 0.1;
    mc_extent box = { numbers[0] - half, numbers[1] - half, numbers[0] + half, numbers[1] + half };
    MC_TRY(mc_ogcapi_crs_box(&box, &across, &crs, ask->link->grid, "center", ask->pool));
    place->center_x = (box.minx + box.maxx) / 2;
    place->center_y = (box.miny + box.maxy) / 2;
    place->centered = true;
    return MC_OK;
}

mc_error *
mc_ogcapi_map_place(mc_ogcapi_place *place, mc_ogcapi_ask *ask)
{
    mc_extent box = { 0 };
    bool by_subset;
    for (int i = 0; i < ask->layer_count; i++)
        mc_tileset_ask_place(ask->layers[i].tileset, ask->ctx);
    for (int i = 0; i < ask->layer_count; i++) {
        mc_extent each = ask->layers[i].link->extent;
        (void)mc_tileset_data_extent(&each, ask->layers[i].tileset, ask->layers[i].link, ask->pool);
        place->box = i == 0 ? each : mc_extent_union(&place->box, &each);
    }
    place->center_x = (place->box.minx + place->box.maxx) / 2;
    place->center_y = (place->box.miny + place->box.maxy) / 2;
    MC_TRY(find_subset_place(&box, &place->across, &by_subset, ask));
    if (by_subset + (ask->map.bbox != NULL) + (ask->map.center != NULL) > 1)
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, by_subset ? "subset" : "center",
                                "the area of a map is given once: by bbox, by subset or by center");
    if (ask->map.center != NULL)
        return find_center(place, ask);
    if (ask->map.bbox != NULL)
        MC_TRY(find_bbox_place(&box, &place->across, ask));
    place->given = by_subset || ask->map.bbox != NULL;
    if (place->given)
        place->box = box;
    return MC_OK;
}
