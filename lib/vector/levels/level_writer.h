/*
 * Writing a file of overviews (level_file.h), all or nothing: beside its place, under a lock, renamed when it is whole.
 * What a builder that was killed leaves has the ending .tmp or .tmp.spool, is not read, and is removed by the next one.
 */
#ifndef MC_VECTOR_LEVELS_LEVEL_WRITER_H
#define MC_VECTOR_LEVELS_LEVEL_WRITER_H

#include "vector/levels/level_file.h"

typedef struct mc_level_writer mc_level_writer;

/* The blocks of a level, until the file is written. */
typedef struct mc_level_spool mc_level_spool;

/* The file of a style beside `base` (a path without its ending). */
const char *mc_level_file_path(const char *base, uint64_t style, apr_pool_t *pool);

/* Locks `path` for writing, until `pool` is cleared. MC_ERR_UNAVAILABLE: another process has the lock, and the message
 * says which; MC_ERR_IO where the folder cannot be written. */
mc_error *mc_level_writer_open(mc_level_writer **writer, const char *path, apr_pool_t *pool) MC_CHECKED;

/* Room for the blocks of a level, in a file without a name. */
mc_error *mc_level_spool_create(mc_level_spool **spool, mc_level_writer *writer) MC_CHECKED;
mc_error *mc_level_spool_add(mc_level_spool *spool, const mc_level_place *place, const void *bytes) MC_CHECKED;

/* Visits the features of a level, whose blocks are all there, as mc_level_file_read. */
mc_error *mc_level_spool_read(mc_level_reading *r, mc_level_spool *spool, const mc_extent *box,
                              apr_pool_t *pool) MC_CHECKED;

/* The level is part of the file: the finest one comes first. Its blocks come in the order of their parts. Returns the
 * bytes that it takes. */
uint64_t mc_level_spool_keep(mc_level_spool *spool, const mc_level_range *range, int digits, int64_t features);

/* Writes the file of all levels that were kept, and puts it in its place; without any, removes what is there. */
mc_error *mc_level_writer_finish(mc_level_writer *writer, uint64_t style, const mc_level_origin *origin) MC_CHECKED;

/* Removes the file. *removed: it was there. */
mc_error *mc_level_writer_remove(bool *removed, mc_level_writer *writer) MC_CHECKED;

#endif
