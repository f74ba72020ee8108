#include "postgres.h"

#include "base/clock.h"
#include "base/metrics.h"

enum { LIMIT = 8 };

static mc_postgres_session *
open_session(void)
{
    mc_postgres_session *session;
    ck_ok(mc_postgres_session_open(&session, process.postgres, database_connection(&postgres_server), &ctx, pool));
    return session;
}

/* The first field of the last row; session NULL: over any connection. */
static mc_error *
run(const char **value, mc_postgres_session *session, const char *sql)
{
    mc_postgres_query query = { .connection = database_connection(&postgres_server), .sql = sql, .session = session };
    mc_postgres_result *query_result;
    const mc_postgres_row *row;
    *value = "";
    mc_error *error = mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, query_result)) == MC_OK && row != NULL)
        *value = apr_pstrdup(pool, row->fields[0].data);
    mc_postgres_end(query_result);
    return error;
}

static const char *
said(mc_postgres_session *session, const char *sql)
{
    const char *value;
    ck_ok(run(&value, session, sql));
    return value;
}

/* Rows of one int4 in COPY's binary format. */
static void
copy_numbers(mc_postgres_session *session, int count)
{
    static const uint8_t head[19] = "PGCOPY\n\377\r\n", tail[2] = { 0xff, 0xff };
    ck_ok(mc_postgres_copy_bytes(session, head, sizeof(head)));
    for (int i = 0; i < count; i++) {
        const uint8_t row[10] = { 0,         1, 0, 0, 0, 4, (uint8_t)(i >> 24), (uint8_t)(i >> 16), (uint8_t)(i >> 8),
                                  (uint8_t)i };
        ck_ok(mc_postgres_copy_bytes(session, row, sizeof(row)));
    }
    ck_ok(mc_postgres_copy_bytes(session, tail, sizeof(tail)));
}

START_TEST(others_see_a_transaction_once_it_is_committed)
{
    mc_postgres_session *session = open_session();
    (void)said(NULL, "CREATE TABLE committed (i int)");
    (void)said(session, "BEGIN");
    ck_ok(mc_postgres_copy_begin(session, "COPY committed FROM STDIN (FORMAT binary)"));
    copy_numbers(session, 100000);
    ck_ok(mc_postgres_copy_end(session));
    ck_assert_str_eq(said(session, "SELECT count(*) || ' ' || sum(i) FROM committed"), "100000 4999950000");
    ck_assert_str_eq(said(NULL, "SELECT count(*) FROM committed"), "0");
    (void)said(session, "COMMIT");
    ck_assert_str_eq(said(NULL, "SELECT count(*) FROM committed"), "100000");
    mc_postgres_session_close(session);
}
END_TEST

START_TEST(what_was_not_committed_is_taken_back)
{
    (void)said(NULL, "CREATE TABLE taken_back (i int)");
    mc_postgres_session *session = open_session();
    (void)said(session, "BEGIN");
    (void)said(session, "INSERT INTO taken_back VALUES (1)");
    mc_postgres_session_close(session);
    ck_assert_str_eq(said(NULL, "SELECT count(*) FROM taken_back"), "0");

    session = open_session();
    ck_ok(mc_postgres_copy_begin(session, "COPY taken_back FROM STDIN (FORMAT binary)"));
    copy_numbers(session, 10);
    mc_postgres_session_close(session); /* in the middle of the COPY */
    ck_assert_str_eq(said(NULL, "SELECT count(*) FROM taken_back"), "0");
}
END_TEST

START_TEST(bad_rows_fail_at_the_end_and_the_session_stands)
{
    (void)said(NULL, "CREATE TABLE unique_numbers (i int PRIMARY KEY)");
    (void)said(NULL, "INSERT INTO unique_numbers VALUES (7)");
    mc_postgres_session *session = open_session();
    ck_ok(mc_postgres_copy_begin(session, "COPY unique_numbers FROM STDIN (FORMAT binary)"));
    copy_numbers(session, 10);
    ck_fails(UPSTREAM, mc_postgres_copy_end(session));
    ck_assert_str_eq(said(session, "SELECT count(*) FROM unique_numbers"), "1");
    ck_fails(UPSTREAM, mc_postgres_copy_begin(session, "COPY no_such_table FROM STDIN"));
    ck_fails(UPSTREAM, mc_postgres_copy_begin(session, "SELECT 1"));
    ck_assert_str_eq(said(session, "SELECT 2"), "2");
    mc_postgres_session_close(session);
}
END_TEST

START_TEST(an_ended_session_is_told_and_not_replaced)
{
    const char *value;
    mc_postgres_session *session = open_session();
    const char *backend = said(session, "SELECT pg_backend_pid()");
    (void)said(session, "BEGIN");
    (void)said(NULL, apr_psprintf(pool, "SELECT pg_terminate_backend(%s)", backend));
    ck_fails(UNAVAILABLE, run(&value, session, "SELECT 1"));
    mc_postgres_session_close(session);
    ck_assert_str_eq(said(NULL, "SELECT 3"), "3");
}
END_TEST

/* Waits until so many sessions wait for the lock: a minute at most. */
static void
wait_for_waiting(const char *count)
{
    static const char waiting[] = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    const apr_time_t until = mc_clock_now() + apr_time_from_sec(60);
    const char *found = said(NULL, waiting);
    for (; strcmp(found, count) != 0 && mc_clock_now() < until; found = said(NULL, waiting))
        apr_sleep(1000);
    ck_assert_str_eq(found, count);
}

/* Closing a connection alone would not end a statement that waits for a lock. */
START_TEST(statements_of_several_sessions_are_cancelled)
{
    enum { SEVERAL = LIMIT - 2 };
    mc_postgres_session *holder = open_session(), *sessions[SEVERAL];
    mc_postgres_result *results[SEVERAL];
    (void)said(holder, "SELECT pg_advisory_lock(7)");
    for (int i = 0; i < SEVERAL; i++) {
        sessions[i] = open_session();
        const mc_postgres_query query = { .sql = i % 2 == 0 ? "SELECT pg_advisory_lock(7)"
                                                            : "DO 'BEGIN PERFORM pg_advisory_lock(7); END'",
                                          .session = sessions[i],
                                          .plain = true };
        ck_ok(mc_postgres_start(&results[i], process.postgres, &query, &ctx, pool));
    }
    wait_for_waiting(apr_itoa(pool, SEVERAL));
    for (int i = 0; i < SEVERAL; i++)
        mc_postgres_end(results[i]);
    for (int i = 0; i < SEVERAL; i++)
        mc_postgres_session_close(sessions[i]);
    wait_for_waiting("0");
    ck_assert_str_eq(said(holder, "SELECT 4"), "4");
    mc_postgres_session_close(holder);
}
END_TEST

/* The first statement is left before its answer has come. What comes then is not the next statement's. */
START_TEST(an_answer_that_was_left_is_not_that_of_the_next_statement)
{
    const mc_postgres_query first[] = { { .sql = "SELECT 41 FROM pg_sleep(300)" },
                                        { .sql = "SELECT 41 FROM pg_sleep(300)", .plain = true },
                                        { .sql = "SELECT 41 FROM pg_sleep(300)", .copy = true } };
    const mc_postgres_query next[] = { { .sql = "SELECT 42" },
                                       { .sql = "SELECT 42", .plain = true },
                                       { .sql = "SELECT 42", .copy = true } };
    for (size_t i = 0; i < 9; i++) {
        mc_postgres_query left = first[i / 3], asked = next[i % 3];
        mc_postgres_result *answer;
        const mc_postgres_row *row = NULL;
        mc_postgres_session *session = open_session();
        left.session = asked.session = session;
        ck_assert_str_eq(said(session, "SELECT 42"), "42"); /* is prepared from now on */
        ck_ok(mc_postgres_start(&answer, process.postgres, &left, &ctx, pool));
        mc_postgres_end(answer);
        mc_error *error = mc_postgres_start(&answer, process.postgres, &asked, &ctx, pool);
        if (error == MC_OK)
            error = mc_postgres_next(&row, answer);
        ck_fails(UNAVAILABLE, error);
        ck_assert_ptr_null(row);
        mc_postgres_end(answer);
        mc_postgres_session_close(session);
    }
    mc_postgres_session *session = open_session();
    mc_postgres_query left = first[0];
    mc_postgres_result *answer;
    left.session = session;
    ck_ok(mc_postgres_start(&answer, process.postgres, &left, &ctx, pool));
    mc_postgres_end(answer);
    ck_fails(UNAVAILABLE, mc_postgres_copy_begin(session, "COPY committed FROM STDIN (FORMAT binary)"));
    mc_postgres_session_close(session);
}
END_TEST

/* No more rows is what a whole answer ends with, and nothing else. */
START_TEST(whoever_asks_on_after_an_error_is_told_again)
{
    mc_postgres_query queries[] = { { .sql = "SELECT 100 / (3 - v) FROM generate_series(1, 5) v" },
                                    { .sql = "SELECT 100 / (3 - v) FROM generate_series(1, 5) v", .plain = true },
                                    { .sql = "SELECT 100 / (3 - v) FROM generate_series(1, 5) v", .copy = true } };
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        mc_postgres_result *answer;
        const mc_postgres_row *row;
        mc_error *error = MC_OK;
        queries[i].connection = database_connection(&postgres_server);
        ck_ok(mc_postgres_start(&answer, process.postgres, &queries[i], &ctx, pool));
        for (int rows = 0; error == MC_OK && rows < 5; rows++)
            error = mc_postgres_next(&row, answer);
        ck_fails(UPSTREAM, error);
        ck_fails(UNAVAILABLE, mc_postgres_next(&row, answer));
        ck_assert_ptr_null(row);
        mc_postgres_end(answer);
    }
}
END_TEST

POSTGRES_MAIN("postgres_session", LIMIT, others_see_a_transaction_once_it_is_committed,
              what_was_not_committed_is_taken_back, bad_rows_fail_at_the_end_and_the_session_stands,
              an_ended_session_is_told_and_not_replaced, statements_of_several_sessions_are_cancelled,
              an_answer_that_was_left_is_not_that_of_the_next_statement, whoever_asks_on_after_an_error_is_told_again)
