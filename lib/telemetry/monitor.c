/* See monitor.h. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "telemetry/answers.h"
#include "telemetry/monitor_tables.h"

enum { PATIENCE = 1000, ALIGNMENT = 64 };

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
mc_monitor_turn_take(mc_monitor_turn *turn)
{
    const int own = getpid();
    for (int i = 0; i < PATIENCE; i++) {
        int holder = 0;
        if (atomic_compare_exchange_strong(turn, &holder, own))
            return true;
        if (holder != own && i == 0 && !mc_monitor_process_lives(holder) &&
            atomic_compare_exchange_strong(turn, &holder, own))
            return true;
        sched_yield();
    }
    return false;
}

void
mc_monitor_turn_give(mc_monitor_turn *turn)
{
    atomic_store(turn, 0);
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
    memcpy(to, "...", 3);
    memcpy(to + 3, path + length - (size - 4), size - 3); /* with its end */
}
