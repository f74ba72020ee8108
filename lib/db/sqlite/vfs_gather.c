/*
 * SQLite's file system for writers, but for one thing: what is written to a database piece after piece, a page each,
 * is gathered into pieces of 120 KB. A commit of large tiles is then a few system calls, and a file system with large
 * folios allocates and writes it out for half of the price.
 *
 * Nothing is gathered across a point where SQLite, another process or a power cut could tell the difference: before a
 * sync (or what stands for it where syncs are off: SQLITE_FCNTL_SYNC), before an unlock, a truncation, a look at the
 * size, and a read of what is gathered, all of it is written, and an error of that is the error of that call. Pages
 * that a checkpoint moves are never gathered, as SQLite does not wait for them where only a part of a log is moved.
 * Journals and logs are gathered where SQLite syncs each of them before it relies on it, which mc_vfs_gather_logs says.
 */
#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "db/sqlite/handle_private.h"
#include "db/sqlite/vfs.h"

/* SQLite's unix VFS cannot write 128 KB or more with one call. A multiple of 4 and 8 KB. */
enum { ROOM = 120 << 10 };

/* Ours among the opcodes of file controls: SQLite keeps those up to 100 for itself. */
enum { GATHER_LOGS = 0x6d6331 };

typedef struct gathering {
    sqlite3_file base;
    struct gathering *database; /* that a journal or log belongs to; NULL: it is one, or not known */
    bool on;                    /* of a database: its journals and logs are gathered, too */
    bool checkpoint;            /* of a database: a checkpoint moves pages */
    uint8_t *bytes;             /* NULL: nothing is gathered */
    int size;
    sqlite3_int64 at;     /* where in the file */
    sqlite3_int64 real[]; /* SQLite aligns to 8 */
} gathering;

static sqlite3_vfs *original;
static sqlite3_vfs gather; /* written once, before it is registered */

static sqlite3_file *
real_of(sqlite3_file *file)
{
    return (sqlite3_file *)((gathering *)file)->real;
}

static int
write_out(sqlite3_file *file)
{
    gathering *own = (gathering *)file;
    if (own->bytes == NULL)
        return SQLITE_OK;
    int code = real_of(file)->pMethods->xWrite(real_of(file), own->bytes, own->size, own->at);
    free(own->bytes);
    own->bytes = NULL;
    own->size = 0;
    return code;
}

static int
do_close(sqlite3_file *file)
{
    int code = write_out(file), closed = real_of(file)->pMethods->xClose(real_of(file));
    return code == SQLITE_OK ? closed : code;
}

static int
do_read(sqlite3_file *file, void *out, int size, sqlite3_int64 at)
{
    const gathering *own = (const gathering *)file;
    if (own->bytes != NULL && at < own->at + own->size && at + size > own->at) {
        int code = write_out(file);
        if (code != SQLITE_OK)
            return code;
    }
    return real_of(file)->pMethods->xRead(real_of(file), out, size, at);
}

static bool
may_gather(const gathering *own)
{
    return own->database == NULL ? !own->checkpoint : own->database->on;
}

static int
gather_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
    gathering *own = (gathering *)file;
    bool fits = may_gather(own) && size <= ROOM;
    if (own->bytes != NULL && (!fits || at != own->at + own->size || own->size + size > ROOM)) {
        int code = write_out(file);
        if (code != SQLITE_OK)
            return code;
    }
    if (fits && own->bytes == NULL) {
        own->bytes = malloc(ROOM);
        own->at = at;
    }
    if (!fits || own->bytes == NULL)
        return real_of(file)->pMethods->xWrite(real_of(file), bytes, size, at);
    memcpy(own->bytes + own->size, bytes, (size_t)size);
    own->size += size;
    return SQLITE_OK;
}

static int
do_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int code = write_out(file);
    return code == SQLITE_OK ? real_of(file)->pMethods->xTruncate(real_of(file), size) : code;
}

static int
do_sync(sqlite3_file *file, int flags)
{
    int code = write_out(file);
    return code == SQLITE_OK ? real_of(file)->pMethods->xSync(real_of(file), flags) : code;
}

static int
do_size(sqlite3_file *file, sqlite3_int64 *size)
{
    int code = write_out(file);
    return code == SQLITE_OK ? real_of(file)->pMethods->xFileSize(real_of(file), size) : code;
}

static int
do_lock(sqlite3_file *file, int lock)
{
    return real_of(file)->pMethods->xLock(real_of(file), lock);
}

static int
do_unlock(sqlite3_file *file, int lock)
{
    int code = write_out(file), unlocked = real_of(file)->pMethods->xUnlock(real_of(file), lock);
    return code == SQLITE_OK ? unlocked : code;
}

static int
do_check_reserved(sqlite3_file *file, int *reserved)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), reserved);
}

static int
do_control(sqlite3_file *file, int opcode, void *argument)
{
    gathering *own = (gathering *)file;
    if (opcode == GATHER_LOGS) {
        own->on = *(const bool *)argument;
        return SQLITE_OK;
    }
    if (opcode == SQLITE_FCNTL_CKPT_START || opcode == SQLITE_FCNTL_CKPT_DONE)
        own->checkpoint = opcode == SQLITE_FCNTL_CKPT_START;
    int code = write_out(file);
    return code == SQLITE_OK ? real_of(file)->pMethods->xFileControl(real_of(file), opcode, argument) : code;
}

static int
do_sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

/* Without atomic batches of writes, which would have to be gathered as such. */
static int
do_characteristics(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file)) & ~SQLITE_IOCAP_BATCH_ATOMIC;
}

static int
do_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, out);
}

static int
do_map_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void
do_map_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int
do_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

/* Version 2: without memory mapping, which we do not use (docs/reference/design.md 3.3). */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = do_close,
    .xRead = do_read,
    .xWrite = gather_write,
    .xTruncate = do_truncate,
    .xSync = do_sync,
    .xFileSize = do_size,
    .xLock = do_lock,
    .xUnlock = do_unlock,
    .xCheckReservedLock = do_check_reserved,
    .xFileControl = do_control,
    .xSectorSize = do_sector_size,
    .xDeviceCharacteristics = do_characteristics,
    .xShmMap = do_map,
    .xShmLock = do_map_lock,
    .xShmBarrier = do_map_barrier,
    .xShmUnmap = do_unmap,
};

static int
do_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *opened)
{
    (void)vfs;
    gathering *own = (gathering *)file;
    bool log = (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
    if (path == NULL || (!log && (flags & SQLITE_OPEN_MAIN_DB) == 0))
        return original->xOpen(original, path, file, flags, opened);
    memset(own, 0, sizeof(*own));
    sqlite3_file *real = real_of(file);
    real->pMethods = NULL;
    int code = original->xOpen(original, path, real, flags, opened);
    if (real->pMethods == NULL)
        return code;
    if (code != SQLITE_OK) {
        (void)real->pMethods->xClose(real);
        return code;
    }
    sqlite3_file *database = log ? sqlite3_database_file_object(path) : NULL;
    own->database = database != NULL && database->pMethods == &methods ? (gathering *)database : log ? own : NULL;
    own->base.pMethods = &methods;
    return SQLITE_OK;
}

const char *
mc_vfs_gather_set_up(void)
{
    original = mc_vfs_copy(&gather, "mapcache-gather");
    if (original == NULL)
        return NULL;
    gather.szOsFile = (int)offsetof(gathering, real) + original->szOsFile;
    gather.xOpen = do_open;
    return sqlite3_vfs_register(&gather, 0) == SQLITE_OK ? gather.zName : NULL;
}

void
mc_vfs_gather_logs(sqlite3 *db, bool on)
{
    (void)sqlite3_file_control(db, "main", GATHER_LOGS, &on);
}
