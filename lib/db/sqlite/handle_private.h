/* One open file: handle.c opens and closes it, handles.c keeps the table of all. */
#ifndef MC_DB_SQLITE_HANDLE_PRIVATE_H
#define MC_DB_SQLITE_HANDLE_PRIVATE_H

#include <stdatomic.h>

#include "base/write_lock.h"
#include "db/sqlite/handles.h"

enum { MOST_STATEMENTS = 12 };

/* Between acquire and release a handle belongs to one thread; else its fields are under the table's mutex. */
struct mc_handle {
    mc_handles *table; /* NULL: closed at release */
    char *path;
    uint64_t hash; /* of path and profile */
    uint64_t profile;
    uint64_t device, inode; /* of the file that is open */
    uint64_t wal_inode;     /* the -wal beside it when it was last used, 0: none */
    apr_time_t used;        /* when */
    mc_stamp stamp;         /* of a handle without locks: what it may read; of another reader: of its last reads, */
    int stamp_reads;        /* so many */
    bool settled;           /* without locks */
    bool write;
    bool busy;
    bool pooled;
    int slot;
    struct mc_handle *next; /* in its bucket */
    sqlite3 *db;
    struct prepared {
        char *sql;
        sqlite3_stmt *statement;
    } statements[MOST_STATEMENTS];
    int statement_count;
    sqlite3_stmt *rollback;        /* NULL: not needed yet */
    mc_journal journal;            /* of a writer, as it was opened */
    bool wants_wal;                /* it was not to be had alone, which entering WAL mode needs */
    bool loading, bulk;            /* see mc_handle_bulk; and it is in a rollback mode for that */
    bool user_flag;                /* the user's: see mc_handle_user_flag */
    size_t page_bytes;             /* of its pages in memory, as counted in */
    atomic_size_t *all_page_bytes; /* the sum of all handles of the table; NULL: none */
    mc_write_lock *write_lock;
    apr_time_t patience;            /* until when (mc_clock_now) its user waits for other processes, */
    apr_time_t grace;               /* before which nothing is interrupted, */
    apr_time_t deadline;            /* and after which everything is; 0: nothing, */
    bool (*abandoned)(void *baton); /* and whether that is still of use to anybody; NULL: it is */
    void *abandoned_baton;
};

/*
 * `stamp`: as for mc_handle_acquire. *alone: the main file is read without its -wal and without locks; set by the
 * caller where the -wal beside the file is not its own, and here where the file is in WAL mode, has no -wal, and SQLite
 * cannot make the shared memory beside it. Such a handle must not outlive its stamp. On failure nothing stays open.
 */
mc_error *mc_handle_open(mc_handle *handle, const mc_open_options *how, const mc_stamp *stamp, bool *alone, mc_ctx *ctx,
                         apr_pool_t *pool) MC_CHECKED;

/* Ends what is open: statements and transaction. False: the handle cannot be used any more. */
bool mc_handle_end(mc_handle *handle);

/* replaced: another file stands at the path now, so that no checkpoint may happen. */
void mc_handle_close(mc_handle *handle, bool replaced);

/* Closes the idle readers of the handle's file in its table: a WAL file can leave that mode only when nobody else has
 * it open. */
void mc_handles_close_readers(const mc_handle *handle);

/* Counts the pages that a handle keeps in memory from now on. True if all handles of its table together keep more than
 * they may. */
bool mc_handle_count_pages(mc_handle *handle, size_t bytes);

/* How a writer begins and ends with a file (handle_journal.c). What fails there leaves the file in the mode it has,
 * which is good for everything. mc_handle_enter_wal again with `wants_wal`: the bound of waits is off afterwards. */
void mc_handle_choose_journal(mc_handle *handle, const mc_open_options *how, bool created, mc_ctx *ctx,
                              apr_pool_t *pool);
void mc_handle_enter_wal(mc_handle *handle);
void mc_handle_leave_journal(mc_handle *handle);

/* Whether the file is on a disk of this machine: locks, shared memory and times are what they say only there. */
bool mc_handle_is_local(const mc_handle *handle);

/* An idle handle of the file and profile, which is the caller's then; NULL: none. */
mc_handle *mc_handles_take_idle(mc_handles *handles, const char *path, const mc_stamp *stamp,
                                const mc_open_options *how, apr_pool_t *pool);

/* Once a process; then the names of the file systems for readers and for writers, NULL for the default one. */
void mc_vfs_set_up(void);
const char *mc_vfs_direct(void);
const char *mc_vfs_writing(void);

/* Of mc_vfs_set_up: makes of `vfs`, a copy of `original`, one that reads ahead. And drops what it has read ahead of the
 * file of a reader; of no effect for others. */
void mc_vfs_ahead_set_up(sqlite3_vfs *vfs, const sqlite3_vfs *original);
void mc_vfs_ahead_drop(sqlite3 *db);

/* Of mc_vfs_set_up. And whether the journals and logs of a writer are gathered as its pages are: only where SQLite
 * syncs them before it relies on them. */
const char *mc_vfs_gather_set_up(void);
void mc_vfs_gather_logs(sqlite3 *db, bool on);

/*
 * Of a handle that has just been opened: whatever runs on it is interrupted (SQLITE_INTERRUPT) by what
 * mc_handle_bound_wait sets: SQLite's work, and its wait for other processes, end with the request's deadline or when
 * its client has gone. mc_handle_unbound: neither does any more; the context may go.
 */
void mc_handle_watch(mc_handle *handle);
void mc_handle_bound_wait(mc_handle *handle, mc_ctx *ctx);
void mc_handle_unbound(mc_handle *handle);
bool mc_handle_is_abandoned(const mc_handle *handle);

#endif
