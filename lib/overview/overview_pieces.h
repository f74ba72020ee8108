/* Reading a source from its end. */
#ifndef MC_OVERVIEW_OVERVIEW_PIECES_H
#define MC_OVERVIEW_OVERVIEW_PIECES_H

#include "overview/overview_private.h"

/* Visits the rows (mc_overview_row) of some pieces, in drawing order. */
typedef mc_error *mc_overview_rows_visitor(void *baton, const apr_array_header_t *rows);

/* Visits all rows of the source, the last pieces first, and tells how far the reading is. */
mc_error *mc_overview_read_pieces(const mc_overview_job *job, mc_overview_rows_visitor *visit, void *baton,
                                  apr_pool_t *pool) MC_CHECKED;

#endif
