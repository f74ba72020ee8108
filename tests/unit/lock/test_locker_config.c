#include "config_text.h"
#include "memcached_server.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mapcache/lock.h"

static mc_build build;

/* What the configuration makes of a <locker>; NULL if it is refused. */
static mc_locker *
read_locker(const char *xml)
{
    build = config_build();
    mc_locker *locker = mc_locker_from_config(config_elements(xml), &build);
    ck_assert_msg((locker == NULL) == (build.diagnostics->refused > 0), "%s", xml);
    return locker;
}

START_TEST(defaults_and_limits)
{
    ck_assert(mc_locker_timeout(read_locker("<locker/>")) == 120);
    ck_assert(mc_locker_timeout(read_locker("<locker type=\"disk\"><timeout>2.5</timeout></locker>")) == 2.5);
    ck_assert(mc_locker_timeout(read_locker("<locker><retry>0.0001</retry><timeout>1e6</timeout></locker>")) == 1e6);
    ck_assert(mc_locker_timeout(read_locker("<lock_dir>/tmp</lock_dir>")) == 120);
    ck_assert_str_eq(mc_locker_directory(read_locker("<locker/>")), "/tmp");
    ck_assert_str_eq(mc_locker_directory(read_locker("<locker><directory>/var</directory></locker>")), "/var");
    ck_assert_ptr_null(mc_locker_directory(read_locker("<locker type=\"fallback\"><locker/></locker>")));
    ck_assert_int_eq(build.diagnostics->complaints->nelts, 0);
    static const char *const bad[] = {
        "<locker type=\"nosuch\"/>",
        "<locker type=\"Disk\"/>",
        "<locker><timeout>0</timeout></locker>",
        "<locker><timeout>-1</timeout></locker>",
        "<locker><timeout>nan</timeout></locker>",
        "<locker><retry>0</retry></locker>",
        "<locker><retry>x</retry></locker>",
        "<locker type=\"memcache\"/>",
        "<locker type=\"memcache\"><server><port>1</port></server></locker>",
        "<locker type=\"memcache\"><server><host>a</host><port>0</port></server></locker>",
        "<locker type=\"memcache\"><server><host>a</host><port>70000</port></server></locker>",
        "<locker type=\"fallback\"/>",
        "<locker type=\"fallback\"><locker type=\"disk\"/><locker type=\"nosuch\"/></locker>",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(read_locker(bad[i]) == NULL, "accepted %s", bad[i]);
}
END_TEST

START_TEST(memcached_locks_exclude_each_other)
{
    int port;
    pid_t server = start_memcached(&port);
    const char *xml = apr_psprintf(pool,
                                   "<locker type=\"memcache\"><retry>0.02</retry><timeout>60</timeout><server>"
                                   "<host>127.0.0.1</host><port>%d</port></server></locker>",
                                   port);
    mc_locker *one = read_locker(xml);
    mc_locker *two = read_locker(xml);
    mc_lock *lock;
    mc_lock *other;
    bool waited;
    const char *const names[] = {
        "3-1-2-tiles", "with blank\r\ndelete x",
        apr_pstrcat(
            pool, "long",
            one == NULL
                ? ""
                : "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
                  "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
                  "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
                  "9",
            NULL)
    };
    for (int i = 0; i < 3; i++) {
        ck_ok(mc_locker_acquire(&lock, &waited, one, names[i], &ctx, pool));
        ck_assert(!waited);
        ctx.deadline = mc_clock_now() + 200000;
        ck_fails(UNAVAILABLE, mc_locker_acquire(&other, &waited, two, names[i], &ctx, pool));
        ck_assert(waited);
        ctx.deadline = 0;
        mc_lock_release(lock);
        ck_ok(mc_locker_acquire(&other, &waited, two, names[i], &ctx, pool));
        ck_assert(!waited);
        mc_lock_release(other);
    }
    stop_memcached(server);
    ck_fails(IO, mc_locker_acquire(&lock, &waited, one, "x", &ctx, pool));
}
END_TEST

/* Takes a lock as memcached's second begins, in which its time is counted in full, or ends. */
static mc_lock *
acquire_at_the_tick(apr_time_t *began, const char **name, bool at_its_end, int port, mc_locker *locker)
{
    long second = read_memcached_seconds(port);
    for (int i = 0;; i++) {
        mc_lock *lock = NULL;
        bool waited;
        *name = apr_psprintf(pool, "%s-%d", at_its_end ? "late" : "early", i);
        *began = mc_clock_now();
        if (at_its_end)
            ck_ok(mc_locker_acquire(&lock, &waited, locker, *name, &ctx, pool));
        if (read_memcached_seconds(port) != second) {
            *began = at_its_end ? *began : mc_clock_now();
            if (!at_its_end)
                ck_ok(mc_locker_acquire(&lock, &waited, locker, *name, &ctx, pool));
            return lock;
        }
        if (at_its_end)
            mc_lock_release(lock);
    }
}

/* Whatever the moment is in the seconds that memcached counts: a key may go up to one of them early. */
START_TEST(a_memcached_lock_expires)
{
    int port;
    pid_t server = start_memcached(&port);
    mc_locker *locker = read_locker(apr_psprintf(pool,
                                                 "<locker type=\"memcache\"><timeout>1</timeout><server>"
                                                 "<host>127.0.0.1</host><port>%d</port></server></locker>",
                                                 port));
    mc_locker *patient = read_locker(apr_psprintf(pool,
                                                  "<locker type=\"memcache\"><timeout>60</timeout><server>"
                                                  "<host>127.0.0.1</host><port>%d</port></server></locker>",
                                                  port));
    mc_lock *lost;
    mc_lock *lock;
    mc_lock *third;
    bool waited;
    for (int i = 0; i < 2; i++) {
        const char *name;
        apr_time_t began;
        lost = acquire_at_the_tick(&began, &name, i == 1, port, locker);
        ck_ok(mc_locker_acquire(&lock, &waited, patient, name, &ctx, pool));
        ck_assert_int_ge(mc_clock_now() - began, 1000000); /* the first one has had its second */
        mc_lock_release(lost);                             /* must leave the other one's lock alone */
        ctx.deadline = mc_clock_now() + 100000;
        ck_fails(UNAVAILABLE, mc_locker_acquire(&third, &waited, locker, name, &ctx, pool));
        ctx.deadline = 0;
    }
    stop_memcached(server);
}
END_TEST

START_TEST(the_fallback_takes_the_next_one)
{
    int keeper, port = reserve_unused_port(&keeper);
    char folder[] = "/tmp/mapcache-lock-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    mc_locker *locker = read_locker(apr_psprintf(
        pool,
        "<locker type=\"fallback\"><locker type=\"memcache\"><server><host>127.0.0.1</host><port>%d</port></server>"
        "</locker><locker type=\"disk\"><timeout>7</timeout><directory>%s</directory></locker></locker>",
        port, folder));
    ck_assert(mc_locker_timeout(locker) == 120);
    mc_lock *lock;
    mc_lock *other;
    bool waited;
    ck_ok(mc_locker_acquire(&lock, &waited, locker, "x", &ctx, pool));
    ctx.deadline = mc_clock_now() + 100000;
    ck_fails(UNAVAILABLE, mc_locker_acquire(&other, &waited, mc_locker_disk(folder, 5, pool), "x", &ctx, pool));
    mc_lock_release(lock);
    unlink(apr_pstrcat(pool, folder, "/mapcache.lock", NULL));
    rmdir(folder);
    locker =
        read_locker(apr_psprintf(pool, "<locker type=\"fallback\"><locker><directory>%s</directory></locker></locker>",
                                 folder)); /* it is gone */
    ck_fails(IO, mc_locker_acquire(&lock, &waited, locker, "x", &ctx, pool));
    close(keeper);
}
END_TEST

UNIT_MAIN("locker_config", defaults_and_limits, memcached_locks_exclude_each_other, a_memcached_lock_expires,
          the_fallback_takes_the_next_one)
