/*
 * Locks between machines in redis: a key with its holder's token. The holder listens on a channel that bears the token:
 * a holder that has died listens no longer, and the next one takes the lock over. Whoever waits listens, too, and is
 * woken by the release.
 */
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/wait.h"
#include "lock/locker.h"
#include "remote/redis_config.h"

/* Microseconds that the server has for one answer, also at the end of a request; and for the one to a release. */
#define ANSWER_AT_LEAST (APR_USEC_PER_SEC / 10)
#define ANSWER_AT_MOST (2 * APR_USEC_PER_SEC)
#define RELEASE_AT_MOST (1 * APR_USEC_PER_SEC)

/* A waiter looks again after so many seconds, or <retry> where that is longer, since a holder that dies wakes nobody.
 */
#define LOOK_AGAIN 1.0

/* Microseconds from one look to the next at least, however much is said on the channel: anybody may say something
 * there.
 */
#define LOOK_AT_MOST_EACH (APR_USEC_PER_SEC / 50)

enum {
    TOKEN_BYTES = 16,
    PLACES_MAX = 4,       /* times that a lock's server may turn out to be another one */
    EVENTS_AT_ONCE = 1000 /* that are read before a look */
};

/* KEYS: the lock. ARGV: our token, milliseconds. 1: it is ours (also when this is sent twice). */
#define ACQUIRE_SCRIPT                                                                                                 \
    "local v = redis.call('GET', KEYS[1]) "                                                                            \
    "if v and v ~= ARGV[1] and redis.call('PUBSUB', 'NUMSUB', KEYS[1] .. ':' .. v)[2] > 0 then return 0 end "          \
    "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1"

/* KEYS: the lock. ARGV: our token. Another one's lock stays. */
#define RELEASE_SCRIPT                                                                                                 \
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "                                                      \
    "redis.call('DEL', KEYS[1]) redis.call('PUBLISH', KEYS[1], '1') return 1"

typedef struct redis_held {
    const char *key;
    char token[2 * TOKEN_BYTES + 1];
    const char *channel; /* that bears the token */
    mc_stream *stream;   /* that listens there; also on the channel of the key, until the lock is ours */
    int unconfirmed;     /* confirmations to come that nobody has waited for */
    int place;           /* the server of the stream */
    apr_time_t looked;   /* mc_clock_now(): when it was tried to take the lock last */
} redis_held;

/* A call for one answer: with a deadline of its own. */
typedef struct redis_turn {
    mc_ctx ctx;
    mc_remote_call call;
} redis_turn;

static void
begin_redis_turn(redis_turn *turn, apr_interval_time_t most, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_interval_time_t time = mc_ctx_remaining(ctx, most);
    turn->ctx = *ctx;
    turn->ctx.deadline = mc_clock_now() + (time < ANSWER_AT_LEAST ? ANSWER_AT_LEAST : time);
    turn->call = (mc_remote_call){ .ctx = &turn->ctx, .pool = pool };
}

static mc_error *
make_redis_token(redis_held *held, const char *name, apr_pool_t *pool)
{
    uint8_t bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return mc_error_create(pool, MC_ERR_IO, "no random number for a lock");
    for (int i = 0; i < TOKEN_BYTES; i++)
        snprintf(held->token + 2 * i, 3, "%02x", bytes[i]);
    held->key = apr_pstrcat(pool, "_gc_lock", name, ".lck", NULL);
    held->channel = apr_pstrcat(pool, held->key, ":", held->token, NULL);
    return MC_OK;
}

/* A list of three of a subscriber: what has happened, the channel, and a number or a message. */
static mc_error *
read_redis_event(char event[16], mc_stream *stream)
{
    mc_resp list, word;
    int budget = 2;
    MC_TRY(mc_resp_read(&list, stream, 0));
    if (list.kind == MC_RESP_ERROR)
        return mc_error_create(mc_stream_call(stream)->pool, MC_ERR_FORBIDDEN, "redis does not let us listen: %s",
                               list.text);
    if (list.kind != MC_RESP_ARRAY || list.number != 3)
        return mc_stream_nonsense(stream, "no event");
    MC_TRY(mc_resp_read(&word, stream, 15));
    if (word.kind != MC_RESP_VALUE)
        return mc_stream_nonsense(stream, "no event");
    memcpy(event, word.value->data, word.value->size);
    event[word.value->size] = '\0';
    return mc_resp_skip(stream, 2, &budget);
}

/* Says the verb for both channels, and reads until both are confirmed; messages meanwhile are passed over. */
static mc_error *
set_redis_channels(const redis_held *held, const char *verb, const char *confirmation, mc_stream *stream)
{
    const mc_remote_call *call = mc_stream_call(stream);
    const mc_resp_word words[] = { MC_RESP_WORD(verb), MC_RESP_WORD(held->channel), MC_RESP_WORD(held->key) };
    mc_buf *request = mc_buf_attach(mc_buf_create(0, 1 << 20), call->pool);
    MC_TRY(mc_resp_write(request, words, 3, call->pool));
    MC_TRY(mc_stream_send(stream, request->data, request->size));
    for (int confirmed = 0, events = 0; confirmed < 2 + held->unconfirmed; events++) {
        char event[16];
        MC_TRY(read_redis_event(event, stream));
        confirmed += strcmp(event, confirmation) == 0;
        if (events == EVENTS_AT_ONCE)
            return mc_stream_nonsense(stream, "too many events");
    }
    return MC_OK;
}

/* Opens the stream and listens, at the server that has the key. */
static mc_error *
listen_at_redis(redis_held *held, mc_redis *redis, const mc_remote_call *call)
{
    mc_stream *stream;
    for (int i = 0; i < 2; i++) { /* a kept connection may have ended */
        const apr_time_t begun = mc_clock_now();
        held->place = mc_redis_place(redis, held->key);
        MC_TRY(mc_redis_open(&stream, redis, held->key, call));
        held->unconfirmed = 0;
        mc_error *error = set_redis_channels(held, "SUBSCRIBE", "subscribe", stream);
        if (error == MC_OK) {
            mc_remote_judge(mc_stream_remote(stream), MC_OK, begun, call->pool);
            held->stream = stream;
            return MC_OK;
        }
        bool again = i == 0 && mc_stream_has_ended(stream) && !mc_stream_is_fresh(stream);
        if (!again)
            mc_remote_judge(mc_stream_remote(stream), error, begun, call->pool);
        mc_stream_close(stream);
        if (!again)
            return error;
    }
    return mc_error_create(call->pool, MC_ERR_IO, "redis ends all connections");
}

/* The connection goes back to the others once nothing comes on it any more. */
static void
stop_listening(redis_held *held, const mc_remote_call *call)
{
    mc_stream *stream = held->stream;
    held->stream = NULL;
    if (stream == NULL)
        return;
    mc_stream_hand_over(stream, call);
    if (set_redis_channels(held, "UNSUBSCRIBE", "unsubscribe", stream) == MC_OK)
        mc_stream_keep(stream);
    else
        mc_stream_close(stream);
}

static mc_error *
run_lock_script(bool *done, const redis_held *held, mc_redis *redis, const char *script, const char *milliseconds,
                const mc_remote_call *call)
{
    const mc_resp_word words[] = { MC_RESP_WORD("EVAL"),    MC_RESP_WORD(script),      MC_RESP_WORD("1"),
                                   MC_RESP_WORD(held->key), MC_RESP_WORD(held->token), MC_RESP_WORD(milliseconds) };
    mc_resp answer;
    MC_TRY(mc_redis_ask(&answer, redis, held->key, words, 6, call));
    if (answer.kind != MC_RESP_INTEGER)
        return mc_error_create(call->pool, MC_ERR_IO, "redis runs no scripts: %s", answer.text);
    *done = answer.number == 1;
    return MC_OK;
}

/* Tries to take the lock while listening at its server, whichever that is by now. */
static mc_error *
try_redis_lock(bool *taken, redis_held *held, const mc_locker *locker, mc_ctx *ctx, apr_pool_t *pool)
{
    redis_turn turn;
    mc_redis *redis = locker->baton;
    const char *milliseconds = apr_psprintf(pool, "%.0f", locker->timeout * 1000 < 1 ? 1 : locker->timeout * 1000);
    begin_redis_turn(&turn, ANSWER_AT_MOST, ctx, pool);
    held->looked = mc_clock_now();
    for (int i = 0; i < PLACES_MAX; i++) {
        if (held->stream == NULL)
            MC_TRY(listen_at_redis(held, redis, &turn.call));
        MC_TRY(run_lock_script(taken, held, redis, ACQUIRE_SCRIPT, milliseconds, &turn.call));
        if (mc_redis_place(redis, held->key) == held->place)
            return MC_OK;
        mc_stream_close(held->stream); /* it listens where the lock is not */
        held->stream = NULL;
    }
    return mc_error_create(pool, MC_ERR_IO, "the lock's server is another one each time");
}

/* A holder does not listen on the channel of the key: redis ends the connection, and with it the lock, of a listener
 * that leaves too much unread, and anybody may speak there. `drains`: also reads what was said so far. */
static void
mute_key_channel(redis_held *held, bool drains, const mc_remote_call *call)
{
    const mc_resp_word words[] = { MC_RESP_WORD("UNSUBSCRIBE"), MC_RESP_WORD(held->key) };
    mc_buf *request = mc_buf_attach(mc_buf_create(0, 1 << 20), call->pool);
    char event[16] = "";
    mc_stream_hand_over(held->stream, call);
    mc_error *error = mc_resp_write(request, words, 2, call->pool);
    if (error == MC_OK)
        error = mc_stream_send(held->stream, request->data, request->size);
    held->unconfirmed = drains ? 0 : 1;
    while (error == MC_OK && drains && strcmp(event, "unsubscribe") != 0)
        error = read_redis_event(event, held->stream);
    mc_error_ignore(error); /* the lock is ours also without this */
}

/* Until the lock's channel says something, or it is time to look. False: the request has no time left. */
static bool
await_redis_release(redis_held *held, const mc_locker *locker, apr_time_t until, mc_ctx *ctx, apr_pool_t *pool)
{
    char event[16];
    double pause = locker->retry > LOOK_AGAIN ? locker->retry : LOOK_AGAIN;
    apr_time_t look = mc_clock_now() + (apr_time_t)(pause * APR_USEC_PER_SEC);
    mc_ctx own = *ctx;
    const mc_remote_call call = { .ctx = &own, .pool = pool };
    own.deadline = until;
    mc_stream_hand_over(held->stream, &call);
    look = look < until ? look : until;
    for (int events = 0; events < EVENTS_AT_ONCE && mc_stream_wait(held->stream, events == 0 ? look : 0); events++)
        if (read_redis_event(event, held->stream) != MC_OK) {
            mc_stream_close(held->stream); /* the next look listens anew, or says what is wrong */
            held->stream = NULL;
            break;
        }
    apr_interval_time_t rest = held->looked + LOOK_AT_MOST_EACH - mc_clock_now();
    if (rest > 0)
        (void)mc_wait_pause(rest, ctx);
    return mc_clock_now() < until && !mc_ctx_abandoned(ctx);
}

static mc_error *
redis_acquire(void **held, bool *waited, mc_locker *locker, const char *name, apr_time_t until, mc_ctx *ctx,
              apr_pool_t *pool)
{
    redis_held *mine = apr_pcalloc(pool, sizeof(*mine));
    redis_turn turn;
    mc_error *error = make_redis_token(mine, name, pool);
    for (bool taken = false; error == MC_OK && !taken;) {
        error = try_redis_lock(&taken, mine, locker, ctx, pool);
        if (error == MC_OK && taken) {
            begin_redis_turn(&turn, ANSWER_AT_MOST, ctx, pool);
            mute_key_channel(mine, *waited, &turn.call);
            *held = mine;
            return MC_OK;
        }
        *waited = *waited || error == MC_OK;
        if (error == MC_OK && !await_redis_release(mine, locker, until, ctx, pool))
            error = mc_locker_busy(pool);
    }
    begin_redis_turn(&turn, ANSWER_AT_MOST, ctx, pool);
    turn.ctx.abandoned = NULL;
    stop_listening(mine, &turn.call);
    return error->kind == MC_ERR_UNAVAILABLE ? error
                                             : mc_error_wrap(pool, error, MC_ERR_IO, "the lock server cannot be used");
}

static void
redis_release(mc_locker *locker, void *held, mc_ctx *ctx)
{
    redis_held *mine = held;
    redis_turn turn;
    bool done;
    begin_redis_turn(&turn, RELEASE_AT_MOST, ctx, ctx->pool);
    turn.ctx.abandoned = NULL; /* a client that has gone is no reason to keep others out */
    mc_error *error = run_lock_script(&done, mine, locker->baton, RELEASE_SCRIPT, "0", &turn.call);
    stop_listening(mine, &turn.call);
    if (error != MC_OK)
        mc_log_write(ctx, MC_LOG_WARN, "a lock is not given back; others take it over: %s",
                     mc_error_chain(error, ctx->pool));
}

static const mc_locker_ops redis_ops = { redis_acquire, redis_release, NULL, mc_locker_try_any };

mc_locker *
mc_locker_redis(const mc_redis_settings *settings, const apr_array_header_t *servers, double timeout, double retry,
                const mc_node *node, mc_build *build)
{
    mc_redis *redis = mc_redis_from_config(settings, servers, node, build);
    if (redis == NULL)
        return NULL;
    mc_locker *locker = apr_pcalloc(build->pool, sizeof(*locker));
    *locker = (mc_locker){ .ops = &redis_ops, .baton = redis, .timeout = timeout, .retry = retry, .pool = build->pool };
    return locker;
}
