/* What a file was when it was looked at, so that what is remembered of the file is never older than the file. */
#ifndef MC_BASE_STAMP_H
#define MC_BASE_STAMP_H

#include <apr_time.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/* The state of a file: by stat() of the file and of its -wal. Equal stamps mean that nobody wrote to the file in
 * between. */
typedef struct mc_stamp {
    uint64_t device, inode;
    int64_t size, mtime_ns, ctime_ns;
    int64_t wal_size, wal_mtime_ns; /* -1: no -wal */
    uint64_t wal_inode;
} mc_stamp;

/* False, with errno, when the file does not exist or cannot be looked at. Never opens it. */
bool mc_stamp_take(mc_stamp *stamp, const char *path);

/* Whether the errno of a look that has failed means that there is no such file. A file that cannot be looked at for any
 * other reason may be there, with all that was stored in it. */
static inline bool
mc_stamp_absent(int code)
{
    return code == ENOENT || code == ENOTDIR;
}

bool mc_stamp_equal(const mc_stamp *a, const mc_stamp *b);
/* False where the file changed less than 50 ms before `now`: data that is read under such a stamp is not remembered. */
bool mc_stamp_settled(const mc_stamp *stamp, apr_time_t now);

/* The same without a look at a -wal: for files that are no databases. */
bool mc_stamp_take_plain(mc_stamp *stamp, const char *path);

/* As mc_stamp_take_plain, also of a folder, whose stamp is that of the list of its files. */
bool mc_stamp_take_any(mc_stamp *stamp, const char *path);

/* As mc_stamp_take_in. *sole: the file has this name only (no link of either kind, no mount point), or there is nothing
 * of this name. */
bool mc_stamp_take_sole(mc_stamp *stamp, bool *sole, int folder, const char *name);

/* The two halves of mc_stamp_take: the file `name` of an open folder (AT_FDCWD: a path), without its -wal; and the -wal
 * of `path`, after it. */
bool mc_stamp_take_in(mc_stamp *stamp, int folder, const char *name);
void mc_stamp_take_wal(mc_stamp *stamp, const char *path);

#endif
