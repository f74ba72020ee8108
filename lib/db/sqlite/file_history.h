/* What a process remembers of SQLite files beyond the handles that it has of them. Private to lib/db. */
#ifndef MC_DB_SQLITE_FILE_HISTORY_H
#define MC_DB_SQLITE_FILE_HISTORY_H

#include "base/stamp.h"
#include "mapcache/error.h"

typedef struct mc_file_history mc_file_history;

mc_file_history *mc_file_history_create(void);
void mc_file_history_destroy(mc_file_history *history);

/* The file at the path has been replaced since a handle was `used`, and the -wal of the stamp was there then: unless it
 * has been made since, it is not the new file's. */
void mc_file_history_note_wal(mc_file_history *history, const char *path, apr_time_t used, const mc_stamp *stamp,
                              apr_pool_t *pool);

/* Whether the -wal beside the file belongs to a file that was there before. An empty one means nothing. past may be
 * NULL. */
bool mc_file_history_wal_is_foreign(mc_file_history *history, const char *path, const mc_stamp *stamp,
                                    apr_pool_t *pool);

/* A writer of this process has the file open. */
void mc_file_history_note_written(mc_file_history *history, const char *path, apr_pool_t *pool);

/*
 * Of a file that is not there, for a seeder: MC_ERR_UNAVAILABLE where this process has written it, and its folder has
 * gone, too, or another file system is mounted in its place. The store is away then, and a new one in its stead would
 * swallow tiles that nobody finds again. (A server does make a new store: an administrator who removes the folder wants
 * an empty cache.)
 */
mc_error *mc_file_history_check_away(mc_file_history *history, const char *path, apr_pool_t *pool) MC_CHECKED;

#endif
