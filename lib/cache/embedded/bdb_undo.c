/* See bdb_undo.h. */
#include "cache/embedded/bdb_undo.h"

#include <apr_strings.h>
#include <db.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/files.h"

enum { HEAD_BYTES = 20, RECORD_BYTES = 12, NAME_BYTES = 4096, PAGE_MOST = 65536 };

/* Of the write that this thread is at. */
typedef struct undo_write {
    int file;           /* -1: no write */
    uint64_t end;       /* of what is in it */
    dev_t device;       /* of the database, if there was one */
    ino_t inode;        /* the same */
    int64_t size;       /* of it; -1: there was none */
    uint64_t *kept;     /* offsets of the pages that are kept: all pages have one size */
    size_t count, room; /* of `kept` */
} undo_write;

static _Thread_local undo_write writing = { .file = -1 };

static bool
is_page_kept(uint64_t offset)
{
    for (size_t i = 0; i < writing.count; i++)
        if (writing.kept[i] == offset)
            return true;
    return false;
}

static bool
note_kept_page(uint64_t offset)
{
    if (writing.count == writing.room) {
        const size_t room = writing.room == 0 ? 64 : 2 * writing.room;
        uint64_t *kept = realloc(writing.kept, room * sizeof(*kept));
        if (kept == NULL)
            return false;
        writing.kept = kept;
        writing.room = room;
    }
    writing.kept[writing.count++] = offset;
    return true;
}

/* Keeps what the file has there. False with errno. */
static bool
keep_undo_bytes(int file, uint64_t offset, size_t size)
{
    uint8_t *record = malloc(RECORD_BYTES + size);
    if (record == NULL)
        return false;
    mc_store_little64(record, offset);
    mc_store_little32(record + 8, (uint32_t)size);
    bool kept = mc_files_read_at(file, offset, record + RECORD_BYTES, size) == size &&
                mc_files_write_at(writing.file, writing.end, record, RECORD_BYTES + size);
    free(record);
    writing.end += RECORD_BYTES + size;
    return kept;
}

/* How many bytes the file has that it had before the write; 0: it is another file, or no write. */
static uint64_t
size_to_keep(int file)
{
    struct stat info;
    if (writing.file < 0 || writing.size <= 0 || fstat(file, &info) != 0 || info.st_ino != writing.inode ||
        info.st_dev != writing.device)
        return 0;
    return (uint64_t)(info.st_size < writing.size ? info.st_size : writing.size);
}

/* pwrite(2) for Berkeley DB. */
static ssize_t
write_undoable_page(int file, const void *bytes, size_t size, off_t offset)
{
    const uint64_t begin = (uint64_t)offset, end = size_to_keep(file);
    if (begin < end && !is_page_kept(begin) &&
        !(keep_undo_bytes(file, begin, end - begin < size ? (size_t)(end - begin) : size) && note_kept_page(begin)))
        return -1;
    return pwrite(file, bytes, size, offset);
}

/* ftruncate(2) for Berkeley DB, which cuts off free pages at the end. */
static int
truncate_undoable_file(int file, off_t size)
{
    const uint64_t end = size_to_keep(file);
    for (uint64_t begin = (uint64_t)size; begin < end; begin += PAGE_MOST)
        if (!keep_undo_bytes(file, begin, end - begin < PAGE_MOST ? (size_t)(end - begin) : PAGE_MOST))
            return -1;
    return ftruncate(file, size);
}

__attribute__((constructor)) static void
take_bdb_writes(void)
{
    (void)db_env_set_func_pwrite(write_undoable_page);
    (void)db_env_set_func_ftruncate(truncate_undoable_file);
}

int
mc_bdb_begin_undo(const mc_embedded_place *place, const char *name, apr_pool_t *pool)
{
    struct stat info;
    const size_t length = strlen(name);
    uint8_t head[HEAD_BYTES] = MC_BDB_UNDO_MAGIC;
    const bool there = stat(apr_pstrcat(pool, place->base, "/", name, NULL), &info) == 0;
    if (!there && errno != ENOENT)
        return errno;
    writing.size = there ? (int64_t)info.st_size : -1;
    writing.device = there ? info.st_dev : 0;
    writing.inode = there ? info.st_ino : 0;
    writing.count = 0;
    writing.end = HEAD_BYTES + length;
    mc_store_little64(head + 8, (uint64_t)writing.size);
    mc_store_little32(head + 16, (uint32_t)length);
    writing.file = open(apr_pstrcat(pool, place->base, "/" MC_BDB_UNDO, NULL),
                        O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (writing.file < 0)
        return errno;
    if (mc_files_write_at(writing.file, 0, head, HEAD_BYTES) &&
        mc_files_write_at(writing.file, HEAD_BYTES, name, length))
        return 0;
    const int reason = errno;
    mc_bdb_leave_undo();
    return reason;
}

void
mc_bdb_leave_undo(void)
{
    if (writing.file >= 0)
        (void)close(writing.file);
    writing.file = -1;
    free(writing.kept);
    writing.kept = NULL;
    writing.count = writing.room = 0;
}

int
mc_bdb_forget_undo(const mc_embedded_place *place, apr_pool_t *pool)
{
    if (writing.file < 0)
        return 0;
    mc_bdb_leave_undo();
    return unlink(apr_pstrcat(pool, place->base, "/" MC_BDB_UNDO, NULL)) == 0 ? 0 : errno;
}

/* Where the records begin that are whole, of a file that had `end` bytes: uint64_t. */
static apr_array_header_t *
find_undo_records(int undo, uint64_t at, uint64_t end, apr_pool_t *pool)
{
    struct stat info;
    uint8_t head[RECORD_BYTES];
    apr_array_header_t *records = apr_array_make(pool, 64, sizeof(uint64_t));
    const uint64_t all = fstat(undo, &info) == 0 ? (uint64_t)info.st_size : 0;
    while (mc_files_read_at(undo, at, head, sizeof(head)) == sizeof(head)) {
        const uint64_t offset = mc_little64(head), size = mc_little32(head + 8);
        if (size > PAGE_MOST || offset > end || size > end - offset || size > all - at - RECORD_BYTES)
            break; /* the end is cut off: that page was not written any more */
        APR_ARRAY_PUSH(records, uint64_t) = at;
        at += RECORD_BYTES + size;
    }
    return records;
}

/* Puts the pages back, the one that was kept first at last: it is the oldest. 0 or errno. */
static int
put_pages_back(int database, int undo, const apr_array_header_t *records)
{
    uint8_t *record = malloc(RECORD_BYTES + PAGE_MOST);
    int reason = record == NULL ? ENOMEM : 0;
    for (int i = records->nelts - 1; i >= 0 && reason == 0; i--) {
        const uint64_t at = APR_ARRAY_IDX(records, i, uint64_t);
        const size_t most = RECORD_BYTES + PAGE_MOST, got = mc_files_read_at(undo, at, record, most);
        const size_t size = got < RECORD_BYTES ? most : mc_little32(record + 8);
        if (got < RECORD_BYTES + size)
            reason = EIO;
        else if (!mc_files_write_at(database, mc_little64(record), record + RECORD_BYTES, size))
            reason = errno;
    }
    free(record);
    return reason;
}

/* 0 or errno. `size`, -1: the database was made by the write. */
static int
undo_write_of(const char *path, int64_t size, int undo, uint64_t pages, apr_pool_t *pool)
{
    if (size < 0)
        return unlink(path) == 0 || errno == ENOENT ? 0 : errno;
    int database = open(path, O_RDWR | O_CLOEXEC);
    if (database < 0)
        return errno == ENOENT ? 0 : errno; /* removed since: nothing to mend */
    int reason = put_pages_back(database, undo, find_undo_records(undo, pages, (uint64_t)size, pool));
    if (reason == 0 && ftruncate(database, (off_t)size) != 0)
        reason = errno;
    if (reason == 0 && fsync(database) != 0)
        reason = errno;
    (void)close(database);
    return reason;
}

/* Whether it is the name of a database in the folder, as mc_bdb_begin_undo was given. */
static bool
is_database_name(const char *name)
{
    static const char ending[] = ".db";
    const size_t size = strlen(name), least = sizeof(ending) - 1;
    return size > least && strcmp(name + size - least, ending) == 0 && strchr(name, '/') == NULL;
}

/* Whether the head is whole; then the size, and the name of the database. */
static bool
read_undo_head(int64_t *size, char *name, int undo)
{
    uint8_t head[HEAD_BYTES];
    if (mc_files_read_at(undo, 0, head, sizeof(head)) != sizeof(head) || memcmp(head, MC_BDB_UNDO_MAGIC, 8) != 0)
        return false;
    const uint32_t length = mc_little32(head + 16);
    *size = (int64_t)mc_little64(head + 8);
    if (length == 0 || length >= NAME_BYTES || mc_files_read_at(undo, HEAD_BYTES, name, length) != length)
        return false;
    name[length] = '\0';
    return strlen(name) == length && is_database_name(name) && *size >= -1;
}

int
mc_bdb_undo_rest(bool *undone, const mc_embedded_place *place, apr_pool_t *pool)
{
    int64_t size;
    int reason = 0;
    char name[NAME_BYTES];
    const char *path = apr_pstrcat(pool, place->base, "/" MC_BDB_UNDO, NULL);
    int undo = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    *undone = false;
    if (undo < 0)
        return errno == ENOENT ? 0 : errno;
    if (read_undo_head(&size, name, undo)) {
        reason =
            undo_write_of(apr_pstrcat(pool, place->base, "/", name, NULL), size, undo, HEAD_BYTES + strlen(name), pool);
        *undone = reason == 0;
    }
    (void)close(undo);
    if (reason == 0 && unlink(path) != 0 && errno != ENOENT)
        reason = errno;
    return reason;
}
