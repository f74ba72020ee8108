/* Where collections lie, in space, in time and in other dimensions (OGC 20-024, 7.3; OGC 20-058, 16). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "service/ogcapi/ogcapi.h"
#include "text/time.h"

/* As RFC 3339, 5.6 has a time: also midnights with their hour. */
static const char *
full_time(int64_t time_us, apr_pool_t *pool)
{
    const char *text = mc_time_text(time_us, pool);
    return strchr(text, 'T') != NULL ? text : apr_pstrcat(pool, text, "T00:00:00Z", NULL);
}

static void
write_temporal_extent(mc_json_writer *json, mc_dimension *dimension, const mc_ogcapi_ask *ask)
{
    const apr_array_header_t *values = mc_dimension_values_known(dimension, ask->tileset->name, ask->ctx);
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (int i = 0; i < values->nelts; i++) {
        const char *value = APR_ARRAY_IDX(values, i, const char *);
        mc_time_span span;
        if (mc_time_parse(&span, value, strlen(value), apr_time_now()) != NULL)
            continue;
        first = span.start_us < first ? span.start_us : first;
        last = span.end_us > last ? span.end_us : last;
    }
    mc_json_open_object(json, "temporal");
    mc_json_open_array(json, "interval");
    mc_json_open_array(json, NULL);
    mc_json_string(json, NULL, first == INT64_MAX ? NULL : full_time(first, ask->pool));
    mc_json_string(json, NULL, last == INT64_MIN ? NULL : full_time(last - 1000000, ask->pool));
    mc_json_close(json);
    mc_json_close(json);
    mc_json_string(json, "trs", "http://www.opengis.net/def/uom/ISO-8601/0/Gregorian");
    mc_json_close(json);
}

/* Another dimension as OGC 20-058, 15 has it: its values are a grid of coordinates. What it means is said where the
 * collection is described. */
static void
write_other_extent(mc_json_writer *json, mc_dimension *dimension, const mc_ogcapi_ask *ask)
{
    const apr_array_header_t *values = mc_dimension_values_known(dimension, ask->tileset->name, ask->ctx);
    int last = values->nelts - 1;
    mc_json_open_object(json, dimension->name);
    mc_json_open_array(json, "interval");
    mc_json_open_array(json, NULL);
    mc_json_string(json, NULL, last < 0 ? NULL : APR_ARRAY_IDX(values, 0, const char *));
    mc_json_string(json, NULL, last < 0 ? NULL : APR_ARRAY_IDX(values, last, const char *));
    mc_json_close(json);
    mc_json_close(json);
    mc_json_string(json, "definition",
                   mc_ogcapi_url(ask, "/collections/%s?f=html#%s", mc_url_segment(ask->tileset->name, ask->pool),
                                 mc_url_segment(dimension->name, ask->pool)));
    mc_ogcapi_member(json, "unit", *mc_dimension_units(dimension) == '\0' ? NULL : mc_dimension_units(dimension));
    mc_json_open_object(json, "grid");
    mc_json_integer(json, "cellsCount", values->nelts);
    mc_json_open_array(json, "coordinates");
    for (int i = 0; i < values->nelts; i++)
        mc_json_string(json, NULL, APR_ARRAY_IDX(values, i, const char *));
    mc_json_close(json);
    mc_json_close(json);
    mc_json_close(json);
}

/* The box in the storage CRS, as OGC 20-058, 16.2 wants it beside that of CRS84. */
static void
write_storage_box(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    const mc_grid_link *link = mc_ogcapi_storage_link(ask->tileset);
    if (link == NULL || link->grid->epsg == 4326)
        return;
    mc_extent box = link->extent;
    bool yx = mc_grid_is_yx(link->grid);
    (void)mc_tileset_data_extent(&box, ask->tileset, link, ask->pool);
    const double numbers[] = { yx ? box.miny : box.minx, yx ? box.minx : box.miny, yx ? box.maxy : box.maxx,
                               yx ? box.maxx : box.maxy };
    mc_json_open_array(json, "storageCrsBbox");
    mc_json_open_array(json, NULL);
    for (int i = 0; i < 4; i++)
        mc_json_digits(json, NULL, numbers[i], 15);
    mc_json_close(json);
    mc_json_close(json);
}

void
mc_ogcapi_spatial_extent(mc_json_writer *json, const mc_extent *box, const mc_ogcapi_ask *ask)
{
    const double numbers[] = { fmax(box->minx, -180), fmax(box->miny, -90), fmin(box->maxx, 180), fmin(box->maxy, 90) };
    mc_json_open_object(json, "spatial");
    mc_json_open_array(json, "bbox");
    mc_json_open_array(json, NULL);
    for (int i = 0; i < 4; i++)
        mc_json_digits(json, NULL, numbers[i], 12);
    mc_json_close(json);
    mc_json_close(json);
    mc_json_string(json, "crs", MC_OGCAPI_CRS84);
    write_storage_box(json, ask);
    mc_json_close(json);
}

void
mc_ogcapi_extent(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    const mc_tileset *tileset = ask->tileset;
    mc_extent box = mc_tileset_degrees(tileset);
    mc_dimension *time = mc_ogcapi_time(tileset);
    mc_json_open_object(json, "extent");
    mc_ogcapi_spatial_extent(json, &box, ask);
    if (time != NULL)
        write_temporal_extent(json, time, ask);
    for (int i = 0; i < tileset->dimension_count; i++)
        if (tileset->dimensions[i] != time)
            write_other_extent(json, tileset->dimensions[i], ask);
    mc_json_close(json);
}

void
mc_ogcapi_collection_crs(mc_json_writer *json, const mc_tileset *tileset, apr_pool_t *pool)
{
    mc_json_open_array(json, "crs");
    for (int i = 0; i < tileset->link_count; i++) {
        const char *uri = mc_grid_crs_uri(tileset->links[i]->grid, pool);
        bool first = true;
        for (int j = 0; j < i && first; j++)
            first = strcmp(uri, mc_grid_crs_uri(tileset->links[j]->grid, pool)) != 0;
        if (first)
            mc_json_string(json, NULL, uri);
    }
    mc_json_close(json);
    if (mc_ogcapi_storage_link(tileset) != NULL)
        mc_json_string(json, "storageCrs", mc_grid_crs_uri(mc_ogcapi_storage_link(tileset)->grid, pool));
}
