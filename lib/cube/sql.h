/* The statements of a cube, all values of which are parameters; PostgreSQL and SQLite read the same ones. */
#ifndef MC_CUBE_SQL_H
#define MC_CUBE_SQL_H

#include "mapcache/cube.h"

typedef enum mc_cube_dialect { MC_CUBE_IN_POSTGRESQL, MC_CUBE_IN_SQLITE } mc_cube_dialect;

/* In those that read, $1 is the cube's signature and the first column whether the store has the same. */
typedef struct mc_cube_sql {
    const char *create;           /* the tables, if there are none: one statement (PostgreSQL), or several (SQLite) */
    const char *signature, *sign; /* asks for it; $1 becomes it, where there is none */
    const char *resign;           /* $1 becomes it */
    /* Time, t, slot, revision of the latest $4 dates from $2 to before $3. */
    const char *dates;
    /* Of those dates: time, slot, y, x, cover, and of the samples those in rows $9 to before $10 of chunks in rows $5
     * to before $6 and columns $7 to before $8. y is null where a date has none of them. */
    const char *read[mc_cube_overviews_max + 1]; /* of each level; y is counted from its first row */
    const char *take_out;                        /* chunks t = $1, y = $2, $3 <= x < $4: x, cover, data */
    const char *look;                            /* the same, and they stay */
    const char *clear;                           /* removes chunks with y >= $1 */
    const char *put;                             /* t, y, x, cover, data */
    const char *copy;                            /* PostgreSQL: takes rows of the same columns */
    const char *put_date;                        /* time, t, slot; one that is there is corrected */
    const char *tidy;
    const char *size; /* bytes */
    const char *lock; /* PostgreSQL: waits until nobody else writes */
} mc_cube_sql;

/* table: of the chunks; a name, or a schema and a name with a '.' between. The two others are TABLE_dates and
 * TABLE_info. */
mc_cube_sql *mc_cube_statements(const mc_cube *cube, const char *table, mc_cube_dialect dialect, apr_pool_t *pool);

#endif
