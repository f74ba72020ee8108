/* Reading the change log of a database (docs/internals/changes.md, "The cursor"). */
#ifndef MC_CHANGES_CHANGE_LOG_H
#define MC_CHANGES_CHANGE_LOG_H

#include "changes/box_set.h"
#include "db/postgres/postgres.h"

/*
 * How far a reader has read: a snapshot of PostgreSQL, as text. All transactions that it sees are read. A transaction
 * that commits later has whatever number it took when it began, so no number says what is read; the next read takes
 * what the snapshot does not see, and the snapshot of that very statement is the next cursor.
 */
typedef struct mc_log_cursor {
    const char *snapshot;
    const char *started; /* when the server was started, as it says; NULL: not read so far */
} mc_log_cursor;

/* Before all transactions: the whole log is unread. */
#define MC_LOG_BEGINNING "1:1:"

/* What has changed of a table in coordinates of one SRID. */
typedef struct mc_log_table {
    uint32_t relation; /* its object id */
    int srid;          /* 0: none */
    mc_box_set *boxes;
} mc_log_table;

typedef struct mc_log_batch {
    apr_array_header_t *tables; /* of mc_log_table */
    bool
        lost; /* rows are gone that this reader has not read: everything may have changed, at `lost_by` at the latest */
    apr_time_t lost_by; /* apr_time_now() */
    int64_t rows;
    const char *applied; /* the snapshot up to which the readers of that name have applied all for good; NULL: none */
    apr_time_t steady;   /* mc_clock_now() at that moment */
    apr_time_t seen;     /* apr_time_now() after the snapshot was taken: all that is read was committed before */
    apr_interval_time_t offset; /* microseconds by which the clock of the database is ahead of ours */
    apr_interval_time_t trip;   /* microseconds by which that may be wrong */
} mc_log_batch;

/*
 * Reads what the cursor does not see, and moves the cursor; `pool` holds the batch and the new cursor. Memory is
 * bounded whatever the log holds. MC_ERR_UPSTREAM: there is no change log. Other errors as of mc_postgres_start; the
 * cursor then is as it was.
 */
mc_error *mc_change_log_read(mc_log_batch *batch, mc_log_cursor *cursor, const char *reader,
                             mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Whether all that `snapshot` sees is certainly seen by `applied` (NULL: nothing is), too. */
bool mc_log_covers(const char *applied, const char *snapshot);

/* Where readers of that name have got to for good; MC_LOG_BEGINNING where there were none. */
mc_error *mc_change_log_find_reader(const char **snapshot, const char *name, mc_postgres_session *session, mc_ctx *ctx,
                                    apr_pool_t *pool) MC_CHECKED;

/* Notes a reader that has applied nothing so far, unless it is known: what the others have applied stays for it. */
mc_error *mc_change_log_enter_reader(const char *name, mc_postgres_session *session, mc_ctx *ctx,
                                     apr_pool_t *pool) MC_CHECKED;

/* A name in the database and one of the object ids that stand for it: its own, those of its partitions, and of a view
 * those of what it reads. */
typedef struct mc_log_name {
    int index; /* of the name */
    uint32_t relation;
} mc_log_name;

/* The object ids (mc_log_name) of names (const char *, "table" or "schema.table", unquoted); none for what is not
 * there. */
mc_error *mc_change_log_resolve(apr_array_header_t **found, const apr_array_header_t *names,
                                mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* One statement without rows that anybody wants. */
mc_error *mc_change_log_run(const char *sql, const mc_postgres_param *params, int count, mc_postgres_session *session,
                            mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* One statement whose first column is a boolean, as text ("true"). */
mc_error *mc_change_log_ask(bool *answer, const char *sql, const mc_postgres_param *params, int count,
                            mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
