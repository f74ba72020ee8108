/* Rasters and vector files by GDAL, whose part is in the module mapcache-gdal.so (data_gdal.h). */
#include "base/module.h"
#include "data/data_gdal.h"

static const char needs_gdal[] = "rasters, GeoPackages, FlatGeobufs and GeoJSONs need GDAL";

mc_error *
mc_data_look_gdal(mc_data_search *search, const char *path, const char *part)
{
#ifdef MC_HAVE_GDAL
    void *symbol;
    double pixel = 0;
    int first = search->layers->nelts;
    mc_error *error = mc_module_symbol(&symbol, "gdal", MC_DATA_GDAL_SYMBOL, search->pool);
    if (error != MC_OK) /* without the file's name: a folder of such files says so once */
        return mc_error_wrap(search->pool, error, error->kind, "%s", needs_gdal);
    const mc_data_gdal_ops *ops = symbol;
    MC_TRY(ops->look(search, &pixel, path, part));
    for (int i = first; i < search->layers->nelts; i++)
        mc_data_place(APR_ARRAY_IDX(search->layers, i, mc_data_layer *), pixel, search->pool);
    return MC_OK;
#else
    (void)path;
    (void)part;
    return mc_error_create(search->pool, MC_ERR_NOT_BUILT, "%s, which is not part of this build", needs_gdal);
#endif
}
