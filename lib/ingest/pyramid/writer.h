/* Stores tiles while others are made: a thread that has one batch at a time, so that nobody waits for the disk. */
#ifndef MC_INGEST_PYRAMID_WRITER_H
#define MC_INGEST_PYRAMID_WRITER_H

#include "mapcache/ingest.h"

/* Tiles that wait for a common transaction. */
typedef struct mc_ingest_writes {
    apr_array_header_t *list; /* mc_tile_write; a reference of the data each */
    size_t bytes;
} mc_ingest_writes;

mc_ingest_writes mc_ingest_writes_create(apr_pool_t *pool);
void mc_ingest_writes_release(mc_ingest_writes *writes); /* empties it */

typedef struct mc_ingest_writer mc_ingest_writer;

/* MC_ERR_LIMIT without a thread. */
mc_error *mc_ingest_writer_create(mc_ingest_writer **writer, mc_cache *cache, const mc_ctx *ctx,
                                  apr_pool_t *pool) MC_CHECKED;

/* Whether a batch is on its way. */
bool mc_ingest_writer_busy(mc_ingest_writer *writer);

/*
 * Waits for the batch before and takes over another one; `writes` is empty then. Batches are stored in their order,
 * each in one go, tiles of lower levels first. Once one has failed nothing more is stored: its error.
 */
mc_error *mc_ingest_writer_store(mc_ingest_writer *writer, mc_ingest_writes *writes, apr_pool_t *pool) MC_CHECKED;

/* Waits for what is on its way. */
mc_error *mc_ingest_writer_wait(mc_ingest_writer *writer, apr_pool_t *pool) MC_CHECKED;

/* What has been committed: counts->tiles, bytes, store. */
void mc_ingest_writer_count(mc_ingest_writer *writer, mc_ingest_counts *counts);

void mc_ingest_writer_destroy(mc_ingest_writer *writer); /* NULL is ignored; waits for what is on its way */

#endif
