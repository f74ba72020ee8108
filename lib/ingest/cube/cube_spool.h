/* Room for decoded images that wait to be written: memory, or a file without a name that ends with the process. */
#ifndef MC_INGEST_CUBE_CUBE_SPOOL_H
#define MC_INGEST_CUBE_CUBE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "mapcache/error.h"

typedef struct mc_spool {
    uint8_t *memory; /* NULL: it is a file */
    size_t size;
    int file;
} mc_spool;

/* folder NULL: in memory. MC_ERR_IO: no file can be made there. Zeros at first. Ends with mc_spool_close. */
mc_error *mc_spool_open(mc_spool *spool, size_t size, const char *folder, apr_pool_t *pool) MC_CHECKED;
void mc_spool_close(mc_spool *spool);

/*
 * Parts belong to one thread at a time. `room` is where bytes can be put that belong at `offset`: in the spool itself,
 * or `buffer`; `keep` makes sure that they are there (it copies what stands elsewhere). `look` is where they can be
 * read: in the spool, or `buffer`.
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
