/* See bdb_others.h. */
#include "cache/embedded/bdb_others.h"

#include <apr_strings.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 8192 };

/* Whether a line of /proc/PID/maps is of that file: "begin-end rights offset device inode path". Its device is not that
 * of stat(2) on every file system. */
static bool
is_mapping_of(const char *line, ino_t inode)
{
    for (int field = 0; field < 4; field++) {
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    char *end;
    return strtoull(line, &end, 10) == (unsigned long long)inode && strstr(end, "/" MC_BDB_REGION) != NULL;
}

static bool
maps_region(const char *process, ino_t inode, apr_pool_t *pool)
{
    char line[LINE_BYTES];
    bool found = false;
    FILE *maps = fopen(apr_pstrcat(pool, "/proc/", process, "/maps", NULL), "re");
    if (maps == NULL)
        return false;
    while (!found && fgets(line, sizeof(line), maps) != NULL)
        found = is_mapping_of(line, inode);
    (void)fclose(maps);
    return found;
}

static bool
has_file_open(const char *process, const struct stat *file, apr_pool_t *pool)
{
    struct stat info;
    bool open_there = false;
    const char *path = apr_pstrcat(pool, "/proc/", process, "/fd", NULL);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return true; /* it has ended, or is not ours to look at */
    for (const struct dirent *found; !open_there && (found = readdir(folder)) != NULL;)
        open_there = stat(apr_pstrcat(pool, path, "/", found->d_name, NULL), &info) == 0 &&
                     info.st_ino == file->st_ino && info.st_dev == file->st_dev;
    (void)closedir(folder);
    return open_there;
}

static const char *
read_program_name(const char *process, apr_pool_t *pool)
{
    char name[64] = "?";
    FILE *file = fopen(apr_pstrcat(pool, "/proc/", process, "/comm", NULL), "re");
    if (file == NULL)
        return "?";
    if (fgets(name, sizeof(name), file) != NULL)
        name[strcspn(name, "\n")] = '\0';
    (void)fclose(file);
    return apr_pstrdup(pool, name);
}

bool
mc_bdb_find_other(mc_bdb_other *other, const mc_embedded_place *place, apr_pool_t *pool)
{
    struct stat region, turns;
    bool there = false;
    DIR *folder;
    if (stat(apr_pstrcat(pool, place->base, "/" MC_BDB_REGION, NULL), &region) != 0 ||
        stat(apr_pstrcat(pool, place->base, "/" MC_BDB_TURNS, NULL), &turns) != 0 ||
        (folder = opendir("/proc")) == NULL)
        return false;
    for (const struct dirent *found; !there && (found = readdir(folder)) != NULL;) {
        const char *process = found->d_name;
        there = isdigit((unsigned char)*process) && maps_region(process, region.st_ino, pool) &&
                !has_file_open(process, &turns, pool);
        if (there)
            *other = (mc_bdb_other){ strtol(process, NULL, 10), read_program_name(process, pool) };
    }
    (void)closedir(folder);
    return there;
}
