#include "remote/redis.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/wait.h"
#include "remote/redis_cluster.h"
#include "remote/redis_commands.h"
#include "remote/redis_private.h"

enum {
    ROUNDS_MAX = 8, /* of redirections and of servers that are not ready yet */
    WORDS_MAX = 16,
    QUESTION_MAX = 4096, /* bytes of one that is asked of a cluster */
    AT_A_SEED = -1,      /* a value's server: none that a cluster has told */
};

/* Before a server that is loading, or between two masters, is asked again: microseconds. */
#define NOT_READY_FIRST (APR_USEC_PER_SEC / 50)
#define NOT_READY_MOST (APR_USEC_PER_SEC / 2)

/* What became of a value in a round. */
typedef enum redis_outcome { REDIS_UNANSWERED, REDIS_DONE, REDIS_ELSEWHERE, REDIS_LATER } redis_outcome;

typedef struct redis_item {
    mc_remote_value *value;
    redis_outcome outcome;
    int node;    /* number in the cluster, or AT_A_SEED */
    bool asking; /* the node does not have the slot yet, and answers only who says so */
} redis_item;

typedef struct redis_work {
    mc_redis *redis;
    const mc_redis_verb *verb;
    const mc_remote_call *call;
    mc_redis_own own; /* of mc_redis_ask */
    redis_item *items;
    int count;
    int seed;                                /* that answers, as far as is known */
    mc_remote *admitted[MC_REDIS_SEEDS_MAX]; /* by their breakers, in this call: they are not asked twice */
    int admitted_count;
    bool moved;       /* in this round a server has said that a slot is elsewhere */
    apr_pool_t *pool; /* of the round */
} redis_work;

/* Values for one server in one request. */
typedef struct redis_group {
    redis_work *work;
    mc_remote *remote;
    int node;
    bool together; /* one MGET */
    int count;
    redis_item **items;
} redis_group;

mc_redis *
mc_redis_create(const mc_redis_config *config, apr_pool_t *pool)
{
    mc_redis *redis = apr_pcalloc(pool, sizeof(*redis));
    mc_remote_address common = { 0 };
    if (mc_redis_write_greeting(&common, config, pool) != MC_OK)
        return NULL;
    redis->count = config->count;
    redis->seeds = apr_pcalloc(pool, sizeof(*redis->seeds) * (size_t)config->count);
    redis->cluster = mc_cluster_create(pool);
    for (int i = 0; i < config->count; i++) {
        redis->seeds[i] = config->seeds[i];
        redis->seeds[i].greeting = common.greeting;
        redis->seeds[i].greeting_size = common.greeting_size;
        redis->seeds[i].greeting_commands = common.greeting_commands;
        redis->seeds[i].greet = common.greet;
    }
    return redis;
}

static mc_error *
find_redis_server(mc_remote **remote, const mc_remote_address *address, const mc_remote_call *call)
{
    const mc_process *process = call->ctx->process;
    *remote = process == NULL || process->remotes == NULL ? NULL : mc_remote_find(process->remotes, address);
    if (*remote == NULL)
        return mc_error_create(call->pool, MC_ERR_IO, "too many redis servers");
    return MC_OK;
}

/* Once for each server and call: where a breaker lets one caller through, that is the whole call. */
static bool
is_worth_asking(redis_work *work, mc_remote *remote)
{
    for (int i = 0; i < work->admitted_count; i++)
        if (work->admitted[i] == remote)
            return true;
    if (!mc_remote_admits(remote))
        return false;
    if (work->admitted_count < MC_REDIS_SEEDS_MAX)
        work->admitted[work->admitted_count++] = remote;
    return true;
}

/* The first seed from work->seed on that is worth asking; work->seed tells which. */
static mc_error *
find_redis_seed(mc_remote **remote, redis_work *work)
{
    mc_error *first = MC_OK;
    for (; work->seed < work->redis->count; work->seed++) {
        MC_TRY(find_redis_server(remote, &work->redis->seeds[work->seed], work->call));
        if (is_worth_asking(work, *remote))
            return MC_OK;
        if (first == MC_OK)
            first = mc_remote_resting(*remote, work->call);
    }
    return first != MC_OK ? first : mc_error_create(work->call->pool, MC_ERR_IO, "no redis server answers");
}

/* A node of the cluster: reached as the first seed is, at another place. */
static mc_error *
find_redis_node(mc_remote **remote, int number, redis_work *work)
{
    mc_cluster_node node = mc_cluster_node_of(work->redis->cluster, number);
    mc_remote_address address = work->redis->seeds[0];
    address.host = node.host;
    address.port = node.port;
    address.socket = NULL;
    address.told = true;
    MC_TRY(find_redis_server(remote, &address, work->call));
    if (is_worth_asking(work, *remote))
        return MC_OK;
    mc_cluster_forget(work->redis->cluster, number);
    return mc_remote_resting(*remote, work->call);
}

/* A slot that is elsewhere, for good (MOVED) or for this question (ASK). */
static mc_error *
take_redirection(redis_item *item, const redis_group *group, const mc_resp *answer, mc_stream *stream)
{
    int slot;
    mc_cluster_node node;
    mc_cluster *cluster = group->work->redis->cluster;
    if (!mc_cluster_redirection(&slot, &node, answer->text))
        return mc_stream_nonsense(stream, answer->text);
    if (node.host[0] == '\0') /* the server does not know its own name: it is the one that we have asked */
        snprintf(node.host, sizeof(node.host), "%s", mc_remote_host(group->remote));
    item->node = mc_cluster_add(cluster, &node);
    if (item->node < 0)
        return mc_stream_nonsense(stream, "too many servers");
    item->asking = mc_resp_is_error(answer, "ASK");
    item->outcome = REDIS_ELSEWHERE;
    if (item->asking)
        return MC_OK;
    mc_cluster_learn(cluster, slot, item->node);
    group->work->moved = true;
    return MC_OK;
}

static bool
is_not_ready(const mc_resp *answer)
{
    static const char *const words[] = { "TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "BUSY" };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (mc_resp_is_error(answer, words[i]))
            return true;
    return false;
}

static mc_error *
take_redis_error(redis_item *item, const redis_group *group, const mc_resp *answer, mc_stream *stream)
{
    redis_work *work = group->work;
    const char *text = apr_pstrdup(work->call->pool, answer->text);
    if (mc_resp_is_error(answer, "MOVED") || mc_resp_is_error(answer, "ASK"))
        return take_redirection(item, group, answer, stream);
    if (mc_resp_is_error(answer, "NOAUTH") || mc_resp_is_error(answer, "NOPERM") ||
        mc_resp_is_error(answer, "WRONGPASS"))
        return mc_error_create(work->call->pool, MC_ERR_FORBIDDEN, "%s: %s (<user> and <password> say who asks)",
                               mc_remote_name(group->remote), text);
    item->outcome = REDIS_DONE;
    item->value->refusal = text;
    if (is_not_ready(answer))
        item->outcome = REDIS_LATER;
    else if (work->verb->takes_errors)
        (void)work->verb->take(&work->own, item->value, answer, work->call->pool);
    return MC_OK;
}

static mc_error *
take_redis_answer(redis_item *item, const redis_group *group, const mc_resp *answer, mc_stream *stream)
{
    redis_work *work = group->work;
    if (answer->kind == MC_RESP_ERROR)
        return take_redis_error(item, group, answer, stream);
    item->outcome = REDIS_DONE;
    return work->verb->take(&work->own, item->value, answer, work->call->pool)
               ? MC_OK
               : mc_stream_nonsense(stream, "an answer of another kind");
}

/* MGET: one list, or one error for all. */
static mc_error *
read_list_of_values(redis_group *group, mc_stream *stream)
{
    mc_resp list;
    MC_TRY(mc_resp_read(&list, stream, 0));
    if (mc_resp_is_error(&list, "CROSSSLOT") || mc_resp_is_error(&list, "MOVED")) {
        mc_cluster_tell(group->work->redis->cluster);
        for (int i = 0; i < group->count; i++)
            group->items[i]->outcome = REDIS_ELSEWHERE; /* asked again, each by itself */
        return MC_OK;
    }
    if (list.kind != MC_RESP_ERROR && (list.kind != MC_RESP_ARRAY || list.number != group->count))
        return mc_stream_nonsense(stream, "a list of another length");
    for (int i = 0; i < group->count; i++) {
        mc_resp answer = list;
        if (list.kind == MC_RESP_ARRAY)
            MC_TRY(mc_resp_read(&answer, stream, group->items[i]->value->most));
        MC_TRY(take_redis_answer(group->items[i], group, &answer, stream));
    }
    return MC_OK;
}

static mc_error *
read_redis_group(void *baton, mc_stream *stream)
{
    redis_group *group = baton;
    mc_resp answer;
    for (int i = 0; i < group->count; i++) {
        group->items[i]->outcome = REDIS_UNANSWERED;
        group->items[i]->value->refusal = NULL;
    }
    if (group->together)
        return read_list_of_values(group, stream);
    for (int i = 0; i < group->count; i++) {
        redis_item *item = group->items[i];
        if (item->asking) {
            MC_TRY(mc_resp_read(&answer, stream, 0));
            if (answer.kind != MC_RESP_STATUS)
                return mc_stream_nonsense(stream, answer.text);
        }
        MC_TRY(mc_resp_read(&answer, stream, item->value->most));
        MC_TRY(take_redis_answer(item, group, &answer, stream));
    }
    return MC_OK;
}

static mc_error *
write_redis_group(mc_buf *request, const redis_group *group)
{
    const redis_work *work = group->work;
    if (group->together) {
        MC_TRY(mc_resp_write_head(request, group->count + 1, work->pool));
        MC_TRY(mc_resp_write_word(request, "MGET", 4, work->pool));
        for (int i = 0; i < group->count; i++)
            MC_TRY(
                mc_resp_write_word(request, group->items[i]->value->key, group->items[i]->value->key_size, work->pool));
        return MC_OK;
    }
    for (int i = 0; i < group->count; i++) {
        const mc_resp_word asking = MC_RESP_WORD("ASKING");
        if (group->items[i]->asking)
            MC_TRY(mc_resp_write(request, &asking, 1, work->pool));
        MC_TRY(work->verb->write(request, &work->own, group->items[i]->value, work->pool));
    }
    return MC_OK;
}

/* Items that are not done, by their servers. Returns how many groups. */
static int
group_redis_items(redis_group *groups, redis_work *work)
{
    int count = 0;
    bool clustered = mc_cluster_is_known(work->redis->cluster);
    for (int i = 0; i < work->count; i++) {
        redis_item *item = &work->items[i];
        int at = 0;
        if (item->outcome == REDIS_DONE)
            continue;
        if (clustered && item->node == AT_A_SEED)
            item->node =
                mc_cluster_find(work->redis->cluster, mc_cluster_slot(item->value->key, item->value->key_size));
        while (at < count && groups[at].node != item->node)
            at++;
        if (at == count) {
            groups[count++] =
                (redis_group){ .work = work, .node = item->node, .together = work->verb->gets && !clustered };
            groups[at].items = apr_palloc(work->pool, sizeof(*groups[at].items) * (size_t)work->count);
        }
        groups[at].items[groups[at].count++] = item;
    }
    return count;
}

static mc_error *
read_cluster_slots(void *baton, mc_stream *stream)
{
    const redis_group *group = baton;
    mc_cluster_node self = { .port = 0 };
    snprintf(self.host, sizeof(self.host), "%s", mc_remote_host(group->remote));
    return mc_cluster_read_slots(group->work->redis->cluster, &self, stream);
}

/* Asks a server of the cluster where all slots are. What goes wrong here each key finds out by itself. */
static void
refresh_cluster(redis_group *group)
{
    redis_work *work = group->work;
    const mc_resp_word words[] = { MC_RESP_WORD("CLUSTER"), MC_RESP_WORD("SLOTS") };
    mc_buf *request = mc_buf_attach(mc_buf_create(0, QUESTION_MAX), work->pool);
    if (!mc_cluster_wants_slots(work->redis->cluster) || mc_resp_write(request, words, 2, work->pool) != MC_OK)
        return;
    mc_remote_exchange exchange = { group->remote, request, read_cluster_slots, group, MC_OK, NULL };
    mc_remote_exchange_all(&exchange, 1, work->call);
}

/* A seed that does not answer leaves its values to the next one; a node of a cluster may have gone: whoever asks next
 * asks a seed where its slots are. */
static mc_error *
judge_redis_group(const redis_group *group, mc_error *error)
{
    redis_work *work = group->work;
    if (error == MC_OK)
        return MC_OK;
    if (group->node != AT_A_SEED)
        mc_cluster_forget(work->redis->cluster, group->node);
    bool others = error->kind == MC_ERR_IO && group->node == AT_A_SEED && ++work->seed < work->redis->count;
    return others ? MC_OK : error;
}

static mc_error *
run_redis_round(redis_work *work)
{
    redis_group *groups = apr_palloc(work->pool, sizeof(*groups) * (size_t)work->count);
    int count = group_redis_items(groups, work);
    mc_remote_exchange *list = apr_palloc(work->pool, sizeof(*list) * (size_t)(count + 1));
    work->moved = false;
    for (int i = 0; i < count; i++) {
        MC_TRY(groups[i].node == AT_A_SEED ? find_redis_seed(&groups[i].remote, work)
                                           : find_redis_node(&groups[i].remote, groups[i].node, work));
        mc_buf *request = mc_buf_attach(mc_buf_create(0, SIZE_MAX / 2), work->pool);
        MC_TRY(write_redis_group(request, &groups[i]));
        list[i] = (mc_remote_exchange){ groups[i].remote, request, read_redis_group, &groups[i], MC_OK, NULL };
    }
    mc_remote_exchange_all(list, count, work->call);
    mc_error *error = MC_OK;
    for (int i = 0; i < count; i++) {
        mc_error *own = judge_redis_group(&groups[i], list[i].error);
        error = error == MC_OK ? own : error;
    }
    if (error == MC_OK && work->moved)
        refresh_cluster(&groups[0]);
    return error;
}

/* Pauses where a server is not ready. False: there is no time, or enough was tried. */
static bool
goes_on_with_redis(const redis_work *work, int round)
{
    bool later = false;
    for (int i = 0; i < work->count; i++)
        later = later || work->items[i].outcome == REDIS_LATER;
    if (round == ROUNDS_MAX - 1)
        return false;
    apr_interval_time_t pause = mc_backoff(round, NOT_READY_FIRST, NOT_READY_MOST);
    return !later || (mc_ctx_remaining(work->call->ctx, pause + 1) > pause && mc_wait_pause(pause, work->call->ctx));
}

static const redis_item *
find_open_item(const redis_work *work)
{
    for (int i = 0; i < work->count; i++)
        if (work->items[i].outcome != REDIS_DONE)
            return &work->items[i];
    return NULL;
}

/* As many values as go at once, in rounds. */
static mc_error *
do_redis_part(redis_work *work)
{
    mc_error *error = MC_OK;
    const redis_item *open = NULL;
    apr_pool_create(&work->pool, work->call->pool);
    for (int round = 0; error == MC_OK; round++) {
        error = run_redis_round(work);
        open = error == MC_OK ? find_open_item(work) : NULL;
        if (open == NULL || !goes_on_with_redis(work, round))
            break;
        apr_pool_clear(work->pool);
    }
    if (open != NULL)
        error = mc_error_create(work->call->pool, MC_ERR_IO, "redis is not ready: %s",
                                open->value->refusal == NULL ? "it sends us from one server to the next"
                                                             : open->value->refusal);
    apr_pool_destroy(work->pool);
    return error;
}

static mc_error *
do_at_redis(mc_remote_value *values, int count, redis_work *work)
{
    redis_item *items = apr_palloc(work->call->pool, sizeof(*items) * MC_VALUES_AT_ONCE);
    work->items = items;
    for (int from = 0; from < count; from += work->count) {
        size_t bytes = 0;
        work->count = 0;
        for (int i = from; i < count && work->count < MC_VALUES_AT_ONCE; i++) {
            bytes += values[i].data_size;
            if (work->count > 0 && bytes > MC_VALUES_BYTES_AT_ONCE)
                break;
            items[work->count++] = (redis_item){ .value = &values[i], .node = AT_A_SEED };
        }
        MC_TRY(do_redis_part(work));
    }
    return MC_OK;
}

/* Of verbs but set: what the server does not do is an error of the whole. */
static mc_error *
do_wholly_at_redis(mc_remote_value *values, int count, redis_work *work)
{
    MC_TRY(do_at_redis(values, count, work));
    for (int i = 0; i < count; i++)
        if (values[i].refusal != NULL)
            return mc_error_create(work->call->pool, MC_ERR_IO, "redis refuses: %s", values[i].refusal);
    return MC_OK;
}

mc_error *
mc_redis_get(mc_redis *redis, mc_remote_value *values, int count, const mc_remote_call *call)
{
    redis_work work = { .redis = redis, .verb = &mc_redis_verb_get, .call = call };
    return do_wholly_at_redis(values, count, &work);
}

mc_error *
mc_redis_set(mc_redis *redis, mc_remote_value *values, int count, const mc_remote_call *call)
{
    redis_work work = { .redis = redis, .verb = &mc_redis_verb_set, .call = call };
    return do_at_redis(values, count, &work);
}

mc_error *
mc_redis_has(mc_redis *redis, mc_remote_value *values, int count, const mc_remote_call *call)
{
    redis_work work = { .redis = redis, .verb = &mc_redis_verb_has, .call = call };
    return do_wholly_at_redis(values, count, &work);
}

mc_error *
mc_redis_delete(mc_redis *redis, mc_remote_value *values, int count, const mc_remote_call *call)
{
    redis_work work = { .redis = redis, .verb = &mc_redis_verb_delete, .call = call };
    return do_wholly_at_redis(values, count, &work);
}

mc_error *
mc_redis_ask(mc_resp *answer, mc_redis *redis, const char *key, const mc_resp_word *words, int count,
             const mc_remote_call *call)
{
    mc_remote_value value = { .key = key, .key_size = strlen(key), .most = 4096 };
    MC_ASSERT(count <= WORDS_MAX);
    redis_work work = { .redis = redis, .verb = &mc_redis_verb_own, .call = call, .own = { words, count, answer } };
    return do_at_redis(&value, 1, &work);
}

int
mc_redis_place(mc_redis *redis, const char *key)
{
    if (!mc_cluster_is_known(redis->cluster))
        return AT_A_SEED;
    return mc_cluster_find(redis->cluster, mc_cluster_slot(key, strlen(key)));
}

mc_error *
mc_redis_open(mc_stream **stream, mc_redis *redis, const char *key, const mc_remote_call *call)
{
    mc_remote *remote;
    redis_work work = { .redis = redis, .call = call };
    int node = mc_redis_place(redis, key);
    MC_TRY(node == AT_A_SEED ? find_redis_seed(&remote, &work) : find_redis_node(&remote, node, &work));
    const apr_time_t begun = mc_clock_now();
    mc_error *error = mc_stream_open(stream, remote, false, call);
    if (error != MC_OK)
        mc_remote_judge(remote, error, begun, call->pool);
    return error;
}
