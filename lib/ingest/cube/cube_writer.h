/* The writer of a cube, as ingestion and overviews use it. */
#ifndef MC_INGEST_CUBE_CUBE_WRITER_H
#define MC_INGEST_CUBE_CUBE_WRITER_H

#include "cube/store.h"

/* As mc_cube_ops.write; while another writer is open, this call waits; an interrupt (*stop, which may be NULL) ends the
 * waiting with an error. */
mc_error *mc_cube_writer_open(mc_cube_writer **writer, const mc_cube *cube, const volatile int *stop, mc_ctx *ctx,
                              apr_pool_t *pool) MC_CHECKED;

/* All dates of the store (mc_cube_date), latest first. MC_ERR_CORRUPT where a date has an impossible place. */
mc_error *mc_cube_writer_dates(apr_array_header_t **dates, mc_cube_writer *writer, apr_pool_t *pool) MC_CHECKED;

/* Tidies up after the last commit. Failures are only logged, because everything is stored. *bytes: of the store, -1
 * where not known. */
void mc_cube_writer_tidy(int64_t *bytes, mc_cube_writer *writer);

#endif
