/* Work behind answers: once for each name, what is asked for most comes first, and nothing is kept longer than needed.
 */
#include "tileset/refresh.h"

#include <apr_strings.h>
#include <pthread.h>
#include <string.h>

#include "unit.h"

enum { MANY = 5000, BOUND = 4096 };

/* A gate before all work, and what was done; with the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool open_gate, answers_busy, fails;
static int begun, done;
static char order[64];
static atomic_int taken, dropped;

static void
take_thing(void *thing)
{
    (void)thing;
    atomic_fetch_add(&taken, 1);
}

static void
drop_thing(void *thing)
{
    (void)thing;
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&dropped, 1);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static const mc_owner owner = { take_thing, drop_thing, NULL };

static mc_error *
work_on(bool *busy, const mc_tile_request *wanted, const mc_tile_key *key, mc_ctx *of, apr_pool_t *scratch)
{
    (void)of;
    pthread_mutex_lock(&lock);
    begun++;
    pthread_cond_broadcast(&changed);
    while (!open_gate)
        pthread_cond_wait(&changed, &lock);
    *busy = answers_busy;
    if (done < (int)sizeof(order) - 1)
        order[done] = key == NULL ? '-' : key->tileset[0];
    done++;
    ck_assert_ptr_null(wanted);
    bool failing = fails;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return failing ? mc_error_create(scratch, MC_ERR_UPSTREAM, "as told") : MC_OK;
}

static mc_error *
other_work(bool *busy, const mc_tile_request *wanted, const mc_tile_key *key, mc_ctx *of, apr_pool_t *scratch)
{
    return work_on(busy, wanted, key, of, scratch);
}

/* Until so many works have begun or ended, or things were dropped. */
static void
wait_for(const int *counter, int wanted)
{
    pthread_mutex_lock(&lock);
    while (*counter < wanted)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void
wait_until_all_is_dropped(void)
{
    pthread_mutex_lock(&lock);
    while (atomic_load(&dropped) < atomic_load(&taken))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void
set_gate(bool opened)
{
    pthread_mutex_lock(&lock);
    open_gate = opened;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void
begin(int threads)
{
    open_gate = answers_busy = fails = false;
    begun = done = 0;
    memset(order, 0, sizeof(order));
    atomic_store(&taken, 0);
    atomic_store(&dropped, 0);
    process.refreshes = mc_refreshes_create(threads, &process, NULL);
    ctx.owner = &owner;
}

static void
finish(void)
{
    mc_refreshes_destroy(process.refreshes);
    process.refreshes = NULL;
    ctx.owner = NULL;
    ck_assert_int_eq(atomic_load(&taken), atomic_load(&dropped));
}

static bool
ask_for(const char *name)
{
    const mc_tile_key key = { .tileset = name };
    return mc_refresh_later(name, work_on, NULL, &key, &ctx);
}

START_TEST(what_is_asked_for_most_comes_first_and_once)
{
    begin(1);
    ck_assert(ask_for("a"));
    wait_for(&begun, 1); /* the others wait behind it */
    for (int i = 0; i < 3; i++)
        ck_assert(ask_for("b") && ask_for("d"));
    ck_assert(ask_for("d") && ask_for("c") && ask_for("a"));
    ck_assert_int_eq(mc_refreshes_waiting(process.refreshes), 4);
    ck_assert(mc_refresh_later("d", other_work, NULL, NULL, &ctx)); /* another work of the same name */
    ck_assert_int_eq(mc_refreshes_waiting(process.refreshes), 5);
    set_gate(true);
    wait_for(&done, 5);
    ck_assert_msg(strncmp(order, "adb", 3) == 0, "%s", order);
    wait_until_all_is_dropped();
    ck_assert_int_eq(mc_refreshes_waiting(process.refreshes), 0);
    ck_assert(ask_for("a")); /* and again, once it is done */
    wait_for(&done, 6);
    finish();
}
END_TEST

START_TEST(there_is_a_bound_and_who_is_over_it_may_ask_again)
{
    begin(1);
    ck_assert(ask_for("first"));
    wait_for(&begun, 1);
    for (int i = 0; i < MANY; i++)
        ck_assert(ask_for(apr_psprintf(pool, "tile %d", i)));
    ck_assert_int_eq(mc_refreshes_waiting(process.refreshes), BOUND);
    set_gate(true);
    wait_for(&done, BOUND);
    wait_until_all_is_dropped();
    ck_assert(ask_for(apr_psprintf(pool, "tile %d", MANY - 1)));
    wait_for(&done, BOUND + 1);
    finish();
}
END_TEST

START_TEST(what_fails_or_is_busy_rests_and_then_is_forgotten)
{
    begin(2);
    set_gate(true);
    answers_busy = true;
    ck_assert(ask_for("busy"));
    wait_for(&done, 1);
    pthread_mutex_lock(&lock);
    answers_busy = false;
    fails = true;
    pthread_mutex_unlock(&lock);
    ck_assert(ask_for("failing"));
    wait_for(&done, 2);
    wait_until_all_is_dropped(); /* nobody asks any more: a configuration is not held for that */
    ck_assert_int_eq(mc_refreshes_waiting(process.refreshes), 0);
    finish();
}
END_TEST

START_TEST(what_rests_is_done_again_for_who_asks_then)
{
    begin(1);
    set_gate(true);
    answers_busy = true;
    ck_assert(ask_for("busy"));
    for (int i = 2; i <= 3; i++) /* asked for without a pause: not done without one */
        while (ask_for("busy")) {
            pthread_mutex_lock(&lock);
            int now = done;
            pthread_mutex_unlock(&lock);
            if (now >= i)
                break;
            apr_sleep(1000);
        }
    finish();
}
END_TEST

START_TEST(the_end_waits_for_what_is_done_and_drops_what_waits)
{
    begin(1);
    ck_assert(ask_for("a") && ask_for("b") && ask_for("c"));
    wait_for(&begun, 1);
    set_gate(true);
    finish();
    ck_assert_int_ge(done, 1);
    ck_assert(!ask_for("a")); /* a process without threads for it */
    begin(1);
    ctx.owner = NULL;
    ck_assert(!ask_for("a"));
    finish();
}
END_TEST

UNIT_MAIN("refresh", what_is_asked_for_most_comes_first_and_once, there_is_a_bound_and_who_is_over_it_may_ask_again,
          what_fails_or_is_busy_rests_and_then_is_forgotten, what_rests_is_done_again_for_who_asks_then,
          the_end_waits_for_what_is_done_and_drops_what_waits)
