/* The pages of a SQLite file in a transaction of our own (sqlite.org/fileformat2.html, 1; sqlite.org/lockingv3.html).
 */
#include "db/sqlite/page_file.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "db/sqlite/handle_private.h"

enum {
    FIRST_READ = 4096, /* the first page of most files */
    HEADER = 100,
    LEAST_USABLE = 480,
    LONGEST_NAME = 4096,
};

struct mc_page_file {
    sqlite3_vfs *vfs;
    sqlite3_filename name;
    uint32_t page_size, usable;
    uint32_t pages;  /* of the file, as its header says; UINT32_MAX: it does not say */
    uint32_t number; /* of the page that is in memory; 0: none */
    uint8_t *page;
    bool locked;
    sqlite3_file *file; /* its memory is behind this struct */
};

/* The path as SQLite opens it: with the last link followed, by which the names of journals go. */
static mc_page_file *
open_pages(const char *path)
{
    char full[LONGEST_NAME];
    sqlite3_vfs *vfs = sqlite3_vfs_find(mc_vfs_direct());
    if (vfs == NULL || vfs->xFullPathname(vfs, path, LONGEST_NAME, full) != SQLITE_OK)
        return NULL;
    size_t size = (sizeof(mc_page_file) + 15) & ~(size_t)15;
    mc_page_file *made = calloc(1, size + (size_t)vfs->szOsFile);
    MC_ASSERT(made != NULL);
    made->vfs = vfs;
    made->file = (sqlite3_file *)(void *)((uint8_t *)made + size);
    made->name = sqlite3_create_filename(full, "", "", 0, NULL);
    int opened;
    if (made->name == NULL ||
        vfs->xOpen(vfs, made->name, made->file, SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READONLY, &opened) != SQLITE_OK) {
        mc_page_file_close(made);
        return NULL;
    }
    return made;
}

/* A journal that holds anything: somebody writes, or was cut off. It is looked for under the lock, as SQLite does. */
static bool
has_journal(const mc_page_file *file)
{
    static const char end[] = "-journal";
    char journal[LONGEST_NAME + sizeof(end)];
    size_t size = strlen(file->name);
    int there = 0;
    memcpy(journal, file->name, size);
    memcpy(journal + size, end, sizeof(end));
    return file->vfs->xAccess(file->vfs, journal, SQLITE_ACCESS_EXISTS, &there) != SQLITE_OK || there != 0;
}

/* False unless the header is that of a plain file. */
static bool
take_plain_header(mc_page_file *file, const uint8_t *header)
{
    static const uint8_t magic[16] = "SQLite format 3";
    uint32_t size = mc_big16(header + 16);
    size = size == 1 ? 65536 : size;
    bool rollback = header[18] == 1 && header[19] == 1;
    bool fractions = header[21] == 64 && header[22] == 32 && header[23] == 32;
    bool text = mc_big32(header + 44) <= 4 && mc_big32(header + 56) == 1;
    if (memcmp(header, magic, sizeof(magic)) != 0 || !rollback || !fractions || !text)
        return false;
    if (size < 512 || size > 65536 || (size & (size - 1)) != 0 || size - header[20] < LEAST_USABLE)
        return false;
    bool counted = mc_big32(header + 24) == mc_big32(header + 92) && mc_big32(header + 28) != 0;
    file->pages = counted ? mc_big32(header + 28) : UINT32_MAX;
    file->page_size = size;
    file->usable = size - header[20];
    return true;
}

static bool
begin_pages(mc_page_file *file)
{
    const sqlite3_io_methods *methods = file->file->pMethods;
    if (methods->xLock(file->file, SQLITE_LOCK_SHARED) != SQLITE_OK)
        return false;
    file->locked = true;
    if (has_journal(file))
        return false;
    file->page = malloc(FIRST_READ);
    MC_ASSERT(file->page != NULL);
    int code = methods->xRead(file->file, file->page, FIRST_READ, 0); /* what is not there is zero */
    if ((code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) || !take_plain_header(file, file->page))
        return false;
    if (file->page_size > FIRST_READ) {
        free(file->page);
        file->page = malloc(file->page_size);
        MC_ASSERT(file->page != NULL);
    }
    file->number = file->page_size <= FIRST_READ ? 1 : 0;
    return true;
}

mc_page_file *
mc_page_file_open(const char *path)
{
    mc_page_file *made = open_pages(path);
    if (made != NULL && !begin_pages(made)) {
        mc_page_file_close(made);
        made = NULL;
    }
    return made;
}

void
mc_page_file_close(mc_page_file *file)
{
    if (file == NULL)
        return;
    if (file->locked)
        file->file->pMethods->xUnlock(file->file, SQLITE_LOCK_NONE);
    if (file->file->pMethods != NULL)
        file->file->pMethods->xClose(file->file);
    sqlite3_free_filename(file->name);
    free(file->page);
    free(file);
}

uint32_t
mc_page_file_usable(const mc_page_file *file)
{
    return file->usable;
}

const uint8_t *
mc_page_file_read(mc_page_file *file, uint32_t number)
{
    if (number == 0 || number > file->pages)
        return NULL;
    if (number == file->number)
        return file->page;
    file->number = 0;
    sqlite3_int64 at = (sqlite3_int64)(number - 1) * file->page_size;
    if (file->file->pMethods->xRead(file->file, file->page, (int)file->page_size, at) != SQLITE_OK)
        return NULL;
    file->number = number;
    return file->page;
}
