/* The statements of a cache of type postgresql, all values of which are parameters. */
#ifndef MC_CACHE_POSTGRESQL_POSTGRESQL_SQL_H
#define MC_CACHE_POSTGRESQL_POSTGRESQL_SQL_H

#include <apr_pools.h>

/* $1, $2, $3 are tileset, grid and dimensions, $4 the level; then x and y, or arrays of them. */
typedef struct mc_postgresql_sql {
    const char *create; /* the table, if there is none */
    const char *get, *exists, *remove;
    const char *get_all;      /* of arrays $5 and $6 */
    const char *put;          /* arrays of z, x, y and data: $4 to $7 */
    const char *remove_all;   /* arrays of z, x, y: $4 to $6 */
    const char *copy;         /* rows of tileset, grid, dimensions, z, x, y and data come from us */
    const char *sizes;        /* bytes of the table with all that belongs to it, its live and dead rows */
    const char *groups;       /* tileset, grid, dimensions, level, tiles, blanks and bytes, of all tiles */
    const char *remove_group; /* all of level $4 */
    const char *count;        /* tiles of a series */
    const char *vacuum;
    const char *list; /* what is behind column $5, row $6, below column $7, in rows $8 to $9 */
} mc_postgresql_sql;

/* table: a name, or a schema and a name with a '.' between; they are quoted. */
void mc_postgresql_statements(mc_postgresql_sql *sql, const char *table, apr_pool_t *pool);

#endif
