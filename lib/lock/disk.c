/*
 * Locks between processes of one machine: one byte of one lock file for each name, at the name's hash, locked through
 * an open file description of its own (F_OFD_SETLK). The kernel queues who waits, wakes them, and releases the lock of
 * a process that dies. The file stays empty. Some descriptions stay open for the locks that come next.
 */
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/thread.h"
#include "base/wait.h"
#include "lock/locker.h"

enum { OPEN_ATTEMPTS = 8, WAITER_STACK = 128 << 10 };

static mc_error *
open_failure(const char *path, const char *reason, apr_pool_t *pool)
{
    mc_error *cause = mc_error_create(pool, MC_ERR_IO, "%s: %s", path, reason);
    return mc_error_wrap(pool, cause, MC_ERR_IO, "the lock file cannot be used");
}

/* In a folder where everybody may create files, a lock file of somebody else could be there to hold us up. */
static bool
is_trusted(const struct stat *file, bool in_public)
{
    if (!S_ISREG(file->st_mode) || file->st_nlink > 1)
        return false;
    return !in_public || file->st_uid == 0 || file->st_uid == geteuid();
}

enum { CREATE_FLAGS = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW };

/*
 * -1 and errno EEXIST where another one was quicker. What root makes in the folder of a server's user (a seeder does)
 * is that user's before anybody can find it: who may not open it would lock another file.
 */
static int
create_lock_file(const char *path, const struct stat *directory, apr_pool_t *pool)
{
    if (geteuid() != 0 || directory->st_uid == 0 || (directory->st_mode & S_IWOTH) != 0)
        return open(path, CREATE_FLAGS, 0660);
    const char *hidden = apr_psprintf(pool, "%s.%ld.%lx", path, (long)getpid(), (unsigned long)pthread_self());
    int fd = open(hidden, CREATE_FLAGS, 0660);
    if (fd < 0)
        return -1;
    if (fchown(fd, directory->st_uid, directory->st_gid) == 0 &&
        renameat2(AT_FDCWD, hidden, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return fd;
    int status = errno;
    unlink(hidden);
    close(fd);
    errno = status;
    return status == EINVAL ? open(path, CREATE_FLAGS, 0660) : -1; /* a file system that cannot do it */
}

/* One attempt. file->fd is -1 when the file is not ours to use, or was there and is gone. */
static mc_error *
try_open(mc_lock_file *file, const char *path, const struct stat *directory, apr_pool_t *pool)
{
    /* Opening first without O_CREAT: the kernel may refuse that flag for files of others in sticky folders. Who finds
     * that another one has just made the file opens that one: all must lock the same file. */
    for (int i = 0; i < OPEN_ATTEMPTS; i++) {
        file->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (file->fd >= 0 || errno != ENOENT)
            break;
        file->fd = create_lock_file(path, directory, pool);
        if (file->fd >= 0 || errno != EEXIST)
            break;
    }
    if (file->fd < 0 && (errno == EACCES || errno == EEXIST || errno == ENOENT || errno == ELOOP))
        return MC_OK;
    if (file->fd < 0)
        return open_failure(path, strerror(errno), pool);
    struct stat info;
    file->in_public = (directory->st_mode & S_IWOTH) != 0;
    if (fstat(file->fd, &info) != 0 || !is_trusted(&info, file->in_public)) {
        close(file->fd);
        file->fd = -1;
        return MC_OK;
    }
    file->device = info.st_dev;
    file->inode = info.st_ino;
    return MC_OK;
}

/* Once: processes that lock different files do not exclude each other, and who looks for the reason wants the name. */
static void
tell_passed_over(mc_disk_locker *disk, const char *shared, const char *own, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_severity severity = MC_WARNING;
    if (atomic_exchange_explicit(&disk->told, true, memory_order_relaxed))
        return;
    const char *problem = mc_lock_file_problem(&severity, disk, shared, pool);
    mc_log_write(ctx, severity == MC_NOTE ? MC_LOG_INFO : MC_LOG_WARN,
                 "%s: %s is locked instead, which processes of other users do not look at",
                 problem != NULL ? problem : apr_pstrcat(pool, shared, " cannot be opened", NULL), own);
}

static const char *
common_path(const mc_disk_locker *disk, apr_pool_t *pool)
{
    return apr_pstrcat(pool, disk->directory, "/mapcache.lock", NULL);
}

/* The common lock file; where that is another user's, one for this user alone. */
static mc_error *
open_lock_file(mc_lock_file *file, mc_disk_locker *disk, mc_ctx *ctx, apr_pool_t *pool)
{
    struct stat folder;
    mc_severity severity;
    if (stat(disk->directory, &folder) != 0)
        return open_failure(disk->directory, strerror(errno), pool);
    const char *shared = common_path(disk, pool);
    const char *own = apr_psprintf(pool, "%s.%lu", shared, (unsigned long)geteuid());
    for (int i = 0; i < OPEN_ATTEMPTS; i++) {
        MC_TRY(try_open(file, shared, &folder, pool));
        file->common = file->fd >= 0;
        if (file->common)
            return MC_OK;
        MC_TRY(try_open(file, own, &folder, pool));
        if (file->fd < 0)
            continue;
        tell_passed_over(disk, shared, own, ctx, pool);
        return MC_OK;
    }
    const char *problem = mc_lock_file_problem(&severity, disk, own, pool);
    return open_failure(shared, problem != NULL ? problem : "is not ours to use", pool);
}

static struct flock
byte_of(const char *name)
{
    off_t at = (off_t)(mc_hash64(name, strlen(name), 0) >> 2);
    return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };
}

/* A wait that can end before the lock is free: the system call blocks a thread of its own, which is cancelled then. */
typedef struct disk_waiter {
    int fd;
    struct flock byte;
    pthread_mutex_t lock; /* of the two below */
    pthread_cond_t changed;
    bool done;
    int status;
} disk_waiter;

static void *
wait_in_kernel(void *baton)
{
    disk_waiter *w = baton;
    int status;
    do
        status = fcntl(w->fd, F_OFD_SETLKW, &w->byte) == 0 ? 0 : errno;
    while (status == EINTR);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_mutex_lock(&w->lock);
    w->done = true;
    w->status = status;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static int
start_waiter(pthread_t *thread, disk_waiter *w)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, WAITER_STACK);
    int status = mc_thread_start(thread, &attributes, wait_in_kernel, w);
    pthread_attr_destroy(&attributes);
    return status;
}

/* 0: locked; ETIMEDOUT; another errno. */
static int
wait_for_byte(int fd, struct flock byte, apr_time_t until, mc_ctx *ctx)
{
    disk_waiter w = { .fd = fd, .byte = byte, .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t thread;
    mc_clock_condition(&w.changed);
    int status = start_waiter(&thread, &w);
    if (status != 0)
        return status;
    pthread_mutex_lock(&w.lock);
    mc_wait_end end = MC_WAIT_READY;
    while (!w.done && end == MC_WAIT_READY)
        end = mc_wait_condition(&w.changed, &w.lock, until, ctx);
    bool late = !w.done;
    pthread_mutex_unlock(&w.lock);
    if (late)
        pthread_cancel(thread);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
    return w.done ? w.status : ETIMEDOUT;
}

/* False if somebody has deleted or replaced the file meanwhile: those who come later lock another one. */
static bool
is_lock_file_in_place(const mc_lock_file *file, const mc_disk_locker *disk, apr_pool_t *pool)
{
    struct stat info;
    if (!file->common)
        return fstat(file->fd, &info) == 0 && info.st_nlink > 0;
    return stat(common_path(disk, pool), &info) == 0 && info.st_dev == file->device && info.st_ino == file->inode &&
           is_trusted(&info, file->in_public);
}

/* A common lock file that is open and not in use; false: there is none. */
static bool
take_idle_file(mc_lock_file *file, mc_disk_locker *disk)
{
    pthread_mutex_lock(&disk->mutex);
    const pid_t process = mc_files_own_process();
    if (disk->process != process) {
        while (disk->idle_count > 0)
            close(disk->idle[--disk->idle_count].fd);
        disk->process = process;
    }
    const bool found = disk->idle_count > 0;
    if (found)
        *file = disk->idle[--disk->idle_count];
    pthread_mutex_unlock(&disk->mutex);
    return found;
}

/* Unlocks the file, and keeps it open for the next lock where there is room. */
static void
leave_file(const mc_lock_file *file, struct flock byte, mc_disk_locker *disk)
{
    byte.l_type = F_UNLCK;
    bool kept = false;
    if (file->common && fcntl(file->fd, F_OFD_SETLK, &byte) == 0) {
        pthread_mutex_lock(&disk->mutex);
        kept = disk->process == mc_files_own_process() && disk->idle_count < MC_LOCK_FILES_IDLE;
        if (kept)
            disk->idle[disk->idle_count++] = *file;
        pthread_mutex_unlock(&disk->mutex);
    }
    if (!kept)
        close(file->fd); /* a lock goes with its open file description */
}

/* Locks of our own kind do not tell whose they are; one of another program may. */
static const char *
describe_holder(int fd, struct flock byte, apr_pool_t *pool)
{
    if (fcntl(fd, F_OFD_GETLK, &byte) == 0 && byte.l_type != F_UNLCK && byte.l_pid > 0)
        return apr_psprintf(pool, "process %ld has locked the lock file", (long)byte.l_pid);
    return "a process has locked the lock file";
}

/* What is held: the file, and which byte of it. */
typedef struct disk_hold {
    mc_lock_file file;
    struct flock byte;
} disk_hold;

static mc_error *
disk_acquire(void **held, bool *waited, mc_locker *locker, const char *name, apr_time_t until, mc_ctx *ctx,
             apr_pool_t *pool)
{
    mc_disk_locker *disk = locker->baton;
    disk_hold *hold = apr_palloc(pool, sizeof(*hold));
    const struct flock byte = hold->byte = byte_of(name);
    for (;;) {
        if (!take_idle_file(&hold->file, disk))
            MC_TRY(open_lock_file(&hold->file, disk, ctx, pool));
        const int fd = hold->file.fd;
        int status = fcntl(fd, F_OFD_SETLK, &byte) == 0 ? 0 : errno;
        if (status == EAGAIN || status == EACCES) {
            *waited = true;
            status = until > mc_clock_now() ? wait_for_byte(fd, byte, until, ctx) : ETIMEDOUT;
        }
        if (status == 0 && is_lock_file_in_place(&hold->file, disk, pool)) {
            *held = hold;
            return MC_OK;
        }
        bool late = status == ETIMEDOUT || (status == 0 && mc_clock_now() > until);
        const char *holder = late ? describe_holder(fd, byte, pool) : NULL;
        close(fd);
        if (late)
            return mc_error_wrap(pool, mc_error_create(pool, MC_ERR_UNAVAILABLE, "%s: %s", disk->directory, holder),
                                 MC_ERR_UNAVAILABLE, "another process has been holding the lock for too long");
        if (status != 0)
            return open_failure(disk->directory, strerror(status), pool);
    }
}

static void
disk_release(mc_locker *locker, void *held, mc_ctx *ctx)
{
    const disk_hold *hold = held;
    (void)ctx;
    leave_file(&hold->file, hold->byte, locker->baton);
}

static apr_status_t
close_idle_files(void *baton)
{
    mc_disk_locker *disk = baton;
    while (disk->idle_count > 0)
        close(disk->idle[--disk->idle_count].fd);
    pthread_mutex_destroy(&disk->mutex);
    return APR_SUCCESS;
}

static const mc_locker_ops disk_ops = { disk_acquire, disk_release, mc_disk_locker_inspect, NULL };

const char *
mc_locker_directory(const mc_locker *locker)
{
    return locker == NULL || locker->ops != &disk_ops ? NULL : ((const mc_disk_locker *)locker->baton)->directory;
}

mc_locker *
mc_locker_disk(const char *directory, double timeout_seconds, apr_pool_t *pool)
{
    mc_locker *locker = apr_pcalloc(pool, sizeof(*locker));
    mc_disk_locker *disk = apr_pcalloc(pool, sizeof(*disk));
    disk->directory = directory == NULL ? "/tmp" : apr_pstrdup(pool, directory);
    disk->usual = strcmp(disk->directory, "/tmp") == 0;
    pthread_mutex_init(&disk->mutex, NULL);
    apr_pool_cleanup_register(pool, disk, close_idle_files, apr_pool_cleanup_null);
    locker->ops = &disk_ops;
    locker->baton = disk;
    locker->timeout = timeout_seconds;
    locker->pool = pool;
    return locker;
}
