/*
 * The format PMTiles, version 3: the header, tile ids and directories. Whatever a file says is checked: nothing here
 * takes more memory or time than the bytes that are there allow.
 */
#ifndef MC_CACHE_PMTILES_FORMAT_H
#define MC_CACHE_PMTILES_FORMAT_H

#include "mapcache/buf.h"

enum {
    MC_PMTILES_HEADER = 127,         /* bytes */
    MC_PMTILES_FRONT = 16384,        /* bytes at the beginning in which the header and the root directory stand */
    MC_PMTILES_ENTRIES_MAX = 1 << 20 /* of one directory */
};

typedef enum mc_pmtiles_compression {
    MC_PMTILES_UNKNOWN,
    MC_PMTILES_NONE,
    MC_PMTILES_GZIP,
    MC_PMTILES_BROTLI,
    MC_PMTILES_ZSTD,
} mc_pmtiles_compression;

typedef enum mc_pmtiles_type {
    MC_PMTILES_OTHER,
    MC_PMTILES_MVT,
    MC_PMTILES_PNG,
    MC_PMTILES_JPEG,
    MC_PMTILES_WEBP,
    MC_PMTILES_AVIF,
} mc_pmtiles_type;

typedef struct mc_pmtiles_section {
    uint64_t offset, size; /* bytes, from the beginning of the file */
} mc_pmtiles_section;

typedef struct mc_pmtiles_header {
    mc_pmtiles_section root, metadata, leaves, tiles;
    uint64_t addressed, entries, contents; /* tiles; their entries; different contents. 0: not known */
    bool clustered;
    int internal, coding; /* mc_pmtiles_compression: of directories and metadata; of tiles */
    int type;             /* mc_pmtiles_type */
    int minzoom, maxzoom, centre_zoom;
    double west, south, east, north, centre_x, centre_y; /* degrees */
} mc_pmtiles_header;

/* MC_ERR_CORRUPT: no PMTiles file, of another version, or with a section beyond its end (`file_size` bytes). */
mc_error *mc_pmtiles_parse_header(mc_pmtiles_header *header, const uint8_t *bytes, size_t size, uint64_t file_size,
                                  apr_pool_t *pool) MC_CHECKED;
void mc_pmtiles_format_header(uint8_t bytes[MC_PMTILES_HEADER], const mc_pmtiles_header *header);

/* run: how many tiles from `id` on are the same; 0: a leaf directory. offset: from the beginning of the section of
 * tiles, or of leaves. */
typedef struct mc_pmtiles_entry {
    uint64_t id, offset;
    uint32_t length, run;
} mc_pmtiles_entry;

/* Ascending by id. */
typedef struct mc_pmtiles_directory {
    uint32_t count;
    mc_pmtiles_entry entries[];
} mc_pmtiles_directory;

static inline size_t
mc_pmtiles_directory_bytes(const mc_pmtiles_directory *directory)
{
    return sizeof(*directory) + directory->count * sizeof(directory->entries[0]);
}

/* *directory is from malloc(). MC_ERR_CORRUPT for what is no directory, MC_ERR_LIMIT for more entries than
 * MC_PMTILES_ENTRIES_MAX, MC_ERR_CONFIG for a compression of a later version. */
mc_error *mc_pmtiles_decode_directory(mc_pmtiles_directory **directory, const void *bytes, size_t size, int compression,
                                      apr_pool_t *pool) MC_CHECKED;

/* Appends `count` entries, as they stand in a file before compression. */
mc_error *mc_pmtiles_encode_directory(mc_buf *out, const mc_pmtiles_entry *entries, size_t count,
                                      apr_pool_t *pool) MC_CHECKED;

/* The entry that has the tile, or the leaf directory that may have it; NULL: there is no such tile. */
const mc_pmtiles_entry *mc_pmtiles_find(const mc_pmtiles_directory *directory, uint64_t id);

/* Undoes what the header calls a compression; at most `most` bytes, attached to `pool`. *out is `bytes` itself where
 * there is none. */
mc_error *mc_pmtiles_expand(mc_buf **out, mc_buf *bytes, int compression, size_t most, apr_pool_t *pool) MC_CHECKED;

#endif
