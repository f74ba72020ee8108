/* The list of caches, made of the kinds in cache_kinds.h. */
#include <stddef.h>

#include "cache/cache_kinds.h"

#define X(name) &mc_cache_##name,
const mc_cache_ops *const mc_cache_kinds[] = { MC_CACHE_KINDS(X) NULL };
#undef X
