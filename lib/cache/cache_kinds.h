/* The kinds of caches, each a table of functions with the prefix of its noun: a new kind is a file and one line here.
 */
#ifndef MC_CACHE_CACHE_KINDS_H
#define MC_CACHE_CACHE_KINDS_H

#include "mapcache/cache.h"

#define MC_CACHE_KINDS(X)                                                                                              \
    X(disk)                                                                                                            \
    X(sqlite)                                                                                                          \
    X(mbtiles)                                                                                                         \
    X(geopackage)                                                                                                      \
    X(pmtiles)                                                                                                         \
    X(tiff)                                                                                                            \
    X(bundle)                                                                                                          \
    X(mrf)                                                                                                             \
    X(rok4)                                                                                                            \
    X(metafile)                                                                                                        \
    X(cog)                                                                                                             \
    X(lmdb)                                                                                                            \
    X(bdb)                                                                                                             \
    X(postgresql)                                                                                                      \
    X(memcache)                                                                                                        \
    X(redis)                                                                                                           \
    X(rest)                                                                                                            \
    X(s3)                                                                                                              \
    X(azure)                                                                                                           \
    X(google)                                                                                                          \
    X(composite)                                                                                                       \
    X(fallback)                                                                                                        \
    X(multitier)                                                                                                       \
    X(none)

#define X(name) extern const mc_cache_ops mc_cache_##name;
MC_CACHE_KINDS(X)
#undef X

#endif
