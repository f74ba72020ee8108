/* Names of database hosts: libpq is never left to wait for a name server. */
#include "name_server.h"
#include "postgres.h"

/* Connects with that host in the place of the server's, and asks for one value. */
static mc_error *
ask_at(const char *host)
{
    const char *where = strchr(database_connection(&postgres_server), ' ');
    const mc_postgres_query query = { .connection = apr_pstrcat(pool, "host=", host, where, NULL), .sql = "select 1" };
    mc_postgres_result *query_result;
    const mc_postgres_row *row;
    MC_TRY(mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool));
    MC_TRY(mc_postgres_next(&row, query_result));
    ck_assert_ptr_nonnull(row);
    mc_postgres_end(query_result);
    return MC_OK;
}

START_TEST(names_have_their_addresses_before_libpq_sees_them)
{
    ck_ok(ask_at("database.known"));
    ck_assert_int_eq(name_server_questions(), 1);
    ck_ok(ask_at("localhost")); /* of its addresses the server listens at one */
    ck_ok(ask_at("database.unknown,database.known"));
    int asked = name_server_questions();
    ck_ok(ask_at("/nowhere,other.known"));
    ck_assert_int_eq(name_server_questions(), asked + 1); /* ours; libpq asks nobody */
}
END_TEST

START_TEST(a_name_without_an_address_is_an_error)
{
    ck_fails(UNAVAILABLE, ask_at("database.unknown"));
    ck_fails(UNAVAILABLE, ask_at("database.unknown,other.unknown"));
}
END_TEST

/* What an error says of a connection string's server, in all its words. */
static const char *
words_about(const char *connection)
{
    const mc_postgres_query query = { .connection = connection, .sql = "select 1" };
    mc_postgres_result *query_result;
    const mc_postgres_row *row;
    const char *words = "";
    mc_error *error = mc_postgres_start(&query_result, process.postgres, &query, &ctx, pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, query_result);
    ck_assert_ptr_nonnull(error);
    for (; error != MC_OK; error = error->cause)
        words = apr_pstrcat(pool, words, error->message, "\n", NULL);
    return words;
}

START_TEST(half_a_password_is_not_shown_as_a_host)
{
    static const char *const connections[] = {
        "postgresql://someone:geh@eim%2Fx@127.0.0.1:1/maps",
        "postgresql://someone:geh@eim@other.known:1/maps",
        "postgresql://someone:geh,eim@heim@other.known:1,127.0.0.1:1/maps",
        "postgresql://someone:geh@eim@other.known:1/maps?hostaddr=127.0.0.1",
        "postgresql://someone:geh@%2Feim@127.0.0.1:1/maps",
        "host=eim@127.0.0.1 port=1 user=someone password=geh dbname=maps",
    };
    int asked = name_server_questions();
    for (size_t i = 0; i < sizeof(connections) / sizeof(connections[0]); i++) {
        const char *words = words_about(connections[i]);
        ck_assert_msg(strstr(words, "eim") == NULL && strstr(words, "geh") == NULL, "%s", words);
        ck_assert_msg(strstr(words, "port 1") != NULL && strstr(words, "database maps, user someone") != NULL, "%s",
                      words);
        ck_assert_msg(strstr(words, "(127.0.0.1, ") != NULL || strstr(words, "(other.known, ") != NULL ||
                          strstr(words, "(other.known,127.0.0.1, ") != NULL,
                      "%s", words);
    }
    ck_assert_int_eq(name_server_questions(), asked); /* nor does a name server learn of it */
}
END_TEST

START_TEST(half_a_password_is_not_shown_as_a_port_or_database)
{
    const char *words = words_about("postgresql://someone:geh/eim@127.0.0.1:1/maps");
    ck_assert_msg(strstr(words, "eim") == NULL && strstr(words, "geh") == NULL, "%s", words);
    words = words_about("postgresql://other.unknown:1/eim@127.0.0.1/maps");
    ck_assert_msg(strstr(words, "eim") == NULL, "%s", words);
}
END_TEST

static bool
has_gone(void *unused)
{
    (void)unused;
    return true;
}

START_TEST(a_name_server_that_hangs_ends_no_later_than_the_request)
{
    ctx.deadline = mc_clock_now() + 100000;
    ck_fails(UNAVAILABLE, ask_at("database.hangs"));
    ctx.deadline = 0;
    ctx.abandoned = has_gone;
    ck_fails(UNAVAILABLE, ask_at("other.hangs"));
    ctx.abandoned = NULL;
    name_server_answer();
    ck_ok(ask_at("database.hangs"));
}
END_TEST

POSTGRES_MAIN("postgres_address", 4, names_have_their_addresses_before_libpq_sees_them,
              a_name_without_an_address_is_an_error, half_a_password_is_not_shown_as_a_host,
              half_a_password_is_not_shown_as_a_port_or_database,
              a_name_server_that_hangs_ends_no_later_than_the_request)
