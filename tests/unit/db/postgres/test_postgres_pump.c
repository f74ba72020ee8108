/* What passes between libpq and a server comes out as it went in: in the open, encrypted, by a local socket. */
#include "postgres.h"

#include <stdlib.h>

#include "text/text.h"

enum { WAYS = 4 };
static const char *ways[WAYS];

/* A server with a certificate of its own, and the ways to get to it. */
static void
set_up_ways(void)
{
    postgres_set_up(4);
    const char *folder = postgres_server.folder;
    const char *command =
        apr_psprintf(pool,
                     "cd %s && test -e key || openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 "
                     "-out certificate "
                     "-keyout key 2>/dev/null && chown --reference=. key certificate && chmod 600 key",
                     folder);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): of a folder that the test has made */
    if (strcmp(database_do(&postgres_server, "sql show ssl"), "on") != 0) {
        database_do(&postgres_server,
                    apr_psprintf(pool, "sql alter system set ssl_cert_file = '%s/certificate'", folder));
        database_do(&postgres_server, apr_psprintf(pool, "sql alter system set ssl_key_file = '%s/key'", folder));
        database_do(&postgres_server, "sql alter system set ssl = on");
        database_do(&postgres_server, "restart");
    }
    const char *open = database_connection(&postgres_server);
    ways[0] = open;
    ways[1] = mc_replace_all(open, "sslmode=disable", "sslmode=require", pool);
    ways[2] = mc_replace_all(open, "sslmode=disable", "sslmode=prefer", pool);
    ways[3] = mc_replace_all(open, "host=127.0.0.1", apr_pstrcat(pool, "host=", folder, NULL), pool);
}

/* The fields of all rows one behind the other. */
static const char *
fields_of(const char *connection, const char *sql, bool copy, const mc_postgres_param *param)
{
    mc_postgres_query query = {
        .connection = connection, .sql = sql, .copy = copy, .params = param, .param_count = param == NULL ? 0 : 1
    };
    mc_postgres_result *result;
    const mc_postgres_row *row;
    apr_array_header_t *parts = apr_array_make(pool, 64, sizeof(const char *));
    ck_ok(mc_postgres_start(&result, process.postgres, &query, &ctx, pool));
    for (;;) {
        ck_ok(mc_postgres_next(&row, result));
        if (row == NULL)
            break;
        for (int i = 0; i < row->columns; i++)
            APR_ARRAY_PUSH(parts, const char *) = apr_pstrdup(pool, row->fields[i].data);
    }
    mc_postgres_end(result);
    return apr_array_pstrcat(pool, parts, ',');
}

START_TEST(rows_of_any_size_come_by_every_way)
{
    static const char *const statements[] = {
        "select v::text, repeat('x', v * 7 % 3000) from generate_series(1, 3000) v",
        "select v::text, repeat(chr(65 + v % 20), 16300 + v) from generate_series(1, 200) v",
        "select 'one'::text, repeat('long', 5000000)",
    };
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        const char *expected = fields_of(ways[0], statements[i], false, NULL);
        ck_assert_uint_gt(strlen(expected), 3000);
        for (int way = 0; way < WAYS; way++) {
            ck_assert_str_eq(fields_of(ways[way], statements[i], false, NULL), expected);
            ck_assert_str_eq(fields_of(ways[way], statements[i], true, NULL), expected);
        }
    }
}
END_TEST

START_TEST(a_large_value_goes_by_every_way)
{
    char *value = apr_palloc(pool, 20000001);
    memset(value, 'v', 20000000);
    value[20000000] = '\0';
    const mc_postgres_param param = { .value = value, .type = MC_POSTGRES_TEXT };
    for (int way = 0; way < WAYS; way++)
        ck_assert_str_eq(fields_of(ways[way], "select length($1) || md5($1)", false, &param),
                         "20000000dc1dd7ecfbc6cd37938d85903fe6d984");
}
END_TEST

START_TEST(what_is_asked_for_is_encrypted)
{
    static const char *const sql = "select ssl::text from pg_stat_ssl where pid = pg_backend_pid()";
    static const char *const expected[WAYS] = { "false", "true", "true", "false" };
    for (int way = 0; way < WAYS; way++)
        ck_assert_str_eq(fields_of(ways[way], sql, false, NULL), expected[way]);
    database_do(&postgres_server, "sql alter system set ssl = off");
    database_do(&postgres_server, "restart");
    ck_assert_str_eq(fields_of(ways[2], sql, false, NULL), "false"); /* the server says no, and goes on in the open */
    database_do(&postgres_server, "sql alter system set ssl = on");
    database_do(&postgres_server, "restart");
}
END_TEST

/* The largest message is a whole one; one byte more ends the connection before it is read. */
START_TEST(a_row_has_a_bound)
{
    mc_postgres_query query = { .connection = ways[0] };
    mc_postgres_result *result;
    const mc_postgres_row *row;
    query.sql = "select repeat('x', 67108864 - 10)"; /* its length, a count, the length of the field */
    ck_ok(mc_postgres_start(&result, process.postgres, &query, &ctx, pool));
    ck_ok(mc_postgres_next(&row, result));
    ck_assert_int_eq(row->fields[0].size, 67108864 - 10);
    mc_postgres_end(result);
    query.sql = "select repeat('x', 67108864 - 9)";
    ck_ok(mc_postgres_start(&result, process.postgres, &query, &ctx, pool));
    ck_fails(UPSTREAM, mc_postgres_next(&row, result));
    mc_postgres_end(result);
    ck_assert_str_eq(fields_of(ways[0], "select 'well'", false, NULL), "well");
}
END_TEST

POSTGRES_MAIN_BETWEEN("postgres_pump", set_up_ways, postgres_tear_down, rows_of_any_size_come_by_every_way,
                      a_large_value_goes_by_every_way, what_is_asked_for_is_encrypted, a_row_has_a_bound)
