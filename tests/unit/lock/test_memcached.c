/* Servers of locks that hang, lie and go: a real memcached that is stopped, and one that says what it wants. */
#include "config_text.h"
#include "memcached_server.h"

#include <apr_strings.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/breaker.h"
#include "lock/memcached.h"
#include "mapcache/lock.h"

#define LONG (3600 * APR_USEC_PER_SEC)

static mc_locker *
create_locker(int port)
{
    mc_build build = config_build();
    const char *xml = apr_psprintf(pool,
                                   "<locker type=\"memcache\"><retry>0.02</retry><timeout>3600</timeout><server>"
                                   "<host>127.0.0.1</host><port>%d</port></server></locker>",
                                   port);
    mc_locker *locker = mc_locker_from_config(config_elements(xml), &build);
    ck_assert_ptr_nonnull(locker);
    return locker;
}

static bool
has_gone(void *unused)
{
    (void)unused;
    return true;
}

START_TEST(a_server_that_is_stopped_holds_nobody_up)
{
    int port;
    bool waited;
    mc_lock *lock;
    mc_lock *held;
    pid_t server = start_memcached(&port);
    mc_locker *locker = create_locker(port);
    ck_ok(mc_locker_acquire(&held, &waited, locker, "held", &ctx, pool));
    int stopped;
    kill(server, SIGSTOP);
    ck_assert_int_eq(waitpid(server, &stopped, WUNTRACED), server); /* all of its threads */
    ctx.deadline = mc_clock_now() + 200000;
    ck_fails(UNAVAILABLE, mc_locker_acquire(&lock, &waited, locker, "a", &ctx, pool));
    ctx.deadline = 0;
    ctx.abandoned = has_gone;
    ck_fails(UNAVAILABLE, mc_locker_acquire(&lock, &waited, locker, "b", &ctx, pool));
    ctx.abandoned = NULL;
    /* Without a deadline: the answer is awaited for 2 s, then the server is left alone for a while. */
    ck_fails(IO, mc_locker_acquire(&lock, &waited, locker, "c", &ctx, pool));
    mc_lock_release(held);
    kill(server, SIGCONT);
    while (mc_locker_acquire(&lock, &waited, locker, "d", &ctx, pool) != MC_OK)
        usleep(50000);
    mc_lock_release(lock);
    /* What was ordered while the server was stopped it has added since, for nobody: all of that goes. */
    static const char *const ordered[] = { "a", "b", "c" };
    for (int i = 0; i < 3; i++) {
        ck_ok(mc_locker_acquire(&lock, &waited, locker, ordered[i], &ctx, pool));
        mc_lock_release(lock);
    }
    stop_memcached(server);
}
END_TEST

START_TEST(one_caller_finds_out_whether_a_server_is_back)
{
    int keeper;
    bool added;
    mc_memcached *server = mc_memcached_create("127.0.0.1", reserve_unused_port(&keeper));
    ck_assert(mc_memcached_is_usable(server, &ctx));
    for (int i = 0; i < MC_BREAKER_FAILURES; i++)
        ck_fails(IO, mc_memcached_add(&added, server, "a", 60, mc_clock_now() + LONG, &ctx, pool));
    ck_assert(!mc_memcached_is_usable(server, &ctx));
    while (!mc_memcached_is_usable(server, &ctx))
        usleep(50000);
    ck_assert(!mc_memcached_is_usable(server, &ctx)); /* nobody else until that one knows */
    mc_memcached_destroy(server);
    close(keeper);
}
END_TEST

/* Answers each command of a connection with these bytes, in two pieces; then goes. */
typedef struct liar {
    int listener;
    const char *answer;
    size_t size;
    size_t first; /* bytes of the first piece */
} liar;

static void *
lie(void *baton)
{
    const liar *l = baton;
    char command[400];
    int connection = accept(l->listener, NULL, NULL);
    if (connection >= 0 && recv(connection, command, sizeof(command), 0) > 0) {
        (void)!write(connection, l->answer, l->first);
        usleep(1000); /* so that the pieces are apart most of the time; the result is the same where they are not */
        (void)!write(connection, l->answer + l->first, l->size - l->first);
    }
    close(connection);
    return NULL;
}

/* What an addition says of a server that answers so. */
static mc_error *
add_at_liar(bool *added, const char *answer, size_t size, size_t first)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t address_size = sizeof(address);
    liar l = { socket(AF_INET, SOCK_STREAM, 0), answer, size, first };
    pthread_t thread;
    ck_assert_int_eq(bind(l.listener, (struct sockaddr *)&address, address_size), 0);
    ck_assert_int_eq(getsockname(l.listener, (struct sockaddr *)&address, &address_size), 0);
    ck_assert_int_eq(listen(l.listener, 1), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, lie, &l), 0);
    mc_memcached *server = mc_memcached_create("127.0.0.1", ntohs(address.sin_port));
    *added = false;
    mc_error *error = mc_memcached_add(added, server, "key", 60, mc_clock_now() + LONG, &ctx, pool);
    mc_memcached_destroy(server);
    pthread_join(thread, NULL);
    close(l.listener);
    return error;
}

START_TEST(answers_are_read_whatever_their_pieces)
{
    bool added;
    for (size_t first = 0; first <= 8; first++) {
        ck_ok(add_at_liar(&added, "STORED\r\n", 8, first));
        ck_assert(added);
    }
    ck_ok(add_at_liar(&added, "NOT_STORED\r\n", 12, 11));
    ck_assert(!added);
}
END_TEST

START_TEST(answers_that_are_none_are_errors)
{
    char endless[2000];
    bool added;
    memset(endless, 'x', sizeof(endless));
    const struct {
        const char *bytes;
        size_t size;
    } answers[] = {
        { "", 0 },
        { "STORED", 6 },
        { "STORED\n", 7 },
        { "STORED\r\nSTORED\r\n", 16 },
        { "\0STORED\r\n", 9 },
        { "STORED\0\r\n", 9 },
        { "ERROR\r\n", 7 },
        { "SERVER_ERROR out of memory storing object\r\n", 43 },
        { "EXISTS\r\n", 8 },
        { endless, sizeof(endless) },
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        ck_fails(IO, add_at_liar(&added, answers[i].bytes, answers[i].size, 0));
}
END_TEST

/* The server has been started anew: what was kept of the old one is of no use. */
START_TEST(connections_that_have_ended_are_replaced)
{
    int port;
    bool added;
    pid_t child = start_memcached(&port);
    mc_memcached *server = mc_memcached_create("localhost", port);
    ck_ok(mc_memcached_add(&added, server, "a", 60, mc_clock_now() + LONG, &ctx, pool));
    ck_assert(added);
    ck_ok(mc_memcached_add(&added, server, "a", 60, mc_clock_now() + LONG, &ctx, pool));
    ck_assert(!added);
    ck_ok(mc_memcached_remove(server, "a", mc_clock_now() + LONG, &ctx, pool));
    ck_ok(mc_memcached_remove(server, "a", mc_clock_now() + LONG, &ctx, pool));
    stop_memcached(child);
    ck_fails(IO, mc_memcached_add(&added, server, "a", 60, mc_clock_now() + LONG, &ctx, pool));
    mc_memcached_destroy(server);
}
END_TEST

UNIT_MAIN("memcached", a_server_that_is_stopped_holds_nobody_up, one_caller_finds_out_whether_a_server_is_back,
          answers_are_read_whatever_their_pieces, answers_that_are_none_are_errors,
          connections_that_have_ended_are_replaced)
