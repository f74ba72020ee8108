/*
 * Kinds of things by the attribute `type` of their element. A list of kinds is an array of pointers that ends with
 * NULL; each points to a table of operations whose first member is its type (MC_KIND in mapcache/config.h).
 */
#ifndef MC_CONFIG_KIND_H
#define MC_CONFIG_KIND_H

#include "mapcache/config.h"

typedef int mc_kind_compare(const char *a, const char *b); /* strcmp, strcasecmp */

/* The kind of an element, one of `kinds`; NULL after a complaint that names all of them. `noun`: "cache", "source", ...
 */
const void *mc_kind_choose(const void *kinds, const char *noun, const mc_node *node, mc_kind_compare *compare,
                           mc_build *build);

/* The types, with ", " between them. */
const char *mc_kind_types(const void *kinds, apr_pool_t *pool);

#endif
