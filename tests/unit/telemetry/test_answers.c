#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>

#include "telemetry/answers.h"

static mc_metrics *metrics;

static void
set_up_answers(void)
{
    unit_setup();
    metrics = mc_metrics_create_with(mc_answers_size());
}

static void
tear_down_answers(void)
{
    mc_metrics_destroy(metrics);
    unit_teardown();
}

static const char *
answers_text(void)
{
    mc_buf *buf = mc_buf_attach(mc_buf_create(1000, 64 << 20), pool);
    ck_ok(mc_answers_write(metrics, MC_METRICS_PLAIN, buf, pool));
    return apr_pstrmemdup(pool, (char *)buf->data, buf->size);
}

static mc_account
answered(const char *service, int status)
{
    return (mc_account){ .service = service, .status = status, .grid = "g" };
}

static int
count_lines_with(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

START_TEST(answers_are_counted_by_their_labels)
{
    mc_answer_label base = { .name = "base" }, other = { .name = "a \"b\"\\" };
    mc_account good = answered("wmts", 200), lost = answered("tms", 404), odd = answered(NULL, 299);
    for (int i = 0; i < 3; i++)
        mc_answers_count(metrics, &base, false, &good, MC_ANSWER_hit, 70);
    mc_answers_count(metrics, &other, false, &lost, MC_ANSWER_error, 11000000);
    mc_answers_count(metrics, NULL, false, &odd, MC_ANSWER_none, -1);
    mc_answers_count(metrics, &base, true, &good, MC_ANSWER_composed, 1);
    const char *text = answers_text();
    static const char *const lines[] = {
        "\n# HELP mapcache_responses_total ",
        "\nmapcache_responses_total{service=\"wmts\",tileset=\"base\",status=\"200\"} 3\n",
        "\nmapcache_responses_total{service=\"tms\",tileset=\"a \\\"b\\\"\\\\\",status=\"404\"} 1\n",
        "\nmapcache_responses_total{service=\"(none)\",tileset=\"(none)\",status=\"other\"} 1\n",
        "\nmapcache_responses_total{service=\"wmts\",tileset=\"(several)\",status=\"200\"} 1\n",
        "\nmapcache_answers_total{tileset=\"base\",result=\"hit\"} 3\n",
        "\nmapcache_response_seconds_bucket{tileset=\"base\",le=\"0.000100\"} 3\n",
        "\nmapcache_response_seconds_bucket{tileset=\"base\",le=\"0.000050\"} 0\n",
        "\nmapcache_response_seconds_sum{tileset=\"base\"} 0.000210\n",
        "\nmapcache_response_seconds_count{tileset=\"(none)\"} 1\n",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        ck_assert_msg(strstr(text, lines[i]) != NULL, "%s is not in:\n%s", lines[i], text);
}
END_TEST

/* However many names there are, and however long. */
START_TEST(the_set_of_labels_is_bounded)
{
    mc_account good = answered("wmts", 200);
    for (int i = 0; i < MC_ANSWER_TILESETS_MAX + 500; i++) {
        mc_answer_label label = { .name = apr_psprintf(pool, "tileset %d", i) };
        mc_answers_count(metrics, &label, false, &good, MC_ANSWER_hit, 1);
    }
    char longest[1000];
    memset(longest, 'n', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    mc_answer_label late = { .name = longest };
    mc_answers_count(metrics, &late, false, &good, MC_ANSWER_hit, 1);
    const char *text = answers_text();
    ck_assert_int_eq(count_lines_with(text, "mapcache_answers_total{"), MC_ANSWER_TILESETS_MAX + 1);
    ck_assert_ptr_nonnull(strstr(text, "mapcache_answers_total{tileset=\"(other)\",result=\"hit\"} 501\n"));
    for (int i = 0; i < 100; i++) {
        mc_account strange = answered(apr_psprintf(pool, "service %d", i), 100 + i);
        mc_answers_count(metrics, NULL, false, &strange, MC_ANSWER_none, 1);
    }
    ck_assert_int_le(count_lines_with(answers_text(), "tileset=\"(none)\",status="), 16);
}
END_TEST

START_TEST(a_long_name_is_cut_and_found_again)
{
    mc_account good = answered("wmts", 200);
    char longest[1000];
    memset(longest, 'n', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    mc_answer_label one = { .name = longest }, again = { .name = longest };
    mc_answers_count(metrics, &one, false, &good, MC_ANSWER_hit, 1);
    mc_answers_count(metrics, &one, false, &good, MC_ANSWER_hit, 1);
    mc_answers_count(metrics, &again, false, &good, MC_ANSWER_hit, 1);
    ck_assert_ptr_nonnull(strstr(answers_text(), "n\",result=\"hit\"} 3\n"));
}
END_TEST

enum { CLAIMANTS = 6, NAMES = 60 };

static void *
count_all_names(void *unused)
{
    (void)unused;
    for (int i = 0; i < NAMES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "layer%d", i);
        mc_answer_label label = { .name = name };
        mc_account good = answered("wmts", 200);
        mc_answers_count(metrics, &label, false, &good, MC_ANSWER_hit, 1);
    }
    return NULL;
}

/* All together find one place for a name. */
START_TEST(processes_and_threads_count_together)
{
    pthread_t threads[CLAIMANTS];
    pid_t children[CLAIMANTS];
    for (int i = 0; i < CLAIMANTS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            count_all_names(NULL);
            _exit(0);
        }
    }
    for (int i = 0; i < CLAIMANTS; i++)
        pthread_create(&threads[i], NULL, count_all_names, NULL);
    for (int i = 0; i < CLAIMANTS; i++) {
        int status;
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_int_eq(status, 0);
    }
    const char *text = answers_text();
    ck_assert_int_eq(count_lines_with(text, "mapcache_answers_total{"), NAMES);
    ck_assert_int_eq(count_lines_with(text, apr_psprintf(pool, "result=\"hit\"} %d\n", 2 * CLAIMANTS)), NAMES);
}
END_TEST

START_TEST(what_an_answer_was_made_of)
{
    mc_account account = { .status = 200 };
    ck_assert_int_eq(mc_answer_classify(&account), MC_ANSWER_none);
    account.grid = "g";
    ck_assert_int_eq(mc_answer_classify(&account), MC_ANSWER_hit);
    atomic_store(&account.events, MC_EVENT_COMPOSED);
    ck_assert_int_eq(mc_answer_classify(&account), MC_ANSWER_composed);
    atomic_store(&account.events, MC_EVENT_COMPOSED | MC_EVENT_WAITED);
    ck_assert_int_eq(mc_answer_classify(&account), MC_ANSWER_waited);
    atomic_store(&account.events, MC_EVENT_WAITED | MC_EVENT_RENDERED);
    ck_assert_int_eq(mc_answer_classify(&account), MC_ANSWER_rendered);
    atomic_store(&account.events, MC_EVENT_RENDERED | MC_EVENT_STALE);
    ck_assert_int_eq(mc_answer_classify(&account), MC_ANSWER_stale);
    account.status = 404;
    ck_assert_int_eq(mc_answer_classify(&account), MC_ANSWER_error);
}
END_TEST

START_TEST(off_is_off)
{
    mc_account good = answered("wmts", 200);
    mc_metrics *plain = mc_metrics_create();
    mc_answers_count(NULL, NULL, false, &good, MC_ANSWER_hit, 1);
    mc_answers_count(plain, NULL, false, &good, MC_ANSWER_hit, 1);
    ck_assert_ptr_null(mc_metrics_annex(plain));
    mc_metrics_destroy(plain);
    ck_assert_ptr_null(strstr(answers_text(), "} "));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { answers_are_counted_by_their_labels, the_set_of_labels_is_bounded,
                                   a_long_name_is_cut_and_found_again,  processes_and_threads_count_together,
                                   what_an_answer_was_made_of,          off_is_off };
    return unit_run_between("answers", tests, (int)(sizeof(tests) / sizeof(*tests)), set_up_answers, tear_down_answers);
}
