/* File systems for SQLite that are its own but for some functions. */
#ifndef MC_DB_SQLITE_VFS_H
#define MC_DB_SQLITE_VFS_H

#include <sqlite3.h>
#include <stddef.h>

/* Makes *copy SQLite's default file system under another name, for the caller to change and to register; it stays there
 * as long as the process. The original, or NULL where there is none. */
static inline sqlite3_vfs *
mc_vfs_copy(sqlite3_vfs *copy, const char *name)
{
    sqlite3_vfs *original = sqlite3_vfs_find(NULL);
    if (original == NULL)
        return NULL;
    *copy = *original;
    copy->pNext = NULL;
    copy->zName = name;
    return original;
}

#endif
