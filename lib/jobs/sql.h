/* Statements of the queue and their rows, all as text. */
#ifndef MC_JOBS_SQL_H
#define MC_JOBS_SQL_H

#include <stdatomic.h>

#include "db/postgres/postgres.h"
#include "mapcache/jobs.h"

struct mc_jobs {
    const char *connection; /* of the queue alone: tiles that wait for a database leave it its connections */
    const char *prefix;     /* of names: "" or a quoted schema with a point */
    const char *schema;     /* NULL: the first of the connection's search path */
    int lease;              /* seconds */
    _Atomic bool ready;     /* the tables have been found to be of our version */
};

/* A statement: '@' stands before the queue's names. Values are bound as texts; the statement casts them. */
typedef struct jobs_statement {
    const char *sql;
    mc_postgres_param params[MC_POSTGRES_PARAMS];
    int count;
} jobs_statement;

void jobs_bind(jobs_statement *statement, const char *text);
void jobs_bind_number(jobs_statement *statement, int64_t number, apr_pool_t *pool);
void jobs_bind_real(jobs_statement *statement, double number, apr_pool_t *pool);

/* Numbers as an array in SQL's form. */
void jobs_bind_list(jobs_statement *statement, const int *numbers, int count, apr_pool_t *pool);

/* A row: its columns as texts, NULL for null. */
typedef const char *const *jobs_row;

/*
 * Runs it; *rows: of jobs_row, in `pool`. Without tables MC_OK and no rows. Statements must bear being sent twice
 * (mc_postgres_start).
 */
mc_error *jobs_run(apr_array_header_t **rows, mc_jobs *jobs, const jobs_statement *statement, mc_ctx *ctx,
                   apr_pool_t *pool) MC_CHECKED;

/* Makes the tables where there are none, and looks at their version. */
mc_error *jobs_prepare(mc_jobs *jobs, mc_ctx *ctx) MC_CHECKED;

/* Columns of a row; a null is 0. */
int64_t jobs_number(const char *column);
int jobs_int(const char *column);
double jobs_real(const char *column);

/* "{1,2,3}": its numbers, in `pool`. */
const int *jobs_list_of(int *count, const char *column, apr_pool_t *pool);

/* A time as microseconds since 1970. */
#define JOBS_TIME(expression) "(extract(epoch FROM " expression ") * 1000000)::int8"

#endif
