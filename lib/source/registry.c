/* The source types. A new one is one file and one line here. */
#include <stddef.h>

#include "source/source_base.h"

const mc_source_ops *const mc_source_kinds[] = {
    &mc_source_wms,     &mc_source_mapserver, &mc_source_gdal,
    &mc_source_dummy,   &mc_source_fallback,  &mc_source_shapefile,
    &mc_source_postgis, &mc_source_cube,      NULL,
};
