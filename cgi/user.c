#include "user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

static mc_error *
find_user(struct passwd *found, const char *user, apr_pool_t *pool)
{
    enum { ENTRY_MAX = 16384 };
    struct passwd *entry = NULL;
    int status = getpwnam_r(user, found, apr_palloc(pool, ENTRY_MAX), ENTRY_MAX, &entry);
    if (entry != NULL)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_CONFIG, "--user %s: %s", user,
                           status == 0 ? "there is no such user" : strerror(status));
}

/* After it nothing of root is left: neither the saved identity nor a group. */
static bool
drop_privileges(const struct passwd *entry)
{
    return initgroups(entry->pw_name, entry->pw_gid) == 0 &&
           setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) == 0 &&
           setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) == 0 && (entry->pw_uid == 0 || setuid(0) != 0);
}

mc_error *
mc_user_become(const char *user, const char *socket_path, apr_pool_t *pool)
{
    struct passwd entry;
    MC_TRY(find_user(&entry, user, pool));
    if (geteuid() != 0 && geteuid() == entry.pw_uid)
        return MC_OK;
    if (geteuid() != 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "--user %s: only root can become another user", user);
    if (socket_path != NULL && lchown(socket_path, entry.pw_uid, entry.pw_gid) != 0)
        return mc_error_create(pool, MC_ERR_IO, "%s cannot be given to user %s: %s", socket_path, user,
                               strerror(errno));
    if (!drop_privileges(&entry))
        return mc_error_create(pool, MC_ERR_IO, "--user %s: %s", user, strerror(errno));
    return MC_OK;
}

void
mc_user_warn_of_root(apr_pool_t *pool)
{
    mc_ctx ctx = { .pool = pool, .log = &mc_log_stderr };
    if (geteuid() == 0)
        mc_log_write(&ctx, MC_LOG_WARN, "mapcache.fcgi runs as root: --user NAME makes it another user");
}
