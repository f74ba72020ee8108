/* See serve_place.h. */
#include "serve_place.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { GROUPS_MAX = 16 };

/* --- root --------------------------------------------------------------------------------------------------------- */

mc_error *
mc_serve_leave_root(const char **user, apr_pool_t *pool)
{
    *user = NULL;
    if (geteuid() != 0)
        return MC_OK;
    const struct passwd *entry = getpwnam("www-data");
    if (entry == NULL || entry->pw_uid == 0)
        entry = getpwnam("nobody");
    if (entry == NULL || entry->pw_uid == 0)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "root does not serve, and there is no user www-data or nobody who "
                               "could: start it as another user");
    *user = apr_pstrdup(pool, entry->pw_name);
    if (initgroups(entry->pw_name, entry->pw_gid) != 0 || setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) != 0 ||
        setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) != 0 || setuid(0) == 0)
        return mc_error_create(pool, MC_ERR_IO, "the rights of root cannot be given up: %s", strerror(errno));
    unsetenv("XDG_RUNTIME_DIR");
    setenv("HOME", "/", 1);
    setenv("USER", *user, 1);
    setenv("LOGNAME", *user, 1);
    return MC_OK;
}

/* --- the keeper --------------------------------------------------------------------------------------------------- */

typedef struct keeper_word {
    pid_t group;
    bool ended;
} keeper_word;

static int
remove_entry(const char *path, const struct stat *about, int type, struct FTW *walk)
{
    (void)about;
    (void)type;
    (void)walk;
    remove(path); /* what cannot be removed keeps its folder, and nothing else */
    return 0;
}

static void
remove_serve_folder(const char *folder)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Whether one of the groups is there after `seconds`; looks until then. */
static bool
outlast_groups(const pid_t *groups, int count, double seconds)
{
    static const struct timespec pause = { 0, 10000000 };
    for (apr_time_t until = mc_clock_now() + (apr_time_t)(seconds * 1e6);;) {
        bool any = false;
        for (int i = 0; i < count; i++)
            any = any || kill(-groups[i], 0) == 0;
        if (!any || mc_clock_now() > until)
            return any;
        nanosleep(&pause, NULL);
    }
}

static void
signal_groups(const pid_t *groups, int count, int signal_number)
{
    for (int i = 0; i < count; i++)
        kill(-groups[i], signal_number);
}

static void
keep_word(pid_t *groups, int *count, const keeper_word *word)
{
    if (!word->ended && *count < GROUPS_MAX)
        groups[(*count)++] = word->group;
    for (int i = 0; word->ended && i < *count; i++)
        if (groups[i] == word->group) {
            groups[i] = groups[--*count];
            return;
        }
}

/* The keeper's life: until nobody holds the other end of the line. */
static _Noreturn void
keep_place(const char *folder, int line)
{
    static const double PATIENCE = 3, LAST_PATIENCE = 1; /* seconds */
    pid_t groups[GROUPS_MAX];
    int count = 0;
    keeper_word word;
    setsid(); /* the interrupt of the terminal is not for it */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (dup2(line, STDIN_FILENO) < 0 || chdir("/") != 0)
        _exit(1);
    close_range(STDIN_FILENO + 1, ~0U, 0); /* a pipe that somebody reads to its end must end with the run */
    for (ssize_t got; (got = read(STDIN_FILENO, &word, sizeof(word))) != 0;)
        if (got == (ssize_t)sizeof(word))
            keep_word(groups, &count, &word);
        else if (got > 0 || errno != EINTR)
            break;
    signal_groups(groups, count, SIGTERM);
    if (outlast_groups(groups, count, PATIENCE)) {
        signal_groups(groups, count, SIGKILL);
        outlast_groups(groups, count, LAST_PATIENCE);
    }
    remove_serve_folder(folder);
    _exit(0);
}

/* --- the folder --------------------------------------------------------------------------------------------------- */

/* The name stands in configurations of servers, and in the address of a socket, which is short. */
static bool
may_hold_place(const char *folder)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-";
    struct stat about;
    return folder != NULL && *folder == '/' && strlen(folder) <= 60 && folder[strspn(folder, safe)] == '\0' &&
           stat(folder, &about) == 0 && about.st_uid == geteuid() && access(folder, W_OK | X_OK) == 0;
}

mc_error *
mc_serve_place_open(mc_serve_place *place, apr_pool_t *pool)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char *folder = apr_pstrcat(pool, may_hold_place(runtime) ? runtime : "/tmp", "/mapcache-serve-XXXXXX", NULL);
    int line[2];
    if (mkdtemp(folder) == NULL)
        return mc_error_create(pool, MC_ERR_IO, "no folder can be made at %s: %s", folder, strerror(errno));
    *place = (mc_serve_place){ .folder = folder, .keeper = -1, .line = -1 };
    if (pipe2(line, O_CLOEXEC) == 0) {
        place->keeper = fork();
        if (place->keeper == 0)
            keep_place(folder, line[0]);
        close(line[0]);
        place->line = line[1];
    }
    if (place->keeper > 0)
        return MC_OK;
    int code = errno;
    remove_serve_folder(folder);
    return mc_error_create(pool, MC_ERR_IO, "no further process can be started: %s", strerror(code));
}

static void
tell_keeper(mc_serve_place *place, pid_t group, bool ended)
{
    const keeper_word word = { group, ended };
    while (write(place->line, &word, sizeof(word)) < 0 && errno == EINTR)
        continue;
}

void
mc_serve_place_keep(mc_serve_place *place, pid_t group)
{
    tell_keeper(place, group, false);
}

void
mc_serve_place_forget(mc_serve_place *place, pid_t group)
{
    tell_keeper(place, group, true);
}

void
mc_serve_place_close(mc_serve_place *place)
{
    close(place->line);
    while (waitpid(place->keeper, NULL, 0) < 0 && errno == EINTR)
        continue;
    remove_serve_folder(place->folder); /* somebody may have killed the keeper */
}
