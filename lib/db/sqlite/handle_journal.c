/*
 * The journal mode of files whose mode is ours to choose. A file in WAL mode cannot be read by who may not write beside
 * it, which is how tiles are often served: so each writer that closes a file leaves it in rollback mode. A server,
 * which keeps it open, may use WAL meanwhile: its readers and its writers then do not wait for each other.
 */
#include <apr_strings.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "db/sqlite/handle_private.h"

/* In the header of files that we make (application_id): "MCTL". Only those ever enter WAL mode without being asked. */
#define OUR_FILE "1296258124"

enum {
    LEAVING_MS = 200, /* how long, at most, the end of a load waits for others who are about to close the file */
    LEAVING_PAUSE_MS = 10,
};

/* File systems of other machines, or that several machines have mounted: statfs(2), and their own sources. */
static const unsigned remote_file_systems[] = {
    0x6969,     /* nfs */
    0x517b,     /* smb */
    0xff534d42, /* cifs */
    0xfe534d42, /* smb2 */
    0x65735546, /* fuse: sshfs, glusterfs, s3fs, virtiofs */
    0x01021997, /* 9p */
    0x00c36400, /* ceph */
    0x73757245, /* coda */
    0x6b414653, /* afs of the kernel */
    0x5346414f, /* afs of OpenAFS */
    0x0bd00bd0, /* lustre */
    0x47504653, /* gpfs */
    0x19830326, /* beegfs */
    0x20030528, /* orangefs */
    0xaad7aaea, /* panfs */
    0x564c,     /* ncp */
    0x7461636f, /* ocfs2 */
    0x01161970, /* gfs2 */
    0x786f4256, /* vboxsf */
    0xbacbacbc, /* vmhgfs */
};

/* WAL needs shared memory between all users of a file, which those of other machines do not have. */
bool
mc_handle_is_local(const mc_handle *handle)
{
    struct statfs info;
    if (statfs(handle->path, &info) != 0)
        return false;
    for (size_t i = 0; i < sizeof(remote_file_systems) / sizeof(remote_file_systems[0]); i++)
        if ((unsigned)info.f_type == remote_file_systems[i])
            return false;
    return true;
}

/* Whether this process may write the file, and make others beside it. */
static bool
may_log_beside(const mc_handle *handle, apr_pool_t *pool)
{
    const char *slash = strrchr(handle->path, '/');
    const char *folder = slash == NULL ? "." : apr_pstrmemdup(pool, handle->path, (size_t)(slash - handle->path) + 1);
    return sqlite3_db_readonly(handle->db, "main") == 0 && access(folder, W_OK | X_OK) == 0 &&
           mc_handle_is_local(handle);
}

static bool
is_our_file(mc_handle *handle)
{
    sqlite3_stmt *statement = NULL;
    bool ours = sqlite3_prepare_v2(handle->db, "SELECT application_id = " OUR_FILE " FROM pragma_application_id", -1,
                                   &statement, NULL) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) == 1;
    sqlite3_finalize(statement);
    return ours;
}

static bool
sets_application(const mc_open_options *how)
{
    for (int i = 0; i < how->pragma_count; i++)
        if (strcasecmp(how->pragmas[i].name, "application_id") == 0)
            return true;
    return false;
}

/* Without waiting: it needs the file alone for a moment, and whoever reads it just now will not the next time. */
void
mc_handle_enter_wal(mc_handle *handle)
{
    sqlite3_busy_timeout(handle->db, 0);
    handle->wants_wal = sqlite3_exec(handle->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL) == SQLITE_BUSY;
}

void
mc_handle_choose_journal(mc_handle *handle, const mc_open_options *how, bool created, mc_ctx *ctx, apr_pool_t *pool)
{
    bool lasting = ctx->process != NULL && ctx->process->lasting;
    handle->journal = how->journal;
    if (created && how->journal == MC_JOURNAL_SERVED && !sets_application(how))
        (void)sqlite3_exec(handle->db, "PRAGMA application_id=" OUR_FILE, NULL, NULL, NULL);
    bool log = how->journal == MC_JOURNAL_LOGGED ||
               (how->journal == MC_JOURNAL_SERVED && lasting && (created || is_our_file(handle)));
    if (log && may_log_beside(handle, pool)) {
        mc_handle_enter_wal(handle);
        mc_handle_bound_wait(handle, ctx);
    }
}

/* Two loads that end at the same time would each keep the file open for the other: one has more patience. */
static int
choose_patience(const mc_handle *handle)
{
    return handle->loading ? (int)(mc_clock_now() % (LEAVING_MS / LEAVING_PAUSE_MS)) * LEAVING_PAUSE_MS : 0;
}

void
mc_handle_leave_journal(mc_handle *handle)
{
    bool rollback = handle->journal != MC_JOURNAL_KEPT && mc_handle_rollback(handle);
    bool done = handle->journal == MC_JOURNAL_KEPT || (rollback && !handle->bulk) ||
                sqlite3_db_readonly(handle->db, "main") != 0;
    int patience = choose_patience(handle);
    handle->journal = MC_JOURNAL_KEPT;
    handle->bulk = handle->loading = handle->wants_wal = false;
    if (done)
        return;
    sqlite3_busy_timeout(handle->db, 0);
    for (int waited = 0; !done; waited += LEAVING_PAUSE_MS) {
        int code = sqlite3_exec(handle->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
        done = code != SQLITE_BUSY || waited >= patience;
        if (!done)
            sqlite3_sleep(LEAVING_PAUSE_MS);
    }
    /* Of a file that others keep in WAL mode at least everything stands in the file itself. */
    if (!rollback)
        (void)sqlite3_wal_checkpoint_v2(handle->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

/* Bytes 18 and 19 of the file's header (SQLite file format, 1.3.3), through SQLite's own descriptor. */
bool
mc_handle_rollback(mc_handle *handle)
{
    sqlite3_file *file = NULL;
    uint8_t versions[2] = { 0, 0 };
    if (sqlite3_file_control(handle->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || file == NULL ||
        file->pMethods == NULL || file->pMethods->xRead(file, versions, sizeof(versions), 18) != SQLITE_OK)
        return false;
    return versions[0] == 1 && versions[1] == 1;
}
