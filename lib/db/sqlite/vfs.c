/*
 * SQLite's file system, but for two things: readers read ahead (vfs_ahead.c), and a path whose last part is no link is
 * taken as it is. SQLite otherwise looks at each folder on the way with each file that it opens, a tenth of what
 * opening a small file costs. What links of folders lead to is the same with and without them being followed first;
 * only the last part decides which -journal and -wal belong to a file.
 */
#include <string.h>
#include <sys/stat.h>

#include "db/sqlite/handle_private.h"
#include "db/sqlite/vfs.h"

static sqlite3_vfs *original;
static sqlite3_vfs direct; /* written once, before it is registered */
static const char *name;   /* NULL: it could not be registered */
static const char *writing;

static int
full_pathname(sqlite3_vfs *vfs, const char *path, int room, char *out)
{
    (void)vfs;
    struct stat info;
    size_t size = strlen(path);
    if (path[0] != '/' || size >= (size_t)room || strstr(path, "/.") != NULL || lstat(path, &info) != 0 ||
        S_ISLNK(info.st_mode))
        return original->xFullPathname(original, path, room, out);
    memcpy(out, path, size + 1);
    return SQLITE_OK;
}

void
mc_vfs_set_up(void)
{
    original = mc_vfs_copy(&direct, "mapcache-direct");
    if (original == NULL)
        return;
    direct.xFullPathname = full_pathname;
    mc_vfs_ahead_set_up(&direct, original);
    if (sqlite3_vfs_register(&direct, 0) == SQLITE_OK)
        name = direct.zName;
    writing = mc_vfs_gather_set_up();
}

const char *
mc_vfs_direct(void)
{
    return name;
}

const char *
mc_vfs_writing(void)
{
    return writing;
}
