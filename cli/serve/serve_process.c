/* See serve_process.h. */
#include "serve_process.h"

#include <apr_strings.h>
#include <apr_tables.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* Variables by which servers are handed sockets that are meant for somebody else. */
static const char *const not_inherited[] = { "NGINX=",          "LISTEN_FDS=",    "LISTEN_PID=",
                                             "LISTEN_FDNAMES=", "NOTIFY_SOCKET=", "MAPCACHE_CONFIG_FILE=" };

static bool
is_inherited(const char *variable)
{
    for (size_t i = 0; i < sizeof(not_inherited) / sizeof(not_inherited[0]); i++)
        if (strncmp(variable, not_inherited[i], strlen(not_inherited[i])) == 0)
            return false;
    return true;
}

static char *const *
make_environment(const char *const *variables, apr_pool_t *pool)
{
    apr_array_header_t *all = apr_array_make(pool, 64, sizeof(const char *));
    for (char **at = environ; *at != NULL; at++)
        if (is_inherited(*at))
            APR_ARRAY_PUSH(all, const char *) = *at;
    for (; variables != NULL && *variables != NULL; variables++)
        APR_ARRAY_PUSH(all, const char *) = *variables;
    APR_ARRAY_PUSH(all, const char *) = NULL;
    return (char *const *)(void *)all->elts;
}

/* In the new process; only what may be called between fork and exec. */
static _Noreturn void
become_program(const mc_serve_command *command, char *const *environment, pid_t parent)
{
    sigset_t none;
    setpgid(0, 0);
    if (!command->lasting && (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent))
        _exit(127);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int nothing = open("/dev/null", O_RDWR);
    int output = command->output < 0 ? nothing : command->output;
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
        dup2(output, STDERR_FILENO) < 0)
        _exit(127);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    execve(command->words[0], (char *const *)command->words, environment);
    _exit(127);
}

mc_error *
mc_serve_process_start(pid_t *process, const mc_serve_command *command, apr_pool_t *pool)
{
    char *const *environment = make_environment(command->variables, pool);
    pid_t parent = getpid();
    *process = fork();
    if (*process == 0)
        become_program(command, environment, parent);
    if (*process < 0)
        return mc_error_create(pool, MC_ERR_IO, "%s cannot be started: %s", command->words[0], strerror(errno));
    setpgid(*process, *process); /* whoever comes first */
    return MC_OK;
}

const char *
mc_serve_process_find(const char *name, apr_pool_t *pool)
{
    const char *paths = getenv("PATH");
    char *folders = apr_pstrcat(pool, paths == NULL ? "/usr/bin" : paths, ":/usr/local/sbin:/usr/sbin:/sbin", NULL);
    char *state = NULL;
    for (char *folder = apr_strtok(folders, ":", &state); folder != NULL; folder = apr_strtok(NULL, ":", &state)) {
        const char *file = apr_pstrcat(pool, folder, "/", name, NULL);
        if (*folder == '/' && access(file, X_OK) == 0)
            return file;
    }
    return NULL;
}

void
mc_serve_process_end(pid_t process, double seconds)
{
    static const struct timespec pause = { 0, 2000000 };
    apr_time_t until = mc_clock_now() + (apr_time_t)(seconds * 1e6);
    kill(-process, SIGTERM);
    for (;;) {
        pid_t ended = waitpid(process, NULL, WNOHANG);
        if (ended == process || (ended < 0 && errno != EINTR))
            break;
        if (mc_clock_now() > until) {
            kill(-process, SIGKILL);
            until += APR_USEC_PER_SEC;
        }
        nanosleep(&pause, NULL);
    }
    kill(-process, SIGKILL); /* of its group, whoever has outlived it */
}

void
mc_serve_process_bury(pid_t process, double seconds)
{
    static const struct timespec pause = { 0, 2000000 };
    apr_time_t until = mc_clock_now() + (apr_time_t)(seconds * 1e6);
    while (kill(-process, SIGKILL) == 0 && mc_clock_now() < until) {
        while (waitpid(-process, NULL, WNOHANG) > 0) /* those that this process has inherited */
            ;
        nanosleep(&pause, NULL);
    }
}
