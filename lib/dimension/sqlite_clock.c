/* A copy of SQLite's default VFS whose clock counts. The text of a statement does not say enough: 'now' may stand in a
 * view, or in a value. */
#include "dimension/sqlite_clock.h"

#include <pthread.h>

#include "db/sqlite/vfs.h"

#define NAME "mapcache-clock"

static _Thread_local unsigned long reads;
static sqlite3_vfs *original;
static sqlite3_vfs counting; /* written once, before it is registered */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int
current_time(sqlite3_vfs *vfs, double *julian_day)
{
    (void)vfs;
    reads++;
    return original->xCurrentTime(original, julian_day);
}

static int
current_time_int64(sqlite3_vfs *vfs, sqlite3_int64 *milliseconds)
{
    (void)vfs;
    reads++;
    return original->xCurrentTimeInt64(original, milliseconds);
}

static void
register_clock_vfs(void)
{
    original = mc_vfs_copy(&counting, NAME);
    if (original == NULL)
        return;
    if (counting.xCurrentTime != NULL)
        counting.xCurrentTime = current_time;
    if (counting.iVersion >= 2 && counting.xCurrentTimeInt64 != NULL)
        counting.xCurrentTimeInt64 = current_time_int64;
    if (sqlite3_vfs_register(&counting, 0) != SQLITE_OK)
        original = NULL;
}

const char *
mc_sqlite_clock(void)
{
    pthread_once(&once, register_clock_vfs);
    return original == NULL ? NULL : NAME;
}

unsigned long
mc_sqlite_clock_reads(void)
{
    return reads;
}
