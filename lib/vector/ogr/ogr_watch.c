/* GDAL opens databases of its own, and has nothing that ends what they do: SQLite tells of each that is opened. */
#include "vector/ogr/ogr_watch.h"

#include <sqlite3.h>
#include <stddef.h>

#include "base/clock.h"

/* Steps of SQLite's virtual machine between two looks at the clock and the client: about a millisecond. */
enum { OGR_STEPS = 20000 };

static _Thread_local mc_ctx *watched; /* whose file this thread reads; NULL: nobody's */
static _Thread_local bool cut;        /* something was ended */

static int
is_reading_overdue(void *baton)
{
    (void)baton;
    bool overdue = watched != NULL &&
                   ((watched->deadline != 0 && mc_clock_now() > watched->deadline) || mc_ctx_abandoned(watched));
    cut = cut || overdue;
    return overdue;
}

/* What SQLite calls for each database that is opened in this process. Those that have a handler of their own set it
 * afterwards; in threads that read no file for us it says nothing. */
static int
watch_opened_database(sqlite3 *db, char **message, const struct sqlite3_api_routines *routines)
{
    (void)message;
    (void)routines;
    sqlite3_progress_handler(db, OGR_STEPS, is_reading_overdue, NULL);
    return SQLITE_OK;
}

void
mc_ogr_watch_databases(void)
{
    (void)sqlite3_auto_extension((void (*)(void))watch_opened_database);
}

void
mc_ogr_watch_begin(mc_ctx *ctx)
{
    watched = ctx;
    cut = false;
}

mc_error *
mc_ogr_watch_end(mc_error *error, apr_pool_t *pool)
{
    mc_ctx *ctx = watched;
    watched = NULL;
    if (!cut) /* what came late is there */
        return error;
    mc_error *late = mc_ctx_check(ctx, pool);
    return late != MC_OK ? late : error;
}
