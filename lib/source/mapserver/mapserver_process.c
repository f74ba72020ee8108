/* See mapserver_process.h. */
#include "source/mapserver/mapserver_process.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/module.h"
#include "base/wait.h"
#include "mapcache/buf.h"

enum { VARIABLES_MAX = 128, COMPLAINT_MAX = 1024, END_WAIT = 1000 /* ms */ };

/* --- starting --------------------------------------------------------------------------------------------------- */

/* What map files, GDAL, PROJ and the libraries of databases are configured by; nothing else of ours is handed on. */
static bool
is_for_mapserver(const char *variable)
{
    static const char *const names[] = {
        "PATH=", "HOME=", "LANG=", "LC_",   "TZ=", "TMPDIR=", "LD_LIBRARY_PATH=", "MAPSERVER", "MS_", "GDAL_",
        "OGR_",  "CPL_",  "VSI_",  "PROJ_", "PG",  "CURL_",   "FONTCONFIG_"
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* `more`: of "NAME=value", or NULL; they take the place of those of the same name. */
static char **
choose_variables(const apr_array_header_t *more, apr_pool_t *pool)
{
    const int added = more == NULL ? 0 : more->nelts;
    char **chosen = apr_pcalloc(pool, (size_t)(VARIABLES_MAX + added + 1) * sizeof(*chosen));
    int count = 0;
    for (; count < added; count++)
        chosen[count] = APR_ARRAY_IDX(more, count, char *);
    for (char **variable = environ; *variable != NULL && count < VARIABLES_MAX + added; variable++) {
        bool ours = false;
        for (int i = 0; i < added; i++)
            ours = ours || strncmp(*variable, chosen[i], strcspn(chosen[i], "=") + 1) == 0;
        if (!ours && is_for_mapserver(*variable))
            chosen[count++] = *variable;
    }
    return chosen;
}

/* What a process begins with; a descriptor of -1 is /dev/null. */
typedef struct child_start {
    const char *program, *title;
    char **variables;
    int input, output, errors;
} child_start;

static void
add_child_descriptor(posix_spawn_file_actions_t *files, int from, int to)
{
    if (from >= 0)
        posix_spawn_file_actions_adddup2(files, from, to);
    else
        posix_spawn_file_actions_addopen(files, to, "/dev/null", to == 0 ? O_RDONLY : O_WRONLY, 0);
}

/* 0, or errno. The child begins with nothing of ours but its three descriptors, and in a group of its own: an interrupt
 * of the terminal is for us to handle. */
static int
spawn_program(pid_t *pid, const child_start *start, apr_pool_t *pool)
{
    char *const arguments[] = { apr_pstrdup(pool, start->title), NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    add_child_descriptor(&files, start->input, 0);
    add_child_descriptor(&files, start->output, 1);
    add_child_descriptor(&files, start->errors, 2);
    posix_spawn_file_actions_addclosefrom_np(&files, 3);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    int status = posix_spawn(pid, start->program, &files, &attributes, arguments, start->variables);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return status;
}

static void
close_both(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* Descriptors below 3 would be in the way of the child's own. */
static bool
are_free_of_standard(const int a[2], const int b[2])
{
    return a[0] > 2 && a[1] > 2 && b[0] > 2 && b[1] > 2;
}

/* `talks`: its standard input is our socket, and nothing its standard output; else the other way round. */
static mc_error *
start_child_process(mc_mapserver_process *process, child_start *start, bool talks, apr_pool_t *pool)
{
    int pair[2], pipes[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "no sockets for a process of MapServer: %s", strerror(errno));
    if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0) {
        close_both(pair);
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "no pipe for a process of MapServer: %s", strerror(errno));
    }
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(pipes[0], F_SETPIPE_SZ, MC_MAPSERVER_COMPLAINTS_MAX); /* else 64 KB have to do */
    start->input = talks ? pair[1] : -1;
    start->output = talks ? -1 : pair[1];
    start->errors = pipes[1];
    int status = are_free_of_standard(pair, pipes) ? spawn_program(&process->pid, start, pool) : EBADF;
    close(pair[1]);
    close(pipes[1]);
    process->socket = pair[0];
    process->errors = pipes[0];
    process->watched = status == 0 ? pidfd_open(process->pid, 0) : -1;
    if (status == 0)
        return MC_OK;
    close(pair[0]);
    close(pipes[0]);
    return mc_error_create(pool, MC_ERR_UNAVAILABLE, "a process of MapServer cannot be started: %s", strerror(status));
}

mc_error *
mc_mapserver_start(mc_mapserver_process *process, apr_pool_t *pool)
{
    child_start start = { .title = "mapcache-mapserver", .variables = choose_variables(NULL, pool) };
    MC_TRY(mc_module_program(&start.program, "mapserver", pool));
    return start_child_process(process, &start, true, pool);
}

mc_error *
mc_mapserver_start_cgi(mc_mapserver_process *process, const char *program, const apr_array_header_t *variables,
                       int seconds, apr_pool_t *pool)
{
    child_start start = { .program = program, .title = program, .variables = choose_variables(variables, pool) };
    const struct rlimit no_core = { 0, 0 }, time = { (rlim_t)seconds, (rlim_t)seconds };
    MC_TRY(start_child_process(process, &start, false, pool));
    (void)prlimit(process->pid, RLIMIT_CORE, &no_core, NULL);
    (void)prlimit(process->pid, RLIMIT_CPU, &time, NULL); /* should nobody be left to kill it */
    return MC_OK;
}

/* --- talking ---------------------------------------------------------------------------------------------------- */

/* After a call of the socket that has moved nothing. */
static mc_mapserver_talk
wait_to_talk(const mc_mapserver_process *process, short events, apr_time_t until, mc_ctx *ctx)
{
    struct pollfd polled = { .fd = process->socket, .events = events };
    switch (mc_wait_socket(&polled, until, ctx)) {
    case MC_WAIT_LATE:
        return MC_MAPSERVER_LATE;
    case MC_WAIT_GONE:
        return MC_MAPSERVER_GONE;
    default:
        return MC_MAPSERVER_SAID;
    }
}

static bool
would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

mc_mapserver_talk
mc_mapserver_send(const mc_mapserver_process *process, const void *bytes, size_t size, apr_time_t until, mc_ctx *ctx)
{
    const char *from = bytes;
    while (size > 0) {
        ssize_t sent = send(process->socket, from, size, MSG_NOSIGNAL);
        if (sent < 0 && !would_block())
            return MC_MAPSERVER_ENDED;
        if (sent < 0) {
            mc_mapserver_talk waited = wait_to_talk(process, POLLOUT, until, ctx);
            if (waited != MC_MAPSERVER_SAID)
                return waited;
            continue;
        }
        from += sent;
        size -= (size_t)sent;
    }
    return MC_MAPSERVER_SAID;
}

mc_mapserver_talk
mc_mapserver_receive(const mc_mapserver_process *process, void *bytes, size_t size, apr_time_t until, mc_ctx *ctx)
{
    char *to = bytes;
    while (size > 0) {
        ssize_t got = recv(process->socket, to, size, 0);
        if (got == 0 || (got < 0 && !would_block()))
            return MC_MAPSERVER_ENDED;
        if (got < 0) {
            mc_mapserver_talk waited = wait_to_talk(process, POLLIN, until, ctx);
            if (waited != MC_MAPSERVER_SAID)
                return waited;
            continue;
        }
        to += got;
        size -= (size_t)got;
    }
    return MC_MAPSERVER_SAID;
}

mc_mapserver_talk
mc_mapserver_receive_some(size_t *got, const mc_mapserver_process *process, void *bytes, size_t size, apr_time_t until,
                          mc_ctx *ctx)
{
    for (;;) {
        ssize_t count = recv(process->socket, bytes, size, 0);
        *got = count < 0 ? 0 : (size_t)count;
        if (count >= 0)
            return MC_MAPSERVER_SAID;
        if (!would_block())
            return MC_MAPSERVER_ENDED;
        mc_mapserver_talk waited = wait_to_talk(process, POLLIN, until, ctx);
        if (waited != MC_MAPSERVER_SAID)
            return waited;
    }
}

bool
mc_mapserver_idle_well(const mc_mapserver_process *process)
{
    struct pollfd polled = { .fd = process->socket, .events = POLLIN };
    return poll(&polled, 1, 0) == 0;
}

/* What is in the pipe, without what is blank at its end, at most so many bytes; NULL: nothing. */
static const char *
read_complaints(const mc_mapserver_process *process, size_t most, apr_pool_t *pool)
{
    char some[4096];
    mc_buf *all = NULL;
    for (ssize_t got; (got = read(process->errors, some, sizeof(some))) > 0;) {
        const size_t room = all == NULL ? most : most - all->size;
        if (all == NULL)
            all = mc_buf_attach(mc_buf_create(sizeof(some), MC_MAPSERVER_COMPLAINTS_MAX), pool);
        mc_error_ignore(mc_buf_append(all, some, (size_t)got < room ? (size_t)got : room, pool));
    }
    while (all != NULL && all->size > 0 && (all->data[all->size - 1] == '\n' || all->data[all->size - 1] == ' '))
        all->size--;
    return all == NULL || all->size == 0 ? NULL : apr_pstrmemdup(pool, (const char *)all->data, all->size);
}

const char *
mc_mapserver_all_complaints(bool *whole, const mc_mapserver_process *process, apr_pool_t *pool)
{
    const int room = fcntl(process->errors, F_GETPIPE_SZ);
    const char *said = read_complaints(process, MC_MAPSERVER_COMPLAINTS_MAX, pool);
    *whole = said == NULL || strlen(said) < (size_t)(room - room / 16);
    return said;
}

const char *
mc_mapserver_complaints(const mc_mapserver_process *process, apr_pool_t *pool)
{
    return read_complaints(process, COMPLAINT_MAX, pool);
}

/* --- ending ----------------------------------------------------------------------------------------------------- */

bool
mc_mapserver_reap(const mc_mapserver_process *process)
{
    int status;
    pid_t reaped;
    do
        reaped = waitpid(process->pid, &status, WNOHANG);
    while (reaped < 0 && errno == EINTR);
    return reaped != 0; /* also where somebody else has reaped it */
}

/* A process that is killed is gone at once, unless the kernel waits for a disk or a network file system on its behalf:
 * nobody waits for that. */
bool
mc_mapserver_end(mc_mapserver_process *process)
{
    close(process->socket);
    close(process->errors);
    if (process->watched < 0) {
        kill(process->pid, SIGKILL);
        return mc_mapserver_reap(process);
    }
    struct pollfd polled = { .fd = process->watched, .events = POLLIN };
    (void)pidfd_send_signal(process->watched, SIGKILL, NULL, 0);
    while (poll(&polled, 1, END_WAIT) < 0 && errno == EINTR)
        continue;
    close(process->watched);
    return mc_mapserver_reap(process);
}
