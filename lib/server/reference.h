/* The configuration reference, written from the tables that the parser reads by. */
#ifndef MC_SERVER_REFERENCE_H
#define MC_SERVER_REFERENCE_H

#include <apr_pools.h>

/* All elements and attributes of this build as Markdown. */
const char *mc_reference_markdown(apr_pool_t *pool);

#endif
