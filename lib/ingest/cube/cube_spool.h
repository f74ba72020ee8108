/* Room for decoded images that wait to be written: memory, or a file without a name that ends with the process. */
#ifndef MC_INGEST_CUBE_CUBE_SPOOL_H
#define MC_INGEST_CUBE_CUBE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "mapcache/error.h"

typedef struct mc_spool {
    uint8_t *memory; /* NULL: the spool is a file */
    size_t size;
    int file;
} mc_spool;

/* folder NULL: in memory. MC_ERR_IO: no file can be made there. Zeros at first. Ends with mc_spool_close. */
mc_error *mc_spool_open(mc_spool *spool, size_t size, const char *folder, apr_pool_t *pool) MC_CHECKED;
void mc_spool_close(mc_spool *spool);

/*
 * A part belongs to one thread at a time. mc_spool_room: the place to write bytes for `offset`, in the spool itself or
 * in `buffer`. mc_spool_keep stores bytes that are not in the spool itself. mc_spool_look: the place to read bytes, in
 * the spool or in `buffer`.
 */
static inline uint8_t *
mc_spool_room(const mc_spool *spool, size_t offset, uint8_t *buffer)
{
    return spool->memory != NULL ? spool->memory + offset : buffer;
}
mc_error *mc_spool_keep(const mc_spool *spool, size_t offset, const uint8_t *bytes, size_t size,
                        apr_pool_t *pool) MC_CHECKED;
mc_error *mc_spool_look(const uint8_t **bytes, const mc_spool *spool, size_t offset, size_t size, uint8_t *buffer,
                        apr_pool_t *pool) MC_CHECKED;

#endif
