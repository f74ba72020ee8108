/* Locks of a PostgreSQL server. */
#include "base/clock.h"
#include "config_text.h"
#include "locker_cases.h"
#include "postgres.h"

static mc_locker *
make_postgresql_locker(void)
{
    mc_build build = config_build();
    const char *xml =
        apr_psprintf(pool, "<locker type=\"postgresql\"><connection>%s</connection><timeout>3600</timeout></locker>",
                     database_connection(&postgres_server));
    mc_locker *locker = mc_locker_from_config(config_elements(xml), &build);
    ck_assert_ptr_nonnull(locker);
    return locker;
}

static void
restart_postgres(void)
{
    process.postgres = mc_postgres_create(8, 1, 60 * APR_USEC_PER_SEC, true);
}

static const char *
count_advisory_locks(void)
{
    return database_do(&postgres_server, "sql SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'");
}

START_TEST(postgresql_locks_conform)
{
    ctx.deadline = 0;
    locks_exclude_each_other(make_postgresql_locker);
    lockers_take_turns(make_postgresql_locker);
    dead_holders_free_locks(make_postgresql_locker, restart_postgres);
    ck_assert_str_eq(count_advisory_locks(), "0");
}
END_TEST

/* The server does not notice that a client has gone while it has nothing to send: each would wait on, at a place that
 * others need, until the lock is free. */
START_TEST(who_gives_up_does_not_wait_on_at_the_server)
{
    static const char waiting[] = "sql SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    mc_locker *locker = make_postgresql_locker();
    mc_lock *held, *lock;
    bool waited;
    ck_ok(mc_locker_acquire(&held, &waited, locker, "a", &ctx, pool));
    for (int i = 0; i < 3; i++) {
        ctx.deadline = mc_clock_now() + 1500000;
        ck_fails(UNAVAILABLE, mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
    }
    ctx.deadline = 0;
    const apr_time_t end = mc_clock_now() + 30 * APR_USEC_PER_SEC;
    while (strcmp(database_do(&postgres_server, waiting), "0") != 0 && mc_clock_now() < end)
        usleep(50000);
    ck_assert_str_eq(database_do(&postgres_server, waiting), "0");
    ck_assert_str_eq(count_advisory_locks(), "1");
    mc_lock_release(held);
}
END_TEST

/* One connection for each lock that is held or waited for, and these are used again. */
START_TEST(connections_of_locks_are_kept)
{
    mc_locker *locker = make_postgresql_locker();
    mc_lock *lock;
    bool waited;
    for (int i = 0; i < 20; i++) {
        ck_ok(mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
        ck_assert_str_eq(count_advisory_locks(), "1");
        mc_lock_release(lock);
    }
    ck_assert_str_eq(database_do(&postgres_server, "sql SELECT count(*) FROM pg_stat_activity WHERE application_name ="
                                                   " 'mapcache-locks'"),
                     "1");
}
END_TEST

enum { NESTED = 8 };

static pthread_barrier_t all_have_one;

/* As a tileset whose source is a tileset: a lock, and while it is held another one, which all want in turn. */
static void *
hold_two_locks(void *data)
{
    mc_ctx own = { .process = &process, .log = &mc_log_stderr };
    mc_lock *outer, *inner, *innermost;
    bool waited;
    apr_pool_create(&own.pool, NULL);
    own.deadline = mc_clock_now() + 60 * APR_USEC_PER_SEC;
    mc_locker *locker = ((mc_locker **)data)[0];
    const char *name = apr_psprintf(own.pool, "outer %lu", (unsigned long)(uintptr_t)data);
    mc_error *error = mc_locker_acquire(&outer, &waited, locker, name, &own, own.pool);
    pthread_barrier_wait(&all_have_one);
    if (error == MC_OK)
        error = mc_locker_acquire(&inner, &waited, locker, "inner", &own, own.pool);
    if (error == MC_OK)
        error = mc_locker_acquire(&innermost, &waited, locker, "innermost", &own, own.pool);
    if (error == MC_OK) {
        mc_lock_release(innermost);
        mc_lock_release(inner);
        mc_lock_release(outer);
    }
    if (error != MC_OK)
        mc_log_error(&own, MC_LOG_ERROR, error);
    apr_pool_destroy(own.pool);
    return error == MC_OK ? data : NULL;
}

/* As many as there are connections: each has one, and none is left for a second one. */
START_TEST(nested_locks_need_no_second_connection)
{
    mc_locker *locker = make_postgresql_locker();
    mc_locker *places[NESTED];
    pthread_t threads[NESTED];
    void *done;
    pthread_barrier_init(&all_have_one, NULL, NESTED);
    for (int i = 0; i < NESTED; i++) {
        places[i] = locker;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hold_two_locks, &places[i]), 0);
    }
    for (int i = 0; i < NESTED; i++) {
        pthread_join(threads[i], &done);
        ck_assert_ptr_nonnull(done);
    }
    pthread_barrier_destroy(&all_have_one);
    ck_assert_str_eq(count_advisory_locks(), "0");
}
END_TEST

/* Whichever goes first: what is left is held, and others are kept out. */
START_TEST(nested_locks_end_in_any_order)
{
    mc_locker *locker = make_postgresql_locker();
    mc_ctx other = ctx;
    mc_lock *locks[3], *lock;
    bool waited;
    static const char *const names[] = { "a", "b", "c" };
    for (int first = 0; first < 3; first++) {
        for (int i = 0; i < 3; i++)
            ck_ok(mc_locker_acquire(&locks[i], &waited, locker, names[i], &ctx, pool));
        ck_assert_str_eq(count_advisory_locks(), "3");
        for (int i = 0; i < 3; i++) {
            const int next = (first + i) % 3;
            ck_ok(mc_locker_try(&lock, locker, names[next], &other, pool));
            ck_assert_ptr_null(lock);
            mc_lock_release(locks[next]);
            ck_ok(mc_locker_try(&lock, locker, names[next], &other, pool));
            ck_assert_ptr_nonnull(lock);
            mc_lock_release(lock);
        }
        ck_assert_ptr_null(ctx.locks);
        ck_assert_str_eq(count_advisory_locks(), "0");
    }
    ck_ok(mc_locker_acquire(&locks[0], &waited, locker, "a", &ctx, pool));
    ck_ok(mc_locker_acquire(&locks[1], &waited, locker, "b", &other, pool));
    ctx.deadline = mc_clock_now() + APR_USEC_PER_SEC / 5;
    ck_fails(UNAVAILABLE, mc_locker_acquire(&lock, &waited, locker, "b", &ctx, pool)); /* in the session that has a */
    ck_assert(waited);
    ctx.deadline = 0;
    ck_assert_str_eq(count_advisory_locks(), "2");
    mc_lock_release(locks[1]);
    mc_lock_release(locks[0]);
    ck_assert_str_eq(count_advisory_locks(), "0");
}
END_TEST

/* A part of the request whose context it gets a copy of, as workers do: a lock of its own, while the request has one.
 */
static void *
lock_in_part(void *data)
{
    apr_pool_t *part;
    bool waited;
    apr_pool_create(&part, NULL);
    mc_ctx *own = apr_pmemdup(part, &ctx, sizeof(ctx));
    own->pool = part;
    mc_error *error = mc_locker_acquire(data, &waited, make_postgresql_locker(), "inner", own, part);
    if (error != MC_OK)
        mc_log_error(own, MC_LOG_ERROR, error);
    return error == MC_OK ? part : NULL;
}

/* Two threads that talk in one session at a time would take each other's answers. */
START_TEST(only_the_thread_of_a_session_takes_further_locks_in_it)
{
    static const char sessions[] = "sql SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'advisory'";
    mc_lock *outer, *inner;
    bool waited;
    pthread_t thread;
    void *part_pool;
    ck_ok(mc_locker_acquire(&outer, &waited, make_postgresql_locker(), "outer", &ctx, pool));
    part_pool = lock_in_part(&inner);
    ck_assert_ptr_nonnull(part_pool);
    ck_assert_str_eq(database_do(&postgres_server, sessions), "1");
    mc_lock_release(inner);
    apr_pool_destroy(part_pool);
    ck_assert_int_eq(pthread_create(&thread, NULL, lock_in_part, &inner), 0);
    pthread_join(thread, &part_pool);
    ck_assert_ptr_nonnull(part_pool);
    ck_assert_str_eq(count_advisory_locks(), "2");
    ck_assert_str_eq(database_do(&postgres_server, sessions), "2");
    mc_lock_release(inner);
    apr_pool_destroy(part_pool);
    mc_lock_release(outer);
    ck_assert_str_eq(count_advisory_locks(), "0");
}
END_TEST

/* A lock is lost with its server; who comes after the start gets it. */
START_TEST(a_restarted_server_gives_locks_again)
{
    mc_locker *locker = make_postgresql_locker();
    mc_lock *held, *lock;
    bool waited;
    ck_ok(mc_locker_acquire(&held, &waited, locker, "a", &ctx, pool));
    database_do(&postgres_server, "stop");
    ck_fails(IO, mc_locker_acquire(&lock, &waited, locker, "b", &ctx, pool));
    mc_lock_release(held);
    database_do(&postgres_server, "start");
    while (mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool) != MC_OK)
        usleep(50000);
    mc_lock_release(lock);
}
END_TEST

POSTGRES_MAIN("postgresql_locker", 8, postgresql_locks_conform, who_gives_up_does_not_wait_on_at_the_server,
              connections_of_locks_are_kept, nested_locks_need_no_second_connection, nested_locks_end_in_any_order,
              only_the_thread_of_a_session_takes_further_locks_in_it, a_restarted_server_gives_locks_again)
