/* Offsets and sizes of the tiles of a TIFF behind HTTP: fetched and remembered by hundreds. */
#ifndef MC_CACHE_ARCHIVE_TIFF_NUMBERS_H
#define MC_CACHE_ARCHIVE_TIFF_NUMBERS_H

#include "cache/archive/tiff_index.h"

/* Fetches what is not known yet of the numbers of these tiles (below 0: none), together. */
mc_error *mc_tiff_prepare_numbers(const mc_tiff_index *index, mc_ranged_file *file, const int64_t *numbers, int count,
                                  apr_pool_t *pool) MC_CHECKED;

/* The bytes of the number of an array (index->offsets, index->counts) as they stand in the file. False: they are not in
 * the memory. */
bool mc_tiff_remembered_number(uint8_t bytes[8], const mc_tiff_array *array, uint64_t at, const mc_tiff_index *index,
                               const mc_ranged_file *file);

#endif
