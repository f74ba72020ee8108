/*
 * A worker: leases units, gives their metatiles to a worker pool of threads, and tells the queue what has become of
 * them. All of the queue's business happens on one thread, between handing out and taking results. Time is measured by
 * the monotonic clock: the wall clock of this host may jump. A metatile is told only after its tiles are committed (the
 * worker pool's promise), so what the queue says is done is stored.
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "jobs/unit_lease.h"

#define SECOND ((int64_t)1000000)

/* Microseconds between two words to the queue; for a statement; for giving back at the end; between two looks for work;
 * for what is being drawn when the worker is to stop. */
#define BEAT (2 * SECOND)
#define PATIENCE (5 * SECOND)
#define FAREWELL (SECOND / 2)
#define IDLE SECOND
#define LAST_WORK (SECOND * 6 / 5)

/* Seconds between two metatiles at the lowest rate: a month. */
#define LONGEST_RATE_PAUSE 2.6e6

enum { TURN_MS = 100, LONGEST_PAUSE = 30 };

typedef struct session {
    const mc_jobs_session *plan;
    apr_pool_t *pool, *scratch;
    mc_ctx ctx; /* of statements */
    mc_jobs_session_result *result;

    mc_job job; /* of the worker pool */
    apr_pool_t *job_pool;
    mc_seed_task task;
    mc_seed_area area;
    mc_seed_worker_pool *worker_pool; /* NULL: none is started */
    int64_t submitted, met;           /* orders of this worker pool */
    double rate;                      /* of the job */
    int workers;                      /* who share it */
    int64_t due;                      /* when the rate allows the next metatile */

    jobs_unit_lease *held; /* in the order of their leases; all of the worker pool's job but perhaps the last one */
    apr_array_header_t *without; /* int64_t: jobs that this configuration cannot do */
    int64_t beat, look;          /* when to tell, when to look for work next */
    int64_t tiles_told, told_at; /* for the rate that is shown */
    int bad;                     /* units in a row of which everything failed */
    bool away, leave;            /* the database cannot be reached; a unit is lost or its job not open any more */
    bool nothing_left;
} session;

static bool
session_is_stopping(void *baton)
{
    const session *s = baton;
    return s->plan->stop != NULL && *s->plan->stop != 0;
}

/* A statement's context: a fresh scratch pool, and a limit. */
static mc_ctx *
begin_session_statement(session *s, apr_interval_time_t limit)
{
    apr_pool_clear(s->scratch);
    s->ctx.deadline = mc_clock_now() + limit;
    return &s->ctx;
}

/* Whether the database answered; an outage is told once. */
static bool
note_queue_answer(session *s, const mc_error *error)
{
    if (error != MC_OK && !s->away && !session_is_stopping(s))
        mc_log_error(&s->ctx, MC_LOG_WARN, error);
    if (error == MC_OK && s->away)
        mc_log_write(&s->ctx, MC_LOG_WARN, "the job queue is back");
    s->away = error != MC_OK;
    return error == MC_OK;
}

/* --- results ---------------------------------------------------------------------------------------------------- */

static void
visit_session_result(void *baton, const mc_seed_result *result)
{
    session *s = baton;
    s->met++;
    for (jobs_unit_lease *held = s->held; held != NULL; held = held->next) {
        if (held->handed == 0 || result->number < held->first || result->number >= held->first + held->handed)
            continue;
        mc_metatile metatile =
            mc_tileset_metatile(s->task.tileset, s->task.link->grid, result->z, result->x, result->y);
        int tiles = metatile.columns * metatile.rows;
        jobs_unit_lease_take(held, (int)(result->number - held->first), result, tiles);
        s->result->done += result->outcome == MC_SEED_DONE;
        s->result->tiles += result->outcome == MC_SEED_DONE ? tiles : 0;
        s->result->skipped += result->outcome == MC_SEED_SKIPPED;
        s->result->failed += result->outcome == MC_SEED_FAILED;
        return;
    }
}

static void
show_session_progress(void *baton)
{
    session *s = baton;
    if (s->plan->show != NULL)
        s->plan->show(s->plan->baton, s->result, s->held == NULL ? 0 : s->held->unit.job);
}

static mc_error *
poll_crew(session *s, int milliseconds)
{
    int outstanding;
    if (s->worker_pool == NULL)
        return MC_OK;
    return mc_seed_poll(&outstanding, s->worker_pool, s->submitted == s->met ? 0 : milliseconds, s->job_pool);
}

/* Sleeps at most so long, until there is a result or the worker is to stop. */
static mc_error *
wait_a_turn(session *s)
{
    if (s->worker_pool != NULL && s->submitted > s->met)
        return poll_crew(s, TURN_MS);
    struct timespec turn = { 0, TURN_MS * 1000000L };
    nanosleep(&turn, NULL);
    show_session_progress(s);
    return MC_OK;
}

/* --- telling ---------------------------------------------------------------------------------------------------- */

static void
drop_held_unit(session *s, jobs_unit_lease *held)
{
    jobs_unit_lease **at = &s->held;
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    apr_pool_destroy(held->pool);
}

/* What the queue says of a unit that was told about. */
static void
apply_unit_reply(session *s, const jobs_unit_lease *held, const mc_job_told *told)
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
tell_all(session *s)
{
    mc_job_told told;
    for (jobs_unit_lease *held = s->held; held != NULL; held = held->next) {
        int64_t asked = mc_clock_now();
        mc_ctx *ctx = begin_session_statement(s, PATIENCE);
        mc_job_unit state = jobs_unit_lease_state(held, s->scratch);
        if (!note_queue_answer(s, mc_jobs_tell(&told, s->plan->jobs, &state, held->size, false, ctx)))
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
    note_queue_answer(s, mc_jobs_present(s->plan->jobs, &me, begin_session_statement(s, PATIENCE)));
}

/* Pauses after units of which nothing succeeded grow, so that a dead origin does not use up the tries of a whole job.
 */
static void
adjust_unit_pause(session *s, const jobs_unit_lease *held)
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
finish_job_store(session *s, const jobs_unit_lease *held, const mc_job_told *told)
{
    if (!told->held || told->state != MC_JOB_DONE || held->unit.job != s->job.id)
        return;
    mc_ctx ctx = { .pool = s->job_pool, .process = s->plan->process, .log = s->plan->log };
    mc_error *error =
        mc_cache_finish((s->task.mode == MC_SEED_TRANSFER ? s->task.target : s->task.tileset)->cache, &ctx);
    if (error != MC_OK)
        mc_log_error(&ctx, MC_LOG_WARN, error);
}

/* Units that are through leave; those that cannot be told about wait for the next beat. */
static void
finish_units(session *s)
{
    for (jobs_unit_lease *held = s->held, *next; held != NULL; held = next) {
        next = held->next;
        if (held->met < held->todo || (s->away && mc_clock_now() < s->beat))
            continue;
        mc_job_told told;
        mc_ctx *ctx = begin_session_statement(s, PATIENCE);
        mc_job_unit state = jobs_unit_lease_state(held, s->scratch);
        if (!note_queue_answer(s, mc_jobs_finish(&told, s->plan->jobs, &state, held->size, ctx)))
            return;
        s->result->units += told.held;
        s->result->lost += !told.held;
        s->look = 0; /* what is left may be another's: look at once */
        adjust_unit_pause(s, held);
        finish_job_store(s, held, &told);
        drop_held_unit(s, held);
    }
}

static void
send_heartbeat(session *s)
{
    finish_units(s);
    if (mc_clock_now() < s->beat)
        return;
    s->beat = mc_clock_now() + BEAT;
    tell_all(s);
}

/* What is held goes back, as far as it is. */
static void
return_held_units(session *s)
{
    mc_job_told told;
    bool there = true;
    s->ctx.abandoned = NULL;
    while (s->held != NULL) {
        jobs_unit_lease *held = s->held;
        mc_ctx *ctx = begin_session_statement(s, FAREWELL);
        mc_job_unit state = jobs_unit_lease_state(held, s->scratch);
        bool through = held->met == held->todo;
        mc_error *error = MC_OK;
        if (there && through)
            error = mc_jobs_finish(&told, s->plan->jobs, &state, held->size, ctx);
        else if (there)
            error = mc_jobs_tell(&told, s->plan->jobs, &state, held->size, true, ctx);
        there = there && note_queue_answer(s, error);
        s->result->units += there && through && told.held;
        s->result->lost += there && !told.held;
        drop_held_unit(s, held);
    }
    s->ctx.abandoned = session_is_stopping;
}

/* --- the worker pool -------------------------------------------------------------------------------------------- */

static mc_error *
share_session_process(mc_process **process, void *baton, apr_pool_t *pool)
{
    (void)pool;
    *process = ((session *)baton)->plan->process;
    return MC_OK;
}

static void
keep_session_process(mc_process *process, void *baton)
{
    (void)process, (void)baton;
}

static mc_error *
start_seed_pool(session *s)
{
    mc_seed_plan plan = { .task = s->task,
                          .workers = s->plan->threads,
                          .retries = s->plan->retries,
                          .backoff = true,
                          .log = s->plan->log,
                          .process_open = share_session_process,
                          .process_close = keep_session_process,
                          .report = visit_session_result,
                          .idle = show_session_progress,
                          .baton = s };
    s->due = 0;
    s->rate = s->job.rate;
    s->workers = s->job.workers > 0 ? s->job.workers : 1;
    return mc_seed_worker_pool_start(&s->worker_pool, &plan, s->job_pool);
}

/* Waits for what the worker pool has begun, and ends the pool. */
static mc_error *
finish_seed_pool(session *s)
{
    mc_error *error = s->worker_pool == NULL ? MC_OK : mc_seed_finish(s->worker_pool, s->job_pool);
    error = mc_error_copy(error, s->pool);
    s->worker_pool = NULL;
    s->submitted = s->met = 0; /* what was taken back has no results */
    if (s->job_pool != NULL)
        apr_pool_destroy(s->job_pool);
    s->job_pool = NULL;
    s->job = (mc_job){ 0 };
    return error;
}

/* Nothing more is begun; what is begun has a little time; everything goes back. *late: something is still being drawn.
 */
static mc_error *
lay_down(session *s, bool *late)
{
    mc_error *error = MC_OK;
    int64_t end = mc_clock_now() + LAST_WORK;
    *late = false;
    if (s->worker_pool != NULL) {
        int outstanding = 1;
        mc_seed_cancel(s->worker_pool);
        while (error == MC_OK && outstanding > 0 && (!session_is_stopping(s) || mc_clock_now() < end))
            error = mc_seed_poll(&outstanding, s->worker_pool, TURN_MS / 2, s->job_pool);
        *late = outstanding > 0;
    }
    return_held_units(s);
    s->leave = false;
    if (*late)
        return error;
    mc_error *end_error = finish_seed_pool(s);
    return error == MC_OK ? end_error : error;
}

/* --- leasing ---------------------------------------------------------------------------------------------------- */

/* The job of a unit that was just leased becomes the worker pool's. */
static mc_error *
change_job(session *s, const mc_job_unit *unit)
{
    mc_error *error = finish_seed_pool(s);
    if (error != MC_OK)
        return error;
    apr_pool_create(&s->job_pool, s->pool);
    error = mc_jobs_find(&s->job, s->plan->jobs, unit->job, true, begin_session_statement(s, PATIENCE), s->job_pool);
    if (error == MC_OK)
        error = mc_job_task(&s->task, &s->area, &s->job, s->plan->config, s->job_pool);
    if (error == MC_OK)
        error = start_seed_pool(s);
    if (error != MC_OK)
        s->job = (mc_job){ 0 }; /* nobody works on it */
    return error;
}

/* A unit that this worker cannot do: others may. */
static void
refuse_leased_unit(session *s, const mc_job_unit *unit, const mc_error *error)
{
    mc_job_told told;
    mc_log_error(&s->ctx, MC_LOG_WARN, error);
    s->look = mc_clock_now() + IDLE;
    if (error->kind == MC_ERR_CONFIG || error->kind == MC_ERR_CORRUPT)
        APR_ARRAY_PUSH(s->without, int64_t) = unit->job;
    mc_job_unit back = *unit;
    (void)note_queue_answer(s,
                            mc_jobs_tell(&told, s->plan->jobs, &back, 0, true, begin_session_statement(s, PATIENCE)));
}

/* Adds a leased unit to what is held. */
static void
hold_leased_unit(session *s, const mc_job_unit *unit, int64_t ends)
{
    jobs_unit_lease *held, **end = &s->held;
    if (!jobs_unit_lease_create(&held, unit, &s->job, &s->area, s->pool)) {
        mc_error *error =
            mc_error_create(s->pool, MC_ERR_CORRUPT,
                            "unit %" APR_INT64_T_FMT " of job %" APR_INT64_T_FMT " has a row that contradicts itself",
                            (apr_int64_t)unit->unit, (apr_int64_t)unit->job);
        refuse_leased_unit(s, unit, error);
        return;
    }
    held->ends = ends;
    while (*end != NULL)
        end = &(*end)->next;
    *end = held;
}

/* Before another job's turn: everything of this one is through and told. */
static mc_error *
complete_held_units(session *s)
{
    while (s->held != NULL && !s->leave && !session_is_stopping(s)) {
        MC_TRY(wait_a_turn(s));
        send_heartbeat(s);
    }
    return MC_OK;
}

static mc_error *
lease_next_unit(session *s)
{
    mc_job_unit unit;
    bool found = false;
    int64_t open = 0, asked = mc_clock_now();
    apr_pool_t *pool;
    apr_pool_create(&pool, s->pool);
    mc_error *error = mc_jobs_lease(&found, &unit, &open, s->plan->jobs, s->plan->name, s->without,
                                    begin_session_statement(s, PATIENCE), pool);
    if (error != MC_OK && error->kind == MC_ERR_CONFIG)
        return error; /* tables of another version */
    if (!note_queue_answer(s, error) || !found) {
        s->look = mc_clock_now() + IDLE;
        s->nothing_left = error == MC_OK && open == 0;
        apr_pool_destroy(pool);
        return MC_OK;
    }
    error = MC_OK;
    if (unit.job != s->job.id) {
        MC_TRY(complete_held_units(s));
        if (s->held != NULL) {
            (void)note_queue_answer(s, mc_jobs_tell(&(mc_job_told){ 0 }, s->plan->jobs, &unit, 0, true,
                                                    begin_session_statement(s, FAREWELL)));
            apr_pool_destroy(pool);
            return MC_OK;
        }
        error = change_job(s, &unit);
    }
    if (error == MC_OK)
        hold_leased_unit(s, &unit, asked + mc_jobs_lease_time(s->plan->jobs) * SECOND);
    else
        refuse_leased_unit(s, &unit, error);
    apr_pool_destroy(pool);
    return MC_OK;
}

/* --- handing out ------------------------------------------------------------------------------------------------ */

/* The unit that has metatiles to hand out: they are begun in the order of their leases. */
static jobs_unit_lease *
find_current_unit(const session *s)
{
    jobs_unit_lease *held = s->held;
    while (held != NULL && held->handed == held->todo)
        held = held->next;
    return held;
}

static bool
is_due(session *s)
{
    if (s->rate <= 0)
        return true;
    int64_t time = mc_clock_now();
    if (time < s->due)
        return false;
    double tiles = (double)s->job.columns * s->job.rows;
    double pause = fmin(tiles * s->workers / s->rate, LONGEST_RATE_PAUSE);
    s->due = (s->due > time - SECOND / 10 ? s->due : time) + (int64_t)(pause * (double)SECOND);
    return true;
}

static mc_error *
submit_next_metatile(session *s, jobs_unit_lease *held)
{
    int x, y;
    /* Without news from the database the lease may have been given to another. */
    if (mc_clock_now() >= held->ends || mc_seed_room(s->worker_pool) == 0 || !is_due(s))
        return wait_a_turn(s);
    jobs_unit_lease_tile(&x, &y, held, held->places[held->handed], &s->job);
    if (held->handed == 0)
        held->first = s->submitted;
    held->handed++;
    s->submitted++;
    MC_TRY(mc_seed_submit(s->worker_pool, held->block.z, x, y, NULL, s->job_pool));
    return poll_crew(s, 0);
}

static mc_error *
run_session_turn(session *s)
{
    bool late;
    send_heartbeat(s);
    if (s->leave)
        return lay_down(s, &late);
    jobs_unit_lease *held = find_current_unit(s);
    if (held != NULL)
        return submit_next_metatile(s, held);
    /* The next unit is leased when the last metatiles of this one are being drawn, and not before: what one worker
     * holds nobody else can do. */
    if (mc_clock_now() >= s->look && s->submitted - s->met <= s->plan->threads)
        return lease_next_unit(s);
    return wait_a_turn(s);
}

mc_error *
mc_jobs_work(mc_jobs_session_result *result, const mc_jobs_session *plan, apr_pool_t *pool)
{
    session s = { .plan = plan,
                  .result = result,
                  .workers = 1,
                  .told_at = mc_clock_now(),
                  .without = apr_array_make(pool, 4, sizeof(int64_t)) };
    bool late = false;
    apr_pool_create(&s.pool, pool);
    apr_pool_create(&s.scratch, s.pool);
    s.ctx = (mc_ctx){ .pool = s.scratch,
                      .process = plan->process,
                      .log = plan->log,
                      .abandoned = session_is_stopping,
                      .abandoned_baton = &s };
    *result = (mc_jobs_session_result){ 0 };
    mc_error *error = MC_OK;
    while (error == MC_OK && !session_is_stopping(&s) && !(plan->drain && s.nothing_left && s.held == NULL))
        error = run_session_turn(&s);
    error = mc_error_copy(error, pool);
    mc_error *last = mc_error_copy(lay_down(&s, &late), pool);
    s.ctx.abandoned = NULL;
    if (!s.away)
        mc_error_ignore(mc_jobs_leave(plan->jobs, plan->name, begin_session_statement(&s, FAREWELL)));
    if (error == MC_OK)
        error = last;
    result->late = late || s.away; /* libpq cancels in a way that may wait for a hanging database */
    if (!late)
        apr_pool_destroy(s.pool);
    return error;
}
