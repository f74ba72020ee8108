/*
 * What overviews in a file were built from, so that they are never used for other data. Files that nobody has touched
 * since (inode, size, times of the last change of content and of state) are the same; so are others, as copies are,
 * whose bytes are.
 */
#ifndef MC_VECTOR_LEVELS_LEVEL_ORIGIN_H
#define MC_VECTOR_LEVELS_LEVEL_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "mapcache/ctx.h"

enum { MC_LEVEL_ORIGINS = 3 /* files */ };

typedef struct mc_level_origin_file {
    int64_t size; /* -1: there is none */
    uint64_t inode;
    int64_t changed, touched; /* mtime and ctime, in nanoseconds */
} mc_level_origin_file;

typedef struct mc_level_origin {
    mc_level_origin_file files[MC_LEVEL_ORIGINS];
    uint64_t definition; /* of CRS and code page */
    uint64_t content;    /* digest of all bytes; 0: not known */
} mc_level_origin;

/* Looks at open files (-1: there is none), and reads nothing of them. */
mc_level_origin mc_level_origin_of(const int files[MC_LEVEL_ORIGINS], uint64_t definition);

/* A digest of all bytes of the files that is made bit by bit; it begins as { 0 }. It is not for secrets. */
typedef struct mc_level_digest {
    uint64_t value; /* of what has been read */
    int file;       /* what is to be read next: of this file, */
    int64_t at;     /* from this byte on */
} mc_level_digest;

static inline bool
mc_level_digest_whole(const mc_level_digest *digest)
{
    return digest->file == MC_LEVEL_ORIGINS;
}

/* Of a whole one; never 0. */
static inline uint64_t
mc_level_digest_value(const mc_level_digest *digest)
{
    return digest->value == 0 ? 1 : digest->value;
}

/* Reads some more of the files, as long as they were when they were looked at: at most so many pieces of
 * MC_LEVEL_PIECE bytes, and, but for the first MC_LEVEL_PIECES_LEAST, none that begins after `until` (mc_clock_now; 0:
 * whatever it takes). Errors of mc_ctx_check; MC_ERR_IO: a file is shorter now, or cannot be read. After an error the
 * next call goes on as well. */
enum { MC_LEVEL_PIECE = 1 << 20, MC_LEVEL_PIECES_LEAST = 8 };
mc_error *mc_level_digest_go_on(mc_level_digest *digest, const mc_level_origin *origin,
                                const int files[MC_LEVEL_ORIGINS], int pieces, apr_time_t until, mc_ctx *ctx,
                                apr_pool_t *pool) MC_CHECKED;

/* The digest at once. */
mc_error *mc_level_origin_digest(uint64_t *digest, const mc_level_origin *origin, const int files[MC_LEVEL_ORIGINS],
                                 mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Whether these are the same files, and nobody has touched them in between. */
bool mc_level_origin_untouched(const mc_level_origin *a, const mc_level_origin *b);

/* Whether the bytes can be the same. */
bool mc_level_origin_alike(const mc_level_origin *a, const mc_level_origin *b);

/* Kernels take the time of a change from a clock that ticks every few milliseconds. */
#define MC_LEVEL_ORIGIN_FRESH apr_time_from_msec(50)

/* Whether a write right now could leave the times of the files as they are. */
bool mc_level_origin_fresh(const mc_level_origin *origin, apr_time_t now);

#endif
