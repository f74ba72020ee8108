/*
 * `mapcache jobs work -p COUNT`: so many workers, each a process with leases of its own, so that one that dies takes
 * nothing with it but what it holds. They are forked before anything is open. The parent only looks after them, and
 * shows what all of them have done.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/common/interrupt.h"
#include "jobs.h"

enum { LOOK_MS = 500 };

typedef struct slot {
    pid_t child; /* 0: it has ended */
    mc_jobs_session_result result;
    int64_t job;
} slot;

/* Shared with the children; each writes its own slot. */
typedef struct team {
    volatile int stop;
    int count;
    slot slots[];
} team;

static team *ours; /* of a child: who becomes an orphan stops all of them */

static void
on_orphaned(int signal_number)
{
    (void)signal_number;
    ours->stop = 1;
}

static void
store_process_progress(void *baton, const mc_jobs_session_result *so_far, int64_t job)
{
    slot *mine = baton;
    mine->result = *so_far;
    mine->job = job;
}

/* Interrupts are the parent's business: of a terminal, or of whoever ends a service, all processes get them. */
static _Noreturn void
run_jobs_child(jobs_cli *cli, slot *mine, pid_t parent, const sigset_t *before)
{
    struct sigaction orphaned = { .sa_handler = on_orphaned, .sa_flags = SA_RESTART };
    int status = EXIT_FAILURE;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    sigaction(SIGUSR1, &orphaned, NULL);
    sigprocmask(SIG_SETMASK, before, NULL);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() != parent)
        _exit(status);
    const char *problem = mc_cli_jobs_open(cli, cli->options.processes);
    if (problem != NULL) {
        fprintf(stderr, "mapcache jobs work: %s\n", problem);
        _exit(status);
    }
    mc_jobs_session session = mc_cli_jobs_session(cli, &ours->stop);
    mc_jobs_session_result result;
    session.show = store_process_progress;
    session.baton = mine;
    mc_error *error = mc_jobs_work(&result, &session, cli->pool);
    status = error == MC_OK ? EXIT_SUCCESS : mc_cli_jobs_failed(cli, error);
    store_process_progress(mine, &result, 0);
    if (!result.late)
        mc_runtime_destroy(cli->runtime);
    _exit(status); /* not exit(): what the parent has buffered for its streams is not ours to write */
}

/* Takes note of who has ended. */
static int
reap_ended_children(team *team, int *status)
{
    int left = 0;
    for (int i = 0; i < team->count; i++) {
        slot *slot = &team->slots[i];
        int how = 0;
        if (slot->child != 0 && waitpid(slot->child, &how, WNOHANG) == slot->child) {
            slot->child = 0;
            if (WIFSIGNALED(how))
                fprintf(stderr,
                        "mapcache jobs work: a process was ended by signal %d: what it held comes back when"
                        " its lease ends\n",
                        WTERMSIG(how));
            if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
                *status = 1;
        }
        left += slot->child != 0;
    }
    return left;
}

static mc_jobs_session_result
sum_process_results(const team *team, int64_t *job)
{
    mc_jobs_session_result all = { 0 };
    *job = 0;
    for (int i = 0; i < team->count; i++) {
        const mc_jobs_session_result *one = &team->slots[i].result;
        all.done += one->done;
        all.skipped += one->skipped;
        all.failed += one->failed;
        all.tiles += one->tiles;
        all.units += one->units;
        all.lost += one->lost;
        if (team->slots[i].child != 0 && team->slots[i].job != 0)
            *job = team->slots[i].job;
    }
    return all;
}

/* The first interrupt ends the work, a later one the processes. */
static void
interrupt_jobs_team(team *team)
{
    static apr_time_t first;
    apr_time_t now = mc_clock_now();
    first = first == 0 ? now : first;
    team->stop = 1;
    if (now - first < MC_CLI_SAME_INTERRUPT)
        return;
    for (int i = 0; i < team->count; i++)
        if (team->slots[i].child != 0)
            kill(team->slots[i].child, SIGKILL);
    _exit(2);
}

static int
supervise_jobs_team(team *team, const jobs_cli *cli, const sigset_t *signals, int status)
{
    jobs_display display = mc_cli_jobs_display(cli);
    const struct timespec pause = { 0, LOOK_MS * 1000000L };
    int64_t job;
    while (reap_ended_children(team, &status) > 0) {
        int got = sigtimedwait(signals, NULL, &pause);
        if (got == SIGINT || got == SIGTERM)
            interrupt_jobs_team(team);
        mc_jobs_session_result so_far = sum_process_results(team, &job);
        mc_cli_jobs_progress(&display, &so_far, job);
    }
    mc_jobs_session_result result = sum_process_results(team, &job);
    mc_cli_jobs_end(&display, &result, status);
    return status;
}

int
mc_cli_jobs_processes(jobs_cli *cli)
{
    size_t size = sizeof(team) + sizeof(slot) * (size_t)cli->options.processes;
    team *team = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sigset_t signals, before;
    pid_t parent = getpid();
    int status = 0;
    MC_ASSERT(team != MAP_FAILED);
    ours = team;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &before);
    fflush(NULL);
    for (; team->count < cli->options.processes; team->count++) {
        slot *slot = &team->slots[team->count];
        pid_t child = fork();
        if (child == 0)
            run_jobs_child(cli, slot, parent, &before);
        if (child < 0) {
            fprintf(stderr, "mapcache jobs work: cannot start a process: %s\n", strerror(errno));
            team->stop = 1;
            status = 1;
            break;
        }
        slot->child = child;
    }
    status = supervise_jobs_team(team, cli, &signals, status);
    munmap(team, size);
    return status;
}
