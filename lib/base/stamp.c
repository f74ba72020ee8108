/* What a file was when it was looked at. By stat() alone: a descriptor opened and closed beside SQLite would drop its
 * locks. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/stamp.h"

enum {
    LONGEST_PATH = 4096,
    SETTLED_US = 50000, /* timestamps advance in steps of the kernel's tick; this is many ticks */
};

static int64_t
timespec_nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static mc_stamp
stamp_of_status(const struct stat *info)
{
    return (mc_stamp){ .device = info->st_dev,
                       .inode = info->st_ino,
                       .size = info->st_size,
                       .mtime_ns = timespec_nanoseconds(info->st_mtim),
                       .ctime_ns = timespec_nanoseconds(info->st_ctim),
                       .wal_size = -1,
                       .wal_mtime_ns = -1 };
}

bool
mc_stamp_take_in(mc_stamp *stamp, int folder, const char *name)
{
    struct stat info;
    if (fstatat(folder, name, &info, 0) != 0)
        return false;
    if (!S_ISREG(info.st_mode)) { /* opening a FIFO would wait for its other end */
        errno = EINVAL;
        return false;
    }
    *stamp = stamp_of_status(&info);
    return true;
}

static int64_t
statx_nanoseconds(const struct statx_timestamp *time)
{
    return time->tv_sec * 1000000000 + time->tv_nsec;
}

bool
mc_stamp_take_sole(mc_stamp *stamp, bool *sole, int folder, const char *name)
{
    struct statx info;
    int failed = statx(folder, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &info);
    *sole = failed != 0 && errno == ENOENT;
    if (*sole)
        return false;
    if (failed != 0 || !S_ISREG(info.stx_mode))
        return mc_stamp_take_in(stamp, folder, name); /* as it is found without that call, or what a link leads to */
    const uint64_t mounted = STATX_ATTR_MOUNT_ROOT;
    *sole = info.stx_nlink == 1 && (info.stx_attributes_mask & mounted) != 0 && (info.stx_attributes & mounted) == 0;
    *stamp = (mc_stamp){ .device = makedev(info.stx_dev_major, info.stx_dev_minor),
                         .inode = info.stx_ino,
                         .size = (int64_t)info.stx_size,
                         .mtime_ns = statx_nanoseconds(&info.stx_mtime),
                         .ctime_ns = statx_nanoseconds(&info.stx_ctime),
                         .wal_size = -1,
                         .wal_mtime_ns = -1 };
    return true;
}

bool
mc_stamp_take_any(mc_stamp *stamp, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    *stamp = stamp_of_status(&info);
    return true;
}

bool
mc_stamp_take_plain(mc_stamp *stamp, const char *path)
{
    return mc_stamp_take_in(stamp, AT_FDCWD, path);
}

void
mc_stamp_take_wal(mc_stamp *stamp, const char *path)
{
    char wal[LONGEST_PATH + sizeof("-wal")];
    size_t length = strlen(path);
    if (length >= LONGEST_PATH)
        return; /* the file itself cannot be looked at either */
    memcpy(wal, path, length);
    memcpy(wal + length, "-wal", sizeof("-wal"));
    struct stat info;
    if (stat(wal, &info) == 0) {
        stamp->wal_size = info.st_size;
        stamp->wal_mtime_ns = timespec_nanoseconds(info.st_mtim);
        stamp->wal_inode = info.st_ino;
    }
}

bool
mc_stamp_take(mc_stamp *stamp, const char *path)
{
    if (!mc_stamp_take_plain(stamp, path))
        return false;
    mc_stamp_take_wal(stamp, path);
    return true;
}

bool
mc_stamp_equal(const mc_stamp *a, const mc_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns && a->wal_size == b->wal_size && a->wal_mtime_ns == b->wal_mtime_ns &&
           a->wal_inode == b->wal_inode;
}

bool
mc_stamp_settled(const mc_stamp *stamp, apr_time_t now)
{
    int64_t changed = stamp->mtime_ns > stamp->ctime_ns ? stamp->mtime_ns : stamp->ctime_ns;
    if (stamp->wal_mtime_ns > changed)
        changed = stamp->wal_mtime_ns;
    return changed / 1000 + SETTLED_US <= now;
}
