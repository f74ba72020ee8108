/* The protocols, each a table of functions with the prefix of its noun, in the order in which a path is tried against
 * them (docs/reference/services.md 1): a new one is a file and one line here. */
#ifndef MC_SERVICE_SERVICE_KINDS_H
#define MC_SERVICE_SERVICE_KINDS_H

#include "mapcache/service.h"

#define MC_SERVICE_KINDS(X)                                                                                            \
    X(tms)                                                                                                             \
    X(wmts)                                                                                                            \
    X(demo)                                                                                                            \
    X(gmaps)                                                                                                           \
    X(kml)                                                                                                             \
    X(ve)                                                                                                              \
    X(mapguide)                                                                                                        \
    X(ogcapi)                                                                                                          \
    X(metrics)                                                                                                         \
    X(health)                                                                                                          \
    X(ready)                                                                                                           \
    X(status)                                                                                                          \
    X(purge)                                                                                                           \
    X(jobs)                                                                                                            \
    X(wms)

#define X(name) extern const mc_service_ops mc_service_##name;
MC_SERVICE_KINDS(X)
#undef X

#endif
