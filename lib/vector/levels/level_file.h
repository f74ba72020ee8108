/*
 * Overviews in a file beside the data: levels of blocks (level_blocks.h) with an index of their boxes. All numbers are
 * little-endian; boxes, resolutions and metres are doubles.
 *
 *   magic "mcover1\n"; u64 digest of the style; u64 of the CRS and the code page of the data; u64
 *   digest of the data's bytes
 *   for each of three files of the data: i64 size (-1: there is none); u64 inode; i64 mtime, i64 ctime in nanoseconds
 *   u64 bytes of the whole file; u32 number of levels; u32 0
 *   for each level, the finest first: resolution, until, metres per unit; i32 decimals, u32 blocks; u64 where its index
 *   begins, u64 features
 *   for each block in an index, by parts: box (minx, miny, maxx, maxy); u64 where it begins; u32 bytes; u32 part
 */
#ifndef MC_VECTOR_LEVELS_LEVEL_FILE_H
#define MC_VECTOR_LEVELS_LEVEL_FILE_H

#include "vector/levels/level_choice.h"
#include "vector/levels/level_origin.h"
#include "vector/levels/level_reading.h"

#define MC_LEVEL_FILE_MAGIC "mcover1\n"

enum {
    MC_LEVEL_FILE_ORIGIN = 4 * 8,
    MC_LEVEL_FILE_HEAD = 4 * 8 + MC_LEVEL_FILE_ORIGIN * MC_LEVEL_ORIGINS + 8 + 8,
    MC_LEVEL_FILE_LEVEL = 3 * 8 + 2 * 4 + 2 * 8,
    MC_LEVEL_FILE_BLOCK = 4 * 8 + 8 + 2 * 4,
    MC_LEVEL_BLOCK_MAX = 1 << 28, /* bytes of a block */
};

typedef struct mc_level_place {
    mc_extent box;
    uint64_t begin;
    uint32_t size, part;
} mc_level_place;

typedef struct mc_level_file {
    int fd;
    uint64_t size, style, indexed; /* indexed: bytes of the indexes that were read */
    mc_level_origin origin;
    int count; /* of levels */
    mc_level_range ranges[MC_LEVELS_MAX];
    uint32_t block_counts[MC_LEVELS_MAX];
    int64_t features[MC_LEVELS_MAX];       /* as the file says; nothing depends on that */
    mc_level_place *places[MC_LEVELS_MAX]; /* of the blocks of each level, by parts */
    apr_pool_t *pool;                      /* its own */
    const char *path;
    int read; /* levels whose index is read, and blocks of the next one's */
    uint32_t read_blocks;
    uint64_t next_index; /* where that index begins */
} mc_level_file;

/*
 * Opens the file and reads its index until `pool` is cleared; *file NULL: there is none. `data`: an open file of the
 * data (-1: none), whose owner's overviews are trusted. What cannot be used is refused before anything is read of it:
 * MC_ERR_IO for what cannot be opened or is no regular file, as symbolic links are none, MC_ERR_FORBIDDEN for another
 * user's file in a folder where everybody may write. MC_ERR_CORRUPT for what is no file of overviews.
 */
mc_error *mc_level_file_open(mc_level_file **file, const char *path, int data, apr_pool_t *pool) MC_CHECKED;

/*
 * The same in steps, for those who have a deadline: opens the file; then reads its index until the deadline of `ctx` or
 * its client ends that (errors of mc_ctx_check; NULL: whatever it takes). The next call goes on from there, and each
 * gets on. Nothing of the levels is to be used before. Errors are made in `pool`; one thread at a time.
 */
mc_error *mc_level_file_begin_opening(mc_level_file **file, const char *path, int data, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_level_file_go_on_opening(mc_level_file *file, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Visits the features of a level in a box, in drawing order. MC_ERR_CORRUPT for blocks that are none. */
mc_error *mc_level_file_read(mc_level_reading *r, const mc_level_file *file, int level, const mc_extent *box,
                             apr_pool_t *pool) MC_CHECKED;

#endif
