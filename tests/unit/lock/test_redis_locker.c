/* Locks in redis: real servers, alone and in a cluster. */
#include "config_text.h"
#include "locker_cases.h"

#include <apr_strings.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redis_server.h"
#include "remote/remote.h"

static redis_server_process server;
static int locked_port;

static mc_locker *
redis_locker_with(const char *inner)
{
    mc_build build = config_build();
    const char *xml = apr_psprintf(
        pool, "<locker type=\"redis\"><host>127.0.0.1</host><port>%d</port><timeout>3600</timeout>%s</locker>",
        locked_port, inner);
    mc_locker *locker = mc_locker_from_config(config_elements(xml), &build);
    ck_assert_ptr_nonnull(locker);
    return locker;
}

static mc_locker *
make_redis_locker(void)
{
    return redis_locker_with("");
}

/* Its waiters look after an hour, or when they are woken. */
static mc_locker *
make_sleepy_locker(void)
{
    return redis_locker_with("<retry>3600</retry>");
}

static void
restart_remotes(void)
{
    process.remotes = mc_remotes_create(); /* the parent's connections stay the parent's */
}

static void
start_lock_server_with(const char *const *options)
{
    server.folder[0] = '\0';
    start_redis(&server, options);
    locked_port = server.port;
}

static void
start_lock_server(void)
{
    start_lock_server_with(NULL);
}

START_TEST(redis_locks_conform)
{
    start_lock_server();
    locks_exclude_each_other(make_redis_locker);
    lockers_take_turns(make_sleepy_locker);
    dead_holders_free_locks(make_redis_locker, restart_remotes);
    ck_assert_str_eq(ask_redis(&server, "DBSIZE"), ":0\r\n");
    stop_redis(&server);
}
END_TEST

START_TEST(redis_locks_of_a_cluster_conform)
{
    redis_server_process nodes[3];
    start_redis_cluster(nodes);
    for (int i = 0; i < 3; i++) { /* the lock is elsewhere for two of them */
        locked_port = nodes[i].port;
        locks_exclude_each_other(make_redis_locker);
        dead_holders_free_locks(make_redis_locker, restart_remotes);
    }
    lockers_take_turns(make_sleepy_locker);
    for (int i = 0; i < 3; i++)
        stop_redis(&nodes[i]);
}
END_TEST

/* A lock that has expired and is another one's by now is left alone. */
START_TEST(only_the_holder_gives_a_lock_back)
{
    mc_lock *lock;
    bool waited;
    start_lock_server();
    ck_ok(mc_locker_acquire(&lock, &waited, make_redis_locker(), "a", &ctx, pool));
    long left = strtol(ask_redis(&server, "TTL _gc_locka.lck") + 1, NULL, 10);
    ck_assert(left > 3000 && left <= 3600);
    ask_redis(&server, "SET _gc_locka.lck another");
    mc_lock_release(lock);
    ck_assert_str_eq(ask_redis(&server, "GET _gc_locka.lck"), "$7\r\nanother\r\n");
    stop_redis(&server);
}
END_TEST

START_TEST(a_lock_server_that_is_stopped_holds_nobody_up)
{
    mc_lock *lock, *held;
    bool waited;
    int stopped;
    start_lock_server();
    mc_locker *locker = make_redis_locker();
    ck_ok(mc_locker_acquire(&held, &waited, locker, "held", &ctx, pool));
    kill(server.pid, SIGSTOP);
    ck_assert_int_eq(waitpid(server.pid, &stopped, WUNTRACED), server.pid);
    ctx.deadline = mc_clock_now() + 200000;
    ck_fails(UNAVAILABLE, mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
    ctx.deadline = 0;
    ck_fails(IO, mc_locker_acquire(&lock, &waited, locker, "c", &ctx, pool));
    mc_lock_release(held);
    kill(server.pid, SIGCONT);
    while (mc_locker_acquire(&lock, &waited, locker, "d", &ctx, pool) != MC_OK)
        usleep(50000);
    mc_lock_release(lock);
    static const char *const names[] = { "a", "c", "held" }; /* whoever wanted these listens no longer */
    for (int i = 0; i < 3; i++) {
        ck_ok(mc_locker_acquire(&lock, &waited, locker, names[i], &ctx, pool));
        mc_lock_release(lock);
    }
    stop_redis(&server);
    ck_fails(IO, mc_locker_acquire(&lock, &waited, locker, "e", &ctx, pool));
}
END_TEST

/* Who says something on the channel all the time makes nobody ask the server all the time. */
START_TEST(noise_on_the_channel_costs_little)
{
    mc_lock *held, *lock;
    bool waited;
    /* Redis ends the connection of a listener that has not read so much, and with it the lock. */
    start_lock_server_with((const char *const[]){ "--client-output-buffer-limit", "pubsub 1mb 0 0", NULL });
    mc_locker *locker = make_redis_locker();
    ck_ok(mc_locker_acquire(&held, &waited, locker, "a", &ctx, pool));
    const char *noise = "PUBLISH _gc_locka.lck x";
    for (int i = 0; i < 6; i++)
        noise = apr_pstrcat(pool, noise, "\r\n", noise, NULL);
    pid_t speaker = fork();
    while (speaker == 0)
        ask_redis(&server, noise);
    ask_redis(&server, "CONFIG RESETSTAT");
    apr_time_t begin = mc_clock_now();
    ctx.deadline = begin + 2 * APR_USEC_PER_SEC;
    ck_fails(UNAVAILABLE, mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
    long looks = strtol(strstr(ask_redis(&server, "INFO commandstats"), "cmdstat_eval:calls=") + 19, NULL, 10);
    ck_assert_msg(looks >= 1 && looks <= 2 + (mc_clock_now() - begin) / 20000, "%ld looks", looks);
    kill(speaker, SIGKILL);
    waitpid(speaker, NULL, 0);
    ctx.deadline = 0;
    mc_lock_release(held);
    stop_redis(&server);
}
END_TEST

START_TEST(redis_lockers_are_checked)
{
    static const char *const wrong[] = { "<locker type='redis'/>",
                                         "<locker type='redis'><host>a</host><port>0</port></locker>",
                                         "<locker type='redis'><host>a</host><user>b</user></locker>",
                                         "<locker type='postgresql'/>" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        mc_build build = config_build();
        ck_assert_ptr_null(mc_locker_from_config(config_elements(wrong[i]), &build));
        ck_assert_int_gt(build.diagnostics->refused, 0);
    }
}
END_TEST

UNIT_MAIN("redis_locker", redis_locks_conform, redis_locks_of_a_cluster_conform, only_the_holder_gives_a_lock_back,
          a_lock_server_that_is_stopped_holds_nobody_up, noise_on_the_channel_costs_little, redis_lockers_are_checked)
