/* Inside the module mapcache-postgres.so: servers, connections, statements, and the pool of connections. */
#ifndef MC_DB_POSTGRES_POSTGRES_PRIVATE_H
#define MC_DB_POSTGRES_POSTGRES_PRIVATE_H

#include <libpq-fe.h>
#include <pthread.h>
#include <stdint.h>

#include "db/postgres/postgres_engine.h"
#include "db/postgres/postgres_rows.h"

enum {
    MC_PG_STATEMENTS = 64,                         /* prepared ones kept on a connection */
    MC_PG_NAME = 24,                               /* bytes of a statement's name */
    MC_PG_STATE = 6,                               /* bytes of an SQLSTATE and its end */
    MC_PG_FIELDS = 32,                             /* of a row, at least: those that the server did not send are null */
    MC_PG_ROW_MAX = MC_PG_MESSAGE_MAX + (1 << 20), /* bytes for one row: what comes at the same time is counted, too */
    MC_PG_WORDS_MAX = 1 << 20, /* bytes for an answer of no rows, all of which libpq keeps in memory */
    MC_PG_ERRORS_MAX = 8, /* of one command, of which a server sends one, and its end; libpq keeps the words of all */
};

/* Until when a caller waits, and for whom. */
typedef struct mc_pg_wait {
    mc_ctx *ctx;
    apr_time_t end; /* mc_clock_now() */
    apr_pool_t *pool;
    mc_postgres_traffic *traffic; /* where waiting for rows is added up; may be NULL */
    bool spare;                   /* only a connection that nobody else needs will do */
} mc_pg_wait;

typedef struct mc_pg_statement {
    char *sql;
    int param_count;
    Oid *types;   /* as the caller gave them: part of what tells statements apart */
    Oid *natural; /* likewise */
    unsigned serial;
    uint64_t used;
} mc_pg_statement;

/* Belongs to one thread while it is not in its target's idle list. */
typedef struct mc_pg_connection {
    struct mc_pg_connection *next; /* in a list of the engine's; its lock */
    struct mc_pg_target *target;
    PGconn *pg;
    mc_pg_pump pump;  /* between libpq and the server */
    bool sending;     /* something may have been written that the server has not got */
    int backend;      /* process at the server that this connection was made to */
    apr_time_t used;  /* when it was given back */
    bool reused;      /* it has served before */
    bool spoiled;     /* it is in a state that only closing it ends */
    bool interrupted; /* the server is at a statement that nobody waits for: it is spoiled, and cancelled at the end */
    int64_t drained;  /* bytes that came since a query was cancelled */
    apr_time_t asked; /* mc_clock_now() when the server was last asked to cancel it */
    apr_time_t pause; /* until the server is asked again: twice as long each time */
    apr_time_t until; /* when nobody waits for its end any more */
    bool copies;      /* a statement that begins a COPY was sent */
    bool copying;     /* the rest of a COPY has not been read */
    mc_pg_rows rows;  /* of that COPY */
    int errors;       /* that the server has answered to the command */
    bool by_key;      /* the server plans statements as for mc_postgres_query's by_key */
    bool notified;    /* a notification has come that nobody has asked about */
    mc_pg_statement statements[MC_PG_STATEMENTS];
    int statement_count;
    int places;      /* connections that the server has room for; 0: it did not say */
    unsigned serial; /* of the next statement */
    uint64_t clock;  /* counts uses of statements */
} mc_pg_connection;

/* What one connection string names. Made once, never removed. All but the first four are guarded by the engine's lock.
 */
typedef struct mc_pg_target {
    struct mc_pg_target *next;
    char *connection;
    char *label;            /* where and as whom, for the log; NULL: the string cannot be parsed */
    int connect_seconds;    /* bound of connecting */
    mc_pg_connection *idle; /* latest first */
    int open;               /* idle ones, used ones, ones being made or cancelled */
    char *failure;          /* why the last attempt to connect failed; NULL: it did not */
    apr_time_t failed_at;
    bool warned;  /* of a server with fewer places than we may want */
    bool crowded; /* the server had no free place for the last attempt */
    apr_time_t crowded_at;
    bool probing; /* somebody finds out whether either is over */
    pthread_cond_t changed;
} mc_pg_target;

struct mc_postgres_engine {
    const mc_postgres_engine_ops *ops;
    int limit, processes;
    apr_interval_time_t idle_time;
    bool threads;
    pthread_mutex_t lock; /* of everything below and of the targets; nothing else is locked under it */
    mc_pg_target *targets;
    mc_pg_connection *cancelled; /* to be cancelled and drained, by the thread below */
    pthread_cond_t work;
    pthread_t canceller;
    bool canceller_runs;
    bool stopping;
};

/* ---- postgres_address.c */

/* Where the string leads, for the log and for the bound of connecting. */
void mc_pg_describe(mc_pg_target *target);

/* What may be shown of a host or database: where a URI has a password with an unescaped @ or /, libpq takes the end of
 * the password for the beginning of either. Part of `name`. */
const char *mc_pg_behind_password(const char *name);

/*
 * Keywords and values that overrule the string's host, so that libpq asks no name server: three, values NULL where
 * there is nothing to look up (local sockets, hostaddr, a host of the environment or of a service file). Ends with
 * wait->end and its client. MC_ERR_IO: none of the hosts has an address, or one cannot be a host.
 */
mc_error *mc_pg_find_places(const char *const **names, const char *const **values, const mc_pg_target *target,
                            const mc_pg_wait *wait) MC_CHECKED;

/* ---- postgres_wire.c: what goes over one connection, never blocking */

/*
 * Takes some of what the server has sent, without waiting, and adds its bytes to *arrived. MC_ERR_UPSTREAM: these are
 * more than `most`, or no messages, and the connection is of no use any more. MC_ERR_UNAVAILABLE: it has ended.
 */
mc_error *mc_pg_take_input(int64_t *arrived, int64_t most, mc_pg_connection *connection,
                           const mc_pg_wait *wait) MC_CHECKED;

/* Waits until the server is ready for `events` (poll's). MC_ERR_TIMEOUT, MC_ERR_UNAVAILABLE (the client has gone). */
mc_error *mc_pg_wait_socket(const mc_pg_connection *connection, short events, const mc_pg_wait *wait) MC_CHECKED;

/* After each call of libpq that sends; returns what that call returned. */
int mc_pg_sent(mc_pg_connection *connection, int sent);

/* 0: everything has gone to the server; -1: the connection has ended; otherwise the events (poll's) before which
 * nothing more goes: room at the server's side, or, amid a handshake of TLS, what the server says. */
int mc_pg_flush(mc_pg_connection *connection);

void mc_pg_close(mc_pg_connection *connection); /* NULL is ignored */

/* Frees what a prepared statement holds. */
void mc_pg_clear_statement(mc_pg_statement *statement);

/* Takes the notifications that libpq has, and remembers that there was one. */
void mc_pg_take_notifications(mc_pg_connection *connection);

/* False when the server has ended an idle connection, or said anything on it that was not asked for. */
bool mc_pg_is_alive(const mc_pg_connection *connection);

/* Nothing under way, no transaction open, and still the backend that it was made to. */
bool mc_pg_is_at_rest(const mc_pg_connection *connection);

/* The next result of what was sent, NULL after the last. MC_ERR_UNAVAILABLE: the connection has ended. MC_ERR_UPSTREAM:
 * the server sends what is no result, more than `most` bytes for one, or errors without end; the connection is spoiled.
 */
mc_error *mc_pg_result(PGresult **result, int64_t most, mc_pg_connection *connection,
                       const mc_pg_wait *wait) MC_CHECKED;

/* The next row of a COPY, valid until the next call; NULL after the last. Errors as above. */
mc_error *mc_pg_copied(char **row, int *size, mc_pg_connection *connection, const mc_pg_wait *wait) MC_CHECKED;

/* Takes in results that have arrived already, without waiting. True once there is nothing left. */
bool mc_pg_drain_arrived(mc_pg_connection *connection);

/* What the server said of a result or a broken connection, as an error; its SQLSTATE goes to `state`. */
mc_error *mc_pg_server_error(const PGresult *result, mc_pg_connection *connection, char state[MC_PG_STATE],
                             apr_pool_t *pool) MC_CHECKED;

/* libpq's message as one line, without its note on PostgreSQL's source code, and without the password in any case, nor
 * half of it in a host's name. */
const char *mc_pg_words(const PGconn *pg, const char *message, apr_pool_t *pool);

/* Of a server that sends what nobody can take: MC_ERR_UPSTREAM for more than `most` bytes. */
mc_error *mc_pg_check_arrived(mc_pg_connection *connection, int64_t arrived, int64_t most,
                              const mc_pg_wait *wait) MC_CHECKED;

/* ---- postgres_connect.c */

/* MC_ERR_UNAVAILABLE, with *crowded where the server has no free place. An error without a cause says nothing about the
 * server: its own client has gone, or was in a hurry. */
mc_error *mc_pg_connect(mc_pg_connection **connection, mc_pg_target *target, bool by_key, const mc_pg_wait *wait,
                        bool *crowded) MC_CHECKED;

/* How the server plans statements (mc_postgres_query's by_key), as SQL. */
const char *mc_pg_plan_settings(bool by_key);

/* ---- postgres_statement.c */

/* The name of the prepared statement on this connection; prepared now unless it is there. */
mc_error *mc_pg_prepare(char name[MC_PG_NAME], mc_pg_connection *connection, const mc_postgres_query *query,
                        const mc_pg_wait *wait, char state[MC_PG_STATE]) MC_CHECKED;

/* How the server plans statements from now on; asked for only where it plans in the other way. */
mc_error *mc_pg_plan(mc_pg_connection *connection, bool by_key, const mc_pg_wait *wait,
                     char state[MC_PG_STATE]) MC_CHECKED;

/* ---- postgres_pool.c */

/* One that plans in the wanted way, where there is one or a new one may be made; else any, for mc_pg_plan. */
mc_error *mc_pg_acquire(mc_pg_connection **connection, mc_postgres_engine *engine, const char *string, bool by_key,
                        const mc_pg_wait *wait) MC_CHECKED;

/* Closes a connection that has ended and makes a new one in its place; the old one is gone also on an error. */
mc_error *mc_pg_replace(mc_pg_connection **connection, mc_postgres_engine *engine, const mc_pg_wait *wait) MC_CHECKED;

/* Gives it back: kept when it is at rest, closed otherwise. */
void mc_pg_release(mc_postgres_engine *engine, mc_pg_connection *connection);

/* ---- postgres_cancel.c */

/* Gives back a connection on which something is still under way: that is cancelled first, on a thread of its own. */
void mc_pg_cancel(mc_postgres_engine *engine, mc_pg_connection *connection);

/* The same of a session's connection, which is interrupted, and closed afterwards: the server would wait on for a lock,
 * or go on computing, after the connection has ended. */
void mc_pg_cancel_session(mc_postgres_engine *engine, mc_pg_connection *connection);
void mc_pg_stop_canceller(mc_postgres_engine *engine);

/* ---- postgres_copy.c */

/*
 * The fields of one row of COPY's binary format (PostgreSQL manual, COPY, File Formats), `first` with the head of the
 * whole before it. They lie in `row`, each ended by a zero byte for the price of the length behind it. *count -1: it is
 * no row but the end. MC_ERR_UPSTREAM: it is no such format.
 */
mc_error *mc_pg_copy_fields(mc_postgres_field *fields, int *count, int room, char *row, int size, bool first,
                            apr_pool_t *pool) MC_CHECKED;

/* ---- postgres_result.c */

mc_error *mc_pg_start(mc_postgres_result **query_result, mc_postgres_engine *engine, const mc_postgres_query *query,
                      mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_pg_next(const mc_postgres_row **row, mc_postgres_result *query_result) MC_CHECKED;
void mc_pg_end(mc_postgres_result *query_result);

/* ---- postgres_session.c */

mc_error *mc_pg_session_open(mc_postgres_session **session, mc_postgres_engine *engine, const char *connection,
                             bool spare, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
void mc_pg_session_close(mc_postgres_session *session);
void mc_pg_session_give_back(mc_postgres_session *session);
mc_error *mc_pg_session_wait(bool *notified, mc_postgres_session *session) MC_CHECKED;
mc_pg_connection *mc_pg_session_connection(const mc_postgres_session *session);
mc_error *mc_pg_copy_begin(mc_postgres_session *session, const char *sql) MC_CHECKED;
mc_error *mc_pg_copy_bytes(mc_postgres_session *session, const void *bytes, size_t size) MC_CHECKED;
mc_error *mc_pg_copy_end(mc_postgres_session *session) MC_CHECKED;

#endif
