/* See serve_log.h. */
#include "serve_log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 8192, LOG_ROOM = 1048576 };

struct mc_serve_log {
    int input, output; /* of the pipe */
    int event;         /* there are lines */
    int end;           /* the thread shall end */
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows, and of reading `input` */
    char line[LINE_MAX_BYTES];
    size_t line_size;   /* of the one that has not ended yet; what is longer is cut off */
    char *lines, *told; /* LOG_ROOM bytes each: those that can be taken, those that were */
    size_t size;        /* of `lines` */
    int lost;
};

/* Called with `lock` held. */
static void
end_log_line(mc_serve_log *log)
{
    size_t size = log->line_size + 1;
    log->line[log->line_size] = '\0';
    log->line_size = 0;
    if (size > LOG_ROOM - log->size) {
        log->lost++;
        return;
    }
    memcpy(log->lines + log->size, log->line, size);
    log->size += size;
}

/* Takes all that is there. Called with `lock` held. */
static void
read_log_pipe(mc_serve_log *log)
{
    char part[4096];
    for (ssize_t size; (size = read(log->input, part, sizeof(part))) > 0;)
        for (ssize_t i = 0; i < size; i++) {
            if (part[i] == '\n')
                end_log_line(log);
            else if (log->line_size < sizeof(log->line) - 1)
                log->line[log->line_size++] = part[i] == '\0' ? ' ' : part[i];
        }
}

static void
raise_event(int event)
{
    uint64_t one = 1;
    (void)!write(event, &one, sizeof(one)); /* fails only when it can be read anyway */
}

static void *
run_log_reader(void *baton)
{
    mc_serve_log *log = baton;
    for (;;) {
        struct pollfd waits[] = { { log->end, POLLIN, 0 }, { log->input, POLLIN, 0 } };
        if (poll(waits, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (waits[0].revents != 0)
            return NULL;
        pthread_mutex_lock(&log->lock);
        read_log_pipe(log);
        bool any = log->size > 0 || log->lost > 0;
        pthread_mutex_unlock(&log->lock);
        if (any)
            raise_event(log->event);
    }
}

mc_error *
mc_serve_log_open(mc_serve_log **log, apr_pool_t *pool)
{
    mc_serve_log *made = calloc(1, sizeof(*made));
    MC_ASSERT(made != NULL);
    int line[2];
    made->lines = malloc(LOG_ROOM);
    made->told = malloc(LOG_ROOM);
    MC_ASSERT(made->lines != NULL && made->told != NULL);
    pthread_mutex_init(&made->lock, NULL);
    made->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    made->end = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    bool open = made->event >= 0 && made->end >= 0 && pipe2(line, O_CLOEXEC) == 0;
    if (open) {
        made->input = line[0];
        made->output = line[1];
        fcntl(made->input, F_SETFL, O_NONBLOCK);
        errno = pthread_create(&made->thread, NULL, run_log_reader, made);
    }
    if (!open || errno != 0) /* the program ends now */
        return mc_error_create(pool, MC_ERR_IO, "the log of the server cannot be read: %s", strerror(errno));
    *log = made;
    return MC_OK;
}

int
mc_serve_log_output(const mc_serve_log *log)
{
    return log->output;
}

int
mc_serve_log_event(const mc_serve_log *log)
{
    return log->event;
}

const char *
mc_serve_log_take(mc_serve_log *log, size_t *size, int *lost)
{
    uint64_t count;
    (void)!read(log->event, &count, sizeof(count)); /* before the lines: what comes behind them raises it again */
    pthread_mutex_lock(&log->lock);
    read_log_pipe(log);
    char *lines = log->lines;
    log->lines = log->told;
    log->told = lines;
    *size = log->size;
    *lost = log->lost;
    log->size = 0;
    log->lost = 0;
    pthread_mutex_unlock(&log->lock);
    return lines;
}

void
mc_serve_log_close(mc_serve_log *log)
{
    if (log == NULL)
        return;
    raise_event(log->end);
    pthread_join(log->thread, NULL);
    pthread_mutex_destroy(&log->lock);
    const int descriptors[] = { log->input, log->output, log->event, log->end };
    for (size_t i = 0; i < sizeof(descriptors) / sizeof(descriptors[0]); i++)
        close(descriptors[i]);
    free(log->lines);
    free(log->told);
    free(log);
}
