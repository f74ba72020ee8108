/* A thread that stores batches of tiles while other tiles are made, so that no other thread waits for the disk. */
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

/* Of a tileset's tiles, which all have the same grid and values of dimensions. MC_ERR_LIMIT without a thread. */
mc_error *mc_ingest_writer_create(mc_ingest_writer **writer, const mc_tileset *tileset, const mc_ctx *ctx,
                                  apr_pool_t *pool) MC_CHECKED;

/* Whether a batch is being stored. */
bool mc_ingest_writer_busy(mc_ingest_writer *writer);

/*
 * Waits until the previous batch is stored and takes over another batch; `writes` is empty then. Batches are stored in
 * their order, each in one go, tiles of lower levels first. After a batch has failed nothing more is stored, and the
 * error of that batch is returned.
 */
mc_error *mc_ingest_writer_store(mc_ingest_writer *writer, mc_ingest_writes *writes, apr_pool_t *pool) MC_CHECKED;

/* Waits until the last batch is stored. */
mc_error *mc_ingest_writer_wait(mc_ingest_writer *writer, apr_pool_t *pool) MC_CHECKED;

/* Adds the committed tiles to counts->tiles, bytes and store. */
void mc_ingest_writer_count(mc_ingest_writer *writer, mc_ingest_counts *counts);

void mc_ingest_writer_destroy(mc_ingest_writer *writer); /* NULL is ignored; waits until the last batch is stored */

#endif
