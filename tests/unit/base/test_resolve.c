#include "name_server.h"
#include "unit.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/resolve.h"

static mc_addresses found;

static mc_error *
resolve(const char *host, apr_interval_time_t patience)
{
    return mc_resolve_host(&found, host, mc_clock_now() + patience, &ctx, pool);
}

START_TEST(addresses_need_no_name_server)
{
    ck_ok(resolve("127.0.0.1", 0));
    ck_assert_int_eq(found.count, 1);
    ck_assert_str_eq(found.at[0].text, "127.0.0.1");
    ck_assert_int_eq(found.at[0].socket.ss_family, AF_INET);
    ck_ok(resolve("2001:db8::1", 0));
    ck_assert_str_eq(found.at[0].text, "2001:db8::1");
    ck_assert_int_eq(name_server_questions(), 0);
}
END_TEST

START_TEST(names_are_asked_for_once_and_shared)
{
    ck_ok(resolve("localhost", 60 * APR_USEC_PER_SEC));
    ck_assert_int_ge(found.count, 1);
    ck_ok(resolve("localhost", 0));
    ck_assert_int_eq(name_server_questions(), 1);
    ck_fails(IO, resolve("a.unknown", 60 * APR_USEC_PER_SEC));
    ck_assert_int_ge(name_server_questions(), 2); /* after a second a name without an address is asked for again */
}
END_TEST

static bool
has_gone(void *unused)
{
    (void)unused;
    return true;
}

START_TEST(a_name_server_that_hangs_holds_nobody_up)
{
    ck_fails(TIMEOUT, resolve("a.hangs", 100000));
    ctx.abandoned = has_gone;
    ck_fails(UNAVAILABLE, resolve("a.hangs", 3600 * APR_USEC_PER_SEC));
    ctx.abandoned = NULL;
    ck_assert_int_eq(name_server_questions(), 1);
    name_server_answer();
    ck_ok(resolve("a.hangs", 60 * APR_USEC_PER_SEC));
    ck_assert_str_eq(found.at[0].text, "127.0.0.1");
    ck_assert_int_eq(name_server_questions(), 1);
}
END_TEST

START_TEST(names_that_hang_are_bounded)
{
    for (int i = 0; i < 64; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%d.hangs", i);
        ck_fails(TIMEOUT, resolve(name, 0));
    }
    ck_fails(LIMIT, resolve("one.more.hangs", 0));
    ck_ok(resolve("127.0.0.1", 0));
    name_server_answer();
}
END_TEST

/* The thread that asks is not there in the child, nor is what another thread holds at that moment. */
START_TEST(a_fork_asks_again)
{
    int status;
    ck_fails(TIMEOUT, resolve("a.hangs", 100000));
    ck_assert_int_eq(name_server_questions(), 1);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        mc_error *error = MC_OK;
        for (int i = 0; i < 600 && name_server_questions() < 2; i++)
            error = resolve("a.hangs", 100000);
        _exit(error != MC_OK && name_server_questions() == 2 ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    name_server_answer();
    ck_ok(resolve("a.hangs", 60 * APR_USEC_PER_SEC)); /* the parent's own goes on */
    ck_assert_int_eq(name_server_questions(), 1);
}
END_TEST

UNIT_MAIN("resolve", addresses_need_no_name_server, names_are_asked_for_once_and_shared,
          a_name_server_that_hangs_holds_nobody_up, names_that_hang_are_bounded, a_fork_asks_again)
