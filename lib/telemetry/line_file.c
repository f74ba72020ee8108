/* See line_file.h. */
#include "telemetry/line_file.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/seldom.h"

/* Microseconds between two looks whether the file at the path is another one. */
#define LOOK_AGAIN APR_USEC_PER_SEC

struct mc_line_file {
    const char *path;     /* NULL: standard error */
    pthread_mutex_t lock; /* of the next two */
    int descriptor;       /* -1: not open */
    apr_time_t next_look;
    mc_seldom told;
};

static apr_status_t
close_line_file(void *data)
{
    mc_line_file *file = data;
    if (file->path != NULL && file->descriptor >= 0)
        close(file->descriptor);
    pthread_mutex_destroy(&file->lock);
    return APR_SUCCESS;
}

mc_line_file *
mc_line_file_create(const char *path, apr_pool_t *pool)
{
    mc_line_file *file = apr_pcalloc(pool, sizeof(*file));
    const bool standard = strcmp(path, "stderr") == 0;
    file->path = standard ? NULL : apr_pstrdup(pool, path);
    file->descriptor = standard ? STDERR_FILENO : -1;
    pthread_mutex_init(&file->lock, NULL);
    apr_pool_cleanup_register(pool, file, close_line_file, apr_pool_cleanup_null);
    return file;
}

static bool
is_still_there(const mc_line_file *file)
{
    struct stat open_one, there;
    return fstat(file->descriptor, &open_one) == 0 && stat(file->path, &there) == 0 &&
           open_one.st_ino == there.st_ino && open_one.st_dev == there.st_dev;
}

/* With the lock held. Nothing blocks: a pipe without a reader is no file to write to. */
static void
open_line_file(mc_line_file *file)
{
    const apr_time_t now = mc_clock_now();
    if (file->path == NULL || (file->descriptor >= 0 && now < file->next_look))
        return;
    file->next_look = now + LOOK_AGAIN;
    if (file->descriptor >= 0 && is_still_there(file))
        return;
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = open(file->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                            S_IRUSR | S_IWUSR | S_IRGRP);
}

void
mc_line_file_write(mc_line_file *file, const char *line, size_t size, const mc_ctx *ctx)
{
    unsigned unsaid;
    pthread_mutex_lock(&file->lock);
    open_line_file(file);
    errno = file->descriptor < 0 ? errno : 0;
    const bool written = file->descriptor >= 0 && write(file->descriptor, line, size) == (ssize_t)size;
    const int why = errno;
    pthread_mutex_unlock(&file->lock);
    if (!written && mc_seldom_due(&file->told, &unsaid))
        mc_log_write(ctx, MC_LOG_WARN, "lines of requests cannot be written to %s: %s",
                     file->path == NULL ? "standard error" : file->path, why == 0 ? "no room" : strerror(why));
}
