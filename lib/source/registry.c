/* The list of sources, made of the kinds in source_kinds.h. */
#include <stddef.h>

#include "source/source_kinds.h"

#define X(name) &mc_source_##name,
const mc_source_ops *const mc_source_kinds[] = { MC_SOURCE_KINDS(X) NULL };
#undef X
