/* How the server plans: once for all values where rows are found by a key, else for each box anew. */
#include "postgres.h"

#include "db/postgres/postgres_counters.h"

enum { LIMIT = 3 };

#define SETTINGS                                                                                                       \
    "select current_setting('plan_cache_mode') || ' ' || current_setting('enable_seqscan') || ' ' || "                 \
    "current_setting('application_name')"

/* A statement, without the settings of its session. */
static mc_postgres_query
planned_query(bool by_key)
{
    return (
        mc_postgres_query){ .connection = database_connection(&postgres_server), .sql = SETTINGS, .by_key = by_key };
}

/* Its answer is open still. */
static mc_postgres_result *
begin_planned(bool by_key)
{
    mc_postgres_query query = planned_query(by_key);
    mc_postgres_result *result;
    ck_ok(mc_postgres_start(&result, process.postgres, &query, &ctx, pool));
    return result;
}

static void
check_plan(mc_postgres_result *result, bool by_key)
{
    const mc_postgres_row *row;
    ck_ok(mc_postgres_next(&row, result));
    ck_assert_str_eq(row->fields[0].data, by_key ? "force_generic_plan off mapcache" : "force_custom_plan on mapcache");
    mc_postgres_end(result);
}

static void
ask_planned(bool by_key)
{
    check_plan(begin_planned(by_key), by_key);
}

static uint64_t
count_connections(void)
{
    return mc_counter_value(process.metrics, MC_COUNT_postgres_connections_total);
}

START_TEST(each_way_has_a_connection_of_its_own)
{
    for (int i = 0; i < 10; i++) {
        ask_planned(true);
        ask_planned(false);
    }
    ck_assert_uint_eq(count_connections(), 2);
}
END_TEST

/* With as many connections as there may be, one of the other way is used, and plans as it is told. */
START_TEST(a_connection_of_the_other_way_is_better_than_none)
{
    mc_postgres_result *open[LIMIT];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < LIMIT; i++)
            open[i] = begin_planned(round % 2 == 0);
        for (int i = 0; i < LIMIT; i++)
            check_plan(open[i], round % 2 == 0);
    }
    ck_assert_uint_eq(count_connections(), LIMIT);
}
END_TEST

START_TEST(a_session_plans_for_each_box)
{
    mc_postgres_result *open[LIMIT];
    mc_postgres_session *session;
    for (int i = 0; i < LIMIT; i++)
        open[i] = begin_planned(true);
    for (int i = 0; i < LIMIT; i++)
        check_plan(open[i], true);
    ck_ok(mc_postgres_session_open(&session, process.postgres, database_connection(&postgres_server), &ctx, pool));
    mc_postgres_query query = planned_query(true); /* not looked at for a session */
    query.session = session;
    mc_postgres_result *result;
    ck_ok(mc_postgres_start(&result, process.postgres, &query, &ctx, pool));
    check_plan(result, false);
    mc_postgres_session_give_back(session);
    ask_planned(true);
    ask_planned(false);
    ck_assert_uint_eq(count_connections(), LIMIT);
}
END_TEST

/* An ended connection is replaced by one of the same way. */
START_TEST(a_connection_that_has_ended_keeps_its_way)
{
    for (int i = 0; i < 4; i++) {
        ask_planned(i % 2 == 0);
        (void)database_do(&postgres_server, "sql select bool_and(pg_terminate_backend(pid, 10000)) from "
                                            "pg_stat_activity where application_name = 'mapcache'");
    }
    ck_assert_uint_eq(count_connections(), 4);
}
END_TEST

POSTGRES_MAIN("postgres plans", LIMIT, each_way_has_a_connection_of_its_own,
              a_connection_of_the_other_way_is_better_than_none, a_session_plans_for_each_box,
              a_connection_that_has_ended_keeps_its_way)
