/* See process_reports.h. */
#include "telemetry/process_reports.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "telemetry/monitor_tables.h"

#define LONGEST_SILENCE (86400 * APR_USEC_PER_SEC)

static _Atomic apr_time_t last_report; /* of this process: mc_clock_now(); 0: none */

uint32_t
mc_process_reports_model(const char *file)
{
    const uint32_t model = (uint32_t)mc_hash64(file, strlen(file), 0);
    return model == 0 ? 1 : model;
}

bool
mc_process_reports_due(apr_time_t now, apr_interval_time_t pause)
{
    apr_time_t last = atomic_load_explicit(&last_report, memory_order_relaxed);
    if (last != 0 && now < last + pause)
        return false;
    return atomic_compare_exchange_strong(&last_report, &last, now);
}

/* The slot of this process, or a free one, or that of a process that is dead; -1: all are in use. */
static int
claim_process_slot(mc_monitor *monitor)
{
    const int own = getpid();
    for (int i = 0; i < MC_PROCESS_REPORTS_MAX; i++)
        if (atomic_load(&monitor->slots[i].process) == own)
            return i;
    for (int i = 0; i < MC_PROCESS_REPORTS_MAX; i++) {
        int holder = atomic_load(&monitor->slots[i].process);
        if ((holder == 0 || !mc_monitor_process_lives(holder)) &&
            atomic_compare_exchange_strong(&monitor->slots[i].process, &holder, own))
            return i;
    }
    return -1;
}

/* What the slot has of other configuration files goes on behind what is new. */
static void
keep_other_models(mc_process_report *report, const mc_process_report *before, uint32_t model)
{
    for (int i = 0; i < before->count && i < MC_BACKEND_REPORTS_MAX; i++) {
        const mc_backend_report *backend = &before->backends[i];
        if (backend->model == 0 || backend->model == model)
            continue;
        if (report->count == MC_BACKEND_REPORTS_MAX) {
            report->apart++;
            continue;
        }
        report->backends[report->count++] = *backend;
    }
}

void
mc_process_reports_put(mc_monitor *monitor, mc_process_report *report, uint32_t model)
{
    static _Atomic int reporting; /* the process that has reported before: not a parent, not a dead one of its number */
    const int slot = monitor == NULL ? -1 : claim_process_slot(monitor);
    if (slot < 0 || !mc_monitor_turn_take(&monitor->slots[slot].turn, MC_MONITOR_WRITER_PATIENCE))
        return;
    mc_process_report *place = &monitor->reports[slot];
    report->process = getpid();
    report->seen = report->started = mc_clock_now();
    if (atomic_exchange(&reporting, report->process) == report->process) {
        report->started = place->started;
        keep_other_models(report, place, model);
    }
    memcpy(place, report, offsetof(mc_process_report, backends) + (size_t)report->count * sizeof(report->backends[0]));
    mc_monitor_turn_give(&monitor->slots[slot].turn);
}

void
mc_process_reports_leave(mc_monitor *monitor)
{
    const int own = getpid();
    for (int i = 0; monitor != NULL && i < MC_PROCESS_REPORTS_MAX; i++) {
        int holder = own;
        atomic_compare_exchange_strong(&monitor->slots[i].process, &holder, 0);
    }
}

/* Whoever wrote it may have died at it. */
static void
check_process_report(mc_process_report *report)
{
    if (report->count < 0 || report->count > MC_BACKEND_REPORTS_MAX)
        report->count = 0;
    for (int i = 0; i < report->count; i++) {
        mc_backend_report *backend = &report->backends[i];
        backend->name[sizeof(backend->name) - 1] = backend->type[sizeof(backend->type) - 1] = '\0';
        backend->position[sizeof(backend->position) - 1] = '\0';
    }
}

int
mc_process_reports_visit(mc_monitor *monitor, void (*visit)(void *baton, const mc_process_report *report), void *baton,
                         apr_pool_t *pool)
{
    int count = 0, patience = MC_MONITOR_READER_PATIENCE;
    mc_process_report *report = apr_palloc(pool, sizeof(*report));
    for (int i = 0; monitor != NULL && i < MC_PROCESS_REPORTS_MAX; i++) {
        mc_process_slot *slot = &monitor->slots[i];
        const int process = atomic_load(&slot->process);
        if (process == 0 || !mc_monitor_process_lives(process))
            continue;
        if (!mc_monitor_turn_take(&slot->turn, patience)) { /* a process that is stopped */
            patience = 0;
            continue;
        }
        memcpy(report, &monitor->reports[i], sizeof(*report));
        mc_monitor_turn_give(&slot->turn);
        /* It has not reported yet, or died long ago and left its number to another program. */
        if (report->process != process || mc_clock_now() - report->seen > LONGEST_SILENCE)
            continue;
        check_process_report(report);
        visit(baton, report);
        count++;
    }
    return count;
}
