/* Lock files that are not ours: whose they are, for the log and for `mapcache check`. */
#include <apr_strings.h>
#include <errno.h>
#include <glob.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock/locker.h"

static const char *
name_user(uid_t user, apr_pool_t *pool)
{
    char room[1024];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(user, &entry, room, sizeof(room), &found) == 0 && found != NULL)
        return apr_pstrdup(pool, found->pw_name);
    return apr_psprintf(pool, "%lu", (unsigned long)user);
}

/* What is wrong with the file as such; of one that is to belong to `user` also the owner. NULL: nothing. */
static const char *
find_file_fault(const char *path, const struct stat *file, uid_t user, apr_pool_t *pool)
{
    if (S_ISLNK(file->st_mode))
        return apr_psprintf(pool, "%s is a link", path);
    if (!S_ISREG(file->st_mode))
        return apr_psprintf(pool, "%s is no plain file", path);
    if (file->st_nlink > 1)
        return apr_psprintf(pool, "%s has a second name", path);
    if (file->st_uid != user)
        return apr_psprintf(pool, "%s belongs to user %s", path, name_user(file->st_uid, pool));
    return NULL;
}

const char *
mc_lock_file_problem(mc_severity *severity, const mc_disk_locker *disk, const char *path, apr_pool_t *pool)
{
    struct stat file, folder;
    *severity = MC_WARNING;
    if (lstat(path, &file) != 0 || stat(disk->directory, &folder) != 0)
        return NULL;
    const char *fault = find_file_fault(path, &file, file.st_uid, pool);
    if (fault != NULL)
        return fault;
    bool open = (folder.st_mode & S_IWOTH) != 0;
    if (open && file.st_uid != geteuid() && file.st_uid != 0) {
        *severity = disk->usual ? MC_NOTE : MC_WARNING;
        return find_file_fault(path, &file, geteuid(), pool);
    }
    if (access(path, R_OK | W_OK) != 0) {
        int reason = errno;
        *severity = disk->usual ? MC_NOTE : MC_WARNING;
        return apr_psprintf(pool, "%s belongs to user %s: %s", path, name_user(file.st_uid, pool), strerror(reason));
    }
    return NULL;
}

/* Of a user's own lock file, in an open folder: there that user can use nothing else. */
static void
inspect_own_file(const char *path, const mc_node *at, mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    struct stat file;
    char *end;
    errno = 0;
    const unsigned long user = strtoul(strrchr(path, '.') + 1, &end, 10);
    const char *fault =
        errno == 0 && *end == '\0' && lstat(path, &file) == 0 ? find_file_fault(path, &file, (uid_t)user, pool) : NULL;
    if (fault != NULL)
        mc_complain(
            diagnostics, MC_WARNING, at,
            "%s: processes of user %s cannot lock anything, and draw no tiles; remove it, or give the <locker> a"
            " <directory> of the server's user",
            fault, name_user((uid_t)user, pool));
}

void
mc_disk_locker_inspect(const mc_locker *locker, const mc_node *at, mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    const mc_disk_locker *disk = locker->baton;
    const char *shared = apr_pstrcat(pool, disk->directory, "/mapcache.lock", NULL);
    mc_severity severity;
    struct stat folder;
    glob_t found;
    const char *problem = mc_lock_file_problem(&severity, disk, shared, pool);
    if (problem != NULL && severity == MC_WARNING)
        mc_complain(diagnostics, severity, at,
                    "the lock file %s: processes of user %s pass it over, so that server and seeder do not exclude each"
                    " other where they are different users; give the <locker> a <directory> of the server's user",
                    problem, name_user(geteuid(), pool));
    if (stat(disk->directory, &folder) != 0 || (folder.st_mode & S_IWOTH) == 0 ||
        glob(apr_pstrcat(pool, shared, ".[0-9]*", NULL), 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        inspect_own_file(found.gl_pathv[i], at, diagnostics, pool);
    globfree(&found);
}
