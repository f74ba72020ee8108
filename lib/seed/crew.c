/*
 * The seeder's workers: threads or processes, with one mechanism for both. Orders go down one pipe, results come back
 * up another; both are records smaller than what a pipe writes at once, so that any number of readers and writers share
 * them without a lock. The caller never has more orders out than the pipes hold, so nobody blocks for ever.
 */
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/workers.h"
#include "image/scratch.h"
#include "mapcache/seed.h"

typedef struct order {
    int64_t number;
    int z, x, y;
} order;

/* A commit for so many tiles, or after so many microseconds: what a killed worker loses at most. */
enum { TILES_AT_ONCE = 1000, COMMIT_EVERY = 500000 };

enum { WORKERS_MAX = 1000, WAIT_MS = 500, ORDERS_MAX = 2 * WORKERS_MAX };

_Static_assert(sizeof(order) <= 4096 && sizeof(mc_seed_result) <= 4096, "POSIX writes at most PIPE_BUF bytes at once");
_Static_assert(ORDERS_MAX * sizeof(order) <= 65536, "a pipe holds all orders that may be out");

#define MEMORY_KEPT_MAX ((size_t)512 << 20)

struct mc_seed_crew {
    mc_seed_plan plan;
    int orders[2], results[2]; /* pipes: read end, write end */
    int outstanding, most;     /* orders that have no result yet, and how many may be */
    int64_t submitted;
    int hired;
    pthread_t *threads;
    pid_t *children;
    mc_process *process; /* of threads */
    apr_time_t due;      /* when the rate allows the next order */
};

/* A whole record, or false at the end of the pipe. */
static bool
read_record(int fd, void *record, size_t size)
{
    ssize_t got;
    do
        got = read(fd, record, size);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)size;
}

static bool
write_record(int fd, const void *record, size_t size)
{
    ssize_t put;
    do
        put = write(fd, record, size);
    while (put < 0 && errno == EINTR);
    return put == (ssize_t)size;
}

static void
pause_for(apr_interval_time_t microseconds)
{
    struct timespec left = { microseconds / 1000000, microseconds % 1000000 * 1000 };
    while (microseconds > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* A worker, and its results that wait for a commit: nobody is told of a tile that could still be lost. */
typedef struct worker {
    const mc_seed_crew *crew;
    mc_ctx ctx;
    mc_seed_result *waiting;
    int count;
    apr_time_t since; /* when the first of them began to wait */
} worker;

static void
fail(mc_seed_result *result, const mc_error *error, apr_pool_t *pool)
{
    result->outcome = MC_SEED_FAILED;
    apr_cpystrn(result->message, mc_error_chain(error, pool), sizeof(result->message));
}

/* Commits what waits and tells. False when nobody listens any more. */
static bool
settle(worker *me)
{
    if (me->count == 0)
        return true;
    mc_error *error = mc_cache_writes_flush(&me->ctx);
    bool heard = true;
    for (int i = 0; i < me->count && heard; i++) {
        if (error != MC_OK && me->waiting[i].outcome == MC_SEED_DONE)
            fail(&me->waiting[i], error, me->ctx.pool);
        heard = write_record(me->crew->results[1], &me->waiting[i], sizeof(me->waiting[i]));
    }
    me->count = 0;
    apr_pool_clear(me->ctx.pool);
    return heard;
}

/* What another try may mend: the origin or the store were away or slow. */
static bool
may_pass(const mc_error *error)
{
    return error->kind == MC_ERR_UNAVAILABLE || error->kind == MC_ERR_TIMEOUT || error->kind == MC_ERR_UPSTREAM ||
           error->kind == MC_ERR_IO;
}

/* Pauses grow from a tenth of a second to one, so that an origin in trouble is left alone, and an interrupt ends soon.
 */
static mc_error *
act(mc_seed_outcome *outcome, worker *me, const order *order)
{
    const mc_seed_plan *plan = &me->crew->plan;
    for (int attempt = 0;; attempt++) {
        mc_error *error = mc_seed_act(outcome, &plan->task, order->z, order->x, order->y, &me->ctx);
        if (error == MC_OK || attempt >= plan->retries || !may_pass(error))
            return error;
        pause_for(attempt < 4 ? (apr_interval_time_t)100000 << attempt : APR_USEC_PER_SEC);
    }
}

static void
carry_out(worker *me, const order *order)
{
    mc_seed_result *result = &me->waiting[me->count];
    if (me->count++ == 0)
        me->since = apr_time_now();
    *result = (mc_seed_result){ .number = order->number, .z = order->z, .x = order->x, .y = order->y };
    mc_error *error = act(&result->outcome, me, order);
    if (error != MC_OK)
        fail(result, error, me->ctx.pool);
    apr_pool_clear(me->ctx.pool); /* the map's pixels: the tiles that wait for the commit are held by themselves */
}

static bool
must_settle(const worker *me)
{
    return me->count == TILES_AT_ONCE || mc_cache_writes_count(me->ctx.writes) >= TILES_AT_ONCE ||
           apr_time_now() - me->since >= COMMIT_EVERY || mc_cache_writes_count(me->ctx.writes) == 0;
}

/* The next order, once there is one; what waits is settled before. False at the end. */
static bool
next_order(order *order, worker *me)
{
    for (;;) {
        ssize_t got = read(me->crew->orders[0], order, sizeof(*order));
        if (got == (ssize_t)sizeof(*order))
            return true;
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) || !settle(me))
            return false;
        struct pollfd orders = { .fd = me->crew->orders[0], .events = POLLIN };
        poll(&orders, 1, -1);
    }
}

/* A worker's life: until there are no more orders. Memory goes back after each metatile. */
static void
work(const mc_seed_crew *crew, mc_process *process)
{
    apr_pool_t *pool = mc_job_pool_acquire(), *scratch;
    apr_pool_create(&scratch, pool);
    worker me = { .crew = crew,
                  .ctx = { .pool = scratch,
                           .process = process,
                           .log = crew->plan.log,
                           .headers = crew->plan.task.headers,
                           .writes = mc_cache_writes_create(pool) },
                  .waiting = apr_palloc(pool, sizeof(mc_seed_result) * TILES_AT_ONCE) };
    order order;
    bool heard = true;
    while (heard && next_order(&order, &me)) {
        carry_out(&me, &order);
        if (must_settle(&me))
            heard = settle(&me);
    }
    settle(&me);
    mc_job_pool_release(pool);
}

static void *
thread_main(void *baton)
{
    const mc_seed_crew *crew = baton;
    work(crew, crew->process);
    return NULL;
}

/* The other half of fork(). Interrupts of the terminal are the parent's business; without a parent there is none. */
static _Noreturn void
child_main(mc_seed_crew *crew)
{
    int status = EXIT_FAILURE;
    signal(SIGINT, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    close(crew->orders[1]);
    close(crew->results[0]);
    apr_pool_t *pool;
    mc_process *process;
    apr_pool_create(&pool, NULL);
    mc_error *error = crew->plan.process_open(&process, crew->plan.baton, pool);
    if (error == MC_OK) {
        work(crew, process);
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
    if (crew->hired > 0)
        pause_for((apr_interval_time_t)(crew->plan.thread_delay * 1e6));
    int failure = pthread_create(&crew->threads[crew->hired], NULL, thread_main, crew);
    if (failure != 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "cannot start a thread: %s", strerror(failure));
    crew->hired++;
    return MC_OK;
}

static mc_error *
hire_process(mc_seed_crew *crew, apr_pool_t *pool)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "cannot start a process: %s", strerror(errno));
    if (child == 0)
        child_main(crew);
    crew->children[crew->hired++] = child;
    return MC_OK;
}

static void
send_home(mc_seed_crew *crew)
{
    close(crew->orders[1]);
    for (int i = 0; i < crew->hired; i++) {
        if (crew->plan.processes)
            waitpid(crew->children[i], NULL, 0);
        else
            pthread_join(crew->threads[i], NULL);
    }
    close(crew->orders[0]);
    close(crew->results[0]);
    if (crew->results[1] >= 0)
        close(crew->results[1]);
    if (crew->process != NULL)
        crew->plan.process_close(crew->process, crew->plan.baton);
    crew->hired = 0;
}

/* Enough for every worker to fill a commit, and one more each. */
static int
most_orders(const mc_seed_plan *plan)
{
    int tiles = plan->task.tileset->metatile_columns * plan->task.tileset->metatile_rows;
    int64_t most = (int64_t)plan->workers * (TILES_AT_ONCE / tiles + 2);
    return most < ORDERS_MAX ? (int)most : ORDERS_MAX;
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

mc_error *
mc_seed_hire(mc_seed_crew **hired, const mc_seed_plan *plan, apr_pool_t *pool)
{
    MC_ASSERT(plan->workers >= 1 && plan->workers <= WORKERS_MAX);
    mc_seed_crew *crew = apr_pcalloc(pool, sizeof(*crew));
    *hired = crew;
    crew->plan = *plan;
    keep_memory(plan);
    crew->threads = apr_pcalloc(pool, sizeof(*crew->threads) * (size_t)plan->workers);
    crew->children = apr_pcalloc(pool, sizeof(*crew->children) * (size_t)plan->workers);
    if (pipe2(crew->orders, O_CLOEXEC) != 0 || pipe2(crew->results, O_CLOEXEC) != 0 ||
        fcntl(crew->orders[0], F_SETFL, O_NONBLOCK) != 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "cannot open a pipe: %s", strerror(errno));
    crew->most = most_orders(plan);
    mc_error *error = MC_OK;
    if (!plan->processes)
        MC_TRY(plan->process_open(&crew->process, plan->baton, pool));
    for (int i = 0; i < plan->workers && error == MC_OK; i++)
        error = plan->processes ? hire_process(crew, pool) : hire_thread(crew, pool);
    if (error != MC_OK) {
        send_home(crew);
        return error;
    }
    if (plan->processes) {
        /* The end of the results then means that no worker is left. */
        close(crew->results[1]);
        crew->results[1] = -1;
    }
    return MC_OK;
}

/* Whether a worker process has ended although there is work. */
static bool
lost_one(const mc_seed_crew *crew)
{
    siginfo_t info = { 0 };
    for (int i = 0; crew->plan.processes && i < crew->hired; i++)
        if (waitid(P_PID, (id_t)crew->children[i], &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0)
            return true;
    return false;
}

/* Reports one result, or finds after at most `wait` milliseconds that there is none yet. */
static mc_error *
take_result(mc_seed_crew *crew, int wait, apr_pool_t *pool)
{
    struct pollfd results = { .fd = crew->results[0], .events = POLLIN };
    int ready = poll(&results, 1, wait);
    if (ready > 0 && (results.revents & POLLIN) != 0) {
        mc_seed_result result;
        if (read_record(crew->results[0], &result, sizeof(result))) {
            crew->outstanding--;
            crew->plan.report(crew->plan.baton, &result);
            return MC_OK;
        }
    }
    if (lost_one(crew))
        return mc_error_create(pool, MC_ERR_IO, "a seeding process has died");
    if (wait > 0 && crew->plan.idle != NULL)
        crew->plan.idle(crew->plan.baton);
    return MC_OK;
}

/* Waits until the rate allows the next order; results are reported meanwhile. */
static mc_error *
keep_rate(mc_seed_crew *crew, const volatile int *stop, apr_pool_t *pool)
{
    if (crew->plan.rate <= 0)
        return MC_OK;
    apr_time_t now = apr_time_now();
    while (now < crew->due && (stop == NULL || *stop == 0)) {
        apr_interval_time_t left = (crew->due - now) / 1000 + 1;
        MC_TRY(take_result(crew, left > WAIT_MS ? WAIT_MS : (int)left, pool));
        now = apr_time_now();
    }
    crew->due = (crew->due > now ? crew->due : now) + (apr_interval_time_t)(1e6 / crew->plan.rate);
    return MC_OK;
}

mc_error *
mc_seed_submit(mc_seed_crew *crew, int z, int x, int y, const volatile int *stop, apr_pool_t *pool)
{
    MC_TRY(keep_rate(crew, stop, pool));
    while (crew->outstanding >= crew->most && (stop == NULL || *stop == 0))
        MC_TRY(take_result(crew, WAIT_MS, pool));
    if (stop != NULL && *stop != 0)
        return MC_OK;
    order order = { crew->submitted++, z, x, y };
    if (!write_record(crew->orders[1], &order, sizeof(order)))
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
        error = take_result(crew, milliseconds, pool);
        milliseconds = 0;
    } while (error == MC_OK && crew->outstanding > 0 && crew->outstanding < before);
    *outstanding = crew->outstanding;
    return error;
}

void
mc_seed_recall(mc_seed_crew *crew)
{
    order order;
    while (read(crew->orders[0], &order, sizeof(order)) == (ssize_t)sizeof(order))
        crew->outstanding--;
}

mc_error *
mc_seed_finish(mc_seed_crew *crew, apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    while (crew->outstanding > 0 && error == MC_OK)
        error = take_result(crew, WAIT_MS, pool);
    send_home(crew);
    return error;
}
