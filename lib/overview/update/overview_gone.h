/* Features that have gone from a level since it was built: they are remembered, since many of them together may
 * uncover others. */
#ifndef MC_OVERVIEW_OVERVIEW_GONE_H
#define MC_OVERVIEW_OVERVIEW_GONE_H

#include "overview/overview_blocks.h"

/* Appends the features, mc_overview_feature, that were written; their bounds are not set. They live as long as `pool`.
 * MC_ERR_CORRUPT: the bytes are broken. */
mc_error *mc_overview_gone_read(apr_array_header_t *features, const void *bytes, size_t size,
                                const mc_overview_job *job, apr_pool_t *pool) MC_CHECKED;

/* Appends what reads as these: pointers to mc_overview_feature. */
void mc_overview_gone_write(mc_wkb_buffer *bytes, const apr_array_header_t *features, const mc_overview_job *job,
                            apr_pool_t *pool);

#endif
