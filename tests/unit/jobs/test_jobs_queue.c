/* The queue's statements against a real server: who has a lease, what counts, what happens to what is told twice. */
#include "postgres.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "mapcache/jobs.h"

static mc_jobs *jobs;
static mc_tile_range limits[] = { { 0, 0, 8, 8 } };

static void
set_up_jobs(void)
{
    postgres_set_up(8);
    jobs = mc_jobs_create(database_connection(&postgres_server), NULL, pool);
    database_do(&postgres_server, "sql drop table if exists mapcache_job_units, mapcache_jobs, mapcache_job_workers, "
                                  "mapcache_jobs_schema");
}

/* Four units of 16 metatiles. */
static int64_t
enqueue(int priority, const char *request)
{
    mc_job job = { .priority = priority,
                   .attempts = 2,
                   .tileset = "world",
                   .grid = "g",
                   .target = "",
                   .dimensions = "",
                   .area = "",
                   .area_srs = "",
                   .order = MC_SEED_LEVELS,
                   .minzoom = 3,
                   .maxzoom = 3,
                   .limits = limits,
                   .columns = 1,
                   .rows = 1,
                   .side = 4,
                   .model = "m",
                   .units = 4,
                   .metatiles = 64,
                   .owner = "a test" };
    int64_t id = 0;
    ck_ok(mc_jobs_enqueue(&id, jobs, &job, request, &ctx));
    ck_assert_int_gt(id, 0);
    return id;
}

static mc_job
find(int64_t id)
{
    mc_job job;
    ck_ok(mc_jobs_find(&job, jobs, id, false, &ctx, pool));
    return job;
}

static bool
lease(mc_job_unit *unit, const char *worker)
{
    bool found;
    int64_t open;
    ck_ok(mc_jobs_lease(&found, unit, &open, jobs, worker, NULL, &ctx, pool));
    return found;
}

static void
end_leases(void)
{
    database_do(&postgres_server, "sql update mapcache_job_units set until = now() - interval '1 second'");
}

START_TEST(units_are_leased_in_order_each_once)
{
    mc_job_unit unit;
    int64_t low = enqueue(0, NULL), high = enqueue(5, NULL);
    for (int i = 0; i < 8; i++) {
        ck_assert(lease(&unit, "w"));
        ck_assert_int_eq(unit.job, i < 4 ? high : low);
        ck_assert_int_eq(unit.unit, i % 4);
        ck_assert_int_eq(unit.position, 0);
    }
    ck_assert(!lease(&unit, "w"));
    ck_assert_int_eq(find(low).next_unit, 4);
}
END_TEST

START_TEST(a_finished_unit_counts_once_and_the_last_one_ends_the_job)
{
    mc_job_unit unit;
    mc_job_told told;
    int64_t id = enqueue(0, NULL);
    database_do(&postgres_server, "sql update mapcache_jobs set metatiles = 99"); /* as if they had been guessed */
    for (int i = 0; i < 4; i++) {
        ck_assert(lease(&unit, "w"));
        ck_assert_int_eq(find(id).metatiles, 99);
        unit.counts = (mc_job_counts){ 10, 6, 10 };
        ck_ok(mc_jobs_finish(&told, jobs, &unit, 16, &ctx));
        ck_assert(told.held);
        ck_assert_int_eq(told.state, i < 3 ? MC_JOB_OPEN : MC_JOB_DONE);
        ck_ok(mc_jobs_finish(&told, jobs, &unit, 16, &ctx)); /* sent again */
        ck_assert(!told.held);
    }
    mc_job job = find(id);
    ck_assert_int_eq(job.counts.done, 40);
    ck_assert_int_eq(job.counts.skipped, 24);
    ck_assert_int_eq(job.finished, 4);
    ck_assert_int_eq(job.metatiles, 64);
    ck_assert(job.ended >= job.started && job.started > 0);
}
END_TEST

START_TEST(a_lease_that_has_ended_goes_to_another_with_what_was_told)
{
    static const int again[] = { 1, 4 };
    mc_job_unit unit, second;
    mc_job_told told;
    int64_t id = enqueue(0, NULL);
    ck_assert(lease(&unit, "first"));
    unit.position = 6;
    unit.again = again;
    unit.again_count = 2;
    unit.counts = (mc_job_counts){ 4, 0, 4 };
    for (int i = 0; i < 2; i++) { /* told twice, counted once */
        ck_ok(mc_jobs_tell(&told, jobs, &unit, 16, false, &ctx));
        ck_assert(told.held);
        ck_assert_int_eq(find(id).counts.done, 4);
    }
    ck_assert_int_eq(find(id).workers, 1);
    end_leases();
    ck_assert_int_eq(find(id).workers, 0);
    ck_assert(lease(&second, "second"));
    ck_assert_int_eq(second.unit, unit.unit);
    ck_assert_int_eq(second.position, 6);
    ck_assert_int_eq(second.again_count, 2);
    ck_assert_int_eq(second.again[1], 4);
    ck_assert_int_eq(second.counts.done, 4);
    /* What the first one says now is not heard. */
    unit.counts.done = 16;
    ck_ok(mc_jobs_tell(&told, jobs, &unit, 16, false, &ctx));
    ck_assert(!told.held);
    ck_ok(mc_jobs_tell(&told, jobs, &unit, 16, true, &ctx));
    ck_assert(!told.held);
    ck_ok(mc_jobs_finish(&told, jobs, &unit, 16, &ctx));
    ck_assert(!told.held);
    unit.again_count = 0;
    ck_ok(mc_jobs_finish(&told, jobs, &unit, 16, &ctx));
    ck_assert(!told.held);
    ck_assert_int_eq(find(id).counts.done, 4);
    /* A lease that has ended and was given to nobody is still its holder's. */
    end_leases();
    second.again_count = 0;
    ck_ok(mc_jobs_finish(&told, jobs, &second, 16, &ctx));
    ck_assert(told.held);
}
END_TEST

START_TEST(what_is_given_back_is_free_at_once_and_no_try)
{
    mc_job_unit unit, next;
    mc_job_told told;
    enqueue(0, NULL);
    ck_assert(lease(&unit, "w"));
    unit.position = 3;
    ck_ok(mc_jobs_tell(&told, jobs, &unit, 16, true, &ctx));
    ck_assert(told.held);
    ck_assert(lease(&next, "w"));
    ck_assert_int_eq(next.unit, unit.unit);
    ck_assert_int_eq(next.position, 3);
    ck_assert_int_eq(next.attempt, 0);
    ck_assert(next.lease != unit.lease);
}
END_TEST

START_TEST(failures_are_tried_again_with_a_cap_and_kept)
{
    static const int again[] = { 7 };
    mc_job_unit unit;
    mc_job_told told;
    mc_job_state state;
    apr_array_header_t *units;
    int64_t id = enqueue(0, NULL);
    database_do(&postgres_server,
                "sql update mapcache_jobs set units = 1, maxzoom = 3, limits = '{0,0,4,4}', metatiles = 16");
    for (int attempt = 0; attempt < 2; attempt++) {
        end_leases();
        ck_assert(lease(&unit, "w"));
        ck_assert_int_eq(unit.attempt, attempt);
        unit.position = 16;
        unit.again = again;
        unit.again_count = 1;
        unit.counts = (mc_job_counts){ 15, 0, 15 };
        unit.message = "the origin says no";
        ck_ok(mc_jobs_finish(&told, jobs, &unit, 16, &ctx));
        ck_assert(told.held);
    }
    ck_assert_int_eq(told.state, MC_JOB_DONE);
    mc_job job = find(id);
    ck_assert_int_eq(job.failed_units, 1);
    ck_assert_int_eq(job.failed, 1);
    ck_assert_int_eq(job.counts.done, 15);
    ck_ok(mc_jobs_units(&units, jobs, id, 10, &ctx, pool));
    ck_assert_str_eq(APR_ARRAY_IDX(units, 0, mc_job_unit).message, "the origin says no");
    for (int i = 0; i < 2; i++) { /* also when it is sent again */
        ck_ok(mc_jobs_change(&state, jobs, id, MC_JOB_RETRY, &ctx));
        ck_assert_int_eq(state, MC_JOB_OPEN);
        ck_assert_int_eq(find(id).failed_units, 0);
    }
    ck_assert(lease(&unit, "w"));
    ck_assert_int_eq(unit.again_count, 1);
    unit.again_count = 0;
    unit.counts.done = 16;
    ck_ok(mc_jobs_finish(&told, jobs, &unit, 16, &ctx));
    ck_assert_int_eq(told.state, MC_JOB_DONE);
    ck_assert_int_eq(find(id).counts.done, 16);
}
END_TEST

START_TEST(a_cancelled_job_keeps_its_counts_and_hands_out_nothing)
{
    mc_job_unit unit;
    mc_job_told told;
    mc_job_state state;
    int64_t count;
    int64_t id = enqueue(0, NULL);
    ck_assert(lease(&unit, "w"));
    unit.position = 5;
    unit.counts = (mc_job_counts){ 5, 0, 5 };
    ck_ok(mc_jobs_tell(&told, jobs, &unit, 16, false, &ctx));
    ck_ok(mc_jobs_change(&state, jobs, id, MC_JOB_PAUSE, &ctx));
    ck_ok(mc_jobs_tell(&told, jobs, &unit, 16, false, &ctx));
    ck_assert(told.held && told.state == MC_JOB_PAUSED);
    ck_assert(!lease(&unit, "other"));
    ck_ok(mc_jobs_change(&state, jobs, id, MC_JOB_CANCEL, &ctx));
    ck_ok(mc_jobs_change(&state, jobs, id, MC_JOB_CANCEL, &ctx));
    ck_ok(mc_jobs_tell(&told, jobs, &unit, 16, false, &ctx));
    ck_assert(!told.held);
    ck_assert_int_eq(find(id).counts.done, 5);
    ck_fails(INVALID_PARAMETER, mc_jobs_change(&state, jobs, id, MC_JOB_RESUME, &ctx));
    ck_fails(NOT_FOUND, mc_jobs_change(&state, jobs, id + 100, MC_JOB_CANCEL, &ctx));
    ck_ok(mc_jobs_prune(&count, jobs, 3600, &ctx));
    ck_assert_int_eq(count, 0);
    ck_ok(mc_jobs_prune(&count, jobs, 0, &ctx));
    ck_assert_int_eq(count, 1);
}
END_TEST

START_TEST(a_request_makes_one_job)
{
    int64_t first = enqueue(0, "tonight");
    ck_assert_int_eq(enqueue(3, "tonight"), first);
    ck_assert_int_ne(enqueue(0, "tomorrow"), first);
    ck_assert_int_ne(enqueue(0, NULL), enqueue(0, NULL));
}
END_TEST

/* --- many at once ----------------------------------------------------------------------------------------------- */

enum { THREADS = 6, JOBS = 5 };
static _Atomic int finished[JOBS * 4 + 1];

static void *
work(void *baton)
{
    apr_pool_t *own;
    apr_pool_create(&own, NULL);
    mc_ctx mine = { .pool = own, .process = &process, .log = &mc_log_stderr };
    for (int idle = 0; idle < 50;) {
        mc_job_unit unit;
        mc_job_told told;
        bool found;
        int64_t open = 0;
        MC_ASSERT(mc_jobs_lease(&found, &unit, &open, jobs, baton, NULL, &mine, own) == MC_OK);
        if (!found && open == 0)
            break;
        if (!found) {
            nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
            idle++;
            continue;
        }
        unit.counts.done = 16;
        MC_ASSERT(mc_jobs_finish(&told, jobs, &unit, 16, &mine) == MC_OK && told.held);
        atomic_fetch_add(&finished[(unit.job - 1) * 4 + unit.unit], 1);
        apr_pool_clear(own);
    }
    apr_pool_destroy(own);
    return NULL;
}

START_TEST(many_workers_finish_each_unit_once_and_all_jobs)
{
    static char names[THREADS][8];
    pthread_t threads[THREADS];
    for (int i = 0; i < JOBS; i++)
        ck_assert_int_eq(enqueue(i, NULL), i + 1);
    for (int i = 0; i < THREADS; i++) {
        snprintf(names[i], sizeof(names[i]), "w%d", i);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, names[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < JOBS * 4; i++)
        ck_assert_int_eq(finished[i], 1);
    for (int i = 0; i < JOBS; i++) {
        mc_job job = find(i + 1);
        ck_assert_int_eq(job.state, MC_JOB_DONE);
        ck_assert_int_eq(job.counts.done, 64);
    }
}
END_TEST

/* Nobody but us should write there, but a number that somebody has put there must not lead anywhere. */
START_TEST(rows_that_were_changed_by_hand_are_refused)
{
    static const char *const changes[] = {
        "metatile_columns = 2147483647",
        "metatile_rows = 0",
        "side = 2000",
        "limits = '{-8,0,0,8}'",
        "limits = '{0,0,-8,8}'",
        "limits = '{0,0,8}'",
        "maxzoom = 2147483647",
        "minzoom = -1",
        "units = 5",
        "limits = '{0,0,2147483647,2147483647}', side = 1024",
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        mc_job job;
        int64_t id = enqueue(0, NULL);
        database_do(&postgres_server,
                    apr_psprintf(pool, "sql update mapcache_jobs set %s where id = %d", changes[i], (int)id));
        ck_fails(CORRUPT, mc_jobs_find(&job, jobs, id, false, &ctx, pool));
    }
}
END_TEST

START_TEST(tables_of_the_first_version_are_brought_to_this_one)
{
    mc_job_unit unit;
    int64_t old = enqueue(0, NULL);
    database_do(&postgres_server, "sql alter table mapcache_jobs drop column unit_order");
    database_do(&postgres_server, "sql update mapcache_jobs_schema set version = 1");
    jobs = mc_jobs_create(database_connection(&postgres_server), NULL, pool); /* another program */
    ck_assert(lease(&unit, "w"));
    ck_assert_int_eq(unit.job, old);
    ck_assert_int_eq(find(old).order, MC_SEED_LEVELS);
    ck_assert_int_gt(enqueue(0, NULL), old);
    database_do(&postgres_server, "sql update mapcache_jobs_schema set version = 3");
    jobs = mc_jobs_create(database_connection(&postgres_server), NULL, pool);
    bool found;
    int64_t open;
    ck_fails(CONFIG, mc_jobs_lease(&found, &unit, &open, jobs, "w", NULL, &ctx, pool));
}
END_TEST

POSTGRES_MAIN_BETWEEN("jobs_queue", set_up_jobs, postgres_tear_down, units_are_leased_in_order_each_once,
                      a_finished_unit_counts_once_and_the_last_one_ends_the_job,
                      a_lease_that_has_ended_goes_to_another_with_what_was_told,
                      what_is_given_back_is_free_at_once_and_no_try, failures_are_tried_again_with_a_cap_and_kept,
                      a_cancelled_job_keeps_its_counts_and_hands_out_nothing, a_request_makes_one_job,
                      many_workers_finish_each_unit_once_and_all_jobs, rows_that_were_changed_by_hand_are_refused,
                      tables_of_the_first_version_are_brought_to_this_one)
