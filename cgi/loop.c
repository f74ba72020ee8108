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
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "records.h"

enum {
    THREADS_LEAST = 4,
    TICK_MS = 10,   /* between looks at busy threads */
    PAUSE_MS = 100, /* no connection is accepted for so long when there are too many */
    QUIET_MS = 100, /* a drained process waits for requests that are under way in sockets */
    DRAIN_MS = 10000,
};

typedef struct watched {
    enum { WATCH_LISTENER, WATCH_CONNECTION, WATCH_WAKE } kind;
    int descriptor;
    bool registered;
    mc_connection *connection;
    _Atomic unsigned turns; /* times that it was handed on: what the next thread reads is ordered by it (C11 knows
                               nothing of epoll) */
    struct watched *previous, *next; /* of the loop's list; its lock */
} watched;

typedef struct worker {
    struct loop *loop;
    pthread_t thread;
    _Atomic apr_time_t since; /* when it began what it does; 0: it waits */
} worker;

typedef struct loop {
    mc_connections shared;
    int epoll;
    int wake;   /* event descriptor in the set: readable once the threads shall end */
    int notify; /* event descriptor: the supervisor has something to look at */
    int signals;
    watched *listeners;
    int listener_count;
    watched wake_watched;
    worker *workers;
    int worker_count; /* the supervisor's alone */
    int workers_least, workers_max;
    _Atomic int waiting;
    _Atomic bool help_asked;
    _Atomic bool paused; /* listeners are out of the set */
    _Atomic bool stopping;
    _Atomic int connections;
    pthread_mutex_t lock; /* of `first` and the links */
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
forget(loop *l, watched *w)
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

static void
serve(loop *l, watched *w)
{
    mc_connection_wait wait = mc_connection_serve(w->connection, &l->shared);
    if (wait != MC_WAIT_NOT) {
        struct epoll_event event = { (wait == MC_WAIT_INPUT ? EPOLLIN : EPOLLOUT) | EPOLLONESHOT, { .ptr = w } };
        int operation = w->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
        int descriptor = w->descriptor;
        w->registered = true; /* before another thread may have it, and free it */
        atomic_fetch_add_explicit(&w->turns, 1, memory_order_release);
        if (epoll_ctl(l->epoll, operation, descriptor, &event) != 0)
            wait = MC_WAIT_NOT;
    }
    if (wait == MC_WAIT_NOT)
        forget(l, w);
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
    if (atomic_load(&l->connections) >= MC_FCGI_CONNECTIONS_MAX) {
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
    w->descriptor = descriptor;
    w->connection = mc_connection_create(descriptor);
    atomic_fetch_add(&l->connections, 1);
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
work(void *baton)
{
    worker *self = baton;
    loop *l = self->loop;
    while (!atomic_load(&l->stopping)) {
        struct epoll_event event;
        atomic_fetch_add(&l->waiting, 1);
        int count = epoll_wait(l->epoll, &event, 1, -1);
        bool last = atomic_fetch_sub(&l->waiting, 1) == 1;
        if (count != 1)
            continue;
        watched *w = event.data.ptr;
        if (w->kind == WATCH_WAKE)
            continue;
        atomic_store_explicit(&self->since, apr_time_now(), memory_order_relaxed);
        if (last)
            ask_for_help(l);
        (void)atomic_load_explicit(&w->turns, memory_order_acquire);
        if (w->kind == WATCH_LISTENER)
            w = accept_connection(l, w);
        if (w != NULL)
            serve(l, w);
        atomic_store_explicit(&self->since, 0, memory_order_relaxed);
    }
    return NULL;
}

static bool
start_worker(loop *l)
{
    worker *w = &l->workers[l->worker_count];
    w->loop = l;
    if (pthread_create(&w->thread, NULL, work, w) != 0)
        return false;
    l->worker_count++;
    return true;
}

/* Nobody waits for events: where that is because threads have long been busy, others take their place; the more are
 * busy, the more at once, so that a crowd of waiting requests does not hold up the quick ones for long. */
static void
help(loop *l)
{
    if (atomic_load(&l->waiting) > 0) {
        atomic_store(&l->help_asked, false);
        return;
    }
    apr_time_t now = apr_time_now();
    int available = 0;
    for (int i = 0; i < l->worker_count; i++) {
        apr_time_t since = atomic_load_explicit(&l->workers[i].since, memory_order_relaxed);
        if (since == 0 || now - since < TICK_MS * 1000)
            available++;
    }
    int wanted = l->worker_count / 2 > l->workers_least ? l->worker_count / 2 : l->workers_least;
    for (; available < wanted && l->worker_count < l->workers_max; available++)
        if (!start_worker(l))
            return;
}

static void
supervise(loop *l)
{
    for (;;) {
        struct pollfd waits[2] = { { l->signals, POLLIN, 0 }, { l->notify, POLLIN, 0 } };
        bool paused = atomic_load(&l->paused);
        bool asked = atomic_load(&l->help_asked) && l->worker_count < l->workers_max;
        if (poll(waits, 2, asked ? TICK_MS : paused ? PAUSE_MS : -1) < 0 && errno != EINTR)
            return;
        if (waits[0].revents != 0)
            return;
        if (waits[1].revents != 0) {
            uint64_t count;
            ssize_t size = read(l->notify, &count, sizeof(count));
            (void)size;
            continue; /* what was asked for is looked at a tick later: most often it has settled by then */
        }
        if (paused && atomic_load(&l->connections) < MC_FCGI_CONNECTIONS_MAX) {
            atomic_store(&l->paused, false);
            for (int i = 0; i < l->listener_count; i++)
                watch_listener(l, &l->listeners[i]);
        }
        if (asked)
            help(l);
    }
}

/* Accepts nothing more and waits until no request is left. False when that took too long. */
static bool
drain(loop *l)
{
    atomic_store(&l->shared.draining, true);
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
    apr_time_t end = apr_time_now() + (apr_time_t)DRAIN_MS * 1000;
    for (;;) {
        int left = (int)((end - apr_time_now()) / 1000);
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
    ssize_t written = write(l->wake, &one, sizeof(one));
    (void)written;
    for (int i = 0; i < l->worker_count; i++)
        pthread_join(l->workers[i].thread, NULL);
    while (l->first != NULL)
        forget(l, l->first);
}

static bool
prepare(loop *l, const int *listeners, int count, apr_pool_t *pool)
{
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->notify = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGUSR1);
    l->signals = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->epoll < 0 || l->wake < 0 || l->notify < 0 || l->signals < 0)
        return false;
    pthread_mutex_init(&l->lock, NULL);
    l->wake_watched = (watched){ .kind = WATCH_WAKE, .descriptor = l->wake };
    struct epoll_event event = { EPOLLIN, { .ptr = &l->wake_watched } };
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->wake, &event) != 0)
        return false;
    l->listeners = apr_pcalloc(pool, (size_t)count * sizeof(*l->listeners));
    l->listener_count = count;
    for (int i = 0; i < count; i++) {
        l->listeners[i] = (watched){ .kind = WATCH_LISTENER, .descriptor = listeners[i] };
        fcntl(listeners[i], F_SETFL, fcntl(listeners[i], F_GETFL) | O_NONBLOCK);
        watch_listener(l, &l->listeners[i]);
        if (!l->listeners[i].registered)
            return false;
    }
    return true;
}

int
mc_loop_run(mc_generations *generations, const int *listeners, int count, int threads_max, apr_pool_t *pool)
{
    mc_ctx ctx = { .pool = pool, .log = &mc_log_stderr };
    loop *l = apr_pcalloc(pool, sizeof(*l));
    l->shared.generations = generations;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    l->workers_least = processors * 2 > THREADS_LEAST ? (int)processors * 2 : THREADS_LEAST;
    if (l->workers_least > threads_max)
        l->workers_least = threads_max;
    l->workers_max = threads_max;
    l->workers = apr_pcalloc(pool, (size_t)threads_max * sizeof(*l->workers));
    bool ready = prepare(l, listeners, count, pool);
    while (ready && l->worker_count < l->workers_least)
        ready = start_worker(l);
    if (!ready) {
        mc_log_write(&ctx, MC_LOG_CRIT, "the event loop cannot be started: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    supervise(l);
    if (!drain(l)) {
        mc_log_write(&ctx, MC_LOG_WARN, "%d requests were not finished in time", atomic_load(&l->shared.active));
        _exit(EXIT_SUCCESS); /* their threads still use everything */
    }
    stop_workers(l);
    return EXIT_SUCCESS;
}
