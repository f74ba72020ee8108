/*
 * The process's connections to PostgreSQL, by connection string: bounded, kept open, each with its prepared statements.
 * Waiting ends at the context's deadline or when the client has gone. The work is done by libpq in a module that is
 * loaded at first use (mapcache-postgres.so).
 */
#ifndef MC_DB_POSTGRES_POSTGRES_H
#define MC_DB_POSTGRES_POSTGRES_H

#include "db/postgres/transfer_policy.h"
#include "mapcache/config.h"
#include "mapcache/ctx.h"

typedef struct mc_postgres mc_postgres;
typedef struct mc_postgres_result mc_postgres_result;
typedef struct mc_postgres_session mc_postgres_session;

/* Object ids of types, as the server's catalogue has them (src/include/catalog/pg_type.dat; fixed for all versions). */
enum {
    MC_POSTGRES_INFERRED = 0,
    MC_POSTGRES_BOOL = 16,
    MC_POSTGRES_BYTEA = 17,
    MC_POSTGRES_INT8 = 20,
    MC_POSTGRES_INT2 = 21,
    MC_POSTGRES_INT4 = 23,
    MC_POSTGRES_TEXT = 25,
    MC_POSTGRES_FLOAT4 = 700,
    MC_POSTGRES_FLOAT8 = 701,
    MC_POSTGRES_TIMESTAMPTZ = 1184,
    MC_POSTGRES_NUMERIC = 1700,
};

/* A value for $1, $2, ... It travels beside the statement and is never part of its text. */
typedef struct mc_postgres_param {
    const void *value; /* NULL: SQL's null. Text: ends with a zero byte. Binary: the type's wire form, big-endian */
    int size;          /* bytes of a binary value; not looked at for text */
    bool binary;
    unsigned type; /* declared type; MC_POSTGRES_INFERRED: the server infers it from the statement */
    /* The type that the values really have (TEXT, FLOAT8, INT8), declared instead of an inferred one where the server
     * infers a number that is too narrow for it, or nothing at all. MC_POSTGRES_INFERRED: what it infers stands. */
    unsigned natural;
} mc_postgres_param;

typedef struct mc_postgres_query {
    const char *connection;          /* libpq's connection string or URI */
    const char *sql;                 /* one statement; prepared once for each connection */
    const mc_postgres_param *params; /* these and their values live until the first row or the error */
    int param_count;                 /* at most MC_POSTGRES_PARAMS */
    bool binary;                     /* results in their types' wire form instead of as text */
    /*
     * Rows through COPY, as they arrive and in their types' wire form: less work for each of them, but the statement is
     * not prepared and cannot have parameters. Fields do not tell their types then.
     */
    bool copy;
    /* With `copy`, for rows of a table without ORDER BY: they come in the order in which the table stores them. A plain
     * index scan, whose rows come in the index's order, is switched off for this statement, and for the rest of a
     * session's transaction. */
    bool stored_order;
    /* Sent as it is, not prepared: several statements with semicolons between them, no parameters, values as text. The
     * rows of all of them come one after the other. */
    bool plain;
    /*
     * The statement finds rows by all of a key: the server plans it once for all values, and reads no table from end to
     * end for it. Planning a look-up takes the server as long as carrying it out. Not looked at for a session.
     */
    bool by_key;
    apr_interval_time_t time;     /* time limit in microseconds where the context has no deadline; 0: ten minutes */
    mc_postgres_session *session; /* its connection is used, and `connection` not looked at; NULL: any free one */
} mc_postgres_query;

#define MC_POSTGRES_PARAMS 64

typedef struct mc_postgres_field {
    const char *data; /* text ends with a zero byte */
    int size;         /* bytes; -1: null (`data` is "" then) */
    unsigned type;
    const char *name; /* of the column */
} mc_postgres_field;

/* Lives until the next call for the same answer. */
typedef struct mc_postgres_row {
    int columns;
    const mc_postgres_field *fields;
} mc_postgres_row;

/*
 * One for each process, created after the fork; nothing is loaded and no connection made before the first query.
 * `limit`: connections by connection string, of each of `processes`: where that is more than a server has room for, the
 * log says so when the first is made. `idle_time`: microseconds after which one that is not used is closed; 0:
 * each is closed after its use. `threads` false: no thread is started (a plain CGI).
 */
mc_postgres *mc_postgres_create(int limit, int processes, apr_interval_time_t idle_time, bool threads);
void mc_postgres_destroy(mc_postgres *postgres); /* no answer may be open; NULL is ignored */

/* Tells of each database that has been asked: its name as messages have it, without secrets, and whether the last
 * attempt to connect has worked. `visit` must not ask a database. */
typedef void mc_postgres_visit(void *baton, const char *name, bool works);
void mc_postgres_visit_servers(mc_postgres *postgres, mc_postgres_visit *visit, void *baton);

/* Loads the module now, so that the first request does not have to. MC_ERR_UNAVAILABLE where the module is missing. */
mc_error *mc_postgres_load(mc_postgres *postgres, apr_pool_t *pool) MC_CHECKED;

/* A connection string as configured: it is one of the configuration's databases, and complained of where libpq will not
 * take it. */
void mc_postgres_configure(const char *connection, const mc_node *node, mc_build *build);

/*
 * Sends the query. One thread may start several and read them one after the other; each holds a connection of its own
 * until it ends, so a caller that waits for the next one while it holds others does so in one order for all, and short.
 *
 * MC_ERR_UNAVAILABLE: no server, no module, no connection became free before the deadline, the client has gone, the
 * server ended the connection. A server that could not be reached is tried again after a second; until then the answer
 * is at hand at once. MC_ERR_TIMEOUT: the deadline. MC_ERR_UPSTREAM: the server refused the statement. What the server
 * says is in the cause, for the log; a password never is. `postgres` NULL: MC_ERR_UNAVAILABLE.
 *
 * A connection from the pool that turns out to have ended is replaced once, by a new one, where nothing of the answer
 * had arrived: statements must bear being sent twice. The answer ends with `pool` at the latest.
 */
mc_error *mc_postgres_start(mc_postgres_result **result, mc_postgres *postgres, const mc_postgres_query *query,
                            mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The next row, NULL after the last. Errors as above. */
mc_error *mc_postgres_next(const mc_postgres_row **row, mc_postgres_result *result) MC_CHECKED;

/*
 * A connection for one thread alone, for transactions of several statements: what is sent with query.session goes over
 * it, each answer ended before the next begins. Nothing is ever sent twice. It is closed with mc_postgres_session_close
 * or `pool`, and the server then takes back what was not committed. Waits end as told by `ctx`. Errors as of
 * mc_postgres_start.
 */
mc_error *mc_postgres_session_open(mc_postgres_session **session, mc_postgres *postgres, const char *connection,
                                   mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The same with a connection that nobody else needs: an idle one, or a new one where one more could be made after it.
 * Nobody is waited for. MC_ERR_LIMIT: there is none. */
mc_error *mc_postgres_session_spare(mc_postgres_session **session, mc_postgres *postgres, const char *connection,
                                    mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
void mc_postgres_session_close(mc_postgres_session *session); /* NULL is ignored */

/* The same, but the connection stays open for others: where nothing of the session is left at the server, no
 * transaction, no lock, no setting. */
void mc_postgres_session_give_back(mc_postgres_session *session);

/*
 * Waits for a notification of a channel that the session listens to (LISTEN), until the deadline of the session's
 * context. *notified: one has come since the last call, also while an answer was read; what it says is not looked at.
 * MC_ERR_UNAVAILABLE: the connection has ended, or the client has gone.
 */
mc_error *mc_postgres_session_wait(bool *notified, mc_postgres_session *session) MC_CHECKED;

/* A connection string as another one of the same database, under a name of its own: its connections are counted apart,
 * and who holds one may wait for one of the others. */
const char *mc_postgres_named(const char *connection, const char *application, apr_pool_t *pool);

/*
 * Rows into a table: `sql` is a whole COPY ... FROM STDIN statement, the bytes are what its format says, in pieces of
 * any size. Errors of the server show at the end at the latest; after one the transaction has failed, the session
 * stands.
 */
mc_error *mc_postgres_copy_begin(mc_postgres_session *session, const char *sql) MC_CHECKED;
mc_error *mc_postgres_copy_bytes(mc_postgres_session *session, const void *bytes, size_t size) MC_CHECKED;
mc_error *mc_postgres_copy_end(mc_postgres_session *session) MC_CHECKED;

/* What an answer has brought so far. */
typedef struct mc_postgres_traffic {
    int64_t bytes;              /* of its rows, as they travel */
    int64_t first;              /* those of them that were there at once when the first arrived */
    apr_interval_time_t waited; /* microseconds of waiting for the others */
} mc_postgres_traffic;

mc_postgres_traffic mc_postgres_traffic_of(const mc_postgres_result *result);

/* The transfer policy of a database. Lives as long as `postgres`. */
mc_transfer_policy *mc_postgres_transfer_policy(mc_postgres *postgres, const char *connection);

/* Gives the connection back. A statement that still runs is cancelled at the server. NULL is ignored. */
void mc_postgres_end(mc_postgres_result *result);

/*
 * SQLSTATE of an error that start or next returned, "" where the server had no word in it; class "22" is a value that
 * the statement cannot take (PostgreSQL manual, appendix A). Valid until the pool's end.
 */
const char *mc_postgres_sqlstate(const mc_postgres_result *result);

#endif
