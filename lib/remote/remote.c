/* The servers of a process, and exchanges with several of them at a time. */
#include "remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "remote/remote_counters.h"
#include "remote/remote_private.h"

enum { REMOTES_MAX = 1024, TOLD_MAX = 512 /* of these: a cluster names its own nodes */, IDENTITY_MAX = 8192 };

/* Longer than any call goes on without finding its servers again. */
#define UNUSED_TIME (3600 * APR_USEC_PER_SEC)

struct mc_remotes {
    pthread_mutex_t lock; /* of the list, and of when its servers were found */
    int count;
    mc_remote *list[REMOTES_MAX];
};

mc_remotes *
mc_remotes_create(void)
{
    mc_remotes *remotes = calloc(1, sizeof(*remotes));
    MC_ASSERT(remotes != NULL);
    pthread_mutex_init(&remotes->lock, NULL);
    return remotes;
}

static void
free_remote_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

static void
free_remote(mc_remote *remote)
{
    const mc_tls_engine *engine = remote->engine;
    mc_remote_close_idle(remote, true);
    if (remote->tls_settings != NULL)
        engine->forget(remote->tls_settings);
    mc_breaker_end(&remote->breaker);
    pthread_mutex_destroy(&remote->lock);
    free_remote_text(remote->address.kind);
    free_remote_text(remote->address.host);
    free_remote_text(remote->address.socket);
    free_remote_text(remote->address.greeting);
    free_remote_text(remote->tls.name);
    free_remote_text(remote->tls.authorities);
    free_remote_text(remote->tls.certificate);
    free_remote_text(remote->tls.key);
    free(remote->name);
    free(remote->identity);
    free(remote);
}

void
mc_remotes_destroy(mc_remotes *remotes)
{
    if (remotes == NULL)
        return;
    for (int i = 0; i < remotes->count; i++)
        free_remote(remotes->list[i]);
    pthread_mutex_destroy(&remotes->lock);
    free(remotes);
}

static size_t
add_remote_identity(char *identity, size_t size, const char *text)
{
    size_t length = text == NULL ? 0 : strlen(text) + 1;
    if (length + 1 > IDENTITY_MAX - size)
        return IDENTITY_MAX;
    identity[size++] = text == NULL ? '-' : '+';
    if (length > 0)
        memcpy(identity + size, text, length);
    return size + length;
}

/* All that tells servers apart, each text behind a mark and with its end. IDENTITY_MAX: that is too long. */
static size_t
write_identity(char *identity, const mc_remote_address *address)
{
    static const mc_remote_tls none;
    const mc_remote_tls *tls = address->tls == NULL ? &none : address->tls;
    const char *texts[] = { address->kind,    address->host,    address->socket, tls->name,
                            tls->authorities, tls->certificate, tls->key };
    int written = snprintf(identity, IDENTITY_MAX, "%d %d ", address->port, address->tls != NULL);
    size_t size = (size_t)written;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts) && size < IDENTITY_MAX; i++)
        size = add_remote_identity(identity, size, texts[i]);
    if (size >= IDENTITY_MAX || address->greeting_size >= IDENTITY_MAX - size)
        return IDENTITY_MAX;
    if (address->greeting_size > 0)
        memcpy(identity + size, address->greeting, address->greeting_size);
    return size + address->greeting_size;
}

static char *
copy_remote_text(const char *text)
{
    char *copy = text == NULL ? NULL : strdup(text);
    MC_ASSERT(copy != NULL || text == NULL);
    return copy;
}

static char *
format_remote_name(const mc_remote_address *address)
{
    char name[512];
    bool digits = address->host != NULL && strchr(address->host, ':') != NULL;
    if (address->host == NULL)
        snprintf(name, sizeof(name), "%s at %s", address->kind, address->socket);
    else
        snprintf(name, sizeof(name), "%s at %s%s%s:%d", address->kind, digits ? "[" : "", address->host,
                 digits ? "]" : "", address->port);
    return copy_remote_text(name);
}

static mc_remote *
create_remote(const mc_remote_address *address, const char *identity, size_t size)
{
    mc_remote *remote = calloc(1, sizeof(*remote));
    MC_ASSERT(remote != NULL);
    remote->address = *address;
    remote->address.kind = copy_remote_text(address->kind);
    remote->address.host = copy_remote_text(address->host);
    remote->address.socket = copy_remote_text(address->socket);
    remote->name = format_remote_name(address);
    remote->identity = malloc(size);
    char *greeting = malloc(address->greeting_size + 1);
    MC_ASSERT(remote->identity != NULL && greeting != NULL);
    memcpy(remote->identity, identity, size);
    remote->identity_size = size;
    if (address->greeting_size > 0)
        memcpy(greeting, address->greeting, address->greeting_size);
    remote->address.greeting = greeting;
    if (address->tls != NULL)
        remote->tls =
            (mc_remote_tls){ copy_remote_text(address->tls->name), copy_remote_text(address->tls->authorities),
                             copy_remote_text(address->tls->certificate), copy_remote_text(address->tls->key) };
    remote->address.tls = address->tls == NULL ? NULL : &remote->tls;
    mc_breaker_start(&remote->breaker);
    pthread_mutex_init(&remote->lock, NULL);
    return remote;
}

static bool
is_remote_in_use(mc_remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    bool used = atomic_load(&remote->opened) > remote->idle_count;
    pthread_mutex_unlock(&remote->lock);
    return used;
}

/* With the list's lock. */
static void
forget_unused_remotes(mc_remotes *remotes, apr_time_t before)
{
    int kept = 0;
    for (int i = 0; i < remotes->count; i++)
        if (remotes->list[i]->used >= before || is_remote_in_use(remotes->list[i]))
            remotes->list[kept++] = remotes->list[i];
        else
            free_remote(remotes->list[i]);
    remotes->count = kept;
}

void
mc_remotes_forget(mc_remotes *remotes, apr_time_t before)
{
    pthread_mutex_lock(&remotes->lock);
    forget_unused_remotes(remotes, before);
    pthread_mutex_unlock(&remotes->lock);
}

/* Whether there is no place for one more server of that sort; with the list's lock. */
static bool
is_list_full(const mc_remotes *remotes, bool told)
{
    int count = 0;
    for (int i = 0; i < remotes->count; i++)
        count += remotes->list[i]->address.told;
    return remotes->count == REMOTES_MAX || (told && count >= TOLD_MAX);
}

/* With the list's lock. */
static mc_remote *
add_remote(mc_remotes *remotes, const mc_remote_address *address, const char *identity, size_t size)
{
    for (int i = 0; i < remotes->count; i++) /* perhaps instead of one of these, after a reload */
        mc_remote_close_idle(remotes->list[i], false);
    if (is_list_full(remotes, address->told))
        forget_unused_remotes(remotes, mc_clock_now() - UNUSED_TIME);
    if (is_list_full(remotes, address->told))
        return NULL;
    return remotes->list[remotes->count++] = create_remote(address, identity, size);
}

mc_remote *
mc_remote_find(mc_remotes *remotes, const mc_remote_address *address)
{
    char identity[IDENTITY_MAX];
    size_t size = write_identity(identity, address);
    mc_remote *found = NULL;
    if (size >= IDENTITY_MAX)
        return NULL;
    pthread_mutex_lock(&remotes->lock);
    for (int i = 0; i < remotes->count && found == NULL; i++)
        if (remotes->list[i]->identity_size == size && memcmp(remotes->list[i]->identity, identity, size) == 0)
            found = remotes->list[i];
    if (found == NULL)
        found = add_remote(remotes, address, identity, size);
    if (found != NULL) {
        found->used = mc_clock_now();
        found->address.told = found->address.told && address->told;
    }
    pthread_mutex_unlock(&remotes->lock);
    return found;
}

const char *
mc_remote_name(const mc_remote *remote)
{
    return remote->name;
}

const char *
mc_remote_host(const mc_remote *remote)
{
    return remote->address.host == NULL ? "" : remote->address.host;
}

bool
mc_remote_admits(mc_remote *remote)
{
    return mc_breaker_admits(&remote->breaker);
}

static void
count_remote(const mc_remote_call *call, mc_counter counter)
{
    mc_count(call->ctx->process == NULL ? NULL : call->ctx->process->metrics, counter, 1);
}

mc_error *
mc_remote_resting(mc_remote *remote, const mc_remote_call *call)
{
    char reason[MC_REMOTE_REASON_MAX];
    pthread_mutex_lock(&remote->lock);
    memcpy(reason, remote->reason, sizeof(reason));
    pthread_mutex_unlock(&remote->lock);
    count_remote(call, MC_COUNT_remote_rests_total);
    return mc_error_repeats(mc_error_create(
        call->pool, MC_ERR_IO, "%s failed a moment ago and is left alone for a while: %s", remote->name, reason));
}

void
mc_remotes_visit(mc_remotes *remotes, apr_time_t since, void (*visit)(void *baton, const char *name, bool works),
                 void *baton)
{
    pthread_mutex_lock(&remotes->lock);
    for (int i = 0; i < remotes->count; i++)
        if (remotes->list[i]->used >= since)
            visit(baton, remotes->list[i]->name, mc_breaker_works(&remotes->list[i]->breaker));
    pthread_mutex_unlock(&remotes->lock);
}

void
mc_remote_judge(mc_remote *remote, const mc_error *error, apr_time_t begun, apr_pool_t *pool)
{
    if (error == MC_OK) {
        mc_breaker_report(&remote->breaker, true, 0);
        return;
    }
    if (error->kind != MC_ERR_IO && error->kind != MC_ERR_CORRUPT && error->kind != MC_ERR_FORBIDDEN)
        return;
    pthread_mutex_lock(&remote->lock);
    snprintf(remote->reason, sizeof(remote->reason), "%s", mc_error_chain(error, pool));
    pthread_mutex_unlock(&remote->lock);
    mc_remote_close_idle(remote, true);
    mc_breaker_report(&remote->breaker, false, mc_clock_now() - begun);
}

/* Sends the request, on a kept connection or a new one. */
static mc_error *
begin_exchange_with(mc_remote_exchange *exchange, bool fresh, const mc_remote_call *call)
{
    MC_TRY(mc_stream_open(&exchange->stream, exchange->remote, fresh, call));
    return mc_stream_send(exchange->stream, exchange->request->data, exchange->request->size);
}

static mc_error *
finish_exchange(const mc_remote_exchange *exchange)
{
    MC_TRY(exchange->read(exchange->baton, exchange->stream));
    if (mc_stream_has_unread(exchange->stream))
        return mc_stream_nonsense(exchange->stream, "more than was asked for");
    return MC_OK;
}

/* Whether a kept connection had ended before it was used. */
static bool
met_stale_stream(const mc_remote_exchange *exchange)
{
    return exchange->error != MC_OK && exchange->stream != NULL && mc_stream_has_ended(exchange->stream) &&
           !mc_stream_is_fresh(exchange->stream);
}

static void
settle_exchange(mc_remote_exchange *exchange, apr_time_t begun, const mc_remote_call *call)
{
    if (exchange->error == MC_OK) {
        mc_stream_keep(exchange->stream);
    } else {
        if (exchange->stream != NULL)
            mc_stream_close(exchange->stream);
        mc_remote_judge(exchange->remote, exchange->error, begun, call->pool);
        count_remote(call, MC_COUNT_remote_errors_total);
    }
    count_remote(call, MC_COUNT_remote_requests_total);
    exchange->stream = NULL;
}

void
mc_remote_exchange_all(mc_remote_exchange *list, int count, const mc_remote_call *call)
{
    const apr_time_t begun = mc_clock_now();
    for (int i = 0; i < count; i++) {
        list[i].stream = NULL;
        list[i].error = begin_exchange_with(&list[i], false, call);
    }
    for (int i = 0; i < count; i++) {
        mc_remote_exchange *exchange = &list[i];
        if (exchange->error == MC_OK)
            exchange->error = finish_exchange(exchange);
        if (met_stale_stream(exchange)) {
            mc_stream_close(exchange->stream);
            exchange->stream = NULL;
            exchange->error = begin_exchange_with(exchange, true, call);
            if (exchange->error == MC_OK)
                exchange->error = finish_exchange(exchange);
        }
        settle_exchange(exchange, begun, call);
    }
}
