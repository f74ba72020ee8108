/* See level_origin.h. */
#include "vector/levels/level_origin.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/hash.h"

enum { DIGEST_PIECE = 1 << 20 };

static int64_t
nanoseconds_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + (int64_t)time->tv_nsec;
}

mc_level_origin
mc_level_origin_of(const int files[MC_LEVEL_ORIGINS], uint64_t definition)
{
    mc_level_origin origin = { .definition = definition };
    for (int i = 0; i < MC_LEVEL_ORIGINS; i++) {
        struct stat status;
        origin.files[i].size = -1;
        if (files[i] >= 0 && fstat(files[i], &status) == 0)
            origin.files[i] = (mc_level_origin_file){ .size = (int64_t)status.st_size,
                                                      .inode = (uint64_t)status.st_ino,
                                                      .changed = nanoseconds_of(&status.st_mtim),
                                                      .touched = nanoseconds_of(&status.st_ctim) };
    }
    return origin;
}

static mc_error *
add_file_digest(uint64_t *digest, int file, int64_t size, uint8_t *buffer, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int64_t at = 0; at < size; at += DIGEST_PIECE) {
        const size_t piece = size - at < DIGEST_PIECE ? (size_t)(size - at) : DIGEST_PIECE;
        MC_TRY(mc_ctx_check(ctx, pool));
        if (mc_files_read_at(file, (uint64_t)at, buffer, piece) < piece)
            return mc_error_create(pool, MC_ERR_IO, "a file is shorter than it was, or cannot be read");
        *digest = mc_hash64(buffer, piece, *digest);
    }
    return MC_OK;
}

mc_error *
mc_level_origin_digest(uint64_t *digest, const mc_level_origin *origin, const int files[MC_LEVEL_ORIGINS], mc_ctx *ctx,
                       apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    uint8_t *buffer = malloc(DIGEST_PIECE);
    if (buffer == NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "there is no memory for reading a file");
    *digest = 0;
    for (int i = 0; error == MC_OK && i < MC_LEVEL_ORIGINS; i++)
        error = add_file_digest(digest, files[i], origin->files[i].size, buffer, ctx, pool);
    free(buffer);
    *digest += *digest == 0;
    return error;
}

bool
mc_level_origin_untouched(const mc_level_origin *a, const mc_level_origin *b)
{
    bool same = a->definition == b->definition;
    for (int i = 0; i < MC_LEVEL_ORIGINS; i++) {
        const mc_level_origin_file *one = &a->files[i], *other = &b->files[i];
        same = same && one->size == other->size && one->inode == other->inode && one->changed == other->changed &&
               one->touched == other->touched;
    }
    return same;
}

bool
mc_level_origin_alike(const mc_level_origin *a, const mc_level_origin *b)
{
    bool alike = a->definition == b->definition;
    for (int i = 0; i < MC_LEVEL_ORIGINS; i++)
        alike = alike && a->files[i].size == b->files[i].size;
    return alike;
}

bool
mc_level_origin_fresh(const mc_level_origin *origin, apr_time_t now)
{
    bool fresh = false;
    for (int i = 0; i < MC_LEVEL_ORIGINS; i++)
        fresh = fresh || (origin->files[i].size >= 0 && origin->files[i].touched / 1000 > now - MC_LEVEL_ORIGIN_FRESH);
    return fresh;
}
