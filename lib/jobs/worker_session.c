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

#include "jobs/session.h"

/* --- results ---------------------------------------------------------------------------------------------------- */

static void
visit_session_result(void *baton, const mc_seed_result *result)
{
    jobs_session *s = baton;
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
    jobs_session *s = baton;
    if (s->plan->show != NULL)
        s->plan->show(s->plan->baton, s->result, s->held == NULL ? 0 : s->held->unit.job);
}

static mc_error *
poll_crew(jobs_session *s, int milliseconds)
{
    int outstanding;
    if (s->worker_pool == NULL)
        return MC_OK;
    return mc_seed_poll(&outstanding, s->worker_pool, s->submitted == s->met ? 0 : milliseconds, s->job_pool);
}

/* Sleeps at most so long, until there is a result or the worker is to stop. */
static mc_error *
wait_a_turn(jobs_session *s)
{
    if (s->worker_pool != NULL && s->submitted > s->met)
        return poll_crew(s, TURN_MS);
    struct timespec turn = { 0, TURN_MS * 1000000L };
    nanosleep(&turn, NULL);
    show_session_progress(s);
    return MC_OK;
}

/* --- the worker pool -------------------------------------------------------------------------------------------- */

static mc_error *
share_session_process(mc_process **process, void *baton, apr_pool_t *pool)
{
    (void)pool;
    *process = ((jobs_session *)baton)->plan->process;
    return MC_OK;
}

static void
keep_session_process(mc_process *process, void *baton)
{
    (void)process, (void)baton;
}

static mc_error *
start_seed_pool(jobs_session *s)
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
finish_seed_pool(jobs_session *s)
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
lay_down(jobs_session *s, bool *late)
{
    mc_error *error = MC_OK;
    int64_t end = mc_clock_now() + LAST_WORK;
    *late = false;
    if (s->worker_pool != NULL) {
        int outstanding = 1;
        mc_seed_cancel(s->worker_pool);
        while (error == MC_OK && outstanding > 0 && (!jobs_session_is_stopping(s) || mc_clock_now() < end))
            error = mc_seed_poll(&outstanding, s->worker_pool, TURN_MS / 2, s->job_pool);
        *late = outstanding > 0;
    }
    jobs_session_return_units(s);
    s->leave = false;
    if (*late)
        return error;
    mc_error *end_error = finish_seed_pool(s);
    return error == MC_OK ? end_error : error;
}

/* --- leasing ---------------------------------------------------------------------------------------------------- */

/* The job of a unit that was just leased becomes the worker pool's. */
static mc_error *
change_job(jobs_session *s, const mc_job_unit *unit)
{
    mc_error *error = finish_seed_pool(s);
    if (error != MC_OK)
        return error;
    apr_pool_create(&s->job_pool, s->pool);
    error =
        mc_jobs_find(&s->job, s->plan->jobs, unit->job, true, jobs_session_begin_statement(s, PATIENCE), s->job_pool);
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
refuse_leased_unit(jobs_session *s, const mc_job_unit *unit, const mc_error *error)
{
    mc_job_told told;
    mc_log_error(&s->ctx, MC_LOG_WARN, error);
    s->look = mc_clock_now() + IDLE;
    if (error->kind == MC_ERR_CONFIG || error->kind == MC_ERR_CORRUPT)
        APR_ARRAY_PUSH(s->without, int64_t) = unit->job;
    mc_job_unit back = *unit;
    (void)jobs_session_note_answer(
        s, mc_jobs_tell(&told, s->plan->jobs, &back, 0, true, jobs_session_begin_statement(s, PATIENCE)));
}

/* Adds a leased unit to what is held. */
static void
hold_leased_unit(jobs_session *s, const mc_job_unit *unit, int64_t ends)
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
complete_held_units(jobs_session *s)
{
    while (s->held != NULL && !s->leave && !jobs_session_is_stopping(s)) {
        MC_TRY(wait_a_turn(s));
        jobs_session_send_heartbeat(s);
    }
    return MC_OK;
}

static mc_error *
lease_next_unit(jobs_session *s)
{
    mc_job_unit unit;
    bool found = false;
    int64_t open = 0, asked = mc_clock_now();
    apr_pool_t *pool;
    apr_pool_create(&pool, s->pool);
    mc_error *error = mc_jobs_lease(&found, &unit, &open, s->plan->jobs, s->plan->name, s->without,
                                    jobs_session_begin_statement(s, PATIENCE), pool);
    if (error != MC_OK && error->kind == MC_ERR_CONFIG)
        return error; /* tables of another version */
    if (!jobs_session_note_answer(s, error) || !found) {
        s->look = mc_clock_now() + IDLE;
        s->nothing_left = error == MC_OK && open == 0;
        apr_pool_destroy(pool);
        return MC_OK;
    }
    error = MC_OK;
    if (unit.job != s->job.id) {
        MC_TRY(complete_held_units(s));
        if (s->held != NULL) {
            (void)jobs_session_note_answer(s, mc_jobs_tell(&(mc_job_told){ 0 }, s->plan->jobs, &unit, 0, true,
                                                           jobs_session_begin_statement(s, FAREWELL)));
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
find_current_unit(const jobs_session *s)
{
    jobs_unit_lease *held = s->held;
    while (held != NULL && held->handed == held->todo)
        held = held->next;
    return held;
}

static bool
is_due(jobs_session *s)
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
submit_next_metatile(jobs_session *s, jobs_unit_lease *held)
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
run_session_turn(jobs_session *s)
{
    bool late;
    jobs_session_send_heartbeat(s);
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
    jobs_session s = { .plan = plan,
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
                      .abandoned = jobs_session_abandons_statement,
                      .abandoned_baton = &s };
    *result = (mc_jobs_session_result){ 0 };
    mc_error *error = MC_OK;
    while (error == MC_OK && !jobs_session_is_stopping(&s) && !(plan->drain && s.nothing_left && s.held == NULL))
        error = run_session_turn(&s);
    error = mc_error_copy(error, pool);
    mc_error *last = mc_error_copy(lay_down(&s, &late), pool);
    s.ctx.abandoned = NULL;
    if (!s.away) {
        mc_error *silence = mc_jobs_leave(plan->jobs, plan->name, jobs_session_begin_statement(&s, FAREWELL));
        s.away = silence != MC_OK;
        mc_error_ignore(silence);
    }
    if (error == MC_OK)
        error = last;
    result->late = late || s.away; /* libpq cancels in a way that may wait for a hanging database */
    if (!late)
        apr_pool_destroy(s.pool);
    return error;
}
