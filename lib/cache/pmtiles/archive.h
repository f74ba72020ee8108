/* Reading PMTiles archives: a tile of an archive, and all of its tiles in order. */
#ifndef MC_CACHE_PMTILES_ARCHIVE_H
#define MC_CACHE_PMTILES_ARCHIVE_H

#include "cache/archive/ranges.h"
#include "cache/pmtiles/format.h"

/* An archive that is looked at. What of its directories has been read stays in the memory of the process, as long as
 * the file's stamp holds. */
typedef struct mc_pmtiles_archive {
    mc_ranged_file file;
    mc_pmtiles_header header;
    mc_ctx *ctx;
    struct mc_clock_cache_entry *held; /* of the memory, while `root` is in use */
    const mc_pmtiles_directory *root;
    mc_pmtiles_directory *own; /* `root`, where the memory has not taken it */
} mc_pmtiles_archive;

/* Reads header and root directory of the file that archive->file has been looked at (mc_ranges_look). After an error,
 * too, mc_pmtiles_close must follow. */
mc_error *mc_pmtiles_open(mc_pmtiles_archive *archive, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
void mc_pmtiles_close(mc_pmtiles_archive *archive);

/* Where a tile stands; entry->length 0: it is not there. MC_ERR_CORRUPT: directories that nest too deeply, or lie
 * outside of their section. */
mc_error *mc_pmtiles_seek(mc_pmtiles_entry *entry, mc_pmtiles_archive *archive, uint64_t id,
                          apr_pool_t *pool) MC_CHECKED;

/* Of an archive behind HTTP: reads the leaf directories of these tiles together, for mc_pmtiles_seek, and keeps them in
 * memory. What cannot be kept is left to mc_pmtiles_seek. */
mc_error *mc_pmtiles_prepare(mc_pmtiles_archive *archive, const uint64_t *ids, int count, apr_pool_t *pool) MC_CHECKED;

/* The bytes of an entry as clients get them: those of pictures without a compression around them, vector tiles
 * compressed with gzip or not at all. Attached to `pool`. */
mc_error *mc_pmtiles_read(mc_buf **data, mc_pmtiles_archive *archive, const mc_pmtiles_entry *entry,
                          apr_pool_t *pool) MC_CHECKED;

/* Makes of bytes of the archive what mc_pmtiles_read gives. */
mc_error *mc_pmtiles_unpack(mc_buf **data, const mc_pmtiles_archive *archive, apr_pool_t *pool) MC_CHECKED;

/* The same as they stand in the archive, with its header's coding. */
mc_error *mc_pmtiles_read_stored(mc_buf **data, mc_pmtiles_archive *archive, const mc_pmtiles_entry *entry,
                                 apr_pool_t *pool) MC_CHECKED;

/* Told of entries of tiles, in the order of their ids. An error ends the walk. */
typedef mc_error *mc_pmtiles_visit(void *baton, const mc_pmtiles_entry *entry);

/* Visits all entries that have tiles of numbers first <= id < end. MC_ERR_CORRUPT where they are not in order. */
mc_error *mc_pmtiles_walk(mc_pmtiles_archive *archive, uint64_t first, uint64_t end, mc_pmtiles_visit *visit,
                          void *baton, apr_pool_t *pool) MC_CHECKED;

/* The metadata: JSON, of at most 16 MB, attached to `pool`; empty where there are none. */
mc_error *mc_pmtiles_read_metadata(mc_buf **json, mc_pmtiles_archive *archive, apr_pool_t *pool) MC_CHECKED;

#endif
