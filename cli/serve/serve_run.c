/* See serve_run.h. */
#include "serve_run.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve_log.h"
#include "serve_process.h"
#include "serve_save.h"
#include "serve_words.h"

enum { USUAL_PORT = 8080 };
static const apr_time_t LOOK_INTERVAL = APR_USEC_PER_SEC / 2, START_TIME = 60 * APR_USEC_PER_SEC;
static const double LASTING = 5; /* seconds: a server that ends earlier is not started again */

typedef struct serve_run {
    const mc_serve_wishes *wishes;
    mc_serve_show show;
    mc_serve_place place;
    mc_serve_address address;
    mc_serve_server server;
    mc_serve_things things;
    const apr_array_header_t *paths;       /* of const char *: the things that are files or folders */
    mc_serve_watch path_watch, file_watch; /* of the things; of files that the configuration names */
    const char *user;                      /* who serves for root; NULL: whoever has started it */
    mc_serve_save save;                    /* until the file of --save is written */
    mc_serve_log *log;                     /* what the server's programs write */
    int signals;
    pid_t browser;
    bool stopped;
    mc_error *failure; /* it cannot go on */
    apr_pool_t *pool;
} serve_run;

/* --- what the server's programs write and how they end ------------------------------------------------------------ */

static void
take_log(serve_run *run)
{
    size_t size;
    int lost;
    const char *lines = mc_serve_log_take(run->log, &size, &lost);
    for (const char *line = lines; line < lines + size; line += strlen(line) + 1)
        mc_serve_show_log(&run->show, line);
    mc_serve_show_lost(&run->show, lost);
}

static void
take_server_end(serve_run *run, const char *name, int status, double lasted)
{
    const char *how = WIFSIGNALED(status) ? apr_psprintf(run->pool, "was ended by signal %d", WTERMSIG(status))
                      : WEXITSTATUS(status) == 127
                          ? "cannot be executed"
                          : apr_psprintf(run->pool, "has ended with status %d", WEXITSTATUS(status));
    take_log(run);
    if (lasted < LASTING) {
        run->failure = mc_error_create(run->pool, MC_ERR_UNAVAILABLE, "%s %s", name, how);
        return;
    }
    mc_serve_show_failure(&run->show, apr_psprintf(run->pool, "%s %s, and is started again", name, how));
    run->failure = mc_serve_server_start(&run->server, run->pool);
}

static void
take_ended_children(serve_run *run)
{
    int status;
    double lasted;
    for (pid_t process; (process = waitpid(-1, &status, WNOHANG)) > 0;) {
        const char *name = mc_serve_server_ended(&run->server, process, &lasted);
        if (name != NULL)
            take_server_end(run, name, status, lasted);
        else if (process == run->browser && status != 0)
            mc_serve_show_note(&run->show, "the browser could not be opened: open the address yourself");
    }
}

static void
take_serve_signals(serve_run *run)
{
    struct signalfd_siginfo told;
    while (read(run->signals, &told, sizeof(told)) == (ssize_t)sizeof(told))
        if (told.ssi_signo == SIGCHLD)
            take_ended_children(run);
        else
            run->stopped = true;
}

/* Waits for something to happen, at most so long, and takes it. */
static void
take_events(serve_run *run, int milliseconds)
{
    struct pollfd waits[] = { { run->signals, POLLIN, 0 }, { mc_serve_log_event(run->log), POLLIN, 0 } };
    if (poll(waits, 2, milliseconds) <= 0)
        return;
    if (waits[1].revents != 0)
        take_log(run);
    if (waits[0].revents != 0)
        take_serve_signals(run);
}

/* --- the way to the first picture --------------------------------------------------------------------------------- */

static mc_error *
save_configuration(serve_run *run)
{
    if (run->save.name == NULL)
        return MC_OK;
    mc_error *error = mc_serve_things_save(&run->things, run->save.draft, run->pool);
    if (error != MC_OK)
        return mc_error_wrap(run->pool, error, MC_ERR_IO, "--save %s", run->wishes->save);
    return mc_serve_save_finish(&run->save, run->pool);
}

/* Signals come as events from here on; until then they end the process, and the keeper tidies up. */
static mc_error *
open_events(serve_run *run)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGHUP);
    sigaddset(&taken, SIGCHLD);
    sigprocmask(SIG_BLOCK, &taken, NULL);
    run->signals = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
    if (run->signals < 0)
        return mc_error_create(run->pool, MC_ERR_IO, "no events can be waited for: %s", strerror(errno));
    MC_TRY(mc_serve_log_open(&run->log, run->pool));
    run->server.output = mc_serve_log_output(run->log);
    return MC_OK;
}

/* Whether the server could not start because somebody has taken its port meanwhile, and another one was chosen. */
static bool
evade_port(serve_run *run)
{
    int before = run->address.port;
    if (run->wishes->port != 0 || run->stopped)
        return false;
    mc_error *error = mc_serve_address_choose(&run->address, before, false, run->pool);
    return error == MC_OK && run->address.port != before;
}

static mc_error *
start_answering(serve_run *run)
{
    apr_time_t until = mc_clock_now() + START_TIME;
    MC_TRY(mc_serve_server_start(&run->server, run->pool));
    while (!run->stopped && !mc_serve_server_answers(&run->server)) {
        take_events(run, 2);
        if (run->failure != MC_OK && evade_port(run)) {
            run->failure = MC_OK;
            mc_serve_server_stop(&run->server);
            MC_TRY(mc_serve_server_start(&run->server, run->pool));
        }
        if (run->failure != MC_OK)
            return run->failure;
        if (mc_clock_now() > until)
            return mc_error_create(run->pool, MC_ERR_UNAVAILABLE, "%s does not answer",
                                   mc_serve_server_name(&run->server));
    }
    return MC_OK;
}

static mc_error *
prepare_run(serve_run *run, const apr_array_header_t *things)
{
    const mc_serve_wishes *wishes = run->wishes;
    bool changed;
    MC_TRY(mc_serve_address_find(&run->address, wishes->listen, run->pool));
    MC_TRY(mc_serve_address_choose(&run->address, wishes->port == 0 ? USUAL_PORT : wishes->port, wishes->port != 0,
                                   run->pool));
    MC_TRY(mc_serve_server_choose(&run->server,
                                  wishes->nginx    ? MC_SERVE_NGINX
                                  : wishes->apache ? MC_SERVE_APACHE
                                                   : MC_SERVE_ANY,
                                  run->pool));
    MC_TRY(mc_serve_save_open(&run->save, wishes->save, wishes->force, run->pool));
    MC_TRY(mc_serve_leave_root(&run->user, run->pool));
    MC_TRY(mc_serve_place_open(&run->place, run->pool));
    MC_TRY(mc_serve_things_name(&run->things, things, run->place.folder, !run->address.public, run->pool));
    run->paths = mc_serve_things_paths(&run->things, run->pool);
    mc_serve_watch_begin(&run->path_watch, run->paths, run->pool); /* before the look: what changes meanwhile counts */
    MC_TRY(mc_serve_things_look(&run->things, &changed, run->pool));
    mc_serve_watch_begin(&run->file_watch, run->things.files, run->pool);
    MC_TRY(save_configuration(run));
    run->server.config = run->things.config;
    MC_TRY(open_events(run));
    return start_answering(run);
}

/* --- serving ------------------------------------------------------------------------------------------------------ */

static void
show_notes(const serve_run *run)
{
    for (int i = 0; i < run->things.notes->nelts; i++)
        mc_serve_show_note(&run->show, APR_ARRAY_IDX(run->things.notes, i, const char *));
}

static void
open_browser(serve_run *run)
{
    static const char *const openers[] = { "xdg-open", "x-www-browser", "open" };
    const char *program = NULL;
    if (run->user != NULL) {
        mc_serve_show_note(&run->show, "root opens no browser: open the address yourself");
        return;
    }
    for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]) && program == NULL; i++)
        program = mc_serve_process_find(openers[i], run->pool);
    if (program == NULL ||
        (getenv("DISPLAY") == NULL && getenv("WAYLAND_DISPLAY") == NULL && getenv("BROWSER") == NULL)) {
        mc_serve_show_note(&run->show, program == NULL
                                           ? "no program is installed that opens a browser (xdg-open)"
                                           : "there is no display for a browser: open the address yourself");
        return;
    }
    const char *const words[] = { program, mc_serve_address_url(&run->address, run->pool), NULL };
    const mc_serve_command command = { .words = words, .output = -1, .lasting = true };
    if (mc_serve_process_start(&run->browser, &command, run->pool) != MC_OK)
        mc_serve_show_note(&run->show, "the browser could not be opened: open the address yourself");
}

/* Something has changed: the server is told, unless what is there now cannot be served. */
static void
look_again(serve_run *run)
{
    bool changed;
    mc_error *error = mc_serve_things_look(&run->things, &changed, run->pool);
    if (error != MC_OK) {
        const char *words = mc_serve_error_words(error, run->pool);
        const char *end = strchr(words, '\n') == NULL ? "; " : "\n";
        mc_serve_show_failure(&run->show, apr_pstrcat(run->pool, words, end, "what was served before still is", NULL));
        return;
    }
    mc_serve_server_reload(&run->server);
    mc_serve_show_reloaded(&run->show, &run->things);
    show_notes(run);
}

/* Looks whether something has changed; both watches are asked, whatever the first one says. */
static void
look_for_changes(serve_run *run, apr_pool_t *scratch)
{
    bool things = mc_serve_watch_changed(&run->path_watch, run->paths, scratch);
    bool files = mc_serve_watch_changed(&run->file_watch, run->things.files, scratch);
    if (!things && !files)
        return;
    const char *before = apr_array_pstrcat(scratch, run->things.files, '\n');
    look_again(run);
    if (strcmp(before, apr_array_pstrcat(scratch, run->things.files, '\n')) != 0)
        mc_serve_watch_begin(&run->file_watch, run->things.files, scratch);
}

static void
serve_until_stopped(serve_run *run)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, run->pool);
    for (apr_time_t next = mc_clock_now() + LOOK_INTERVAL; !run->stopped && run->failure == MC_OK;) {
        apr_time_t now = mc_clock_now();
        take_events(run, now >= next ? 0 : (int)((next - now) / 1000) + 1);
        if (mc_clock_now() < next)
            continue;
        apr_pool_clear(scratch);
        mc_serve_show_counted(&run->show);
        look_for_changes(run, scratch);
        next = mc_clock_now() + LOOK_INTERVAL;
    }
    apr_pool_destroy(scratch);
}

static void
begin_serving(serve_run *run)
{
    if (run->wishes->port == 0 && run->address.port != USUAL_PORT)
        mc_serve_show_note(&run->show,
                           apr_psprintf(run->pool, "port %d is taken: using %d", USUAL_PORT, run->address.port));
    if (run->user != NULL)
        mc_serve_show_note(&run->show,
                           apr_psprintf(run->pool, "root has started it: the user %s reads the files", run->user));
    show_notes(run);
    mc_serve_show_serving(&run->show, &run->things, &run->server);
    if (run->wishes->open)
        open_browser(run);
}

static void
end_serve_run(serve_run *run)
{
    mc_serve_server_stop(&run->server); /* what it writes now is about its end, and nobody is told */
    mc_serve_log_close(run->log);
    if (run->place.folder != NULL)
        mc_serve_place_close(&run->place);
    mc_serve_save_drop(&run->save); /* of a run that failed before */
}

int
mc_serve_run(const mc_serve_wishes *wishes, const apr_array_header_t *things, apr_pool_t *pool)
{
    serve_run *run = apr_pcalloc(pool, sizeof(*run));
    *run = (serve_run){ .wishes = wishes, .signals = -1, .pool = pool };
    run->show = (mc_serve_show){ .quiet = wishes->quiet, .json = wishes->json, .things = &run->things, .pool = pool };
    run->server.place = &run->place;
    run->server.address = &run->address;
    signal(SIGPIPE, SIG_IGN);
    mc_error *error = prepare_run(run, things);
    if (error == MC_OK && !run->stopped) {
        begin_serving(run);
        serve_until_stopped(run);
        error = run->failure;
    }
    end_serve_run(run);
    if (error != MC_OK)
        fprintf(stderr, "mapcache serve: %s\n", mc_serve_terminal_lines(mc_serve_error_words(error, pool), pool));
    else
        mc_serve_show_stopped(&run->show);
    return error != MC_OK;
}
