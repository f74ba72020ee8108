#include "base/resolve.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/wait.h"

enum {
    QUESTIONS_MAX = 64,         /* names under way or remembered */
    ANSWER_SECONDS = 10,        /* so long is an answer shared */
    FAILURE_SECONDS = 1,        /* and that there is none */
    RESOLVER_STACK = 512 << 10, /* the C library loads modules of its own for a name */
};

/* One name, asked for once by whomever needs it. */
typedef struct host_question {
    char *host;
    bool answered;
    int wrong; /* of getaddrinfo() */
    mc_addresses answer;
    apr_time_t forget; /* once it is answered */
    int references;    /* the table, the thread that asks, those who wait */
    pthread_cond_t changed;
} host_question;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below, and of the questions */
static host_question *questions[QUESTIONS_MAX];

/* Lock held. */
static void
release_question(host_question *asked)
{
    if (--asked->references > 0)
        return;
    pthread_cond_destroy(&asked->changed);
    free(asked->host);
    free(asked);
}

static void
add_address(mc_addresses *found, const struct addrinfo *from)
{
    mc_address *address = &found->at[found->count];
    if (from->ai_addrlen > sizeof(address->socket))
        return;
    memcpy(&address->socket, from->ai_addr, from->ai_addrlen);
    address->size = from->ai_addrlen;
    if (getnameinfo(from->ai_addr, from->ai_addrlen, address->text, sizeof(address->text), NULL, 0, NI_NUMERICHOST) ==
        0)
        found->count++;
}

/* getaddrinfo()'s status; 0: there is at least one address. */
static int
ask_system(mc_addresses *found, const char *host, int flags)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags };
    struct addrinfo *list = NULL;
    found->count = 0;
    int wrong = getaddrinfo(host, NULL, &hints, &list);
    if (wrong != 0)
        return wrong;
    for (const struct addrinfo *at = list; at != NULL && found->count < MC_ADDRESSES_MAX; at = at->ai_next)
        add_address(found, at);
    freeaddrinfo(list);
    return found->count > 0 ? 0 : EAI_NODATA;
}

static void *
answer_question(void *baton)
{
    host_question *asked = baton;
    mc_addresses answer;
    int wrong = ask_system(&answer, asked->host, 0);
    pthread_mutex_lock(&lock);
    asked->answer = answer;
    asked->wrong = wrong;
    asked->answered = true;
    asked->forget = mc_clock_now() + (wrong == 0 ? ANSWER_SECONDS : FAILURE_SECONDS) * APR_USEC_PER_SEC;
    pthread_cond_broadcast(&asked->changed);
    release_question(asked);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The thread outlives whoever waits: nothing ends getaddrinfo(). */
static bool
start_resolver(host_question *asked)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, RESOLVER_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool started = mc_thread_start(&thread, &attributes, answer_question, asked) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

/* A new question in a free place of the table; NULL: so many are under way, or there is no thread. Lock held. */
static host_question *
ask_question(host_question **place, const char *host)
{
    host_question *asked = place == NULL ? NULL : calloc(1, sizeof(*asked));
    if (asked == NULL)
        return NULL;
    asked->host = strdup(host);
    mc_clock_condition(&asked->changed);
    asked->references = 2;
    if (asked->host == NULL || !start_resolver(asked)) {
        asked->references = 1;
        release_question(asked);
        return NULL;
    }
    *place = asked;
    return asked;
}

/* Lock held. */
static void
forget_question(host_question **place)
{
    release_question(*place);
    *place = NULL;
}

/* What is known or being asked of that host. Lock held. */
static host_question *
find_host_question(const char *host)
{
    host_question **place = NULL;
    host_question **spare = NULL;
    host_question *found = NULL;
    apr_time_t now = mc_clock_now();
    for (int i = 0; i < QUESTIONS_MAX; i++) {
        if (questions[i] != NULL && questions[i]->answered && now >= questions[i]->forget)
            forget_question(&questions[i]);
        if (questions[i] == NULL)
            place = &questions[i];
        else if (questions[i]->answered && strcmp(questions[i]->host, host) != 0)
            spare = &questions[i];
        else if (strcmp(questions[i]->host, host) == 0)
            found = questions[i];
    }
    if (found != NULL)
        return found;
    if (place == NULL && spare != NULL)
        forget_question(place = spare); /* what is known makes room for what is asked */
    return ask_question(place, host);
}

static void
lock_questions(void)
{
    pthread_mutex_lock(&lock);
}

static void
unlock_questions(void)
{
    pthread_mutex_unlock(&lock);
}

/* In the child of a fork, which has none of the threads that ask: what they were asking is asked again. Those who
 * waited for it are not there either. */
static void
drop_open_questions(void)
{
    for (int i = 0; i < QUESTIONS_MAX; i++)
        if (questions[i] != NULL && !questions[i]->answered)
            questions[i] = NULL;
    pthread_mutex_unlock(&lock);
}

static void
watch_resolver_forks(void)
{
    pthread_atfork(lock_questions, unlock_questions, drop_open_questions);
}

static mc_error *
unknown_host(const char *host, int wrong, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_IO, "the address of host \"%s\": %s", host, gai_strerror(wrong));
}

/* Lock held, given up while waiting. */
static mc_error *
await_answer(mc_addresses *found, host_question *asked, apr_time_t until, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_wait_end end = MC_WAIT_READY;
    while (!asked->answered && end == MC_WAIT_READY)
        end = mc_wait_condition(&asked->changed, &lock, until, ctx);
    if (!asked->answered && end == MC_WAIT_GONE)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the client has gone");
    if (!asked->answered)
        return mc_error_create(pool, MC_ERR_TIMEOUT, "no name server told the address of host \"%s\" in time",
                               asked->host);
    if (asked->wrong != 0)
        return unknown_host(asked->host, asked->wrong, pool);
    *found = asked->answer;
    return MC_OK;
}

mc_error *
mc_resolve_host(mc_addresses *found, const char *host, apr_time_t until, mc_ctx *ctx, apr_pool_t *pool)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (ask_system(found, host, AI_NUMERICHOST) == 0)
        return MC_OK;
    pthread_once(&once, watch_resolver_forks);
    pthread_mutex_lock(&lock);
    host_question *asked = find_host_question(host);
    mc_error *error = MC_OK;
    if (asked == NULL) {
        error = mc_error_create(pool, MC_ERR_LIMIT, "too many names of hosts are being looked up");
    } else {
        asked->references++;
        error = await_answer(found, asked, until, ctx, pool);
        release_question(asked);
    }
    pthread_mutex_unlock(&lock);
    return error;
}
