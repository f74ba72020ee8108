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
#include "memory/scratch.h"
#include "seed/worker_pool_private.h"

enum { WORKERS_MAX = 1000, WAIT_MS = 500, ORDERS_MAX = 2 * WORKERS_MAX };

_Static_assert(sizeof(mc_seed_call) <= 4096 && sizeof(mc_seed_result) <= 4096,
               "POSIX writes at most PIPE_BUF bytes at once");

#define MEMORY_KEPT_MAX ((size_t)512 << 20)

static void *
thread_main(void *baton)
{
    const mc_seed_worker *worker = baton;
    mc_seed_work(worker->worker_pool, worker->number, worker->worker_pool->process);
    return NULL;
}

/* The other half of fork(). Interrupts of the terminal, and of whoever ends all processes of a service, are the
 * parent's business; without a parent there is none. */
static _Noreturn void
run_worker_child(mc_seed_worker_pool *worker_pool, int number, pid_t parent)
{
    int status = EXIT_FAILURE;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(status);
    close(worker_pool->orders[1]);
    close(worker_pool->results[0]);
    apr_pool_t *pool;
    mc_process *process;
    apr_pool_create(&pool, NULL);
    mc_error *error = worker_pool->plan.process_open(&process, worker_pool->plan.baton, pool);
    if (error == MC_OK) {
        mc_seed_work(worker_pool, number, process);
        worker_pool->plan.process_close(process, worker_pool->plan.baton);
        status = EXIT_SUCCESS;
    } else {
        fprintf(stderr, "a seeding process cannot start: %s\n", mc_error_chain(error, pool));
    }
    /* Not exit(): what the parent has buffered for its streams is not ours to write. */
    _exit(status);
}

static mc_error *
start_thread(mc_seed_worker_pool *worker_pool, apr_pool_t *pool)
{
    mc_seed_worker *worker = &worker_pool->worker_list[worker_pool->started];
    *worker = (mc_seed_worker){ worker_pool, worker_pool->started };
    int failure = pthread_create(&worker_pool->threads[worker_pool->started], NULL, thread_main, worker);
    if (failure != 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "cannot start a thread: %s", strerror(failure));
    worker_pool->started++;
    return MC_OK;
}

static mc_error *
start_process(mc_seed_worker_pool *worker_pool, apr_pool_t *pool)
{
    fflush(NULL);
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "cannot start a process: %s", strerror(errno));
    if (child == 0)
        run_worker_child(worker_pool, worker_pool->started, parent);
    worker_pool->children[worker_pool->started++] = child;
    return MC_OK;
}

/* How many orders fit into the pipe at any moment: a page is free again once all of it has been read. Linux gives a
 * user with very many pipes smaller ones (pipe(7)). */
static int
orders_room(const mc_seed_worker_pool *worker_pool)
{
    enum { PAGE = 4096, ORDERS_OF_PAGE = PAGE / sizeof(mc_seed_call) };
    int pages = fcntl(worker_pool->orders[1], F_GETPIPE_SZ) / PAGE;
    return pages < 2 ? 1 : (pages - 1) * ORDERS_OF_PAGE;
}

/* Enough for every worker to fill a commit, and one more each. */
static int
most_orders(const mc_seed_worker_pool *worker_pool)
{
    const mc_seed_plan *plan = &worker_pool->plan;
    int tiles = plan->task.tileset->metatile_columns * plan->task.tileset->metatile_rows,
        room = orders_room(worker_pool);
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
share_memory(mc_seed_worker_pool *worker_pool, apr_pool_t *pool)
{
    pthread_mutexattr_t kind;
    worker_pool->shared =
        mmap(NULL, sizeof(*worker_pool->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (worker_pool->shared == MAP_FAILED)
        return mc_error_create(pool, MC_ERR_LIMIT, "there is no memory for the workers: %s", strerror(errno));
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&worker_pool->shared->lock, &kind);
    pthread_mutexattr_destroy(&kind);
    mc_throttle_begin(&worker_pool->shared->throttle, worker_pool->plan.workers);
    atomic_init(&worker_pool->shared->awake, worker_pool->plan.workers);
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
report_seed_result(mc_seed_worker_pool *worker_pool, const mc_seed_result *result)
{
    worker_pool->outstanding--;
    if (result->number != MC_SEED_GIVEN_UP)
        worker_pool->plan.report(worker_pool->plan.baton, result);
}

/* Also of a worker pool that was never complete. */
static void
send_home(mc_seed_worker_pool *worker_pool)
{
    mc_seed_result result;
    close_end(&worker_pool->orders[1]);
    mc_seed_wake(worker_pool->shared, MC_SEED_ALL_WORKERS);
    if (worker_pool->plan.processes) {
        /* Results that nobody took would keep their workers here; the end comes when no worker is left. */
        close_end(&worker_pool->results[1]);
        while (worker_pool->results[0] >= 0 && mc_seed_read_record(worker_pool->results[0], &result, sizeof(result)))
            report_seed_result(worker_pool, &result);
    }
    for (int i = 0; i < worker_pool->started; i++) {
        if (worker_pool->plan.processes)
            waitpid(worker_pool->children[i], NULL, 0);
        else
            pthread_join(worker_pool->threads[i], NULL);
    }
    close_end(&worker_pool->orders[0]);
    close_end(&worker_pool->results[0]);
    close_end(&worker_pool->results[1]);
    if (worker_pool->process != NULL)
        worker_pool->plan.process_close(worker_pool->process, worker_pool->plan.baton);
    worker_pool->started = 0;
    munmap(worker_pool->shared, sizeof(*worker_pool->shared));
    worker_pool->shared = NULL;
}

static mc_error *
start_seed_workers(mc_seed_worker_pool *worker_pool, apr_pool_t *pool)
{
    const mc_seed_plan *plan = &worker_pool->plan;
    if (pipe2(worker_pool->orders, O_CLOEXEC) != 0 || pipe2(worker_pool->results, O_CLOEXEC) != 0 ||
        fcntl(worker_pool->orders[0], F_SETFL, O_NONBLOCK) != 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "cannot open a pipe: %s", strerror(errno));
    worker_pool->most = most_orders(worker_pool);
    if (!plan->processes)
        MC_TRY(plan->process_open(&worker_pool->process, plan->baton, pool));
    for (int i = 0; i < plan->workers; i++)
        MC_TRY(plan->processes ? start_process(worker_pool, pool) : start_thread(worker_pool, pool));
    return MC_OK;
}

mc_error *
mc_seed_worker_pool_start(mc_seed_worker_pool **started, const mc_seed_plan *plan, apr_pool_t *pool)
{
    MC_ASSERT(plan->workers >= 1 && plan->workers <= WORKERS_MAX);
    mc_seed_worker_pool *worker_pool = apr_pcalloc(pool, sizeof(*worker_pool));
    *started = NULL;
    worker_pool->plan = *plan;
    worker_pool->orders[0] = worker_pool->orders[1] = worker_pool->results[0] = worker_pool->results[1] = -1;
    keep_memory(plan);
    worker_pool->threads = apr_pcalloc(pool, sizeof(*worker_pool->threads) * (size_t)plan->workers);
    worker_pool->worker_list = apr_pcalloc(pool, sizeof(*worker_pool->worker_list) * (size_t)plan->workers);
    worker_pool->children = apr_pcalloc(pool, sizeof(*worker_pool->children) * (size_t)plan->workers);
    MC_TRY(share_memory(worker_pool, pool));
    mc_error *error = start_seed_workers(worker_pool, pool);
    if (error != MC_OK) {
        send_home(worker_pool);
        return error;
    }
    if (plan->processes)
        close_end(&worker_pool->results[1]);
    *started = worker_pool;
    return MC_OK;
}

/* Whether a worker process has ended although there is work. Looked for now and then: a place of the work is lost with
 * it, and what comes after that place would be done in vain. */
static bool
lost_one(mc_seed_worker_pool *worker_pool, bool idle)
{
    siginfo_t info = { 0 };
    apr_time_t now = mc_clock_now();
    if (!worker_pool->plan.processes || (!idle && now - worker_pool->looked < WAIT_MS * 1000))
        return false;
    worker_pool->looked = now;
    for (int i = 0; i < worker_pool->started; i++)
        if (waitid(P_PID, (id_t)worker_pool->children[i], &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0)
            return true;
    return false;
}

/* Reports one result, or finds after at most `wait` milliseconds that there is none yet. */
static mc_error *
read_seed_result(mc_seed_worker_pool *worker_pool, int wait, apr_pool_t *pool)
{
    struct pollfd results = { .fd = worker_pool->results[0], .events = POLLIN };
    mc_seed_result result;
    bool found = poll(&results, 1, wait) > 0 && (results.revents & POLLIN) != 0 &&
                 mc_seed_read_record(worker_pool->results[0], &result, sizeof(result));
    if (found)
        report_seed_result(worker_pool, &result);
    if (lost_one(worker_pool, !found))
        return mc_error_create(pool, MC_ERR_IO, "a seeding process has died");
    if (!found && wait > 0 && worker_pool->plan.idle != NULL)
        worker_pool->plan.idle(worker_pool->plan.baton);
    return MC_OK;
}

/* Waits until the rate allows the next order; results are reported meanwhile. */
static mc_error *
keep_rate(mc_seed_worker_pool *worker_pool, const volatile int *stop, apr_pool_t *pool)
{
    if (worker_pool->plan.rate <= 0)
        return MC_OK;
    apr_time_t now = mc_clock_now();
    while (now < worker_pool->due && (stop == NULL || *stop == 0)) {
        apr_interval_time_t left = (worker_pool->due - now) / 1000 + 1;
        MC_TRY(read_seed_result(worker_pool, left > WAIT_MS ? WAIT_MS : (int)left, pool));
        now = mc_clock_now();
    }
    worker_pool->due =
        (worker_pool->due > now ? worker_pool->due : now) + (apr_interval_time_t)(1e6 / worker_pool->plan.rate);
    return MC_OK;
}

mc_error *
mc_seed_submit(mc_seed_worker_pool *worker_pool, int z, int x, int y, const volatile int *stop, apr_pool_t *pool)
{
    MC_TRY(keep_rate(worker_pool, stop, pool));
    while (worker_pool->outstanding >= worker_pool->most && (stop == NULL || *stop == 0))
        MC_TRY(read_seed_result(worker_pool, WAIT_MS, pool));
    if (stop != NULL && *stop != 0)
        return MC_OK;
    mc_seed_call order = { worker_pool->submitted++, z, x, y };
    if (!mc_seed_write_record(worker_pool->orders[1], &order, sizeof(order)))
        return mc_error_create(pool, MC_ERR_IO, "cannot reach the seeding workers: %s", strerror(errno));
    worker_pool->outstanding++;
    return MC_OK;
}

mc_error *
mc_seed_poll(int *outstanding, mc_seed_worker_pool *worker_pool, int milliseconds, apr_pool_t *pool)
{
    int before;
    mc_error *error;
    do {
        before = worker_pool->outstanding;
        error = read_seed_result(worker_pool, milliseconds, pool);
        milliseconds = 0;
    } while (error == MC_OK && worker_pool->outstanding > 0 && worker_pool->outstanding < before);
    *outstanding = worker_pool->outstanding;
    return error;
}

int
mc_seed_room(const mc_seed_worker_pool *worker_pool)
{
    return worker_pool->outstanding < worker_pool->most ? worker_pool->most - worker_pool->outstanding : 0;
}

int
mc_seed_awake(const mc_seed_worker_pool *worker_pool)
{
    int awake = atomic_load(&worker_pool->shared->awake);
    return awake < worker_pool->plan.workers ? awake : worker_pool->plan.workers;
}

void
mc_seed_cancel(mc_seed_worker_pool *worker_pool)
{
    mc_seed_call order;
    atomic_store(&worker_pool->shared->cancelled, mc_clock_now());
    while (read(worker_pool->orders[0], &order, sizeof(order)) == (ssize_t)sizeof(order))
        worker_pool->outstanding--;
}

mc_error *
mc_seed_finish(mc_seed_worker_pool *worker_pool, apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    while (worker_pool->outstanding > 0 && error == MC_OK)
        error = read_seed_result(worker_pool, WAIT_MS, pool);
    if (error != MC_OK)
        mc_seed_cancel(worker_pool);
    send_home(worker_pool);
    return error;
}
