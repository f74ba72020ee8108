/* A large table that is read over several connections: the features of one connection, in their order. */
#include "postgres.h"

#include "base/workers.h"
#include "vector/feature/packet.h"
#include "vector/postgis/postgis.h"

enum { CONNECTIONS = 6, ROWS = 24000, WAITING = 5, WORKERS = 3 };

#define READERS                                                                                                        \
    "SELECT count(*) FROM pg_stat_activity WHERE xact_start IS NOT NULL AND backend_type = 'client backend' AND pid "  \
    "<> pg_backend_pid()"

/* Packets that wait, as a taker has them that decodes them late, and not in their order. */
typedef struct late_taker {
    mc_packet_taker base;
    mc_feature_packet *waiting[WAITING];
    apr_array_header_t *decoded[WAITING]; /* of a packet that has been; NULL: not so far */
    int first, count, packets;
    apr_array_header_t *seen; /* texts, one of a feature, in the order of the packets */
    int fails_at;             /* feature; -1: none */
    const char *at_first;     /* SQL of another session, when the first feature is seen */
    const char *answer;       /* of READERS, then */
} late_taker;

static const char *
ask(const char *sql)
{
    return database_do(&postgres_server, apr_pstrcat(pool, "sql ", sql, NULL));
}

static mc_error *
note_feature(void *baton, const mc_feature *feature, mc_ctx *visiting)
{
    apr_array_header_t *texts = baton;
    const mc_shape *shape = &feature->geometry->shapes[MC_SHAPE_POINTS];
    (void)visiting;
    APR_ARRAY_PUSH(texts, const char *) = apr_psprintf(pool, "%" APR_INT64_T_FMT " %s %d %d", feature->id,
                                                       feature->values[0], shape->points[0].x, shape->points[0].y);
    return MC_OK;
}

static mc_error *
look_and_note(late_taker *t, apr_array_header_t *texts, mc_feature_packet *packet)
{
    mc_error *error = packet->ops->decode(packet, note_feature, texts, &ctx, pool);
    if (t->answer == NULL) {
        t->answer = ask(READERS);
        if (t->at_first != NULL)
            (void)ask(t->at_first);
    }
    return error == MC_OK && t->fails_at >= 0 && t->seen->nelts + texts->nelts > t->fails_at
               ? mc_error_create(pool, MC_ERR_LIMIT, "it is enough")
               : error;
}

/* Decodes the last of the waiting packets that is free, and lets go of those in front that have been. */
static mc_error *
decode_one(late_taker *t)
{
    for (int i = t->count - 1; i >= 0; i--) {
        mc_feature_packet *packet = t->waiting[i];
        if (t->decoded[i] != NULL || !packet->ops->is_free(packet))
            continue;
        t->decoded[i] = apr_array_make(pool, 4096, sizeof(const char *));
        MC_TRY(look_and_note(t, t->decoded[i], packet));
        break;
    }
    while (t->count > 0 && t->decoded[0] != NULL) {
        apr_array_cat(t->seen, t->decoded[0]);
        t->waiting[0]->ops->release(t->waiting[0]);
        t->count--;
        memmove(t->waiting, t->waiting + 1, sizeof(t->waiting[0]) * (WAITING - 1));
        memmove(t->decoded, t->decoded + 1, sizeof(t->decoded[0]) * (WAITING - 1));
    }
    return MC_OK;
}

static mc_error *
take_late(mc_packet_taker *base, const mc_feature_packet *packet, mc_ctx *taking)
{
    late_taker *t = (late_taker *)base;
    (void)taking;
    t->packets++;
    while (t->count == WAITING)
        MC_TRY(decode_one(t));
    t->decoded[t->count] = NULL;
    t->waiting[t->count++] = packet->ops->keep(packet);
    return MC_OK;
}

static mc_error *
settle_late(mc_packet_taker *base, mc_error *error)
{
    late_taker *t = (late_taker *)base;
    while (t->count > 0 && error == MC_OK)
        error = decode_one(t);
    for (int i = 0; i < t->count; i++)
        t->waiting[i]->ops->release(t->waiting[i]);
    t->count = 0;
    return error;
}

static late_taker
late_taker_of(void)
{
    return (late_taker){ .base = { take_late, settle_late },
                         .seen = apr_array_make(pool, ROWS, sizeof(const char *)),
                         .fails_at = -1 };
}

/* Reads the whole table; `taker` NULL: over one connection. */
static mc_error *
read_table(late_taker *taker, const char *user, apr_array_header_t *seen)
{
    static const char *const names[] = { "name" };
    const mc_postgis_config config = { .connection =
                                           apr_psprintf(pool, "%s %s", database_connection(&postgres_server), user),
                                       .table = "large",
                                       .id = "id",
                                       .transfer = MC_TRANSFER_BINARY };
    const mc_feature_query query = { .srs = "EPSG:3857",
                                     .box = { -10, -10, 1010, 1010 },
                                     .pixel_grid = { .x0 = 0, .y0 = 1000, .per_x = 1, .per_y = 1 },
                                     .resolution = 1,
                                     .scale = 1,
                                     .attributes = names,
                                     .attribute_count = 1,
                                     .ids = true,
                                     .taker = taker == NULL ? NULL : &taker->base };
    int64_t skipped;
    mc_feature_data *data = mc_postgis_create(&config, "large", pool);
    mc_error *error = data->ops->read(data, &query, note_feature, seen, &skipped, &ctx, pool);
    ck_assert_int_eq(skipped, 0);
    return error;
}

static void
make_table(void)
{
    (void)ask(
        "CREATE EXTENSION IF NOT EXISTS postgis; DROP TABLE IF EXISTS large; "
        "CREATE TABLE large(id int, name text, geom geometry(Point, 3857)); INSERT INTO large SELECT i, 'n' || i, "
        "ST_SetSRID(ST_MakePoint(i * 37 % 1000, i * 7 / 25 % 1000), 3857) FROM generate_series(1, 24500) i; "
        "DELETE FROM large WHERE id > 24000; UPDATE large SET name = NULL WHERE id % 11 = 0; "
        "CREATE INDEX ON large USING gist(geom); ANALYZE large");
    ck_ok(mc_workers_create(&process.workers, WORKERS, pool));
    while (mc_workers_idle(process.workers) < WORKERS)
        apr_sleep(1000);
}

static void
end_workers(void)
{
    mc_workers_destroy(process.workers);
    process.workers = NULL;
}

static void
wait_for_none(void)
{
    while (strcmp(ask(READERS), "0") != 0)
        apr_sleep(1000);
}

/* Others may need all processors but one: then there is one connection, and no packet. */
static int
connections_wanted(void)
{
    const int spare = mc_workers_spare(process.workers);
    return spare == 0 ? 1 : spare + 1 > CONNECTIONS - 1 ? CONNECTIONS - 1 : spare + 1;
}

static void
compare_features(const apr_array_header_t *one, const apr_array_header_t *other)
{
    ck_assert_int_eq(one->nelts, ROWS);
    ck_assert_int_eq(other->nelts, ROWS);
    for (int i = 0; i < ROWS; i++)
        ck_assert_str_eq(APR_ARRAY_IDX(one, i, const char *), APR_ARRAY_IDX(other, i, const char *));
}

/* Also where another session empties the table meanwhile. */
START_TEST(features_are_those_of_one_snapshot_in_the_order_of_the_table)
{
    apr_array_header_t *alone = apr_array_make(pool, ROWS, sizeof(const char *));
    late_taker taker = late_taker_of();
    make_table();
    ck_ok(read_table(NULL, "", alone));
    taker.at_first = "DELETE FROM large";
    ck_ok(read_table(&taker, "", taker.seen));
    compare_features(taker.seen, alone);
    if (connections_wanted() > 1) {
        ck_assert_int_ge(taker.packets, WAITING);
        ck_assert_str_eq(taker.answer, apr_itoa(pool, connections_wanted()));
    }
    ck_assert_str_eq(ask(READERS), "0");
    end_workers();
}
END_TEST

START_TEST(an_error_ends_all_connections)
{
    late_taker taker = late_taker_of();
    make_table();
    taker.fails_at = 9000;
    if (connections_wanted() > 1)
        ck_fails(LIMIT, read_table(&taker, "", taker.seen));
    wait_for_none();
    end_workers();
}
END_TEST

/* What the readers had is used for other things by then. */
static void
write_over_spare_pools(void)
{
    apr_pool_t *pools[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) {
        pools[i] = mc_task_pool_acquire();
        for (int k = 0; k < 64; k++)
            memset(apr_palloc(pools[i], 4000), '?', 4000);
    }
    for (int i = 0; i < CONNECTIONS; i++)
        mc_task_pool_release(pools[i]);
}

/* A taker may decode at once, on the thread that reads, and give the reader's own error back. */
START_TEST(an_error_outlives_the_connection_that_ended)
{
    late_taker taker = late_taker_of();
    make_table();
    (void)ask("UPDATE large SET name = repeat('x', 2000); ANALYZE large"); /* more than sockets hold */
    taker.at_first = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE xact_start IS NOT NULL AND "
                     "backend_type = 'client backend' AND pid <> pg_backend_pid()";
    if (connections_wanted() > 1) {
        mc_error *error = read_table(&taker, "", taker.seen);
        write_over_spare_pools();
        ck_fails(UNAVAILABLE, error);
        ck_assert_ptr_nonnull(strstr(mc_error_chain(error, pool), "PostgreSQL ("));
    }
    end_workers();
}
END_TEST

/* Where no connection is spare, or no snapshot can be exported, there is one connection. */
START_TEST(without_spare_connections_one_reads_all)
{
    apr_array_header_t *alone = apr_array_make(pool, ROWS, sizeof(const char *));
    make_table();
    ck_ok(read_table(NULL, "", alone));
    (void)ask("DROP ROLE IF EXISTS plain_reader; CREATE ROLE plain_reader LOGIN PASSWORD '" DATABASE_PASSWORD "'; "
              "GRANT SELECT ON large TO plain_reader; REVOKE EXECUTE ON FUNCTION pg_export_snapshot() FROM PUBLIC");
    late_taker taker = late_taker_of();
    ck_ok(read_table(&taker, "user=plain_reader", taker.seen));
    compare_features(taker.seen, alone);
    ck_assert_int_eq(taker.packets, 0);
    mc_postgres_destroy(process.postgres);
    process.postgres = mc_postgres_create(2, 1, 0, true);
    late_taker other = late_taker_of();
    ck_ok(read_table(&other, "", other.seen));
    compare_features(other.seen, alone);
    ck_assert_int_eq(other.packets, 0);
    ck_assert_str_eq(ask(READERS), "0");
    end_workers();
}
END_TEST

POSTGRES_MAIN("postgis_spread", CONNECTIONS, features_are_those_of_one_snapshot_in_the_order_of_the_table,
              an_error_ends_all_connections, an_error_outlives_the_connection_that_ended,
              without_spare_connections_one_reads_all)
