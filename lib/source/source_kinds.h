/* The kinds of sources, each a table of functions with the prefix of its noun: a new kind is a file and one line here.
 */
#ifndef MC_SOURCE_SOURCE_KINDS_H
#define MC_SOURCE_SOURCE_KINDS_H

#include "mapcache/source.h"

#define MC_SOURCE_KINDS(X)                                                                                             \
    X(wms)                                                                                                             \
    X(wmts)                                                                                                            \
    X(xyz)                                                                                                             \
    X(tileset)                                                                                                         \
    X(mapserver)                                                                                                       \
    X(gdal)                                                                                                            \
    X(dummy)                                                                                                           \
    X(fallback)                                                                                                        \
    X(shapefile)                                                                                                       \
    X(postgis)                                                                                                         \
    X(ogr)                                                                                                             \
    X(cube)

#define X(name) extern const mc_source_ops mc_source_##name;
MC_SOURCE_KINDS(X)
#undef X

#endif
