/* What a worker tells the queue: units that are through, units that are held, units that go back. */
#include <apr_strings.h>

#include "jobs/session.h"

bool
jobs_session_is_stopping(void *baton)
{
    const jobs_session *s = baton;
    return s->plan->stop != NULL && *s->plan->stop != 0;
}

bool
jobs_session_abandons_statement(void *baton)
{
    jobs_session *s = baton;
    if (!jobs_session_is_stopping(s))
        return false;
    if (s->stop_seen == 0)
        s->stop_seen = mc_clock_now();
    return mc_clock_now() >= s->stop_seen + FAREWELL;
}

mc_ctx *
jobs_session_begin_statement(jobs_session *s, apr_interval_time_t limit)
{
    apr_pool_clear(s->scratch);
    s->ctx.deadline = mc_clock_now() + limit;
    return &s->ctx;
}

bool
jobs_session_note_answer(jobs_session *s, const mc_error *error)
{
    if (error != MC_OK && jobs_session_is_stopping(s))
        return false;
    if (error != MC_OK && !s->away)
        mc_log_error(&s->ctx, MC_LOG_WARN, error);
    if (error == MC_OK && s->away)
        mc_log_write(&s->ctx, MC_LOG_WARN, "the job queue is back");
    s->away = error != MC_OK;
    return error == MC_OK;
}

static void
drop_held_unit(jobs_session *s, jobs_unit_lease *held)
{
    jobs_unit_lease **at = &s->held;
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    apr_pool_destroy(held->pool);
}

/* What the queue says of a unit that was told about. */
static void
apply_unit_reply(jobs_session *s, const jobs_unit_lease *held, const mc_job_told *told)
{
    if (held->unit.job == s->job.id && told->held) {
        s->rate = told->rate;
        s->workers = told->workers;
    }
    if (!told->held || told->state != MC_JOB_OPEN)
        s->leave = true;
}

/* All units' leases begin anew; the worker shows itself. */
static void
tell_all(jobs_session *s)
{
    mc_job_told told;
    for (jobs_unit_lease *held = s->held; held != NULL; held = held->next) {
        int64_t asked = mc_clock_now();
        mc_ctx *ctx = jobs_session_begin_statement(s, PATIENCE);
        mc_job_unit state = jobs_unit_lease_state(held, s->scratch);
        if (!jobs_session_note_answer(s, mc_jobs_tell(&told, s->plan->jobs, &state, held->size, false, ctx)))
            return;
        held->ends = asked + mc_jobs_lease_time(s->plan->jobs) * SECOND;
        apply_unit_reply(s, held, &told);
    }
    int64_t time = mc_clock_now();
    mc_job_worker me = { .name = s->plan->name,
                         .threads = s->plan->threads,
                         .job = s->held == NULL ? 0 : s->held->unit.job,
                         .tiles = s->result->tiles,
                         .rate = (double)(s->result->tiles - s->tiles_told) * (double)SECOND /
                                 (double)(time - s->told_at + 1) };
    s->tiles_told = s->result->tiles;
    s->told_at = time;
    jobs_session_note_answer(s, mc_jobs_present(s->plan->jobs, &me, jobs_session_begin_statement(s, PATIENCE)));
}

/* Pauses after units of which nothing succeeded grow, so that a dead origin does not use up the tries of a whole job.
 */
static void
adjust_unit_pause(jobs_session *s, const jobs_unit_lease *held)
{
    bool bad = held->failed > 0 && held->failed == held->met;
    s->bad = !bad ? 0 : s->bad < 6 ? s->bad + 1 : s->bad;
    if (bad) {
        int64_t pause = (int64_t)1 << (s->bad - 1);
        s->look = mc_clock_now() + (pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE) * SECOND;
    }
}

/* With the last unit of a job: what its store keeps apart meanwhile becomes what other programs read. A store that this
 * worker cannot finish is left to `mapcache compact`. */
static void
finish_job_store(jobs_session *s, const jobs_unit_lease *held, const mc_job_told *told)
{
    if (!told->held || told->state != MC_JOB_DONE || held->unit.job != s->job.id)
        return;
    mc_ctx ctx = { .pool = s->job_pool,
                   .process = s->plan->process,
                   .log = s->plan->log,
                   .abandoned = jobs_session_is_stopping,
                   .abandoned_baton = s };
    mc_error *error =
        mc_cache_finish((s->task.mode == MC_SEED_TRANSFER ? s->task.target : s->task.tileset)->cache, &ctx);
    if (error != MC_OK && jobs_session_is_stopping(s))
        mc_log_write(&ctx, MC_LOG_WARN,
                     "the job is done, but for its store: `mapcache compact` finishes what was"
                     " interrupted");
    else if (error != MC_OK)
        mc_log_error(&ctx, MC_LOG_WARN, error);
}

/* Units that are through leave; those that cannot be told about wait for the next beat. */
static void
finish_units(jobs_session *s)
{
    for (jobs_unit_lease *held = s->held, *next; held != NULL; held = next) {
        next = held->next;
        if (held->met < held->todo || (s->away && mc_clock_now() < s->beat))
            continue;
        mc_job_told told;
        mc_ctx *ctx = jobs_session_begin_statement(s, PATIENCE);
        mc_job_unit state = jobs_unit_lease_state(held, s->scratch);
        if (!jobs_session_note_answer(s, mc_jobs_finish(&told, s->plan->jobs, &state, held->size, ctx)))
            return;
        s->result->units += told.held;
        s->result->lost += !told.held;
        s->look = 0; /* what is left may be another's: look at once */
        adjust_unit_pause(s, held);
        finish_job_store(s, held, &told);
        drop_held_unit(s, held);
    }
}

void
jobs_session_send_heartbeat(jobs_session *s)
{
    finish_units(s);
    if (mc_clock_now() < s->beat)
        return;
    s->beat = mc_clock_now() + BEAT;
    tell_all(s);
}

void
jobs_session_return_units(jobs_session *s)
{
    mc_job_told told;
    bool there = true;
    s->ctx.abandoned = NULL;
    while (s->held != NULL) {
        jobs_unit_lease *held = s->held;
        mc_ctx *ctx = jobs_session_begin_statement(s, FAREWELL);
        mc_job_unit state = jobs_unit_lease_state(held, s->scratch);
        bool through = held->met == held->todo;
        mc_error *error = MC_OK;
        if (there && through)
            error = mc_jobs_finish(&told, s->plan->jobs, &state, held->size, ctx);
        else if (there)
            error = mc_jobs_tell(&told, s->plan->jobs, &state, held->size, true, ctx);
        there = there && jobs_session_note_answer(s, error);
        s->result->units += there && through && told.held;
        s->result->lost += there && !told.held;
        drop_held_unit(s, held);
    }
    s->away = s->away || !there;
    s->ctx.abandoned = jobs_session_abandons_statement;
}
