#include "unit.h"

#include <apr_strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/semaphore.h"
#include "base/wait.h"
#include "db/sqlite/handles.h"
#include "mapcache/lock.h"

/* Longer than any test may take: a wait that does not end with the client does not end in time. */
#define LONG (3600 * APR_USEC_PER_SEC)

/* A client that goes at the third look. */
static int looks;

static bool
goes_soon(void *unused)
{
    (void)unused;
    return ++looks >= 3;
}

static void
set_up(void)
{
    unit_setup();
    looks = 0;
    ctx.abandoned = goes_soon;
}

START_TEST(a_condition_is_awaited_as_long_as_the_client_is_there)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition;
    mc_clock_condition(&condition);
    pthread_mutex_lock(&mutex);
    mc_wait_end end = MC_WAIT_READY;
    while (end == MC_WAIT_READY)
        end = mc_wait_condition(&condition, &mutex, mc_clock_now() + LONG, &ctx);
    ck_assert_int_eq(end, MC_WAIT_GONE);
    ck_assert_int_eq(looks, 3);
    ck_assert_int_eq(mc_wait_condition(&condition, &mutex, 0, &ctx), MC_WAIT_LATE);
    ctx.abandoned = NULL;
    apr_time_t until = mc_clock_now() + MC_WAIT_LOOK / 10;
    do
        end = mc_wait_condition(&condition, &mutex, until, &ctx);
    while (end == MC_WAIT_READY);
    ck_assert_int_eq(end, MC_WAIT_LATE);
    ck_assert_int_ge(mc_clock_now(), until);
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&condition);
}
END_TEST

START_TEST(a_socket_is_awaited_as_long_as_the_client_is_there)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct pollfd polled = { .fd = ends[0], .events = POLLIN };
    ck_assert_int_eq(mc_wait_socket(&polled, mc_clock_now() + LONG, &ctx), MC_WAIT_GONE);
    ctx.abandoned = NULL;
    ck_assert_int_eq(mc_wait_socket(&polled, mc_clock_now() + 1000, &ctx), MC_WAIT_LATE);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    ck_assert_int_eq(mc_wait_socket(&polled, mc_clock_now() + LONG, &ctx), MC_WAIT_READY);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(a_pause_is_over_when_the_client_goes)
{
    ck_assert(!mc_wait_pause(LONG, &ctx));
    ctx.abandoned = NULL;
    apr_time_t begin = mc_clock_now();
    ck_assert(mc_wait_pause(2000, &ctx));
    ck_assert_int_ge(mc_clock_now() - begin, 2000);
}
END_TEST

START_TEST(nobody_queues_for_a_client_that_has_gone)
{
    mc_semaphore *semaphore = mc_semaphore_create(1);
    mc_ctx inside = { .deadline = 0 };
    ck_ok(mc_semaphore_acquire(semaphore, &inside, pool));
    ck_fails(UNAVAILABLE, mc_semaphore_acquire(semaphore, &ctx, pool));
    mc_semaphore_release(&inside);
    ctx.abandoned = NULL;
    ck_ok(mc_semaphore_acquire(semaphore, &ctx, pool));
    mc_semaphore_release(&ctx);
    mc_semaphore_destroy(semaphore);
}
END_TEST

static void *
lead_flight(void *baton)
{
    mc_ctx own = ctx;
    mc_error *shared;
    mc_flight_role role;
    mc_flight **flight = baton;
    mc_error *error = mc_flight_board(&role, flight, &shared, process.flights, "a", LONG, &own, pool);
    return error == MC_OK && role == MC_LEAD ? baton : NULL;
}

START_TEST(nobody_waits_for_a_flight_when_the_client_has_gone)
{
    mc_flight *leader = NULL;
    mc_flight *other = NULL;
    mc_flight_role role;
    mc_error *shared;
    pthread_t thread;
    void *led = NULL;
    process.flights = mc_flights_create();
    ck_assert_int_eq(pthread_create(&thread, NULL, lead_flight, &leader), 0);
    pthread_join(thread, &led);
    ck_assert_ptr_nonnull(led);
    ck_fails(UNAVAILABLE, mc_flight_board(&role, &other, &shared, process.flights, "a", LONG, &ctx, pool));
    mc_flight_land(leader, MC_OK);
    mc_flights_destroy(process.flights);
}
END_TEST

START_TEST(nobody_waits_for_a_lock_when_the_client_has_gone)
{
    char folder[] = "/tmp/mapcache-lock-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    mc_locker *locker = mc_locker_disk(folder, 3600, pool);
    mc_lock *held;
    mc_lock *other;
    bool waited;
    ck_ok(mc_locker_acquire(&held, &waited, locker, "a", &ctx, pool));
    ck_fails(UNAVAILABLE, mc_locker_acquire(&other, &waited, locker, "a", &ctx, pool));
    ck_assert(waited);
    mc_lock_release(held);
    unlink(apr_pstrcat(pool, folder, "/mapcache.lock", NULL));
    rmdir(folder);
}
END_TEST

START_TEST(nobody_waits_for_a_store_when_the_client_has_gone)
{
    enum { MANY = 256 };
    char folder[] = "/tmp/mapcache-store-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    mc_open_options how = { .write = true, .create = "CREATE TABLE IF NOT EXISTS t (a)" };
    how.profile = mc_open_options_profile(&how);
    mc_handles *handles = mc_handles_create(1);
    mc_handle *held[MANY];
    const char *paths[MANY];
    int count = 0;
    mc_error *error = MC_OK;
    for (; error == MC_OK && count < MANY; count++) { /* until the table is full, or two share a queue of writers */
        paths[count] = apr_psprintf(pool, "%s/%d.sqlite3", folder, count);
        looks = -1000;
        if (count > 0) {
            looks = 0;
            ck_fails(UNAVAILABLE, mc_handle_acquire(&held[count], handles, paths[0], NULL, &how, &ctx, pool));
            looks = 0;
        }
        error = mc_handle_acquire(&held[count], handles, paths[count], NULL, &how, &ctx, pool);
    }
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->kind, MC_ERR_UNAVAILABLE);
    ctx.abandoned = NULL;
    for (int i = 0; i < count; i++) {
        if (i < count - 1)
            mc_handle_release(held[i], true);
        unlink(paths[i]);
    }
    mc_handles_destroy(handles);
    rmdir(folder);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_condition_is_awaited_as_long_as_the_client_is_there,
        a_socket_is_awaited_as_long_as_the_client_is_there,
        a_pause_is_over_when_the_client_goes,
        nobody_queues_for_a_client_that_has_gone,
        nobody_waits_for_a_flight_when_the_client_has_gone,
        nobody_waits_for_a_lock_when_the_client_has_gone,
        nobody_waits_for_a_store_when_the_client_has_gone,
    };
    return unit_run_between("wait", tests, (int)(sizeof(tests) / sizeof(tests[0])), set_up, unit_teardown);
}
