/* Who looks after stored tiles for all readers of a name: one of them, who settles each change before its place in the
 * log moves on. */
#include "changes/keeper.h"

#include "base/metrics.h"
#include "changes/install_sql.h"
#include "postgres.h"

#define POLL (20 * 1000)
#define PATIENCE (60 * APR_USEC_PER_SEC)

/* What keepers tell; each test has its own. */
typedef struct kept_work {
    atomic_int told;                              /* rows, when one begins */
    atomic_int batches, rows, postponed, failing; /* the next so many are put off, or fail */
} kept_work;

static kept_work work;

static unsigned
list_no_names(apr_array_header_t **names, void *baton, const char *connection, apr_pool_t *scratch)
{
    (void)baton, (void)connection;
    *names = apr_array_make(scratch, 1, sizeof(const char *));
    return 1;
}

static mc_error *
count_settled(bool *done, void *baton, const char *connection, const mc_log_batch *batch,
              const apr_array_header_t *found, unsigned number, mc_ctx *at, apr_pool_t *scratch)
{
    (void)connection, (void)found, (void)number, (void)at;
    kept_work *kept = baton;
    kept->batches++;
    kept->rows += (int)batch->rows;
    *done = kept->postponed == 0;
    if (!*done)
        kept->postponed--;
    else if (kept->failing > 0 && kept->failing-- > 0)
        return mc_error_create(scratch, MC_ERR_IO, "the disk is full");
    return MC_OK;
}

/* What the one is told when it begins is what it settles later. */
static mc_error *
count_told(bool *done, void *baton, const char *connection, const mc_log_batch *batch, const apr_array_header_t *found,
           unsigned number, mc_ctx *at, apr_pool_t *scratch)
{
    (void)connection, (void)found, (void)number, (void)at, (void)scratch;
    kept_work *kept = baton;
    kept->told += (int)batch->rows;
    *done = true;
    return MC_OK;
}

static mc_keeper *
start_keeper(const char *reader, apr_interval_time_t delay)
{
    const mc_keeper_client client = { &work, list_no_names, count_told, count_settled };
    return mc_keeper_start(database_connection(&postgres_server), reader, POLL, delay, &client, &process, NULL);
}

static void
ask_server(const char *sql)
{
    (void)database_do(&postgres_server, apr_pstrcat(pool, "sql ", sql, NULL));
}

/* The SQL needs its ends of lines, and the server's helper takes one line. */
static void
install_log(void)
{
    const char *path = apr_pstrcat(pool, postgres_server.folder, "/install.sql", NULL);
    FILE *file = fopen(path, "w");
    MC_ASSERT(file != NULL && fputs(mc_changes_install_sql, file) >= 0 && fclose(file) == 0);
    ask_server(apr_psprintf(pool, "DO $do$ BEGIN EXECUTE pg_read_file('%s'); END $do$", path));
}

static void
set_up_log(void)
{
    postgres_set_up(8);
    ask_server("CREATE EXTENSION IF NOT EXISTS postgis");
    ask_server("DROP SCHEMA IF EXISTS mapcache_changes CASCADE");
    install_log();
    memset(&work, 0, sizeof(work));
}

static void
log_change(void)
{
    ask_server("SELECT mapcache_changes.changed('pg_class'::regclass, 4326, 1, 2, 3, 4)");
}

/* Whether a condition of SQL holds, now. */
static bool
holds(const char *condition)
{
    mc_postgres_session *session;
    bool answer = false;
    ctx.deadline = mc_clock_now() + PATIENCE;
    ck_ok(mc_postgres_session_open(&session, process.postgres, database_connection(&postgres_server), &ctx, pool));
    ck_ok(mc_change_log_ask(&answer, apr_psprintf(pool, "SELECT (%s)::text", condition), NULL, 0, session, &ctx, pool));
    mc_postgres_session_close(session);
    return answer;
}

#define wait_until(condition)                                                                                          \
    do {                                                                                                               \
        apr_time_t end_ = mc_clock_now() + PATIENCE;                                                                   \
        while (!(condition) && mc_clock_now() < end_)                                                                  \
            apr_sleep(POLL);                                                                                           \
        ck_assert(condition);                                                                                          \
    } while (0)

#define PLACE_OF_A "(SELECT pg_snapshot_xmax(applied) FROM mapcache_changes.readers WHERE name = 'a')"

START_TEST(a_change_is_settled_and_then_leaves_the_log)
{
    mc_keeper *keeper = start_keeper("a", 0);
    wait_until(mc_keeper_leads(keeper));
    log_change();
    log_change();
    wait_until(work.rows >= 2 && holds("NOT EXISTS (SELECT FROM mapcache_changes.log)"));
    ck_assert_int_eq(work.rows, 2);
    ck_assert(holds("EXISTS (SELECT FROM mapcache_changes.lost)"));
    mc_keeper_stop(keeper);
}
END_TEST

START_TEST(what_is_not_settled_stays)
{
    log_change();
    work.postponed = 1;
    work.failing = 1;
    mc_keeper *keeper = start_keeper("a", 0);
    wait_until(work.batches >= 1 && holds("NOT EXISTS (SELECT FROM mapcache_changes.log)"));
    ck_assert_int_ge(work.told, 1);
    ck_assert_int_ge(work.batches, 3); /* the same row */
    ck_assert_int_eq(work.rows, work.batches);
    mc_keeper_stop(keeper);
}
END_TEST

START_TEST(who_ends_while_a_change_has_its_time_leaves_it_to_the_next_one)
{
    mc_keeper *first = start_keeper("a", 3600 * APR_USEC_PER_SEC);
    wait_until(mc_keeper_leads(first) && holds("EXISTS (SELECT FROM mapcache_changes.readers WHERE name = 'a')"));
    log_change();
    wait_until(holds("EXISTS (SELECT FROM mapcache_changes.log)"));
    mc_keeper_stop(first);
    ck_assert_int_eq(work.batches, 0);
    ck_assert(holds("EXISTS (SELECT FROM mapcache_changes.log WHERE xid >= " PLACE_OF_A ")"));
    mc_keeper *second = start_keeper("a", 0);
    wait_until(work.rows == 1 && holds("NOT EXISTS (SELECT FROM mapcache_changes.log)"));
    mc_keeper_stop(second);
}
END_TEST

START_TEST(one_of_each_name_leads)
{
    mc_keeper *keepers[] = { start_keeper("a", 0), start_keeper("a", 0) }, *other = start_keeper("b", 0);
    wait_until(mc_keeper_leads(other) && (mc_keeper_leads(keepers[0]) || mc_keeper_leads(keepers[1])));
    int leader = mc_keeper_leads(keepers[1]);
    ck_assert(!mc_keeper_leads(keepers[1 - leader]));
    log_change();
    wait_until(holds("NOT EXISTS (SELECT FROM mapcache_changes.log)")); /* both names have applied it */
    ck_assert_int_eq(work.batches, 2);
    ck_assert(!mc_keeper_leads(keepers[1 - leader]));
    mc_keeper_stop(keepers[leader]);
    wait_until(mc_keeper_leads(keepers[1 - leader]));
    log_change();
    wait_until(work.batches >= 4);
    mc_keeper_stop(keepers[1 - leader]);
    mc_keeper_stop(other);
}
END_TEST

POSTGRES_MAIN_BETWEEN("keeper", set_up_log, postgres_tear_down, a_change_is_settled_and_then_leaves_the_log,
                      what_is_not_settled_stays, who_ends_while_a_change_has_its_time_leaves_it_to_the_next_one,
                      one_of_each_name_leads)
