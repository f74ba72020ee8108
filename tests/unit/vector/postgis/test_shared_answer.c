/* One answer for several who ask at the same time: never one to a question that was sent before, and nobody's error but
 * the own one. */
#include "vector/postgis/shared_answer.h"

#include "base/clock.h"
#include "unit.h"

enum { SEVERAL = 6, FIRST_TOPIC = 1, OTHER_TOPIC = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int value, questions;
static bool stands, goes_on;
static mc_shared_answer shared;

/* The first question stands until it is let go; it has been answered then, with the value as it was. */
static mc_error *
ask(int *answer, void *fails, mc_ctx *ctx, apr_pool_t *own)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    *answer = value;
    if (questions++ == 0) {
        stands = true;
        pthread_cond_broadcast(&changed);
        while (!goes_on)
            pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return fails != NULL ? mc_error_create(own, MC_ERR_UPSTREAM, "no answer") : MC_OK;
}

typedef struct asker {
    pthread_t thread;
    void *fails;
    bool failed;
    int answer;
} asker;

static void *
run_asker(void *data)
{
    asker *a = data;
    apr_pool_t *own;
    apr_pool_create(&own, NULL);
    mc_ctx ctx = { .pool = own };
    mc_error *error = mc_shared_answer_get(&a->answer, &shared, FIRST_TOPIC, ask, a->fails, &ctx, own);
    a->failed = error != MC_OK;
    mc_error_ignore(error);
    apr_pool_destroy(own);
    return NULL;
}

static void
begin_first(asker *first)
{
    questions = 0;
    stands = goes_on = false;
    value = 1;
    ck_assert_int_eq(pthread_create(&first->thread, NULL, run_asker, first), 0);
    pthread_mutex_lock(&lock);
    while (!stands)
        pthread_cond_wait(&changed, &lock);
    value = 2; /* behind the first answer */
    pthread_mutex_unlock(&lock);
}

static void
let_first_go(void)
{
    pthread_mutex_lock(&lock);
    goes_on = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* A question of others that takes too long is nobody's to wait for. */
START_TEST(waiting_is_bounded)
{
    asker first = { 0 };
    mc_ctx ctx = { .pool = pool };
    int answer = 0;
    mc_shared_answer_init(&shared, 2000);
    begin_first(&first);
    const apr_time_t begun = mc_clock_now();
    ck_assert(mc_shared_answer_get(&answer, &shared, FIRST_TOPIC, ask, NULL, &ctx, pool) == MC_OK);
    ck_assert_int_eq(answer, 2);
    ck_assert_int_ge(mc_clock_now() - begun, 2000);
    ck_assert(mc_shared_answer_get(&answer, &shared, OTHER_TOPIC, ask, NULL, &ctx, pool) == MC_OK);
    ck_assert_int_eq(questions, 3);
    let_first_go();
    pthread_join(first.thread, NULL);
    ck_assert_int_eq(first.answer, 1);
    ck_assert(mc_shared_answer_get(&answer, &shared, FIRST_TOPIC, ask, NULL, &ctx, pool) == MC_OK);
    ck_assert_int_eq(answer, 2);
    ck_assert_int_eq(questions, 4); /* an answer of the past is not kept */
    mc_shared_answer_destroy(&shared);
}
END_TEST

/* Whoever comes while a question is under way needs a later one, and one is enough for all: also behind one that had no
 * answer. */
START_TEST(those_who_wait_share_the_next_question)
{
    static int yes;
    for (int fails = 0; fails < 2; fails++) {
        asker first = { .fails = fails ? &yes : NULL }, askers[SEVERAL] = { 0 };
        mc_shared_answer_init(&shared, apr_time_from_sec(60));
        begin_first(&first);
        for (int i = 0; i < SEVERAL; i++)
            ck_assert_int_eq(pthread_create(&askers[i].thread, NULL, run_asker, &askers[i]), 0);
        for (bool all = false; !all;) {
            pthread_mutex_lock(&shared.lock);
            all = shared.waiting == SEVERAL;
            pthread_mutex_unlock(&shared.lock);
            apr_sleep(1000);
        }
        let_first_go();
        pthread_join(first.thread, NULL);
        ck_assert_int_eq(first.answer, 1);
        ck_assert(first.failed == (fails != 0));
        for (int i = 0; i < SEVERAL; i++) {
            pthread_join(askers[i].thread, NULL);
            ck_assert(!askers[i].failed);
            ck_assert_int_eq(askers[i].answer, 2);
        }
        ck_assert_int_eq(questions, 2);
        mc_shared_answer_destroy(&shared);
    }
}
END_TEST

UNIT_MAIN("shared_answer", those_who_wait_share_the_next_question, waiting_is_bounded)
