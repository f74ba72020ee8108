/*
 * Writing a PMTiles archive: tiles in the order of their ids, equal ones once. The archive is written beside its place
 * and renamed: it is there whole or not at all. Memory does not grow with the number of tiles: the list of entries
 * waits in a file without a name, 24 bytes each.
 */
#ifndef MC_CACHE_PMTILES_WRITER_H
#define MC_CACHE_PMTILES_WRITER_H

#include "cache/pmtiles/format.h"

typedef struct mc_pmtiles_writer mc_pmtiles_writer;

/* What the archive says of its tiles. */
typedef struct mc_pmtiles_description {
    int type, coding;     /* mc_pmtiles_type, mc_pmtiles_compression */
    const char *metadata; /* JSON, an object */
    size_t metadata_size;
} mc_pmtiles_description;

/* For an archive at `path`, in `pool`. */
mc_error *mc_pmtiles_writer_create(mc_pmtiles_writer **writer, const char *path,
                                   const mc_pmtiles_description *description, apr_pool_t *pool) MC_CHECKED;

/* `run` tiles of the same content, from number `id` on, behind all that were added before. */
mc_error *mc_pmtiles_writer_add(mc_pmtiles_writer *writer, uint64_t id, uint32_t run, const void *data, size_t size,
                                apr_pool_t *pool) MC_CHECKED;

uint64_t mc_pmtiles_writer_count(const mc_pmtiles_writer *writer); /* tiles so far */

/* Puts the archive in its place, on the disk. Without a tile there is none: MC_ERR_LIMIT. */
mc_error *mc_pmtiles_writer_finish(mc_pmtiles_writer *writer, apr_pool_t *pool) MC_CHECKED;

/* Closes and removes what is not finished. Must be called once, whatever has happened. */
void mc_pmtiles_writer_destroy(mc_pmtiles_writer *writer);

#endif
