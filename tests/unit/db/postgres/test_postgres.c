#include "postgres.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/metrics.h"
#include "db/postgres/postgres_counters.h"
#include "mapcache/buf.h"

enum { LIMIT = 4 };

static uint64_t
counted(mc_counter counter)
{
    return mc_counter_value(process.metrics, counter);
}

static mc_postgres_query
query_of(const char *sql, const mc_postgres_param *params, int count)
{
    return (mc_postgres_query){
        .connection = database_connection(&postgres_server), .sql = sql, .params = params, .param_count = count
    };
}

/* The first column of all rows, joined with commas. */
static mc_error *
ask_in(const char **rows, const mc_postgres_query *query, mc_ctx *c, apr_pool_t *p)
{
    mc_postgres_result *query_result;
    const mc_postgres_row *row;
    MC_TRY(mc_postgres_start(&query_result, c->process->postgres, query, c, p));
    for (*rows = "";;) {
        MC_TRY(mc_postgres_next(&row, query_result));
        if (row == NULL)
            break;
        const char *value = row->fields[0].size < 0 ? "null" : row->fields[0].data;
        *rows = apr_pstrcat(p, *rows, **rows == '\0' ? "" : ",", value, NULL);
    }
    mc_postgres_end(query_result);
    return MC_OK;
}

static mc_error *
ask(const char **rows, const mc_postgres_query *query)
{
    return ask_in(rows, query, &ctx, pool);
}

static const char *
answer_to(const char *sql)
{
    const char *rows = NULL;
    mc_postgres_query query = query_of(sql, NULL, 0);
    ck_ok(ask(&rows, &query));
    return rows;
}

START_TEST(rows_of_text_come_in_order)
{
    ck_assert_str_eq(answer_to("select v from (values (3), (1), (2)) t(v) order by 1"), "1,2,3");
    ck_assert_str_eq(answer_to("select null::text union all select ''"), "null,");
    ck_assert_str_eq(answer_to("select 1 where false"), "");
}
END_TEST

START_TEST(values_are_bound_and_never_part_of_the_statement)
{
    const char *hostile = "'; drop table pg_class; -- $1 \\";
    mc_postgres_param param = { .value = hostile };
    mc_postgres_query query = query_of("select $1::text", &param, 1);
    const char *rows;
    ck_ok(ask(&rows, &query));
    ck_assert_str_eq(rows, hostile);
    param.value = NULL;
    ck_ok(ask(&rows, &query));
    ck_assert_str_eq(rows, "null");
}
END_TEST

START_TEST(binary_parameters_and_results)
{
    uint64_t wire = htobe64(0x0102030405060708);
    mc_postgres_param param = { .value = &wire, .size = 8, .binary = true, .type = MC_POSTGRES_INT8 };
    mc_postgres_query query = query_of("select $1 + 1, '\\x00ff00'::bytea, null::int8", &param, 1);
    query.binary = true;
    mc_postgres_result *query_result;
    const mc_postgres_row *row;
    ck_ok(mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool));
    ck_ok(mc_postgres_next(&row, query_result));
    ck_assert_int_eq(row->columns, 3);
    ck_assert_int_eq(row->fields[0].size, 8);
    ck_assert_uint_eq(row->fields[0].type, MC_POSTGRES_INT8);
    ck_assert_mem_eq(row->fields[0].data, "\x01\x02\x03\x04\x05\x06\x07\x09", 8);
    ck_assert_int_eq(row->fields[1].size, 3);
    ck_assert_mem_eq(row->fields[1].data, "\x00\xff\x00", 3);
    ck_assert_int_eq(row->fields[2].size, -1);
    ck_ok(mc_postgres_next(&row, query_result));
    ck_assert_ptr_null(row);
    mc_postgres_end(query_result);
}
END_TEST

/* Text such as "180.000000" fits every number column, and a parameter whose type nothing tells has its natural one. */
START_TEST(parameters_fit_the_columns_that_they_are_compared_with)
{
    static const char *const statements[] = {
        "select 1 where 10.5::float8 <= $1",
        "select 1 where 10.5::numeric <= $1",
        "select 1 where 10.5::real <= $1",
        "select 1 where 10::int <= $1",
        "select 1 where 10::bigint <= $1",
        "select 1 where 10::smallint <= $1",
        "select 1 where 1.5 + $1 > 3",
        "select 1 where $1 + $1 > 3",
        "select 1 where $1 is not null",
        "select 1 where abs($1) > 0",
        "select 1 where point(0, 0) <> point($1, $1)",
    };
    static const char *const values[] = { "180.000000", "1.7976931348623157e+308" };
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        for (int j = 0; j < 2; j++) {
            mc_postgres_param param = { .value = values[j], .natural = MC_POSTGRES_FLOAT8 };
            mc_postgres_query query = query_of(statements[i], &param, 1);
            const char *rows = "";
            if (j == 1 && strstr(statements[i], "$1 + $1") != NULL)
                continue; /* that really is too much */
            ck_ok(ask(&rows, &query));
            ck_assert_msg(strcmp(rows, "1") == 0, "%s: \"%s\"", statements[i], rows);
        }
    mc_postgres_param text = { .value = "x", .natural = MC_POSTGRES_TEXT };
    mc_postgres_query query = query_of("select $1 || 'y' where $1 is not null", &text, 1);
    const char *rows;
    ck_ok(ask(&rows, &query));
    ck_assert_str_eq(rows, "xy");
}
END_TEST

START_TEST(a_connection_and_its_statements_serve_again)
{
    mc_postgres_param param = { .value = "7" };
    mc_postgres_query query = query_of("select pg_backend_pid() || ':' || $1", &param, 1);
    const char *first = NULL, *rows;
    ck_ok(ask(&first, &query));
    for (int i = 0; i < 10; i++) {
        ck_ok(ask(&rows, &query));
        ck_assert_str_eq(rows, first);
    }
    ck_assert_uint_eq(counted(MC_COUNT_postgres_connections_total), 1);
    ck_assert_str_eq(answer_to("select count(*) from pg_prepared_statements where statement like '%|| $1'"), "1");
}
END_TEST

/* More statements than are kept: the oldest ones go, and come back when they are needed. */
START_TEST(prepared_statements_are_bounded)
{
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 100; i++)
            ck_assert_str_eq(answer_to(apr_psprintf(pool, "select %d", i)), apr_itoa(pool, i));
    int kept = atoi(answer_to("select count(*) from pg_prepared_statements"));
    ck_assert_int_ge(kept, 10);
    ck_assert_int_le(kept, 64);
    ck_assert_uint_eq(counted(MC_COUNT_postgres_connections_total), 1);
}
END_TEST

START_TEST(a_wrong_statement_is_an_error_and_the_connection_stays)
{
    mc_postgres_result *query_result;
    const mc_postgres_row *row;
    mc_postgres_query query = query_of("select nonsense", NULL, 0);
    ck_fails(UPSTREAM, mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool));
    ck_assert_str_eq(mc_postgres_sqlstate(query_result), "42703");
    /* A value that only the execution finds wrong. */
    mc_postgres_param param = { .value = "abc" };
    query = query_of("select $1::int", &param, 1);
    ck_ok(mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool));
    ck_fails(UPSTREAM, mc_postgres_next(&row, query_result));
    ck_assert_str_eq(mc_postgres_sqlstate(query_result), "22P02");
    mc_postgres_end(query_result);
    /* Rows first, then the error. */
    query = query_of("select 10 / (3 - v) from generate_series(1, 3) v", NULL, 0);
    ck_ok(mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool));
    ck_ok(mc_postgres_next(&row, query_result));
    ck_assert_ptr_nonnull(row);
    ck_ok(mc_postgres_next(&row, query_result));
    ck_fails(UPSTREAM, mc_postgres_next(&row, query_result));
    mc_postgres_end(query_result);
    ck_assert_str_eq(answer_to("select 5"), "5");
    ck_assert_uint_eq(counted(MC_COUNT_postgres_connections_total), 1);
}
END_TEST

/* How many statements of ours run at the server. */
static int
running(void)
{
    return atoi(database_do(&postgres_server, "sql select count(*) from pg_stat_activity where state = 'active' and"
                                              " application_name = 'mapcache'"));
}

static void
wait_for_rest(void)
{
    apr_time_t end = mc_clock_now() + 20 * APR_USEC_PER_SEC;
    while (running() > 0 && mc_clock_now() < end)
        apr_sleep(20000);
    ck_assert_int_eq(running(), 0);
}

START_TEST(what_is_not_read_is_cancelled_and_the_connection_serves_on)
{
    mc_postgres_result *query_result;
    const mc_postgres_row *row;
    mc_postgres_query query = query_of("select v, repeat('x', 1000) from generate_series(1, 10000000) v", NULL, 0);
    ck_ok(mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool));
    for (int i = 0; i < 10; i++)
        ck_ok(mc_postgres_next(&row, query_result));
    ck_assert_str_eq(row->fields[0].data, "10");
    mc_postgres_end(query_result);
    wait_for_rest();
    ck_assert_uint_eq(counted(MC_COUNT_postgres_cancels_total), 1);
    for (int i = 0; i < 200 && counted(MC_COUNT_postgres_connections_total) == 1; i++) {
        ck_assert_str_eq(answer_to("select 1"), "1"); /* the cancel hits nobody else */
        apr_sleep(1000);
    }
}
END_TEST

START_TEST(the_deadline_ends_a_query_at_the_server_too)
{
    mc_postgres_result *query_result;
    const mc_postgres_row *row;
    mc_postgres_query query = query_of("select pg_sleep(300)", NULL, 0);
    ck_assert_str_eq(answer_to("select 1"), "1"); /* to connect takes its time on a busy machine */
    ctx.deadline = mc_clock_now() + 2 * APR_USEC_PER_SEC;
    apr_time_t begin = mc_clock_now();
    ck_ok(mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool));
    ck_fails(TIMEOUT, mc_postgres_next(&row, query_result));
    ck_assert_int_lt(mc_clock_now() - begin, 15 * APR_USEC_PER_SEC);
    mc_postgres_end(query_result);
    wait_for_rest();
}
END_TEST

static bool
is_gone(void *baton)
{
    return mc_clock_now() > *(apr_time_t *)baton;
}

START_TEST(a_client_that_goes_away_ends_its_query)
{
    mc_postgres_result *query_result;
    const mc_postgres_row *row;
    apr_time_t leaves = INT64_MAX;
    ctx.abandoned = is_gone;
    ctx.abandoned_baton = &leaves;
    mc_postgres_query query = query_of("select pg_sleep(300)", NULL, 0);
    ck_ok(mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool));
    leaves = mc_clock_now() + 100000; /* once the query is at the server, however long that took */
    ck_fails(UNAVAILABLE, mc_postgres_next(&row, query_result));
    mc_postgres_end(query_result);
    wait_for_rest();
}
END_TEST

/* An answer that nobody ends, ends with its pool. */
START_TEST(an_answer_ends_with_its_pool)
{
    for (int i = 0; i < LIMIT * 3; i++) {
        apr_pool_t *sub;
        apr_pool_create(&sub, pool);
        mc_postgres_result *query_result;
        mc_postgres_query query = query_of("select v from generate_series(1, 5) v", NULL, 0);
        ck_ok(mc_postgres_start(&query_result, process.postgres, &query, &ctx, sub));
        apr_pool_destroy(sub);
    }
    ck_assert_str_eq(answer_to("select 1"), "1");
}
END_TEST

START_TEST(several_answers_at_once_and_no_more_than_the_limit)
{
    mc_postgres_result *answers[LIMIT], *one_more;
    const mc_postgres_row *row;
    for (int i = 0; i < LIMIT; i++) {
        mc_postgres_query query = query_of(apr_psprintf(pool, "select %d", i), NULL, 0);
        ck_ok(mc_postgres_start(&answers[i], process.postgres, &query, &ctx, pool));
    }
    ctx.deadline = mc_clock_now() + 300000;
    mc_postgres_query query = query_of("select 1", NULL, 0);
    ck_fails(UNAVAILABLE, mc_postgres_start(&one_more, process.postgres, &query, &ctx, pool));
    ctx.deadline = mc_clock_now() + 30 * APR_USEC_PER_SEC;
    for (int i = 0; i < LIMIT; i++) {
        ck_ok(mc_postgres_next(&row, answers[i]));
        ck_assert_str_eq(row->fields[0].data, apr_itoa(pool, i));
        mc_postgres_end(answers[i]);
    }
    ck_assert_str_eq(answer_to("select 1"), "1");
    ck_assert_uint_eq(counted(MC_COUNT_postgres_connections_total), LIMIT);
}
END_TEST

/* A backend that was ended while its connection lay idle: replaced without a word. */
START_TEST(a_connection_that_has_ended_is_replaced)
{
    for (int i = 0; i < 5; i++) {
        const char *before = answer_to("select pg_backend_pid()");
        const char *kill = apr_psprintf(pool, "sql select pg_terminate_backend(%s, 10000)", before);
        ck_assert_str_eq(database_do(&postgres_server, kill), "t");
        ck_assert_str_ne(answer_to("select pg_backend_pid()"), before);
    }
}
END_TEST

/* Ended in the middle of a query of a connection that had served before: asked again once, on a new one. The query
 * ends its own backend the first time, which is as much in the middle as can be. */
START_TEST(a_backend_that_ends_in_the_middle_is_replaced_once)
{
    database_do(&postgres_server, "sql drop sequence if exists turns; create sequence turns");
    ck_assert_str_eq(answer_to("select 1"), "1");
    const char *once = "select case nextval('turns') when 1 then pg_terminate_backend(pg_backend_pid())::text ||"
                       " pg_sleep(30) else 'survived' end";
    ck_assert_str_eq(answer_to(once), "survived");
    ck_assert_uint_eq(counted(MC_COUNT_postgres_connections_total), 2);
    /* Whoever ends every backend gets an error, not an endless loop. */
    const char *rows;
    mc_postgres_query query =
        query_of("select nextval('turns'), pg_terminate_backend(pg_backend_pid()), pg_sleep(30)", NULL, 0);
    ck_fails(UNAVAILABLE, ask(&rows, &query));
    ck_assert_str_eq(answer_to("select last_value from turns"), "4");
}
END_TEST

/* Rows had arrived: a second attempt could show them twice. */
START_TEST(nothing_is_replaced_once_rows_have_arrived)
{
    ck_assert_str_eq(answer_to("select 1"), "1");
    mc_postgres_result *query_result;
    const mc_postgres_row *row;
    mc_postgres_query query = query_of("select v, repeat('x', 10000) || case v when 3000 then"
                                       " pg_terminate_backend(pg_backend_pid())::text else '' end"
                                       " from generate_series(1, 100000) v",
                                       NULL, 0);
    ck_ok(mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool));
    mc_error *error = MC_OK;
    int rows = 0;
    for (row = NULL; error == MC_OK && (rows == 0 || row != NULL); rows++)
        error = mc_postgres_next(&row, query_result);
    ck_fails(UNAVAILABLE, error);
    ck_assert_int_gt(rows, 1);
    ck_assert_int_le(rows, 3001);
    mc_postgres_end(query_result);
    ck_assert_str_eq(answer_to("select 1"), "1");
}
END_TEST

/* A plan that PostgreSQL will not renew by itself. */
START_TEST(a_table_that_changes_under_a_prepared_statement)
{
    database_do(&postgres_server,
                "sql drop table if exists shape; create table shape(a int); insert into shape values (1)");
    ck_assert_str_eq(answer_to("select * from shape"), "1");
    database_do(&postgres_server, "sql alter table shape alter a type text using 'now ' || a");
    ck_assert_str_eq(answer_to("select * from shape"), "now 1");
}
END_TEST

START_TEST(copy_is_refused_and_leaves_nothing_behind)
{
    const char *rows;
    mc_postgres_query query = query_of("copy (select 1) to stdout", NULL, 0);
    for (int i = 0; i < LIMIT * 2; i++)
        ck_fails(UPSTREAM, ask(&rows, &query));
    ck_assert_str_eq(answer_to("select 1"), "1");
}
END_TEST

static char *logged;

static void
keep_log(void *baton, mc_log_level level, const char *message)
{
    (void)baton;
    (void)level;
    logged = apr_pstrcat(pool, logged, message, "\n", NULL);
}

START_TEST(no_password_is_ever_logged)
{
    const mc_log log = { MC_LOG_DEBUG, keep_log, NULL };
    ctx.log = &log;
    logged = "";
    const char *connections[] = {
        apr_psprintf(pool, "host=127.0.0.1 port=%d dbname=postgres user=mapcache password=%s sslmode=disable",
                     postgres_server.port, "sesame-open"),
        apr_psprintf(pool, "host=127.0.0.1 port=%d dbname=sesame-open user=sesame-open password=sesame-open",
                     postgres_server.port),
        apr_psprintf(pool, "postgresql://mapcache:sesame-open@127.0.0.1:%d/postgres", postgres_server.port),
        "host=127.0.0.1 password=sesame-open sesame-open",
        "host=127.0.0.1 port=1 password=sesame-open",
        "postgresql://mapcache:sesame-open@127.0.0.1:port/postgres",
    };
    for (size_t i = 0; i < sizeof(connections) / sizeof(connections[0]); i++) {
        const char *rows;
        mc_postgres_query query = query_of("select 1", NULL, 0);
        query.connection = connections[i];
        mc_error *error = ask(&rows, &query);
        ck_assert_msg(error != MC_OK, "%s", connections[i]);
        ck_assert_int_eq(error->kind, MC_ERR_UNAVAILABLE);
        mc_log_error(&ctx, MC_LOG_ERROR, error);
    }
    ck_assert_ptr_nonnull(strstr(logged, "authentication failed"));
    /* As name of the user and the database it is not secret: only the places of the second string may show it. */
    char *named = strstr(logged, "database sesame-open, user sesame-open");
    ck_assert_ptr_nonnull(named);
    memset(named, ' ', strlen("database sesame-open, user sesame-open"));
    ck_assert_ptr_null(strstr(logged, "sesame"));
}
END_TEST

/* Accepts connections and counts them, but never says a word: a server that hangs. */
static int
listen_silently(int *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(fd, 64), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static int
accepted(int fd)
{
    int count = 0;
    for (int one; (one = accept(fd, NULL, NULL)) >= 0; count++)
        close(one);
    return count;
}

START_TEST(a_server_that_cannot_be_reached_is_left_alone_for_a_while)
{
    int port;
    int fd = listen_silently(&port);
    const char *rows;
    mc_postgres_query query = query_of("select 1", NULL, 0);
    query.connection = apr_psprintf(pool, "host=127.0.0.1 port=%d connect_timeout=1 sslmode=disable", port);
    apr_time_t begin = mc_clock_now();
    ck_fails(UNAVAILABLE, ask(&rows, &query));
    int first = accepted(fd);
    ck_assert_int_ge(first, 1);
    /* The failure is remembered for a second: hundreds of requests make no connection in that time. */
    apr_time_t failed = mc_clock_now();
    for (int asked = 0; asked < 200 && mc_clock_now() < failed + 500000; asked++) {
        mc_error *error = ask(&rows, &query);
        ck_assert_int_eq(error->kind, MC_ERR_UNAVAILABLE);
    }
    if (mc_clock_now() < failed + 900000) /* on a machine that was held up there is nothing to see here */
        ck_assert_int_eq(accepted(fd), 0);
    ck_assert_int_lt(mc_clock_now() - begin, 20 * APR_USEC_PER_SEC);
    close(fd);
}
END_TEST

START_TEST(the_server_goes_and_comes_back)
{
    ck_assert_str_eq(answer_to("select 1"), "1");
    database_do(&postgres_server, "stop");
    const char *rows;
    mc_postgres_query query = query_of("select 1", NULL, 0);
    ck_fails(UNAVAILABLE, ask(&rows, &query));
    ck_fails(UNAVAILABLE, ask(&rows, &query));
    database_do(&postgres_server, "start");
    ctx.deadline = mc_clock_now() + 30 * APR_USEC_PER_SEC; /* to stop and to start may take as long on a busy machine */
    apr_sleep(1100000);                                    /* the failure is remembered for a second */
    ck_assert_str_eq(answer_to("select 1"), "1");
    database_do(&postgres_server, "restart");
    ctx.deadline = mc_clock_now() + 30 * APR_USEC_PER_SEC;
    ck_assert_str_eq(answer_to("select 1"), "1");
}
END_TEST

START_TEST(idle_connections_are_closed_in_time)
{
    mc_postgres_destroy(process.postgres);
    process.postgres = mc_postgres_create(LIMIT, 1, 0, true);
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(answer_to("select 1"), "1");
    ck_assert_uint_eq(counted(MC_COUNT_postgres_connections_total), 3);
}
END_TEST

START_TEST(without_threads_a_query_is_cancelled_by_the_caller)
{
    mc_postgres_destroy(process.postgres);
    process.postgres = mc_postgres_create(1, 1, 60 * APR_USEC_PER_SEC, false);
    mc_postgres_result *query_result;
    mc_postgres_query query = query_of("select pg_sleep(300)", NULL, 0);
    ck_ok(mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool));
    mc_postgres_end(query_result);
    ck_assert_str_eq(answer_to("select 1"), "1");
    ck_assert_uint_eq(counted(MC_COUNT_postgres_connections_total), 1);
}
END_TEST

/* ---- many threads */

typedef struct crowd {
    const char *connection;
    atomic_int answered, unavailable, wrong;
    int rounds;
    double patience; /* seconds */
} crowd;

static void *
ask_often(void *baton)
{
    crowd *all = baton;
    apr_pool_t *own;
    apr_pool_create_unmanaged(&own);
    for (int i = 0; i < all->rounds; i++) {
        apr_pool_t *round;
        apr_pool_create(&round, own);
        mc_ctx c = { .pool = round, .process = &process, .log = &mc_log_stderr };
        c.deadline = mc_clock_now() + (apr_time_t)(all->patience * APR_USEC_PER_SEC);
        const char *text = apr_psprintf(round, "%d of %p", i, (void *)&c);
        mc_postgres_param param = { .value = text };
        const char *sql = i % 3 == 0 ? "select $1::text || pg_sleep(0.002)" : "select $1::text";
        mc_postgres_query query = { .connection = all->connection,
                                    .sql = i % 7 == 6 ? "select $1::text from generate_series(1, 100000)" : sql,
                                    .params = &param,
                                    .param_count = 1 };
        const char *rows = "";
        mc_error *error = MC_OK;
        if (i % 7 == 6) { /* left before the end */
            mc_postgres_result *query_result;
            const mc_postgres_row *row = NULL;
            error = mc_postgres_start(&query_result, process.postgres, &query, &c, round);
            if (error == MC_OK)
                error = mc_postgres_next(&row, query_result);
            rows = row == NULL ? "" : apr_pstrdup(round, row->fields[0].data);
        } else {
            error = ask_in(&rows, &query, &c, round);
        }
        if (error != MC_OK && error->kind != MC_ERR_UNAVAILABLE && error->kind != MC_ERR_TIMEOUT)
            fprintf(stderr, "%s\n", mc_error_chain(error, round));
        bool later = error != MC_OK && (error->kind == MC_ERR_UNAVAILABLE || error->kind == MC_ERR_TIMEOUT);
        atomic_fetch_add(later                                       ? &all->unavailable
                         : error == MC_OK && strcmp(rows, text) == 0 ? &all->answered
                                                                     : &all->wrong,
                         1);
        apr_pool_destroy(round);
    }
    apr_pool_destroy(own);
    return NULL;
}

static void
run_crowd(crowd *all, int threads, void (*meanwhile)(void))
{
    pthread_t ids[32];
    ck_assert_int_le(threads, 32);
    for (int i = 0; i < threads; i++)
        ck_assert_int_eq(pthread_create(&ids[i], NULL, ask_often, all), 0);
    if (meanwhile != NULL)
        meanwhile();
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

START_TEST(many_threads_share_few_connections)
{
    crowd all = { .connection = database_connection(&postgres_server), .rounds = 40, .patience = 30 };
    run_crowd(&all, 16, NULL);
    ck_assert_int_eq(all.wrong, 0);
    ck_assert_int_eq(all.unavailable, 0);
    ck_assert_int_eq(all.answered, 16 * 40);
    ck_assert_uint_ge(counted(MC_COUNT_postgres_connections_total), 1);
}
END_TEST

static void
kill_some(void)
{
    for (int i = 0; i < 5; i++) {
        database_do(&postgres_server, "sql select count(pg_terminate_backend(pid)) from pg_stat_activity where"
                                      " application_name = 'mapcache'");
        apr_sleep(30000);
    }
    database_do(&postgres_server, "restart");
}

START_TEST(many_threads_while_backends_end_and_the_server_restarts)
{
    crowd all = { .connection = database_connection(&postgres_server), .rounds = 60, .patience = 10 };
    run_crowd(&all, 8, kill_some);
    ck_assert_int_eq(all.wrong, 0);
    ck_assert_int_gt(all.answered, 0);
    /* No connection is lost: all of them can be had afterwards. */
    apr_sleep(1100000);
    wait_for_rest();
    ctx.deadline = mc_clock_now() + 60 * APR_USEC_PER_SEC; /* the crowd may have taken its time */
    mc_postgres_result *answers[LIMIT];
    for (int i = 0; i < LIMIT; i++) {
        mc_postgres_query query = query_of("select 1", NULL, 0);
        ck_ok(mc_postgres_start(&answers[i], process.postgres, &query, &ctx, pool));
    }
    for (int i = 0; i < LIMIT; i++)
        mc_postgres_end(answers[i]);
}
END_TEST

/* A server with fewer places than we have connections: who finds none waits for one. */
START_TEST(many_threads_at_a_server_with_few_places)
{
    database small = database_start("max_connections=6"); /* three of them for superusers only */
    mc_postgres_destroy(process.postgres);
    process.postgres = mc_postgres_create(16, 1, 60 * APR_USEC_PER_SEC, true);
    database_do(&small, "sql create role guest login password 'guest'");
    crowd all = { .rounds = 30, .patience = 30 };
    all.connection = apr_psprintf(pool,
                                  "host=127.0.0.1 port=%d dbname=postgres user=guest password=guest"
                                  " sslmode=disable gssencmode=disable",
                                  small.port);
    run_crowd(&all, 16, NULL);
    ck_assert_int_eq(all.wrong, 0);
    ck_assert_int_eq(all.unavailable, 0);
    ck_assert_int_eq(all.answered, 16 * 30);

    /* Nobody gives one back: an error at the deadline, not before. */
    mc_postgres_result *answers[3], *one_more;
    mc_postgres_query query = query_of("select 1", NULL, 0);
    query.connection = all.connection;
    for (int open = 0; open < 3; open++) { /* all that there are */
        ctx.deadline = mc_clock_now() + 60 * APR_USEC_PER_SEC;
        ck_ok(mc_postgres_start(&answers[open], process.postgres, &query, &ctx, pool));
    }
    ctx.deadline = mc_clock_now() + APR_USEC_PER_SEC;
    apr_time_t begin = mc_clock_now();
    ck_fails(UNAVAILABLE, mc_postgres_start(&one_more, process.postgres, &query, &ctx, pool));
    ck_assert_int_ge(mc_clock_now() - begin, 900000);
    for (int i = 0; i < 3; i++)
        mc_postgres_end(answers[i]);
    database_stop(&small);
}
END_TEST

POSTGRES_MAIN("postgres", LIMIT, rows_of_text_come_in_order, values_are_bound_and_never_part_of_the_statement,
              binary_parameters_and_results, parameters_fit_the_columns_that_they_are_compared_with,
              a_connection_and_its_statements_serve_again, prepared_statements_are_bounded,
              a_wrong_statement_is_an_error_and_the_connection_stays,
              what_is_not_read_is_cancelled_and_the_connection_serves_on, the_deadline_ends_a_query_at_the_server_too,
              a_client_that_goes_away_ends_its_query, an_answer_ends_with_its_pool,
              several_answers_at_once_and_no_more_than_the_limit, a_connection_that_has_ended_is_replaced,
              a_backend_that_ends_in_the_middle_is_replaced_once, nothing_is_replaced_once_rows_have_arrived,
              a_table_that_changes_under_a_prepared_statement, copy_is_refused_and_leaves_nothing_behind,
              no_password_is_ever_logged, a_server_that_cannot_be_reached_is_left_alone_for_a_while,
              the_server_goes_and_comes_back, idle_connections_are_closed_in_time,
              without_threads_a_query_is_cancelled_by_the_caller, many_threads_share_few_connections,
              many_threads_while_backends_end_and_the_server_restarts, many_threads_at_a_server_with_few_places)
