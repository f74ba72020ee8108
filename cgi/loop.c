/* The event loop: see loop.h. */
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/slices.h"
#include "base/workers.h"
#include "connection.h"
#include "lanes.h"
#include "records.h"
#include "reloader.h"
#include "supervisor.h"

enum {
    QUICK_LEAST = 2,
    TICK_MS = 10,   /* between looks at busy threads */
    PAUSE_MS = 100, /* no connection is accepted for so long when there are too many */
    QUIET_MS = 100, /* a drained process waits for requests that are under way in sockets */
    DRAIN_MS = 10000,
    CONNECTIONS_LEAST = 64,
    DESCRIPTORS_MOST = 65536, /* more are not asked for: some libraries walk through all of them */
    IDLE_LOOKS = 8,           /* at the connections, in the time that one may be idle */
};

/* Microseconds in which the variables of a request have to come (a web server sends them at once), and in which the
 * first request of a connection has to begin. */
#define PARAMS_TIME (10 * APR_USEC_PER_SEC)
#define START_TIME (60 * APR_USEC_PER_SEC)

typedef struct watched {
    enum { WATCH_LISTENER, WATCH_CONNECTION, WATCH_WAKE } kind;
    int descriptor;
    bool registered;
    mc_connection *connection;
    mc_connection_phase phase;  /* of who serves it */
    _Atomic unsigned turns;     /* times that it was handed on: what the next thread reads is ordered by it (C11 knows
                                   nothing of epoll) */
    _Atomic apr_time_t touched; /* when it last had an event; 0: somebody serves it */
    _Atomic apr_time_t late;    /* when the variables of a request must have come; 0: none is awaited */
    struct watched *previous, *next; /* of the loop's list; its lock */
} watched;

typedef struct loop_worker {
    struct loop *loop;
    pthread_t thread;
    mc_lane lane;
} loop_worker;

typedef struct loop {
    mc_connections shared;
    int epoll;
    int wake;   /* event descriptor in the set: readable once the threads shall end */
    int notify; /* event descriptor: the supervisor has something to look at */
    int signals;
    watched *listeners;
    int listener_count;
    watched wake_watched;
    mc_lanes lanes;
    loop_worker *workers;
    int worker_count; /* lock */
    int workers_max;
    int connections_max;
    apr_interval_time_t idle_max;
    _Atomic bool help_asked;
    _Atomic bool paused; /* listeners are out of the set */
    _Atomic bool stopping;
    _Atomic int connections;
    pthread_mutex_t lock; /* of `first`, the links and the count of workers */
    watched *first;
} loop;

static void
notify_supervisor(loop *l)
{
    uint64_t one = 1;
    ssize_t written = write(l->notify, &one, sizeof(one));
    (void)written; /* fails only when it is readable anyway */
}

static void
destroy_watched_connection(loop *l, watched *w)
{
    pthread_mutex_lock(&l->lock);
    if (w->previous != NULL)
        w->previous->next = w->next;
    else
        l->first = w->next;
    if (w->next != NULL)
        w->next->previous = w->previous;
    pthread_mutex_unlock(&l->lock);
    mc_connection_destroy(w->connection);
    free(w);
    atomic_fetch_sub(&l->connections, 1);
}

/* A request of which one byte comes now and then is as bad as one of which none comes: its beginning counts. */
static void
note_phase(watched *w, apr_time_t now)
{
    mc_connection_phase phase = mc_connection_phase_of(w->connection);
    if (phase == w->phase)
        return;
    w->phase = phase;
    apr_time_t late = phase == MC_PHASE_OTHER ? 0 : now + (phase == MC_PHASE_START ? START_TIME : PARAMS_TIME);
    atomic_store_explicit(&w->late, late, memory_order_relaxed);
}

static void
serve_watched_connection(loop *l, watched *w, loop_worker *self)
{
    atomic_store_explicit(&w->touched, 0, memory_order_relaxed);
    mc_connection_wait wait = mc_connection_serve(w->connection, &l->shared, mc_lane_slow, &self->lane);
    if (wait != MC_CONNECTION_ENDS) {
        struct epoll_event event = { (wait == MC_CONNECTION_READS ? EPOLLIN : EPOLLOUT) | EPOLLONESHOT, { .ptr = w } };
        int operation = w->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
        int descriptor = w->descriptor;
        w->registered = true; /* before another thread may have it, and free it */
        note_phase(w, atomic_load_explicit(&self->lane.since, memory_order_relaxed));
        atomic_store_explicit(&w->touched, atomic_load_explicit(&self->lane.since, memory_order_relaxed),
                              memory_order_relaxed);
        atomic_fetch_add_explicit(&w->turns, 1, memory_order_release);
        if (epoll_ctl(l->epoll, operation, descriptor, &event) != 0)
            wait = MC_CONNECTION_ENDS;
    }
    if (wait == MC_CONNECTION_ENDS)
        destroy_watched_connection(l, w);
    if (atomic_load_explicit(&l->shared.draining, memory_order_relaxed))
        notify_supervisor(l);
}

static void
watch_listener(loop *l, watched *w)
{
    struct epoll_event event = { EPOLLIN | EPOLLEXCLUSIVE, { .ptr = w } };
    w->registered = epoll_ctl(l->epoll, EPOLL_CTL_ADD, w->descriptor, &event) == 0;
}

/* Takes the listeners out of the set; the supervisor puts them back. */
static void
pause_accepting(loop *l)
{
    if (atomic_exchange(&l->paused, true))
        return;
    for (int i = 0; i < l->listener_count; i++)
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->listeners[i].descriptor, NULL);
    notify_supervisor(l);
}

/* The next connection of a listener, or NULL. */
static watched *
accept_connection(loop *l, const watched *listener)
{
    if (atomic_load(&l->connections) >= l->connections_max) {
        pause_accepting(l);
        return NULL;
    }
    int descriptor = accept4(listener->descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(l);
        return NULL;
    }
    int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* refused by local sockets, which need none */
    watched *w = calloc(1, sizeof(*w));
    MC_ASSERT(w != NULL);
    w->kind = WATCH_CONNECTION;
    w->phase = MC_PHASE_OTHER;
    w->descriptor = descriptor;
    w->connection = mc_connection_create(descriptor, &l->shared);
    if (atomic_fetch_add(&l->connections, 1) == 0)
        notify_supervisor(l); /* it sleeps while there is none */
    pthread_mutex_lock(&l->lock);
    w->next = l->first;
    if (w->next != NULL)
        w->next->previous = w;
    l->first = w;
    pthread_mutex_unlock(&l->lock);
    return w;
}

static void
ask_for_help(loop *l)
{
    if (!atomic_load_explicit(&l->help_asked, memory_order_relaxed) && !atomic_exchange(&l->help_asked, true))
        notify_supervisor(l);
}

static void *
run_loop_worker(void *baton)
{
    loop_worker *self = baton;
    loop *l = self->loop;
    mc_slices_shorten(); /* but while its request is slow: mc_lane_slow */
    while (!atomic_load(&l->stopping) && mc_lane_ready(&self->lane)) {
        struct epoll_event event;
        if (epoll_wait(l->epoll, &event, 1, -1) != 1)
            continue;
        watched *w = event.data.ptr;
        if (w->kind == WATCH_WAKE)
            continue;
        mc_lane_enter(&self->lane, mc_clock_now());
        if (atomic_load_explicit(&l->lanes.running, memory_order_relaxed) >= l->lanes.quick)
            ask_for_help(l);
        (void)atomic_load_explicit(&w->turns, memory_order_acquire);
        if (w->kind == WATCH_LISTENER)
            w = accept_connection(l, w);
        if (w != NULL)
            serve_watched_connection(l, w, self);
        mc_lane_leave(&self->lane);
    }
    return NULL;
}

static bool
start_worker(void *baton)
{
    loop *l = baton;
    pthread_mutex_lock(&l->lock);
    bool started = false;
    if (l->worker_count < l->workers_max) {
        loop_worker *w = &l->workers[l->worker_count];
        w->loop = l;
        w->lane.lanes = &l->lanes;
        started = pthread_create(&w->thread, NULL, run_loop_worker, w) == 0;
        l->worker_count += started;
    }
    pthread_mutex_unlock(&l->lock);
    return started;
}

/* Nobody may be left to take events: threads that have been busy for long without having said so give way to others. */
static void
rescue_busy_lanes(loop *l)
{
    apr_time_t now = mc_clock_now();
    pthread_mutex_lock(&l->lock);
    int count = l->worker_count;
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < count; i++)
        mc_lane_rescue(&l->workers[i].lane, now, TICK_MS * 1000);
    if (atomic_load(&l->lanes.running) < l->lanes.quick)
        atomic_store(&l->help_asked, false);
}

/* Connections on which nothing has happened for too long are shut, and those whose request does not get beyond its
 * variables: their next event is their end. A web server that went without a word would else hold them for ever. */
static void
shut_idle(loop *l)
{
    apr_time_t now = mc_clock_now();
    apr_time_t limit = now - l->idle_max;
    pthread_mutex_lock(&l->lock);
    for (watched *w = l->first; w != NULL; w = w->next) {
        apr_time_t touched = atomic_load_explicit(&w->touched, memory_order_relaxed);
        apr_time_t late = atomic_load_explicit(&w->late, memory_order_relaxed);
        if (touched != 0 && (touched < limit || (late != 0 && late < now)))
            shutdown(w->descriptor, SHUT_RDWR);
    }
    pthread_mutex_unlock(&l->lock);
}

/* Whether the process goes on: SIGHUP loads the configuration again, all other signals end it. */
static bool
take_signals(loop *l, mc_reloader *reloader)
{
    struct signalfd_siginfo told;
    while (read(l->signals, &told, sizeof(told)) == (ssize_t)sizeof(told)) {
        if (told.ssi_signo != SIGHUP)
            return false;
        mc_reloader_ask(reloader);
    }
    return true;
}

static void
supervise_loop_workers(loop *l, mc_reloader *reloader)
{
    apr_interval_time_t shortest = l->idle_max < PARAMS_TIME ? l->idle_max : PARAMS_TIME;
    apr_interval_time_t between = shortest / IDLE_LOOKS + 1000;
    apr_time_t next_look = mc_clock_now() + between;
    for (;;) {
        struct pollfd waits[2] = { { l->signals, POLLIN, 0 }, { l->notify, POLLIN, 0 } };
        bool paused = atomic_load(&l->paused);
        bool asked = atomic_load(&l->help_asked);
        int idle_wait = atomic_load(&l->connections) > 0 ? (int)(between / 1000) : -1;
        if (poll(waits, 2, asked ? TICK_MS : paused ? PAUSE_MS : idle_wait) < 0 && errno != EINTR)
            return;
        if (waits[0].revents != 0 && !take_signals(l, reloader))
            return;
        if (mc_clock_now() >= next_look) {
            shut_idle(l);
            next_look = mc_clock_now() + between;
        }
        if (waits[1].revents != 0) {
            uint64_t count;
            ssize_t size = read(l->notify, &count, sizeof(count));
            (void)size;
            continue; /* what was asked for is looked at a tick later: most often it has settled by then */
        }
        if (paused && atomic_load(&l->connections) < l->connections_max) {
            atomic_store(&l->paused, false);
            for (int i = 0; i < l->listener_count; i++)
                watch_listener(l, &l->listeners[i]);
        }
        if (asked)
            rescue_busy_lanes(l);
    }
}

/* Accepts nothing more and waits until no request is left. False when there is one at the moment `end`. */
static bool
drain_loop_connections(loop *l, apr_time_t end)
{
    atomic_store(&l->shared.draining, true);
    mc_runtime *runtime = mc_generations_runtime(l->shared.generations);
    if (runtime != NULL)
        atomic_store(&mc_runtime_process(runtime)->draining, true);
    for (int i = 0; i < l->listener_count; i++) {
        if (!atomic_load(&l->paused))
            epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->listeners[i].descriptor, NULL);
        watched *w;
        while ((w = accept_connection(l, &l->listeners[i])) != NULL) {
            struct epoll_event event = { EPOLLIN | EPOLLONESHOT, { .ptr = w } };
            w->registered = true;
            epoll_ctl(l->epoll, EPOLL_CTL_ADD, w->descriptor, &event);
        }
        close(l->listeners[i].descriptor);
    }
    for (;;) {
        int left = (int)((end - mc_clock_now()) / 1000);
        if (left <= 0)
            return false;
        bool idle = atomic_load(&l->shared.active) == 0;
        struct pollfd wait = { l->notify, POLLIN, 0 };
        int ready = poll(&wait, 1, idle && left > QUIET_MS ? QUIET_MS : left);
        if (ready == 0 && idle && atomic_load(&l->shared.active) == 0)
            return true;
        if (ready > 0) {
            uint64_t count;
            ssize_t size = read(l->notify, &count, sizeof(count));
            (void)size;
        }
    }
}

static void
stop_workers(loop *l)
{
    uint64_t one = 1;
    atomic_store(&l->stopping, true);
    mc_lanes_stop(&l->lanes);
    ssize_t written = write(l->wake, &one, sizeof(one));
    (void)written;
    for (int i = 0; i < l->worker_count; i++)
        pthread_join(l->workers[i].thread, NULL);
    while (l->first != NULL)
        destroy_watched_connection(l, l->first);
    mc_lanes_destroy(&l->lanes);
}

void
mc_loop_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGUSR1);
    sigaddset(signals, SIGHUP);
}

static bool
prepare_loop_descriptors(loop *l)
{
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->notify = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigset_t signals;
    mc_loop_signals(&signals);
    l->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->epoll < 0 || l->wake < 0 || l->notify < 0 || l->signals < 0)
        return false;
    pthread_mutex_init(&l->lock, NULL);
    l->wake_watched = (watched){ .kind = WATCH_WAKE, .descriptor = l->wake };
    struct epoll_event event = { EPOLLIN, { .ptr = &l->wake_watched } };
    return epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->wake, &event) == 0;
}

static bool
listen_to(loop *l, const int *listeners, int count, apr_pool_t *pool)
{
    l->listeners = apr_pcalloc(pool, (size_t)count * sizeof(*l->listeners));
    l->listener_count = count;
    for (int i = 0; i < count; i++) {
        l->listeners[i] = (watched){ .kind = WATCH_LISTENER, .descriptor = listeners[i] };
        fcntl(listeners[i], F_SETFL, fcntl(listeners[i], F_GETFL) | O_NONBLOCK);
    }
    bool all = true;
    for (int i = 0; i < count && all; i++) {
        watch_listener(l, &l->listeners[i]);
        all = l->listeners[i].registered;
    }
    return all;
}

/* So many that descriptors are left for files, databases and origins: half of the limit, which is raised as far as the
 * system lets us. */
static int
count_connections_max(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return CONNECTIONS_LEAST;
    if (files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max < DESCRIPTORS_MOST ? files.rlim_max : DESCRIPTORS_MOST;
        if (setrlimit(RLIMIT_NOFILE, &files) != 0 && getrlimit(RLIMIT_NOFILE, &files) != 0)
            return CONNECTIONS_LEAST;
    }
    if (files.rlim_cur / 2 > MC_FCGI_CONNECTIONS_MAX)
        return MC_FCGI_CONNECTIONS_MAX;
    return files.rlim_cur / 2 > CONNECTIONS_LEAST ? (int)(files.rlim_cur / 2) : CONNECTIONS_LEAST;
}

/* Everything comes to its end, or as far as there is time for. */
static mc_loop_outcome
end_loop(loop *l, mc_reloader *reloader, const mc_ctx *ctx)
{
    apr_time_t end = mc_clock_now() + (apr_time_t)DRAIN_MS * 1000;
    mc_reloader_stop(reloader);
    mc_supervisor_tell(MC_SUPERVISED_ENDS);
    if (!drain_loop_connections(l, end)) {
        mc_log_write(ctx, MC_LOG_WARN, "%d requests were not finished in time", atomic_load(&l->shared.active));
        return MC_LOOP_LEFT;
    }
    if (!mc_reloader_wait(reloader, end)) {
        mc_log_write(ctx, MC_LOG_WARN, "a reload of the configuration was not finished in time");
        return MC_LOOP_LEFT;
    }
    stop_workers(l);
    return MC_LOOP_ENDED;
}

mc_loop_outcome
mc_loop_run(mc_generations *generations, const int *listeners, int count, const mc_loop_limits *limits,
            apr_pool_t *pool)
{
    mc_ctx ctx = { .pool = pool, .log = &mc_log_stderr };
    loop *l = apr_pcalloc(pool, sizeof(*l));
    l->shared.generations = generations;
    l->idle_max = (apr_interval_time_t)limits->idle_seconds * APR_USEC_PER_SEC;
    l->workers_max = limits->threads;
    l->connections_max = count_connections_max();
    l->workers = apr_pcalloc(pool, (size_t)limits->threads * sizeof(*l->workers));
    int quick = mc_processors() > QUICK_LEAST ? mc_processors() : QUICK_LEAST;
    mc_lanes_init(&l->lanes, quick < limits->threads ? quick : limits->threads, start_worker, l);
    bool ready = prepare_loop_descriptors(l);
    for (int i = 0; ready && i < l->lanes.quick; i++)
        ready = start_worker(l);
    mc_reloader *reloader = mc_reloader_start(generations, pool);
    ready = ready && reloader != NULL &&
            listen_to(l, listeners, count, pool); /* last: a slow request may take threads of those to come */
    if (!ready) {
        mc_log_write(&ctx, MC_LOG_CRIT, "the event loop cannot be started: %s", strerror(errno));
        return MC_LOOP_FAILED;
    }
    mc_supervisor_tell(MC_SUPERVISED_SERVES);
    supervise_loop_workers(l, reloader);
    return end_loop(l, reloader, &ctx);
}
