/*
 * A file of which parts are read, as archives of tiles are: on disk by its path, or behind HTTP by its address. What is
 * remembered of the file is valid for the stamp that was taken before the read; of a file behind HTTP the stamp stands
 * for its ETag, or where there is none for Last-Modified.
 */
#ifndef MC_CACHE_ARCHIVE_RANGES_H
#define MC_CACHE_ARCHIVE_RANGES_H

#include "base/stamp.h"
#include "cache/cache_base.h"

/* How files behind HTTP are asked for. */
typedef struct mc_ranges_remote {
    const char *name;                 /* of the cache, for messages */
    double connect_timeout, timeout;  /* seconds */
    double revalidate;                /* seconds for which a file is taken for unchanged */
    const struct mc_aws_options *aws; /* what requests are signed with; NULL: they are not */
    const char *access, *secret;      /* the same for Google's interoperable interface; NULL: they are not */
    const char *header_file;          /* further headers, a line each; NULL: none */
} mc_ranges_remote;

/* A file as it was looked at. A file on disk is opened by the first read. */
typedef struct mc_ranged_file {
    const char *path; /* or the address */
    int missing;      /* errno of the look; 0: the file is there */
    apr_time_t taken; /* before the stamp */
    mc_stamp stamp;
    int descriptor; /* -1: not open */
    /* Behind HTTP; NULL: on disk. */
    const mc_ranges_remote *remote;
    mc_ctx *ctx;
    struct mc_remote_front *front;     /* its first bytes */
    struct mc_clock_cache_entry *held; /* of the memory, which has them; NULL: they are the caller's pool's */
} mc_ranged_file;

/* Looks at the file, without opening it. `path` must outlive `file`. */
void mc_ranges_look(mc_ranged_file *file, const char *path);

/*
 * Looks at a file behind HTTP: asks for its first bytes, unless that was done within remote->revalidate seconds. A file
 * that is not there (404, 410) has file->missing ENOENT; all other answers without the bytes are errors
 * (MC_ERR_UPSTREAM, MC_ERR_TIMEOUT), so that nobody takes a store that is away for an empty one. `url` and `remote`
 * must outlive `file`; mc_ranges_close must follow.
 */
mc_error *mc_ranges_ask(mc_ranged_file *file, const char *url, const mc_ranges_remote *remote, mc_ctx *ctx,
                        apr_pool_t *pool) MC_CHECKED;

/* mc_ranges_read of such a file, whose range lies in it. */
mc_error *mc_ranges_fetch(void *out, mc_ranged_file *file, uint64_t offset, size_t size, apr_pool_t *pool) MC_CHECKED;

/* A part of a file, and its bytes, attached to a pool. */
typedef struct mc_range_part {
    uint64_t offset;
    size_t size; /* > 0 */
    mc_buf *data;
} mc_range_part;

/* Many parts of such a file, asked for together. */
mc_error *mc_ranges_fetch_all(mc_range_part *parts, int count, mc_ranged_file *file, apr_pool_t *pool) MC_CHECKED;

/* The same, those that stand close together in one request. */
mc_error *mc_ranges_fetch_near(mc_range_part *parts, int count, mc_ranged_file *file, apr_pool_t *pool) MC_CHECKED;

/* Its bytes, by the look. */
static inline uint64_t
mc_ranges_size(const mc_ranged_file *file)
{
    return file->stamp.size > 0 ? (uint64_t)file->stamp.size : 0;
}

/* Whether a range lies in the file. */
static inline bool
mc_ranges_holds(const mc_ranged_file *file, uint64_t offset, uint64_t size)
{
    uint64_t whole = mc_ranges_size(file);
    return offset <= whole && size <= whole - offset;
}

/*
 * Reads `size` bytes at an offset. MC_ERR_CORRUPT where the file is shorter, MC_ERR_IO where it cannot be read,
 * MC_ERR_UNAVAILABLE where it is no longer the file of the look: another look will tell.
 */
mc_error *mc_ranges_read(void *out, mc_ranged_file *file, uint64_t offset, size_t size, apr_pool_t *pool) MC_CHECKED;

/* The same into a buffer that is attached to `pool`. */
mc_error *mc_ranges_read_buf(mc_buf **out, mc_ranged_file *file, uint64_t offset, size_t size,
                             apr_pool_t *pool) MC_CHECKED;

/* After the last read: whether nobody wrote to the file since the look, so that what was read belongs together. */
bool mc_ranges_unchanged(const mc_ranged_file *file);

/* May be called any number of times. */
void mc_ranges_close(mc_ranged_file *file);

/* What a part of a file is remembered under: `what` tells kinds of parts apart. The key is valid for the file's stamp
 * only. size 0: the path is too long, and nothing is remembered. */
typedef struct mc_range_key {
    size_t size;
    char bytes[MC_PATH_MAX + 256];
} mc_range_key;

void mc_ranges_key(mc_range_key *key, const mc_ranged_file *file, uint64_t what, uint64_t offset, uint64_t size);

#endif
