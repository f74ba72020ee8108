/* See level_origin.h. */
#include "vector/levels/level_origin.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"

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

/* Up to one piece of a file. */
static mc_error *
add_digest_piece(mc_level_digest *digest, const mc_level_origin *origin, const int files[MC_LEVEL_ORIGINS],
                 uint8_t *buffer, apr_pool_t *pool)
{
    const int64_t left = origin->files[digest->file].size - digest->at;
    const size_t piece = left < MC_LEVEL_PIECE ? (size_t)(left > 0 ? left : 0) : MC_LEVEL_PIECE;
    if (mc_files_read_at(files[digest->file], (uint64_t)digest->at, buffer, piece) < piece)
        return mc_error_create(pool, MC_ERR_IO, "a file is shorter than it was, or cannot be read");
    if (piece > 0)
        digest->value = mc_hash64(buffer, piece, digest->value);
    digest->at += (int64_t)piece;
    if (left <= MC_LEVEL_PIECE) {
        digest->file++;
        digest->at = 0;
    }
    return MC_OK;
}

mc_error *
mc_level_digest_go_on(mc_level_digest *digest, const mc_level_origin *origin, const int files[MC_LEVEL_ORIGINS],
                      int pieces, apr_time_t until, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    uint8_t *buffer = malloc(MC_LEVEL_PIECE);
    if (buffer == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "there is no memory for reading a file");
    for (int i = 0; error == MC_OK && i < pieces && !mc_level_digest_whole(digest); i++) {
        error = mc_ctx_check(ctx, pool);
        if (error == MC_OK)
            error = add_digest_piece(digest, origin, files, buffer, pool);
        if (until != 0 && i + 1 >= MC_LEVEL_PIECES_LEAST && mc_clock_now() >= until)
            break;
    }
    free(buffer);
    return error;
}

mc_error *
mc_level_origin_digest(uint64_t *digest, const mc_level_origin *origin, const int files[MC_LEVEL_ORIGINS], mc_ctx *ctx,
                       apr_pool_t *pool)
{
    mc_level_digest whole = { 0 };
    while (!mc_level_digest_whole(&whole))
        MC_TRY(mc_level_digest_go_on(&whole, origin, files, INT32_MAX, 0, ctx, pool));
    *digest = mc_level_digest_value(&whole);
    return MC_OK;
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
