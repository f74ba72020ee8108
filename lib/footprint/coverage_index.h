/*
 * The coverage of products, kept in a file so that the first map of a process need not open thousands of files: by the
 * identity of a series and the stamp of its file. The file is a help only: what is torn, stale, foreign or not to be
 * written is as if it were not there.
 */
#ifndef MC_FOOTPRINT_COVERAGE_INDEX_H
#define MC_FOOTPRINT_COVERAGE_INDEX_H

#include "footprint/footprint_private.h"

/* Of a process; any thread. */
typedef struct mc_coverage_index mc_coverage_index;

/* folder: where the files lie, one for each tileset and grid; NULL: there are none. */
mc_coverage_index *mc_coverage_index_create(const char *folder);
void mc_coverage_index_destroy(mc_coverage_index *index); /* NULL is ignored */

/* Before so many products of a series are recalled: what was let go after fewer products is read again. */
void mc_coverage_index_want(mc_coverage_index *index, const mc_batch_series *series, int count);

/* The facts of a series under the stamp of its file, with one reference, the caller's; NULL: the index has none. */
mc_file_facts *mc_coverage_index_recall(mc_coverage_index *index, const mc_batch_series *series,
                                        const mc_batch_file *file);

/* What a batch knows of its files is written, together with what was read, where enough of it is new. Once for each
 * tileset and grid, and again when a batch has twice as many. */
void mc_coverage_index_keep(mc_coverage_index *index, const mc_footprints *batch);

/* --- the content of a file, for tests ---------------------------------------------------------------------------- */

typedef struct mc_index_entry {
    mc_identity identity;
    uint32_t offset, size; /* of its coverage, as mc_coverage_write has it */
} mc_index_entry;

typedef struct mc_index_content {
    uint64_t salt; /* of its identities */
    uint32_t count;
    const mc_index_entry *entries; /* sorted */
    const uint8_t *bytes;          /* of the whole file */
} mc_index_content;

/* False where the bytes, aligned as from malloc(), are no index. `content` points into them. */
bool mc_index_read(mc_index_content *content, const uint8_t *bytes, size_t size);

/* NULL: there is no such entry, or what it has is no coverage. From malloc(). */
mc_coverage *mc_index_find(const mc_index_content *content, const mc_identity *identity);

#endif
