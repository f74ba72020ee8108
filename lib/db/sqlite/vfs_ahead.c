/*
 * SQLite's file system for readers, but for one thing: where pages are read one behind the other, as those of a tile
 * that is larger than a page, several are read with one call. A tile of 17 KB takes one or two calls for its pages then
 * instead of five.
 *
 * What was read ahead is what SQLite would have read itself, as long as nobody may change the pages: until a lock of
 * the file or of a log's index changes hands (a read transaction begins and ends so), and for files that are read
 * without locks until the handle is given back. Pages that a checkpoint moves meanwhile are in the log for everybody
 * whose transaction has begun before, who never reads them here.
 */
#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "db/sqlite/handle_private.h"

enum { AHEAD_BYTES = 20 << 10, LEAST_PAGE = 512 };

/* The first byte of a page with rows (sqlite.org/fileformat2.html, 1.6). */
enum { PAGE_OF_ROWS = 0x0d };

/* Ours among the opcodes of file controls: SQLite keeps those up to 100 for itself. */
enum { AHEAD_DROP = 0x6d6332 };

/* Behind SQLite's own struct of a file, whose functions it replaces. */
typedef struct reading_ahead {
    sqlite3_io_methods methods; /* those of the file, but for some */
    const sqlite3_io_methods *real;
    uint8_t *bytes; /* NULL: nothing was ever read ahead */
    sqlite3_int64 at;
    int size;           /* 0: nothing is there */
    sqlite3_int64 next; /* where the last page that was read ends */
    bool rows;          /* that page has rows: the next one is the begin of what did not fit into it */
} reading_ahead;

static const sqlite3_vfs *below; /* szOsFile of it: where ours begins */

static size_t
ahead_offset(void)
{
    return ((size_t)below->szOsFile + 15) & ~(size_t)15;
}

static reading_ahead *
ahead_of_file(sqlite3_file *file)
{
    return (reading_ahead *)(void *)((uint8_t *)file + ahead_offset());
}

/* False: nothing is there that could be read ahead, or not in one piece. */
static bool
fill_ahead(reading_ahead *own, sqlite3_file *file, sqlite3_int64 at)
{
    if (own->bytes == NULL)
        own->bytes = malloc(AHEAD_BYTES);
    own->size = 0;
    if (own->bytes == NULL || own->real->xRead(file, own->bytes, AHEAD_BYTES, at) != SQLITE_OK)
        return false;
    own->at = at;
    own->size = AHEAD_BYTES;
    return true;
}

static int
read_ahead(sqlite3_file *file, void *out, int size, sqlite3_int64 at)
{
    reading_ahead *own = ahead_of_file(file);
    bool follows = (at == own->next || own->rows) && size >= LEAST_PAGE && size <= AHEAD_BYTES / 2;
    bool there = own->size > 0 && at >= own->at && at + size <= own->at + own->size;
    int code = SQLITE_OK;
    if (there || (follows && fill_ahead(own, file, at)))
        memcpy(out, own->bytes + (at - own->at), (size_t)size);
    else
        code = own->real->xRead(file, out, size, at);
    if (size >= LEAST_PAGE) {
        own->next = at + size;
        own->rows = code == SQLITE_OK && *(const uint8_t *)out == PAGE_OF_ROWS;
    }
    return code;
}

static int
close_ahead(sqlite3_file *file)
{
    reading_ahead *own = ahead_of_file(file);
    free(own->bytes);
    own->bytes = NULL;
    return own->real->xClose(file);
}

static int
lock_ahead(sqlite3_file *file, int lock)
{
    ahead_of_file(file)->size = 0;
    return ahead_of_file(file)->real->xLock(file, lock);
}

static int
unlock_ahead(sqlite3_file *file, int lock)
{
    ahead_of_file(file)->size = 0;
    return ahead_of_file(file)->real->xUnlock(file, lock);
}

static int
lock_index_ahead(sqlite3_file *file, int offset, int count, int flags)
{
    ahead_of_file(file)->size = 0;
    return ahead_of_file(file)->real->xShmLock(file, offset, count, flags);
}

static int
control_ahead(sqlite3_file *file, int opcode, void *argument)
{
    if (opcode != AHEAD_DROP)
        return ahead_of_file(file)->real->xFileControl(file, opcode, argument);
    ahead_of_file(file)->size = 0;
    return SQLITE_OK;
}

static int
open_ahead(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *opened)
{
    (void)vfs;
    int code = below->xOpen((sqlite3_vfs *)(uintptr_t)below, path, file, flags, opened);
    if (code != SQLITE_OK || file->pMethods == NULL || (flags & SQLITE_OPEN_MAIN_DB) == 0 ||
        (flags & SQLITE_OPEN_READONLY) == 0)
        return code;
    reading_ahead *own = ahead_of_file(file);
    memset(own, 0, sizeof(*own));
    own->real = file->pMethods;
    own->methods = *own->real;
    own->methods.iVersion = own->real->iVersion < 2 ? own->real->iVersion : 2; /* without memory mapping */
    own->methods.xRead = read_ahead;
    own->methods.xClose = close_ahead;
    own->methods.xLock = lock_ahead;
    own->methods.xUnlock = unlock_ahead;
    own->methods.xFileControl = control_ahead;
    own->methods.xShmLock = own->real->xShmLock == NULL ? NULL : lock_index_ahead;
    own->next = -1;
    file->pMethods = &own->methods;
    return code;
}

void
mc_vfs_ahead_set_up(sqlite3_vfs *vfs, const sqlite3_vfs *original)
{
    below = original;
    vfs->szOsFile = (int)(ahead_offset() + sizeof(reading_ahead));
    vfs->xOpen = open_ahead;
}

void
mc_vfs_ahead_drop(sqlite3 *db)
{
    (void)sqlite3_file_control(db, "main", AHEAD_DROP, NULL);
}
