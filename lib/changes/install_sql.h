/* The SQL that makes and drops the change log of a database and the triggers of its tables (docs/changes.md). */
#ifndef MC_CHANGES_INSTALL_SQL_H
#define MC_CHANGES_INSTALL_SQL_H

#include <apr_tables.h>
#include <stdbool.h>

/* The log itself, without triggers: PostgreSQL statements that may be run any number of times; ends with a zero byte.
 */
extern const char mc_changes_install_sql[];

typedef struct mc_changes_script {
    const apr_array_header_t *tables; /* of const char *: "table" or "schema.table", unquoted */
    const char *column;               /* the spatial column whose boxes are logged; NULL: all of a table */
    const char *role;                 /* that reads the log for a server; NULL: the owner of the log does */
    bool drop;                        /* drops the triggers; without tables also the log, and all triggers */
} mc_changes_script;

/* A transaction for psql or any other client; all names are quoted. Lives in `pool`. */
const char *mc_changes_write_script(const mc_changes_script *script, apr_pool_t *pool);

#endif
