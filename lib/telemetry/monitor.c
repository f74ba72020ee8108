/* See monitor.h. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "telemetry/answers.h"
#include "telemetry/monitor_tables.h"

enum { ALIGNMENT = 64 };

/* Where a monitor begins behind the counted answers. */
static size_t
monitor_offset(void)
{
    return (mc_answers_size() + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t
mc_monitor_size(void)
{
    return monitor_offset() - mc_answers_size() + sizeof(mc_monitor);
}

mc_monitor *
mc_monitor_of(mc_metrics *metrics)
{
    if (mc_metrics_annex_size(metrics) < monitor_offset() + sizeof(mc_monitor))
        return NULL;
    return (mc_monitor *)(void *)((char *)mc_metrics_annex(metrics) + monitor_offset());
}

bool
mc_monitor_process_lives(int process)
{
    return kill(process, 0) == 0 || errno != ESRCH;
}

bool
mc_monitor_turn_take(mc_monitor_turn *turn, int milliseconds)
{
    struct timespec until;
    int status = pthread_mutex_trylock(&turn->lock);
    if (status == EBUSY) {
        clock_gettime(CLOCK_REALTIME, &until);
        const long nanoseconds = until.tv_nsec + milliseconds * 1000000L;
        until.tv_sec += nanoseconds / 1000000000L;
        until.tv_nsec = nanoseconds % 1000000000L;
        status = pthread_mutex_timedlock(&turn->lock, &until);
    }
    if (status == EOWNERDEAD) /* what it has left half written is ended when it is read */
        status = pthread_mutex_consistent(&turn->lock);
    return status == 0;
}

void
mc_monitor_turn_give(mc_monitor_turn *turn)
{
    pthread_mutex_unlock(&turn->lock);
}

void
mc_monitor_init(mc_metrics *metrics)
{
    mc_monitor *monitor = mc_monitor_of(metrics);
    pthread_mutexattr_t attributes;
    if (monitor == NULL)
        return;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&monitor->incidents.turn.lock, &attributes);
    pthread_mutex_init(&monitor->slow.turn.lock, &attributes);
    for (int i = 0; i < MC_PROCESS_REPORTS_MAX; i++)
        pthread_mutex_init(&monitor->slots[i].turn.lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void
mc_monitor_copy_text(char *to, size_t size, const char *text)
{
    size_t used = text == NULL ? 0 : strnlen(text, size);
    if (used == size) {
        used--;
        while (used > 0 && ((unsigned char)text[used] & 0xc0) == 0x80)
            used--;
    }
    if (used > 0)
        memcpy(to, text, used);
    to[used] = '\0';
}

void
mc_monitor_copy_path(char *to, size_t size, const char *path)
{
    const size_t length = path == NULL ? 0 : strlen(path);
    if (length < size) {
        mc_monitor_copy_text(to, size, path);
        return;
    }
    to[0] = to[1] = to[2] = '.';
    memcpy(to + 3, path + length - (size - 4), size - 3); /* with its end */
}
