/* The list of caches. A new back end is its file and one line here. */
#include "cache/cache_base.h"

const mc_cache_ops *const mc_cache_kinds[] = {
    &mc_cache_disk,       &mc_cache_sqlite,     &mc_cache_mbtiles,
    &mc_cache_geopackage, &mc_cache_postgresql, &mc_cache_composite,
    &mc_cache_fallback,   &mc_cache_multitier,  NULL,
};
