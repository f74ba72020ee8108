/*
 * The seeder's workers as their caller sees them: threads or processes, with one mechanism for both. Orders go down one
 * pipe, results come back up another; both are records smaller than what a pipe writes at once, so that any number of
 * readers and writers share them without a lock. The caller never has more orders out than the pipes hold, so nobody
 * blocks for ever.
 */
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "image/scratch.h"
#include "seed/crew_private.h"

enum { WORKERS_MAX = 1000, WAIT_MS = 500, ORDERS_MAX = 2 * WORKERS_MAX };

_Static_assert(sizeof(mc_seed_call) <= 4096 && sizeof(mc_seed_result) <= 4096,
               "POSIX writes at most PIPE_BUF bytes at once");

#define MEMORY_KEPT_MAX ((size_t)512 << 20)

static void *
thread_main(void *baton)
{
    const mc_seed_seat *seat = baton;
    mc_seed_work(seat->crew, seat->number, seat->crew->process);
    return NULL;
}

/* The other half of fork(). Interrupts of the terminal, and of whoever ends all processes of a service, are the
 * parent's business; without a parent there is none. */
static _Noreturn void
run_worker_child(mc_seed_crew *crew, int number, pid_t parent)
{
    int status = EXIT_FAILURE;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(status);
    close(crew->orders[1]);
    close(crew->results[0]);
    apr_pool_t *pool;
    mc_process *process;
    apr_pool_create(&pool, NULL);
    mc_error *error = crew->plan.process_open(&process, crew->plan.baton, pool);
    if (error == MC_OK) {
        mc_seed_work(crew, number, process);
        crew->plan.process_close(process, crew->plan.baton);
        status = EXIT_SUCCESS;
    } else {
        fprintf(stderr, "a seeding process cannot start: %s\n", mc_error_chain(error, pool));
    }
    /* Not exit(): what the parent has buffered for its streams is not ours to write. */
    _exit(status);
}

static mc_error *
hire_thread(mc_seed_crew *crew, apr_pool_t *pool)
{
    mc_seed_seat *seat = &crew->seats[crew->hired];
    *seat = (mc_seed_seat){ crew, crew->hired };
    int failure = pthread_create(&crew->threads[crew->hired], NULL, thread_main, seat);
    if (failure != 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "cannot start a thread: %s", strerror(failure));
    crew->hired++;
    return MC_OK;
}

static mc_error *
hire_process(mc_seed_crew *crew, apr_pool_t *pool)
{
    fflush(NULL);
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "cannot start a process: %s", strerror(errno));
    if (child == 0)
        run_worker_child(crew, crew->hired, parent);
    crew->children[crew->hired++] = child;
    return MC_OK;
}

/* How many orders fit into the pipe at any moment: a page is free again once all of it has been read. Linux gives a
 * user with very many pipes smaller ones (pipe(7)). */
static int
orders_room(const mc_seed_crew *crew)
{
    enum { PAGE = 4096, ORDERS_OF_PAGE = PAGE / sizeof(mc_seed_call) };
    int pages = fcntl(crew->orders[1], F_GETPIPE_SZ) / PAGE;
    return pages < 2 ? 1 : (pages - 1) * ORDERS_OF_PAGE;
}

/* Enough for every worker to fill a commit, and one more each. */
static int
most_orders(const mc_seed_crew *crew)
{
    const mc_seed_plan *plan = &crew->plan;
    int tiles = plan->task.tileset->metatile_columns * plan->task.tileset->metatile_rows, room = orders_room(crew);
    int64_t most = (int64_t)plan->workers * (MC_SEED_TILES_AT_ONCE / tiles + 2);
    most = most < ORDERS_MAX ? most : ORDERS_MAX;
    return most < room ? (int)most : room;
}

/*
 * Each worker draws maps of one size all the time: the memory of a map, and as much to work it out in, stays, where the
 * system would have to clear it for each map anew.
 */
static void
keep_memory(const mc_seed_plan *plan)
{
    const mc_tileset *tileset = plan->task.tileset;
    const mc_grid *grid = plan->task.link == NULL ? NULL : plan->task.link->grid;
    if (grid == NULL || tileset->source == NULL)
        return;
    size_t width = (size_t)(tileset->metatile_columns * grid->tile_width + 2 * tileset->metabuffer);
    size_t height = (size_t)(tileset->metatile_rows * grid->tile_height + 2 * tileset->metabuffer);
    size_t bytes = width * height * 4 * 3 * (plan->processes ? 1 : (size_t)plan->workers);
    mc_scratch_keep(bytes < MEMORY_KEPT_MAX ? bytes : MEMORY_KEPT_MAX);
}

static mc_error *
share_memory(mc_seed_crew *crew, apr_pool_t *pool)
{
    pthread_mutexattr_t kind;
    crew->shared = mmap(NULL, sizeof(*crew->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crew->shared == MAP_FAILED)
        return mc_error_create(pool, MC_ERR_LIMIT, "there is no memory for the workers: %s", strerror(errno));
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&crew->shared->lock, &kind);
    pthread_mutexattr_destroy(&kind);
    mc_throttle_begin(&crew->shared->throttle, crew->plan.workers);
    atomic_init(&crew->shared->awake, crew->plan.workers);
    return MC_OK;
}

static void
close_end(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

static void
report_seed_result(mc_seed_crew *crew, const mc_seed_result *result)
{
    crew->outstanding--;
    if (result->number != MC_SEED_GIVEN_UP)
        crew->plan.report(crew->plan.baton, result);
}

/* Also of a crew that was never complete. */
static void
send_home(mc_seed_crew *crew)
{
    mc_seed_result result;
    close_end(&crew->orders[1]);
    mc_seed_wake(crew->shared, MC_SEED_HOME);
    if (crew->plan.processes) {
        /* Results that nobody took would keep their workers here; the end comes when no worker is left. */
        close_end(&crew->results[1]);
        while (crew->results[0] >= 0 && mc_seed_read_record(crew->results[0], &result, sizeof(result)))
            report_seed_result(crew, &result);
    }
    for (int i = 0; i < crew->hired; i++) {
        if (crew->plan.processes)
            waitpid(crew->children[i], NULL, 0);
        else
            pthread_join(crew->threads[i], NULL);
    }
    close_end(&crew->orders[0]);
    close_end(&crew->results[0]);
    close_end(&crew->results[1]);
    if (crew->process != NULL)
        crew->plan.process_close(crew->process, crew->plan.baton);
    crew->hired = 0;
    munmap(crew->shared, sizeof(*crew->shared));
    crew->shared = NULL;
}

static mc_error *
start_seed_workers(mc_seed_crew *crew, apr_pool_t *pool)
{
    const mc_seed_plan *plan = &crew->plan;
    if (pipe2(crew->orders, O_CLOEXEC) != 0 || pipe2(crew->results, O_CLOEXEC) != 0 ||
        fcntl(crew->orders[0], F_SETFL, O_NONBLOCK) != 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "cannot open a pipe: %s", strerror(errno));
    crew->most = most_orders(crew);
    if (!plan->processes)
        MC_TRY(plan->process_open(&crew->process, plan->baton, pool));
    for (int i = 0; i < plan->workers; i++)
        MC_TRY(plan->processes ? hire_process(crew, pool) : hire_thread(crew, pool));
    return MC_OK;
}

mc_error *
mc_seed_hire(mc_seed_crew **hired, const mc_seed_plan *plan, apr_pool_t *pool)
{
    MC_ASSERT(plan->workers >= 1 && plan->workers <= WORKERS_MAX);
    mc_seed_crew *crew = apr_pcalloc(pool, sizeof(*crew));
    *hired = NULL;
    crew->plan = *plan;
    crew->orders[0] = crew->orders[1] = crew->results[0] = crew->results[1] = -1;
    keep_memory(plan);
    crew->threads = apr_pcalloc(pool, sizeof(*crew->threads) * (size_t)plan->workers);
    crew->seats = apr_pcalloc(pool, sizeof(*crew->seats) * (size_t)plan->workers);
    crew->children = apr_pcalloc(pool, sizeof(*crew->children) * (size_t)plan->workers);
    MC_TRY(share_memory(crew, pool));
    mc_error *error = start_seed_workers(crew, pool);
    if (error != MC_OK) {
        send_home(crew);
        return error;
    }
    if (plan->processes)
        close_end(&crew->results[1]);
    *hired = crew;
    return MC_OK;
}

/* Whether a worker process has ended although there is work. Looked for now and then: a place of the work is lost with
 * it, and what comes after that place would be done in vain. */
static bool
lost_one(mc_seed_crew *crew, bool idle)
{
    siginfo_t info = { 0 };
    apr_time_t now = mc_clock_now();
    if (!crew->plan.processes || (!idle && now - crew->looked < WAIT_MS * 1000))
        return false;
    crew->looked = now;
    for (int i = 0; i < crew->hired; i++)
        if (waitid(P_PID, (id_t)crew->children[i], &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0)
            return true;
    return false;
}

/* Reports one result, or finds after at most `wait` milliseconds that there is none yet. */
static mc_error *
read_seed_result(mc_seed_crew *crew, int wait, apr_pool_t *pool)
{
    struct pollfd results = { .fd = crew->results[0], .events = POLLIN };
    mc_seed_result result;
    bool found = poll(&results, 1, wait) > 0 && (results.revents & POLLIN) != 0 &&
                 mc_seed_read_record(crew->results[0], &result, sizeof(result));
    if (found)
        report_seed_result(crew, &result);
    if (lost_one(crew, !found))
        return mc_error_create(pool, MC_ERR_IO, "a seeding process has died");
    if (!found && wait > 0 && crew->plan.idle != NULL)
        crew->plan.idle(crew->plan.baton);
    return MC_OK;
}

/* Waits until the rate allows the next order; results are reported meanwhile. */
static mc_error *
keep_rate(mc_seed_crew *crew, const volatile int *stop, apr_pool_t *pool)
{
    if (crew->plan.rate <= 0)
        return MC_OK;
    apr_time_t now = mc_clock_now();
    while (now < crew->due && (stop == NULL || *stop == 0)) {
        apr_interval_time_t left = (crew->due - now) / 1000 + 1;
        MC_TRY(read_seed_result(crew, left > WAIT_MS ? WAIT_MS : (int)left, pool));
        now = mc_clock_now();
    }
    crew->due = (crew->due > now ? crew->due : now) + (apr_interval_time_t)(1e6 / crew->plan.rate);
    return MC_OK;
}

mc_error *
mc_seed_submit(mc_seed_crew *crew, int z, int x, int y, const volatile int *stop, apr_pool_t *pool)
{
    MC_TRY(keep_rate(crew, stop, pool));
    while (crew->outstanding >= crew->most && (stop == NULL || *stop == 0))
        MC_TRY(read_seed_result(crew, WAIT_MS, pool));
    if (stop != NULL && *stop != 0)
        return MC_OK;
    mc_seed_call order = { crew->submitted++, z, x, y };
    if (!mc_seed_write_record(crew->orders[1], &order, sizeof(order)))
        return mc_error_create(pool, MC_ERR_IO, "cannot reach the seeding workers: %s", strerror(errno));
    crew->outstanding++;
    return MC_OK;
}

mc_error *
mc_seed_poll(int *outstanding, mc_seed_crew *crew, int milliseconds, apr_pool_t *pool)
{
    int before;
    mc_error *error;
    do {
        before = crew->outstanding;
        error = read_seed_result(crew, milliseconds, pool);
        milliseconds = 0;
    } while (error == MC_OK && crew->outstanding > 0 && crew->outstanding < before);
    *outstanding = crew->outstanding;
    return error;
}

int
mc_seed_room(const mc_seed_crew *crew)
{
    return crew->outstanding < crew->most ? crew->most - crew->outstanding : 0;
}

int
mc_seed_awake(const mc_seed_crew *crew)
{
    int awake = atomic_load(&crew->shared->awake);
    return awake < crew->plan.workers ? awake : crew->plan.workers;
}

void
mc_seed_recall(mc_seed_crew *crew)
{
    mc_seed_call order;
    atomic_store(&crew->shared->recalled, mc_clock_now());
    while (read(crew->orders[0], &order, sizeof(order)) == (ssize_t)sizeof(order))
        crew->outstanding--;
}

mc_error *
mc_seed_finish(mc_seed_crew *crew, apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    while (crew->outstanding > 0 && error == MC_OK)
        error = read_seed_result(crew, WAIT_MS, pool);
    if (error != MC_OK)
        mc_seed_recall(crew);
    send_home(crew);
    return error;
}
