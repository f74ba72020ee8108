/* What the parts of the cache "postgresql" share. */
#ifndef MC_CACHE_POSTGRESQL_POSTGRESQL_BASE_H
#define MC_CACHE_POSTGRESQL_POSTGRESQL_BASE_H

#include "cache/cache_base.h"
#include "cache/postgresql/postgresql_sql.h"
#include "db/postgres/postgres.h"

/* SQLSTATE (PostgreSQL manual, appendix A). */
#define UNDEFINED_TABLE "42P01"
#define NO_TEXT "22021"  /* character_not_in_repertoire */
#define DEADLOCK "40P01" /* somebody has met us at the same tiles, in another order */

enum { ATTEMPTS = 4 /* of a statement that a missing table or a deadlock has stopped */ };

typedef struct postgresql_cache {
    mc_cache_base base;
    const char *connection, *table_name;
    bool detect_blank;
    mc_postgresql_sql sql;
} postgresql_cache;

/* Numbers of one key, as the wire has them. */
typedef struct tile_params {
    mc_postgres_param list[10];
    uint8_t numbers[3][4];
    int count;
    bool by_key; /* mc_postgres_query has it */
} tile_params;

/* $1 to $3: tileset, grid and dimensions. by_key is false. */
void mc_postgresql_series(tile_params *params, const mc_tile_key *key, apr_pool_t *pool);

/* Sends a statement; session NULL: on any connection. The result is there also on an error, for its SQLSTATE. */
mc_error *mc_postgresql_start(mc_postgres_result **result, const postgresql_cache *cache, mc_postgres_session *session,
                              const char *sql, const tile_params *params, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* A statement without rows; session NULL: on any connection. *state: SQLSTATE, of five letters, or "". */
mc_error *mc_postgresql_run(char state[6], const postgresql_cache *cache, mc_postgres_session *session, const char *sql,
                            const tile_params *params, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The database's failure in the words of the cache. */
mc_error *mc_postgresql_failure(mc_error *error, const postgresql_cache *cache, apr_pool_t *pool) MC_CHECKED;

/* Entries of mc_cache_ops. */
mc_error *mc_postgresql_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx);
mc_error *mc_postgresql_upkeep(mc_cache *cache, const struct mc_upkeep *task, mc_ctx *ctx);
mc_error *mc_postgresql_measure(int64_t *bytes, int64_t *tiles, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);

#endif
