#include "postgres.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "db/postgres/postgres_counters.h"

static uint64_t
counted(mc_counter counter)
{
    return mc_counter_value(process.metrics, counter);
}

static mc_postgres_result *
start(const char *sql, bool copy)
{
    mc_postgres_query query = {
        .connection = database_connection(&postgres_server), .sql = sql, .binary = true, .copy = copy
    };
    mc_postgres_result *query_result;
    ck_ok(mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool));
    return query_result;
}

/* All rows: fields between "|", null as "-". Whatever a field's text, a zero byte ends it. */
static const char *
rows_of(mc_postgres_result *query_result)
{
    const mc_postgres_row *row;
    apr_array_header_t *parts = apr_array_make(pool, 64, sizeof(const char *));
    for (;;) {
        ck_ok(mc_postgres_next(&row, query_result));
        if (row == NULL)
            break;
        for (int i = 0; i < row->columns; i++) {
            const mc_postgres_field *field = &row->fields[i];
            ck_assert_int_eq(field->data[field->size < 0 ? 0 : field->size], '\0');
            APR_ARRAY_PUSH(parts, const char *) = field->size < 0 ? "-" : apr_pstrdup(pool, field->data);
            APR_ARRAY_PUSH(parts, const char *) = i + 1 < row->columns ? "|" : ";";
        }
    }
    mc_postgres_end(query_result);
    return apr_array_pstrcat(pool, parts, '\0');
}

START_TEST(rows_are_those_of_a_select)
{
    static const char *const statements[] = {
        ("select v::text, case when v % 3 > 0 then repeat('x', v) end, ''::text, null::text "
         "from generate_series(1, 2000) v"),
        "select 'a'::text where false",
        "select null::text",
        "select 'one'::text, repeat('long', 500000)",
        "select v::text from generate_series(1, 3) v -- a comment at the end",
        "select",
    };
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        ck_assert_str_eq(rows_of(start(statements[i], true)), rows_of(start(statements[i], false)));
    ck_assert_uint_eq(counted(MC_COUNT_postgres_connections_total), 1);
    ck_assert_uint_eq(counted(MC_COUNT_postgres_cancels_total), 0);
}
END_TEST

START_TEST(bytes_are_counted_as_they_travel)
{
    mc_postgres_result *query_result = start("select 'abcd'::text, null::text from generate_series(1, 10)", false);
    (void)rows_of(query_result);
    ck_assert_int_eq(mc_postgres_traffic_of(query_result).bytes, 10 * (1 + 4 + 2 + 4 + 4 + 4));
    query_result = start("select 'abcd'::text, null::text from generate_series(1, 10)", true);
    (void)rows_of(query_result);
    mc_postgres_traffic traffic = mc_postgres_traffic_of(query_result);
    ck_assert_int_eq(traffic.bytes, 10 * (1 + 4 + 2 + 4 + 4 + 4));
    ck_assert_int_gt(traffic.first, 0);
    ck_assert_uint_eq(counted(MC_COUNT_postgres_bytes_total), 2 * (uint64_t)traffic.bytes);
    /* The time until the first row is not that of the way. */
    query_result = start("select pg_sleep(0.5)::text", false);
    (void)rows_of(query_result);
    ck_assert_int_lt(mc_postgres_traffic_of(query_result).waited, 400000);
}
END_TEST

START_TEST(errors_come_before_and_between_rows)
{
    const mc_postgres_row *row;
    mc_postgres_result *query_result = start("select nonsense", true);
    ck_fails(UPSTREAM, mc_postgres_next(&row, query_result));
    ck_assert_str_eq(mc_postgres_sqlstate(query_result), "42703");
    mc_postgres_end(query_result);
    query_result = start("select 10 / (30000 - v) from generate_series(1, 30000) v", true);
    mc_error *error = MC_OK;
    int rows = 0;
    while ((error = mc_postgres_next(&row, query_result)) == MC_OK && row != NULL)
        rows++;
    ck_fails(UPSTREAM, error);
    ck_assert_str_eq(mc_postgres_sqlstate(query_result), "22012");
    ck_assert_int_eq(rows, 29999);
    mc_postgres_end(query_result);
    ck_assert_str_eq(rows_of(start("select 'on'::text", true)), "on;");
    ck_assert_uint_eq(counted(MC_COUNT_postgres_connections_total), 1);
}
END_TEST

START_TEST(what_the_server_says_between_rows_is_no_row)
{
    database_do(&postgres_server, "sql create or replace function noisy(v int) returns text language plpgsql as "
                                  "'begin if v % 7 = 0 then raise notice ''row % of %'', v, repeat(''n'', v % 900); "
                                  "end if; return repeat(''r'', v * 37 % 5000); end'");
    const char *sql = "select v::text, noisy(v) from generate_series(1, 4000) v";
    ck_assert_str_eq(rows_of(start(sql, true)), rows_of(start(sql, false)));
    const mc_postgres_row *row;
    mc_postgres_result *query_result = start("select noisy(v) from generate_series(1, 100000) v", true);
    ck_ok(mc_postgres_next(&row, query_result));
    mc_postgres_end(query_result);
    ck_assert_str_eq(rows_of(start(sql, true)), rows_of(start(sql, false)));
}
END_TEST

/* More than the pair of sockets has room for, over a connection whose buffer has grown to hold such rows. */
START_TEST(large_rows_and_large_words_between_them_come_whole)
{
    database_do(&postgres_server, "sql create or replace function loud(v int) returns text language plpgsql as 'begin "
                                  "raise notice ''%'', repeat(''n'', 900000); return repeat(''r'', 900000 + v); end'");
    const char *sql = "select loud(v), v::text from generate_series(1, 5) v";
    const char *rows = rows_of(start(sql, false));
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(rows_of(start(sql, true)), rows);
    ck_assert_uint_eq(counted(MC_COUNT_postgres_connections_total), 1);
}
END_TEST

START_TEST(rows_without_end_end_with_the_deadline)
{
    const mc_postgres_row *row = NULL;
    (void)rows_of(start("select 1::text", true));
    ctx.deadline = mc_clock_now() + 3 * APR_USEC_PER_SEC;
    /* A set in a list of columns comes row by row, and one in FROM is gathered before. */
    mc_postgres_result *query_result =
        start("select repeat('x', 100) from (select generate_series(1, 2000000000)) v", true);
    ck_ok(mc_postgres_next(&row, query_result));
    ck_assert_ptr_nonnull(row);
    mc_error *error = MC_OK;
    while ((error = mc_postgres_next(&row, query_result)) == MC_OK && row != NULL)
        ck_assert_int_lt(mc_clock_now(), ctx.deadline + 20 * APR_USEC_PER_SEC);
    ck_fails(TIMEOUT, error);
    mc_postgres_end(query_result);
    ctx.deadline = 0;
}
END_TEST

START_TEST(what_is_not_read_is_cancelled_and_the_connection_serves_on)
{
    const mc_postgres_row *row;
    const char *backend = rows_of(start("select pg_backend_pid()::text", true));
    mc_postgres_result *query_result = start("select generate_series(1, 10000000), repeat('x', 1000)", true);
    for (int i = 0; i < 10; i++)
        ck_ok(mc_postgres_next(&row, query_result));
    mc_postgres_end(query_result);
    ck_assert_uint_eq(counted(MC_COUNT_postgres_cancels_total), 1);
    /* Both connections in use at once: one of them is the cancelled one. */
    mc_postgres_result *both[2];
    for (int i = 0; i < 2; i++)
        both[i] = start("select pg_backend_pid()::text", true);
    const char *one = rows_of(both[0]), *other = rows_of(both[1]);
    ck_assert(strcmp(one, backend) == 0 || strcmp(other, backend) == 0);
}
END_TEST

START_TEST(a_connection_that_had_a_huge_row_is_not_kept)
{
    for (int copy = 0; copy < 2; copy++) {
        const mc_postgres_row *row;
        const char *before = rows_of(start("select pg_backend_pid()::text", false));
        mc_postgres_result *query_result = start("select repeat('0123456789', 4000000)", copy == 1);
        ck_ok(mc_postgres_next(&row, query_result));
        ck_assert_int_eq(row->fields[0].size, 40000000);
        ck_ok(mc_postgres_next(&row, query_result));
        ck_assert_ptr_null(row);
        mc_postgres_end(query_result);
        ck_assert_str_ne(rows_of(start("select pg_backend_pid()::text", false)), before);
    }
}
END_TEST

START_TEST(a_way_is_known_by_its_connection_string)
{
    mc_transfer_policy *one = mc_postgres_transfer_policy(process.postgres, "dbname=one");
    ck_assert_ptr_eq(mc_postgres_transfer_policy(process.postgres, apr_pstrdup(pool, "dbname=one")), one);
    ck_assert_ptr_ne(mc_postgres_transfer_policy(process.postgres, "dbname=two"), one);
}
END_TEST

POSTGRES_MAIN("postgres_copy", 2, rows_are_those_of_a_select, bytes_are_counted_as_they_travel,
              errors_come_before_and_between_rows, what_the_server_says_between_rows_is_no_row,
              large_rows_and_large_words_between_them_come_whole, rows_without_end_end_with_the_deadline,
              what_is_not_read_is_cancelled_and_the_connection_serves_on, a_connection_that_had_a_huge_row_is_not_kept,
              a_way_is_known_by_its_connection_string)
