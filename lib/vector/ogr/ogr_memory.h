/* Features of files that OGR would parse anew for each map (GeoJSON): in memory, shared by all who read the file. */
#ifndef MC_VECTOR_OGR_OGR_MEMORY_H
#define MC_VECTOR_OGR_OGR_MEMORY_H

#include "vector/ogr/ogr_file.h"

/* Bytes of a file, and of its features in memory, up to which they are kept; and of all files together. */
enum { MC_OGR_MEMORY_FILE = 64 << 20, MC_OGR_MEMORY_ALL = 128 << 20 };

/* The features of the file as it was at the key's stamp, with a reference for the caller; NULL: they are not there. */
mc_ogr_memory *mc_ogr_memory_find(const mc_idle_key *key);

/*
 * Reads all features of an open file, whose layer ignores no field, and keeps them for all. *memory NULL: they are too
 * large, or another thread is at it, for which nobody waits. An error is that of the reading.
 */
mc_error *mc_ogr_memory_make(mc_ogr_memory **memory, mc_ogr_file *file, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

void mc_ogr_memory_release(mc_ogr_memory *memory);

/* What the file said; lives as long as the reference. */
const mc_ogr_about *mc_ogr_memory_about(const mc_ogr_memory *memory);

/* Visits the features that meet the box. */
mc_error *mc_ogr_read_memory(mc_ogr_reading *r, const mc_ogr_memory *memory) MC_CHECKED;

#endif
