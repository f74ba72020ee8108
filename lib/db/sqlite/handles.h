/*
 * The table of open SQLite files of a process: bounded, hash-indexed, with prepared statements
 * (docs/reference/design.md 3.3; Never stale).
 */
#ifndef MC_DB_SQLITE_HANDLES_H
#define MC_DB_SQLITE_HANDLES_H

#include <sqlite3.h>

#include "base/stamp.h"
#include "mapcache/ctx.h"

typedef struct mc_handles mc_handles;

/* At most `limit` files open at a time. */
mc_handles *mc_handles_create(int limit);
void mc_handles_destroy(mc_handles *handles);

typedef struct mc_handle mc_handle;

typedef struct mc_pragma {
    const char *name, *value;
} mc_pragma;

/* Who decides the journal mode of a file. Where we do, a writer that closes the file leaves it in rollback mode
 * (DELETE), unless others have it open in WAL mode. */
typedef enum mc_journal {
    MC_JOURNAL_KEPT,     /* nobody: it stays as it is */
    MC_JOURNAL_ROLLBACK, /* we do, and it is never another one */
    MC_JOURNAL_SERVED,   /* we do: WAL, while a process that lasts writes to a file that we have made */
    MC_JOURNAL_LOGGED,   /* we do: WAL, while somebody writes to it */
} mc_journal;

/* How a file is opened. Handles are shared between callers of equal `profile`, which stands for all but the path. */
typedef struct mc_open_options {
    bool write;         /* read-write, created with its folders where missing; else read-only, and nothing is written */
    bool immutable;     /* the file never changes while it is open: no locks. The configuration promises that, or: */
    bool settled;       /* with `immutable`: for mc_handle_settle alone */
    bool outer;         /* a writer that is held while others are checked out for writing; never two such */
    mc_journal journal; /* whose decision its journal mode is */
    const char *create; /* run by writers after the pragmas; NULL: nothing */
    const mc_pragma *pragmas;
    int pragma_count;
    const char *vfs;  /* SQLite's name of a file system; NULL: the default one */
    uint64_t profile; /* mc_open_options_profile() of the above */
} mc_open_options;

uint64_t mc_open_options_profile(const mc_open_options *how);

/*
 * Checks out a handle of `path` for this thread alone; waits at most until the deadline when all are in use.
 * `stamp`: of the file, taken by the caller; NULL where it does not exist (then only for writing).
 * Whatever runs on the handle ends with the deadline, or when the client has gone.
 * A writer holds the file's one write lock of the process until the release. `handles` NULL: opened for this use only.
 * MC_ERR_IO when it cannot be opened, MC_ERR_UNAVAILABLE when the wait was too long.
 */
mc_error *mc_handle_acquire(mc_handle **handle, mc_handles *handles, const char *path, const mc_stamp *stamp,
                            const mc_open_options *how, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Whether a handle of the file is open that nobody uses at this moment, so that acquiring it costs little. */
bool mc_handles_have_idle(mc_handles *handles, const char *path, const mc_stamp *stamp, const mc_open_options *how,
                          apr_pool_t *pool);

/*
 * Reading without locks (handle_settled.c). Where a file has not changed since its last change had settled, as its
 * stamp says before and after a read, nobody wrote to it meanwhile, and what is in it was whole if it was so before.
 * `settled`: as the readers' options, but `immutable` and `settled`.
 */

/* Of a reader that has just read the file and is still in its transaction, with the stamp of before: after some such
 * reads under one stamp a handle without locks is opened for those to come. What fails leaves it at locks. */
void mc_handle_settle(mc_handle *reader, const mc_stamp *stamp, apr_time_t taken, const mc_open_options *settled,
                      mc_ctx *ctx, apr_pool_t *pool);

/* An idle handle without locks of the file as the stamp says, as by mc_handle_acquire; NULL: there is none. */
mc_handle *mc_handle_take_settled(mc_handles *handles, const char *path, const mc_stamp *stamp, apr_time_t taken,
                                  const mc_open_options *settled, mc_ctx *ctx, apr_pool_t *pool);

/* After what was read by such a handle has been copied: whether it counts. Else the handle is of no more use. */
bool mc_handle_was_settled(const mc_handle *handle);

/* Begins a read transaction, unless one is open: a reader's handle that was just opened comes with one. */
mc_error *mc_handle_begin(mc_handle *handle, apr_pool_t *pool) MC_CHECKED;

/* Gives it back. usable false: closed, as after an error that leaves its state in doubt. An open transaction is rolled
 * back. */
void mc_handle_release(mc_handle *handle, bool usable);

/*
 * Of a writer that is going to put many tiles, in a process that does not last: where the file's mode is ours to choose
 * and nobody else has it open, the file leaves WAL mode, as each page would be written twice.
 */
void mc_handle_bulk(mc_handle *handle, mc_ctx *ctx);

/* Whether the file is in a rollback journal mode: it then has no -wal, and gets none without a change of its own. */
bool mc_handle_rollback(mc_handle *handle);

/* After an error of a reader: a writer was cut off in the middle of a commit. A handle that was open by then cannot
 * take the commit back, and the others that were idle since cannot either; one that is opened now mends the file,
 * unless nobody may write there. So whoever reads tries again with other handles, MC_HANDLE_TRIES in all. */
bool mc_handle_cut_off(mc_handle *handle);
enum { MC_HANDLE_TRIES = 32 };

/* A look at a file that may not be there: *present is false then. All else that keeps it from being looked at is
 * MC_ERR_IO. */
mc_error *mc_handle_look(bool *present, mc_stamp *stamp, const char *path, apr_pool_t *pool) MC_CHECKED;

/* Something that is read of a file at once. */
typedef mc_error *mc_handle_work(void *baton, mc_handle *handle);

/* Runs `work` with a reader, which is acquired and given back; again with others where a writer was cut off (as above):
 * so `work` begins anew each time that it is called. */
mc_error *mc_handle_read(mc_handles *handles, const char *path, const mc_stamp *stamp, const mc_open_options *how,
                         mc_handle_work *work, void *baton, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

sqlite3 *mc_handle_db(mc_handle *handle);

/* A flag for the user of the handle, to remember a fact of the file while it is open; false at first. */
bool *mc_handle_user_flag(mc_handle *handle);

/* The prepared statement of `sql`, reset and without bindings; it lives as long as the handle. */
mc_error *mc_handle_statement(sqlite3_stmt **statement, mc_handle *handle, const char *sql,
                              apr_pool_t *pool) MC_CHECKED;

/* Runs a statement, with its parameters bound, and resets it. *number: the first column of the first row, 0 without
 * one. An error is in the words of `what`, as that of mc_handle_error. */
mc_error *mc_handle_number(int64_t *number, mc_handle *handle, sqlite3_stmt *statement, const char *what,
                           apr_pool_t *pool) MC_CHECKED;

/* The last error of the handle: kind by SQLite's code (busy, or interrupted by the deadline: UNAVAILABLE; corrupt, or
 * larger than any tile: CORRUPT; else IO); `what` is for clients, path and SQLite's words go to the cause. */
mc_error *mc_handle_error(mc_handle *handle, const char *what, apr_pool_t *pool) MC_CHECKED;

/* Whether the last error is that a table is not there (yet). */
bool mc_handle_lacks_table(mc_handle *handle);

/* Open handles now; never above the limit. */
int mc_handles_open(mc_handles *handles);

#endif
