/* What a shapefile says of itself in its headers. */
#include <apr_strings.h>
#include <string.h>

#include "data/data_private.h"
#include "vector/feature/feature.h"
#include "vector/shapefile/shp.h"

static mc_data_shape
shape_of_shapefile(int type)
{
    switch (type % 10) { /* with Z, with M, without both: 1, 11, 21 */
    case 1:
    case 8:
        return MC_DATA_POINTS;
    case 3:
        return MC_DATA_LINES;
    case 5:
        return MC_DATA_AREAS;
    default:
        return MC_DATA_ANY_SHAPE;
    }
}

static const apr_array_header_t *
list_shapefile_fields(const mc_dbf *dbf, apr_pool_t *pool)
{
    apr_array_header_t *fields = apr_array_make(pool, 8, sizeof(mc_field));
    for (int i = 0; dbf != NULL && i < dbf->field_count; i++) {
        const mc_dbf_field *field = &dbf->fields[i];
        bool number = field->type == 'N' || field->type == 'F';
        APR_ARRAY_PUSH(fields, mc_field) =
            (mc_field){ apr_pstrdup(pool, field->name), field->type == 'L'              ? MC_FIELD_BOOLEAN
                                                        : number && field->decimals > 0 ? MC_FIELD_NUMBER
                                                        : number                        ? MC_FIELD_INTEGER
                                                                                        : MC_FIELD_TEXT };
    }
    return fields;
}

static void
describe_shapefile(mc_data_layer *layer, const mc_shp *shp, const char *path, apr_pool_t *pool)
{
    layer->data = apr_pstrdup(pool, path);
    layer->name = mc_data_stem(path, pool);
    layer->shape = shape_of_shapefile(shp->type);
    layer->srs = shp->projection == NULL ? NULL : apr_pstrdup(pool, shp->projection);
    layer->attributes = list_shapefile_fields(shp->attributes, pool);
    layer->has_extent = shp->count > 0 && shp->box.minx <= shp->box.maxx && shp->box.miny <= shp->box.maxy;
    layer->extent = shp->box;
    if (layer->srs == NULL && layer->has_extent && shp->box.minx >= -180 && shp->box.maxx <= 180 &&
        shp->box.miny >= -90 && shp->box.maxy <= 90) {
        layer->srs = "EPSG:4326";
        layer->assumed = true;
    }
    mc_data_place(layer, 0, pool);
}

mc_error *
mc_data_look_shapefile(mc_data_search *search, const char *path)
{
    apr_pool_t *scratch;
    mc_shp *shp;
    apr_pool_create(&scratch, search->pool);
    mc_error *error = mc_error_copy(mc_shp_open(&shp, path, NULL, scratch), search->pool);
    if (error == MC_OK) {
        mc_data_layer *layer = mc_data_add(search, MC_DATA_VECTOR, "shapefile");
        if (layer != NULL)
            describe_shapefile(layer, shp, path, search->pool);
        if (layer != NULL && layer->assumed) /* what else follows from a missing .prj says the source */
            mc_data_note(search, "%s has no .prj: its coordinates are taken for degrees", path);
    }
    apr_pool_destroy(scratch);
    return error;
}
