/* Many tiles of an archive behind HTTP with few requests. */
#ifndef MC_CACHE_PMTILES_FAR_H
#define MC_CACHE_PMTILES_FAR_H

#include "cache/pmtiles/archive.h"

typedef struct mc_pmtiles_wanted {
    int number; /* of the caller */
    mc_pmtiles_entry entry;
    mc_buf *data; /* filled in, as mc_pmtiles_read has it */
} mc_pmtiles_wanted;

/* Reads the tiles of `count` entries that are there. */
mc_error *mc_pmtiles_fetch(mc_pmtiles_wanted *wanted, int count, mc_pmtiles_archive *archive,
                           apr_pool_t *pool) MC_CHECKED;

#endif
