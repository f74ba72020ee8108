/*
 * Files read by position. A mapped file that is cut short kills its reader (SIGBUS); reading from such a file gives
 * fewer bytes, which the reader notices. Reading through views of a quarter of a megabyte costs as much as mapping.
 */
#ifndef MC_VECTOR_SHAPEFILE_FILE_H
#define MC_VECTOR_SHAPEFILE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "mapcache/error.h"

typedef struct mc_file {
    int fd; /* -1: there is none */
    uint64_t size;
} mc_file;

/* Opens a file for reading until `pool` is cleared. fd -1, and no error, where there is none; MC_ERR_IO for what cannot
 * be opened or is no file. */
mc_error *mc_file_open(mc_file *file, const char *path, apr_pool_t *pool) MC_CHECKED;

/* Returns the number of bytes read: fewer than `size` at the end of the file, or where the file cannot be read. From
 * any thread. */
size_t mc_file_read(const mc_file *file, uint64_t offset, void *buffer, size_t size);

/* A part of a file in memory: of one thread, used again for the next part. */
typedef struct mc_file_view {
    const mc_file *file;
    uint8_t *bytes;
    size_t room, size;
    uint64_t begin;
    size_t counted; /* bytes of the room in the budget (base/budget.h): of large parts */
    bool refused;   /* there was no memory for a part */
    bool cut;       /* a part that was there when the file was opened could not be read */
} mc_file_view;

enum { MC_FILE_VIEW_MAX = 1 << 30 };

/* `size` bytes at `offset`, valid until the next call. NULL where the file does not have these bytes (any more), where
 * `size` is above MC_FILE_VIEW_MAX, or where there is no memory (view->refused). `ahead`: the number of further bytes
 * to be read in the same go. */
const uint8_t *mc_file_view_at(mc_file_view *view, uint64_t offset, size_t size, size_t ahead);
void mc_file_view_free(mc_file_view *view);

#endif
