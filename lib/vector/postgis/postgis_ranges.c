/*
 * One map over several connections, see postgis_reading.h. The first connection begins a transaction and exports its
 * snapshot, which the others import. Each connection reads every n-th range of the table's pages, with one statement:
 * the ranges are taken from the connections in turn, in the order of the table. A range is a packet, which any idle
 * thread decodes once the connection's range before has been decoded. What has been read ahead is bounded: by the
 * sockets' buffers, and by the batches of draw/paint/parallel_painter.c.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/workers.h"
#include "vector/postgis/postgis_reading.h"

enum {
    SPREAD_ROWS = 20000, /* of the map, from which on it is worth a second connection */
    RANGE_ROWS = 2048,   /* about; as many as some batches hold */
    RANGE_PIECES = 4,    /* values of a range at most */
    CONNECTIONS_MAX = 8, /* of a map: as many packets wait at most */
};

/* A further session waits so long for a lock on the table or its indexes. A transaction that wants the table for itself
 * waits for those sessions that have it already, and lets no other one in: that one must not be waited for. */
#define LOCK_WAIT "50ms"
/* The ends of all transactions that only read, together. */
#define END_TIME (1 * APR_USEC_PER_SEC)
#define ALONE_TIME (60 * APR_USEC_PER_SEC)

typedef struct spread_reading spread_reading;

/* One connection, and what the thread needs that decodes what it brings. */
typedef struct range_reader {
    mc_postgis_reading reading;
    mc_postgis_request request;
    mc_feature_query query;
    mc_postgres_session *session;
    bool rests; /* the session is in its transaction, and the server waits for the next statement */
    mc_postgres_result *result;
    int64_t next; /* range; the lock of the reading */
    mc_ctx ctx;   /* of the session */
    apr_pool_t *root;
} range_reader;

/* What all connections of one reading have in common. */
struct spread_reading {
    mc_postgis_reading *of;
    const mc_postgis_statement *statement;
    const char *snapshot;
    int64_t pages;
    int pieces; /* of a range */
    range_reader *readers[CONNECTIONS_MAX];
    int count;
    pthread_mutex_t lock; /* of the rest */
    int64_t skipped;
};

typedef struct range_packet {
    mc_feature_packet base;
    spread_reading *spread;
    int64_t number; /* of the range */
} range_packet;

/* ---- Sessions ---- */

/* Statements that stand for themselves. The fields of the last row, as texts, into values (NULL: none is wanted). */
static mc_error *
run_plain(const char **values, int count, mc_postgres_session *session, const char *sql, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgres_query query = { .sql = sql, .session = session, .plain = true };
    mc_postgres_result *result;
    const mc_postgres_row *row;
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &query, ctx, pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        for (int i = 0; i < count && i < row->columns; i++)
            values[i] = apr_pstrdup(pool, row->fields[i].data);
    mc_postgres_end(result);
    return error;
}

#define BEGIN_READING "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"

/* The number of pages is that of what the snapshot sees, or more. */
static mc_error *
export_snapshot(spread_reading *spread, mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *values[2] = { "", "" };
    const char *sql = apr_psprintf(pool, BEGIN_READING "SELECT pg_export_snapshot(),%s", spread->statement->page_count);
    MC_TRY(run_plain(values, 2, session, sql, ctx, pool));
    if (*values[0] == '\0' || values[0][strspn(values[0], "0123456789ABCDEFabcdef-")] != '\0' ||
        !mc_parse_int64(&spread->pages, values[1], 1, INT64_C(1) << 32))
        return mc_error_create(pool, MC_ERR_LIMIT, "there is nothing to read in pieces");
    spread->snapshot = values[0];
    return MC_OK;
}

static mc_error *
import_snapshot(const spread_reading *spread, mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *sql = apr_psprintf(pool,
                                   BEGIN_READING "SET TRANSACTION SNAPSHOT '%s';SET LOCAL lock_timeout='" LOCK_WAIT "';"
                                                 "SELECT FROM %s AS no_row LIMIT 0",
                                   spread->snapshot, mc_sql_table(spread->of->layer->config.table, pool));
    return run_plain(NULL, 0, session, sql, ctx, pool);
}

/* ---- Readers ---- */

static range_reader *
create_range_reader(const spread_reading *spread)
{
    const mc_postgis_reading *of = spread->of;
    apr_pool_t *root = mc_task_pool_acquire();
    range_reader *made = apr_pcalloc(root, sizeof(*made));
    made->root = root;
    made->ctx = *of->base.ctx;
    made->ctx.pool = root;
    made->ctx.trace = NULL;
    made->ctx.slow = NULL;
    made->ctx.inside = NULL;
    made->request = *of->request;
    made->request.query = &made->query;
    made->request.map_srid = mc_postgis_own_query(&made->query, of->column->srid, of->base.map, of->base.layer, root);
    made->reading = (mc_postgis_reading){
        .base = of->base, .layer = of->layer, .column = of->column, .request = &made->request, .first = of->first
    };
    made->reading.base.geometry = (mc_geometry){ 0 };
    mc_postgis_reserve_row(&made->reading, true, root);
    return made;
}

/* The connection's session, in the snapshot of the first one. What the server has refused, it waits for no more. */
static mc_error *
open_range_session(range_reader *reader, spread_reading *spread)
{
    mc_error *error;
    mc_ctx *ctx = &reader->ctx;
    const char *connection = spread->of->layer->config.connection;
    struct mc_postgres *postgres = ctx->process->postgres;
    if (spread->snapshot != NULL) {
        MC_TRY(mc_postgres_session_spare(&reader->session, postgres, connection, ctx, reader->root));
        error = import_snapshot(spread, reader->session, ctx, reader->root);
    } else {
        MC_TRY(mc_postgres_session_open(&reader->session, postgres, connection, spread->of->base.ctx, reader->root));
        error = export_snapshot(spread, reader->session, ctx, reader->root);
    }
    reader->rests = error == MC_OK || error->kind == MC_ERR_UPSTREAM || error->kind == MC_ERR_LIMIT;
    return error;
}

/* One more connection. */
static mc_error *
add_range_reader(spread_reading *spread)
{
    range_reader *reader = spread->readers[spread->count] = create_range_reader(spread);
    reader->next = spread->count++;
    if (reader->request.map_srid != spread->of->request->map_srid)
        return mc_error_create(reader->root, MC_ERR_UNAVAILABLE, "the layer cannot be transformed here any more");
    return open_range_session(reader, spread);
}

/* ---- The end of readers ---- */

/* `whole`: all ranges have been read, and what is left of the answer is its end. A statement that is under way is
 * cancelled at the server, and its session goes with it: by another thread, nobody waits. */
static void
end_range_answer(range_reader *reader, bool whole)
{
    const mc_postgres_row *row = NULL;
    if (reader->result != NULL) {
        mc_error *error = whole ? mc_postgres_next(&row, reader->result) : MC_OK;
        reader->rests = whole && error == MC_OK && row == NULL;
        mc_error_ignore(error);
    }
    mc_postgres_end(reader->result);
    reader->result = NULL;
    if (reader->rests)
        return;
    mc_postgres_session_close(reader->session);
    reader->session = NULL;
}

/* A session whose transaction has ended stays open for others. */
static void
give_back_session(range_reader *reader, mc_error *error)
{
    const mc_postgres_row *row;
    while (error == MC_OK && (error = mc_postgres_next(&row, reader->result)) == MC_OK && row != NULL)
        continue;
    mc_postgres_end(reader->result);
    if (error == MC_OK)
        mc_postgres_session_give_back(reader->session);
    else
        mc_postgres_session_close(reader->session);
    mc_error_ignore(error);
}

/* All statements are ended before any server is waited for, and all transactions at the same time, whoever has gone. */
static void
end_range_readers(range_reader *const *readers, int count, bool whole)
{
    mc_error *errors[CONNECTIONS_MAX] = { 0 };
    mc_ctx last;
    for (int i = 0; i < count; i++)
        end_range_answer(readers[i], whole);
    for (int i = 0; i < count; i++) {
        const mc_postgres_query query = { .sql = "COMMIT", .session = readers[i]->session, .plain = true };
        if (i == 0) {
            last = readers[0]->ctx;
            last.abandoned = NULL;
            last.deadline = mc_clock_now() + END_TIME;
        }
        if (readers[i]->session != NULL)
            errors[i] = mc_postgres_start(&readers[i]->result, last.process->postgres, &query, &last, readers[i]->root);
    }
    for (int i = 0; i < count; i++)
        if (readers[i]->session != NULL)
            give_back_session(readers[i], errors[i]);
    for (int i = 0; i < count; i++) { /* `last` has the pool of the first one */
        mc_geometry_free(&readers[i]->reading.base.geometry);
        mc_task_pool_release(readers[i]->root);
    }
}

/* ---- Statements ---- */

static mc_error *
start_range_reader(range_reader *reader, const spread_reading *spread, int number)
{
    const mc_postgres_query query = {
        .sql = mc_postgis_gather_ranges(spread->statement, spread->pages, spread->pieces, number, spread->count,
                                        reader->root),
        .session = reader->session,
        .binary = true,
        .copy = true,
    };
    return mc_postgres_start(&reader->result, reader->ctx.process->postgres, &query, &reader->ctx, reader->root);
}

/* ---- Packets ---- */

static mc_error *
decode_range_packet(const mc_feature_packet *base, mc_feature_visitor *visit, void *baton, mc_ctx *ctx,
                    apr_pool_t *pool)
{
    const range_packet *packet = (const range_packet *)base;
    spread_reading *spread = packet->spread;
    range_reader *reader = spread->readers[packet->number % spread->count];
    mc_feature_reading *own = &reader->reading.base;
    own->visit = visit;
    own->baton = baton;
    own->ctx = ctx;
    pthread_mutex_lock(&spread->lock);
    const int64_t before = own->skipped = spread->skipped;
    pthread_mutex_unlock(&spread->lock);
    mc_error *error = mc_postgis_read_rows(&reader->reading, reader->result, spread->pieces, pool);
    pthread_mutex_lock(&spread->lock);
    spread->skipped += own->skipped - before;
    reader->next += spread->count;
    pthread_mutex_unlock(&spread->lock);
    return error;
}

static mc_feature_packet *
keep_range_packet(const mc_feature_packet *packet)
{
    range_packet *kept = malloc(sizeof(*kept));
    if (kept != NULL)
        *kept = *(const range_packet *)packet;
    return kept == NULL ? NULL : &kept->base;
}

static void
release_range_packet(mc_feature_packet *packet)
{
    free(packet);
}

static bool
range_is_free(const mc_feature_packet *base)
{
    const range_packet *packet = (const range_packet *)base;
    spread_reading *spread = packet->spread;
    pthread_mutex_lock(&spread->lock);
    bool is_free = spread->readers[packet->number % spread->count]->next == packet->number;
    pthread_mutex_unlock(&spread->lock);
    return is_free;
}

/* ---- The reading ---- */

/* Pieces of a range: some, fewer where they have many rows. */
static int
count_range_pieces(const spread_reading *spread)
{
    double rows = spread->of->request->rows / (double)spread->pages * MC_POSTGIS_PAGES; /* of a piece */
    int pieces = rows < 1 ? RANGE_PIECES : (int)(RANGE_ROWS / rows);
    return pieces < 1 ? 1 : pieces > RANGE_PIECES ? RANGE_PIECES : pieces;
}

/* Two connections or more, up to `most`. */
static mc_error *
begin_spread(spread_reading *spread, int most)
{
    MC_TRY(add_range_reader(spread));
    MC_TRY(add_range_reader(spread));
    while (spread->count < most) {
        mc_error *error = add_range_reader(spread);
        if (error != MC_OK) {
            mc_error_ignore(error);
            end_range_readers(&spread->readers[--spread->count], 1, false);
            break;
        }
    }
    spread->pieces = count_range_pieces(spread);
    for (int i = 0; i < spread->count; i++)
        MC_TRY(start_range_reader(spread->readers[i], spread, i));
    return MC_OK;
}

static mc_error *
hand_over_ranges(spread_reading *spread, apr_pool_t *pool)
{
    static const mc_packet_ops packets = { decode_range_packet, keep_range_packet, release_range_packet,
                                           range_is_free };
    const mc_feature_reading *base = &spread->of->base;
    mc_packet_taker *taker = base->map->taker;
    const int64_t step = (int64_t)spread->pieces * MC_POSTGIS_PAGES, count = (spread->pages + step - 1) / step;
    mc_error *error = MC_OK;
    for (int64_t i = 0; i < count && error == MC_OK; i++) {
        const range_packet packet = { { &packets, base->map }, spread, i };
        error = mc_ctx_check(base->ctx, pool);
        if (error == MC_OK)
            error = taker->take(taker, &packet.base, base->ctx);
    }
    return taker->settle(taker, error);
}

/* What the connections have brought, together. */
static void
end_spread(int64_t *bytes, spread_reading *spread, bool whole)
{
    mc_postgis_reading *of = spread->of;
    for (int i = 0; i < spread->count; i++) {
        range_reader *reader = spread->readers[i];
        of->rows += reader->reading.rows;
        of->beside += reader->reading.beside;
        of->visited += reader->reading.visited;
        if (reader->result != NULL)
            *bytes += mc_postgres_traffic_of(reader->result).bytes;
    }
    end_range_readers(spread->readers, spread->count, whole);
    of->base.skipped = spread->skipped;
}

/* The server, or what is before it, does not let several sessions see one snapshot, or the table is locked: the layer
 * is read over one connection for a minute. Said once for each layer. */
static void
give_up_spread(mc_postgis_layer *layer, mc_error *error, mc_ctx *ctx, apr_pool_t *pool)
{
    if (error->kind != MC_ERR_UPSTREAM) {
        mc_error_ignore(error); /* no connection is spare, or none can be made: whoever reads next will say so */
        return;
    }
    pthread_mutex_lock(&layer->lock);
    bool said = layer->alone_until != 0;
    layer->alone_until = mc_clock_now() + ALONE_TIME;
    pthread_mutex_unlock(&layer->lock);
    if (said)
        mc_error_ignore(error);
    else
        mc_log_error(ctx, MC_LOG_NOTICE,
                     mc_error_wrap(pool, error, error->kind, "layer \"%s\" is read over one connection for each map",
                                   layer->data.name));
}

static bool
is_worth_spreading(mc_postgis_reading *r, const mc_postgis_statement *statement)
{
    mc_postgis_layer *layer = r->layer;
    pthread_mutex_lock(&layer->lock);
    bool alone = mc_clock_now() < layer->alone_until;
    pthread_mutex_unlock(&layer->lock);
    return !alone && statement->gathered && r->base.map->taker != NULL && r->request->rows >= SPREAD_ROWS &&
           mc_workers_spare(r->base.ctx->process->workers) > 0;
}

mc_error *
mc_postgis_read_spread(bool *done, int64_t *bytes, mc_postgis_reading *r, const mc_postgis_statement *statement,
                       apr_pool_t *pool)
{
    *done = false;
    if (!is_worth_spreading(r, statement))
        return MC_OK;
    spread_reading spread = { .of = r, .statement = statement, .skipped = r->base.skipped };
    const int threads = mc_workers_spare(r->base.ctx->process->workers) + 1;
    pthread_mutex_init(&spread.lock, NULL);
    mc_error *error = begin_spread(&spread, threads > CONNECTIONS_MAX ? CONNECTIONS_MAX : threads);
    *done = error == MC_OK;
    if (*done) /* an error may have the pool of a reader */
        error = mc_error_copy(hand_over_ranges(&spread, pool), pool);
    else {
        give_up_spread(r->layer, error, r->base.ctx, pool);
        error = MC_OK;
    }
    end_spread(bytes, &spread, *done && error == MC_OK);
    pthread_mutex_destroy(&spread.lock);
    return error;
}
