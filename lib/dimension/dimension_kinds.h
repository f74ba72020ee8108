/* The kinds of dimensions, each a table of functions with the prefix of its noun: a new kind is a file and one line
 * here.
 */
#ifndef MC_DIMENSION_DIMENSION_KINDS_H
#define MC_DIMENSION_DIMENSION_KINDS_H

#include "mapcache/dimension.h"

#define MC_DIMENSION_KINDS(X)                                                                                          \
    X(values)                                                                                                          \
    X(regex)                                                                                                           \
    X(sqlite)                                                                                                          \
    X(time)                                                                                                            \
    X(postgresql)                                                                                                      \
    X(elasticsearch)                                                                                                   \
    X(cube)

#define X(name) extern const mc_dimension_ops mc_dimension_##name;
MC_DIMENSION_KINDS(X)
#undef X

#endif
