/* See files.h. */
#include "base/files.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mapcache/error.h"

/* From the deepest folder up, until one can be made or is there: mostly most of them are. Where nothing else is wrong
 * than that folders are missing, `missing` is the '/' behind the first of these, or NULL; false for anything else. */
static bool
find_missing_folder(char **missing, char *path)
{
    *missing = NULL;
    for (char *slash = strrchr(path, '/'); slash != NULL && slash != path;) {
        *slash = '\0';
        const int code = mkdir(path, 0777) == 0 ? 0 : errno;
        char *above = strrchr(path, '/');
        *slash = '/';
        if (code == 0 || code == EEXIST)
            return true;
        if (code != ENOENT)
            return false;
        *missing = slash;
        slash = above;
    }
    return true;
}

int
mc_files_make_folders(const char *path)
{
    char *copy = strdup(path);
    char *slash;
    int reason = 0;
    MC_ASSERT(copy != NULL);
    if (!find_missing_folder(&slash, copy)) /* whatever it is, the first folder that cannot be made says it best */
        slash = strchr(copy + 1, '/');
    for (; slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0777) == 0 || errno == EEXIST)
            reason = 0; /* then those above it are there, too, whatever was said of them */
        else if (reason == 0)
            reason = errno;
        *slash = '/';
    }
    free(copy);
    return reason;
}

static _Atomic pid_t own_process; /* 0: not known */

static void
note_forked_process(void)
{
    atomic_store_explicit(&own_process, getpid(), memory_order_relaxed);
}

static void
watch_process_forks(void)
{
    if (pthread_atfork(NULL, NULL, note_forked_process) == 0)
        note_forked_process();
}

pid_t
mc_files_own_process(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_process_forks);
    const pid_t known = atomic_load_explicit(&own_process, memory_order_relaxed);
    return known != 0 ? known : getpid();
}

/* What to do after a call that moved `moved` bytes: true to go on with the rest. */
static bool
is_file_call_to_be_repeated(ssize_t moved)
{
    if (moved == 0)
        errno = EIO;
    return moved > 0 || (moved < 0 && errno == EINTR);
}

bool
mc_files_write(int file, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t moved = write(file, (const uint8_t *)bytes + done, size - done);
        if (!is_file_call_to_be_repeated(moved))
            return false;
        done += moved > 0 ? (size_t)moved : 0;
    }
    return true;
}

bool
mc_files_write_at(int file, uint64_t offset, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t moved = pwrite(file, (const uint8_t *)bytes + done, size - done, (off_t)(offset + done));
        if (!is_file_call_to_be_repeated(moved))
            return false;
        done += moved > 0 ? (size_t)moved : 0;
    }
    return true;
}

size_t
mc_files_read_at(int file, uint64_t offset, void *buffer, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t moved = pread(file, (uint8_t *)buffer + done, size - done, (off_t)(offset + done));
        if (!is_file_call_to_be_repeated(moved))
            break;
        done += moved > 0 ? (size_t)moved : 0;
    }
    return done;
}

bool
mc_files_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}
