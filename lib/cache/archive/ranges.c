/* Parts of a file: on disk read by pread, never mapped, as another program may shorten the file at any time. */
#include "cache/archive/ranges.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "memory/clock_cache.h"

void
mc_ranges_look(mc_ranged_file *file, const char *path)
{
    *file = (mc_ranged_file){ .path = path, .descriptor = -1, .taken = apr_time_now() };
    file->missing = mc_stamp_take_plain(&file->stamp, path) ? 0 : errno;
}

static mc_error *
range_error(const mc_ranged_file *file, mc_error_kind kind, const char *why, apr_pool_t *pool)
{
    return mc_error_wrap(pool, mc_error_create(pool, kind, "%s: %s", file->path, why), kind,
                         "an archive of tiles cannot be read");
}

/* Not by the time of its last change of any kind: that changes where another file is renamed over it, too, and who has
 * the old one open goes on reading what is whole. */
static bool
is_same_content(const mc_ranged_file *file, const struct stat *info)
{
    return file->stamp.device == (uint64_t)info->st_dev && file->stamp.inode == (uint64_t)info->st_ino &&
           file->stamp.size == info->st_size &&
           file->stamp.mtime_ns == (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

bool
mc_ranges_unchanged(const mc_ranged_file *file)
{
    struct stat info;
    return file->descriptor < 0 || (fstat(file->descriptor, &info) == 0 && is_same_content(file, &info));
}

static mc_error *
open_ranged_file(mc_ranged_file *file, apr_pool_t *pool)
{
    char text[128];
    struct stat info;
    if (file->descriptor >= 0)
        return MC_OK;
    file->descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold the request up */
    if (file->descriptor < 0)
        return range_error(file, MC_ERR_IO, strerror_r(errno, text, sizeof(text)), pool);
    if (fstat(file->descriptor, &info) != 0 || !S_ISREG(info.st_mode))
        return range_error(file, MC_ERR_IO, "this is no file", pool);
    if (!is_same_content(file, &info))
        return range_error(file, MC_ERR_UNAVAILABLE, "it was replaced just now", pool);
    return MC_OK;
}

mc_error *
mc_ranges_read(void *out, mc_ranged_file *file, uint64_t offset, size_t size, apr_pool_t *pool)
{
    char text[128];
    if (!mc_ranges_holds(file, offset, size))
        return range_error(file, MC_ERR_CORRUPT, "a part lies beyond the end of the file", pool);
    if (file->remote != NULL)
        return mc_ranges_fetch(out, file, offset, size, pool);
    MC_TRY(open_ranged_file(file, pool));
    if (mc_files_read_at(file->descriptor, offset, out, size) == size)
        return MC_OK;
    return mc_ranges_unchanged(file) ? range_error(file, MC_ERR_IO, strerror_r(errno, text, sizeof(text)), pool)
                                     : range_error(file, MC_ERR_UNAVAILABLE, "it is being written to", pool);
}

mc_error *
mc_ranges_read_buf(mc_buf **out, mc_ranged_file *file, uint64_t offset, size_t size, apr_pool_t *pool)
{
    if (!mc_ranges_holds(file, offset, size))
        return range_error(file, MC_ERR_CORRUPT, "a part lies beyond the end of the file", pool);
    *out = mc_buf_attach(mc_buf_create(size, size > 0 ? size : 1), pool);
    MC_TRY(mc_buf_reserve(*out, size, pool));
    MC_TRY(mc_ranges_read((*out)->data, file, offset, size, pool));
    (*out)->size = size;
    return MC_OK;
}

void
mc_ranges_close(mc_ranged_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = -1;
    if (file->remote != NULL)
        mc_clock_cache_release(file->held);
    file->held = NULL;
}
