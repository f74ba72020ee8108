/* See serve_watch.h. */
#include "serve_watch.h"

#include <apr_strings.h>
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

enum { DEPTH_MAX = 8, ENTRIES_MAX = 20000 };

typedef struct look {
    uint64_t sum;       /* of hashes: the order of a folder's entries does not matter */
    int entries;        /* of folders, read so far, whatever they are */
    struct stat own[2]; /* standard output and error: what is told there is no change of the things */
    apr_pool_t *pool;
} look;

static bool
is_own_output(const look *look, const struct stat *about)
{
    for (size_t i = 0; i < sizeof(look->own) / sizeof(look->own[0]); i++)
        if (S_ISREG(about->st_mode) && about->st_ino == look->own[i].st_ino && about->st_dev == look->own[i].st_dev)
            return true;
    return false;
}

/* What SQLite writes beside its files, also where it only reads. */
static bool
is_passing_file(const char *name)
{
    static const char *const endings[] = { "-wal", "-shm", "-journal" };
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t its = strlen(endings[i]);
        if (size > its && strcmp(name + size - its, endings[i]) == 0)
            return true;
    }
    return false;
}

static void
add_file(look *look, const char *path, const struct stat *about)
{
    struct {
        uint64_t device, inode, size, seconds, nanoseconds;
    } stamp = { about->st_dev, about->st_ino, (uint64_t)about->st_size, (uint64_t)about->st_mtim.tv_sec,
                (uint64_t)about->st_mtim.tv_nsec };
    if (is_own_output(look, about))
        return;
    if (S_ISDIR(about->st_mode)) /* its entries count */
        stamp.size = stamp.seconds = stamp.nanoseconds = 0;
    look->sum += mc_hash64(&stamp, sizeof(stamp), mc_hash64(path, strlen(path), 0));
}

/* Folders are looked at without what is hidden, as the data are: tools keep their own things there. */
static bool
is_watched(const char *name, const char *beginning)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !is_passing_file(name) &&
           (*beginning == '\0' ? *name != '.' : strncmp(name, beginning, strlen(beginning)) == 0);
}

/* What a link to a file points to counts as the file; a link to a folder is nothing but itself, so that no look goes in
 * circles or out of the folder. */
static bool
stat_entry(struct stat *about, const char *path)
{
    struct stat target;
    if (lstat(path, about) != 0)
        return false;
    if (S_ISLNK(about->st_mode) && stat(path, &target) == 0 && S_ISREG(target.st_mode))
        *about = target;
    return true;
}

/* The entries of a folder whose names begin so. */
static void
add_folder(look *look, const char *folder, const char *beginning, int depth)
{
    struct stat about;
    DIR *list = depth > DEPTH_MAX ? NULL : opendir(folder);
    if (list == NULL)
        return;
    for (const struct dirent *entry; look->entries < ENTRIES_MAX && (entry = readdir(list)) != NULL;) {
        bool watched = is_watched(entry->d_name, beginning);
        look->entries += watched || *beginning == '\0'; /* beside a file, the others are not asked for */
        if (!watched)
            continue;
        const char *path = apr_pstrcat(look->pool, folder, "/", entry->d_name, NULL);
        if (!stat_entry(&about, path))
            continue;
        add_file(look, path, &about);
        if (S_ISDIR(about.st_mode) && *beginning == '\0')
            add_folder(look, path, "", depth + 1);
    }
    closedir(list);
}

/* "roads." of /data/roads.shp */
static void
add_files_beside(look *look, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1, *dot = strrchr(name, '.');
    const char *folder = slash == NULL   ? "."
                         : slash == path ? "/"
                                         : apr_pstrmemdup(look->pool, path, (apr_size_t)(slash - path));
    if (dot != NULL && dot != name)
        add_folder(look, folder, apr_pstrmemdup(look->pool, name, (apr_size_t)(dot + 1 - name)), 0);
}

static uint64_t
look_at_all(const apr_array_header_t *paths, apr_pool_t *pool)
{
    look look = { .pool = pool };
    struct stat about;
    for (int i = 0; i < 2; i++)
        if (fstat(i == 0 ? STDOUT_FILENO : STDERR_FILENO, &look.own[i]) != 0)
            look.own[i] = (struct stat){ 0 };
    for (int i = 0; i < paths->nelts; i++) {
        const char *path = APR_ARRAY_IDX(paths, i, const char *);
        if (stat(path, &about) == 0)
            add_file(&look, path, &about);
        else
            about.st_mode = 0;
        if (S_ISDIR(about.st_mode))
            add_folder(&look, path, "", 0);
        else
            add_files_beside(&look, path);
    }
    return look.sum;
}

void
mc_serve_watch_begin(mc_serve_watch *watch, const apr_array_header_t *paths, apr_pool_t *scratch)
{
    watch->known = watch->last = look_at_all(paths, scratch);
}

bool
mc_serve_watch_changed(mc_serve_watch *watch, const apr_array_header_t *paths, apr_pool_t *scratch)
{
    uint64_t now = look_at_all(paths, scratch);
    bool settled = now == watch->last;
    watch->last = now;
    if (now == watch->known || !settled)
        return false;
    watch->known = now;
    return true;
}
