/* All keys of a redis that begin in some way: SCAN on the server, or on each master of a cluster. */
#include <apr_strings.h>
#include <string.h>

#include "remote/redis_private.h"

enum { KEY_MAX = 4096, KEYS_OF_A_PAGE_MAX = 65536, CURSOR_MAX = 32, SCAN_QUESTION_MAX = 16384 };

/* Keys that the server looks at for one page: a few tenths of a millisecond. */
static const char page_size[] = "1000";

typedef struct redis_scan {
    mc_redis *redis;
    const char *pattern, *prefix;
    char cursor[CURSOR_MAX], next[CURSOR_MAX];
    mc_redis_key_visit *visit;
    void *baton;
    bool ended;
    mc_resp refusal;     /* what a server has said instead of an answer; kind MC_RESP_ERROR then */
    mc_remote_call call; /* of a page */
} redis_scan;

/* The prefix as a pattern of redis: each byte that means something there stands for itself. */
static const char *
make_scan_pattern(const char *prefix, apr_pool_t *pool)
{
    char *pattern = apr_palloc(pool, 2 * strlen(prefix) + 2), *out = pattern;
    for (const char *at = prefix; *at != '\0'; at++) {
        if (strchr("*?[]\\^-", *at) != NULL)
            *out++ = '\\';
        *out++ = *at;
    }
    *out++ = '*';
    *out = '\0';
    return pattern;
}

static mc_error *
ask_scanned_server(mc_remote *remote, const mc_resp_word *words, int count,
                   mc_error *(*read)(void *baton, mc_stream *stream), void *baton, const mc_remote_call *call)
{
    mc_buf *request = mc_buf_attach(mc_buf_create(0, SCAN_QUESTION_MAX), call->pool);
    MC_TRY(mc_resp_write(request, words, count, call->pool));
    mc_remote_exchange exchange = { remote, request, read, baton, MC_OK, NULL };
    mc_remote_exchange_all(&exchange, 1, call);
    return exchange.error;
}

static mc_error *
find_scanned_server(mc_remote **remote, const mc_remote_address *address, const mc_remote_call *call)
{
    const mc_process *process = call->ctx->process;
    *remote = process == NULL || process->remotes == NULL ? NULL : mc_remote_find(process->remotes, address);
    if (*remote == NULL)
        return mc_error_create(call->pool, MC_ERR_IO, "too many redis servers");
    return mc_remote_admits(*remote) ? MC_OK : mc_remote_resting(*remote, call);
}

/* --- a page ------------------------------------------------------------------------------------------------------- */

static mc_error *
take_scanned_keys(redis_scan *scan, int64_t count, mc_stream *stream)
{
    const size_t size = strlen(scan->prefix);
    for (int64_t i = 0; i < count; i++) {
        mc_resp key;
        MC_TRY(mc_resp_read_short(&key, stream, KEY_MAX));
        if (key.kind != MC_RESP_VALUE)
            return mc_stream_nonsense(stream, "keys of another kind");
        if (key.value == NULL || key.value->size < size || memcmp(key.value->data, scan->prefix, size) != 0)
            continue;
        if (!scan->ended && !scan->visit(scan->baton, (const char *)key.value->data, key.value->size))
            scan->ended = true; /* the answer is read to its end: the connection is used again */
    }
    return MC_OK;
}

/* The next cursor, and a list of keys. */
static mc_error *
read_scan_page(void *baton, mc_stream *stream)
{
    redis_scan *scan = baton;
    mc_resp answer, cursor, list;
    MC_TRY(mc_resp_read(&answer, stream, 0));
    scan->refusal = answer;
    if (answer.kind == MC_RESP_ERROR)
        return MC_OK;
    if (answer.kind != MC_RESP_ARRAY || answer.number != 2)
        return mc_stream_nonsense(stream, "no page of keys");
    MC_TRY(mc_resp_read(&cursor, stream, CURSOR_MAX - 1));
    MC_TRY(mc_resp_read(&list, stream, 0));
    if (cursor.kind != MC_RESP_VALUE || list.kind != MC_RESP_ARRAY || list.number > KEYS_OF_A_PAGE_MAX ||
        cursor.value->size == 0)
        return mc_stream_nonsense(stream, "no page of keys");
    memcpy(scan->next, cursor.value->data, cursor.value->size);
    scan->next[cursor.value->size] = '\0';
    return take_scanned_keys(scan, list.number, stream);
}

static mc_error *
refused_scan(const redis_scan *scan, mc_remote *remote, apr_pool_t *pool)
{
    bool rights = mc_resp_is_error(&scan->refusal, "NOPERM") || mc_resp_is_error(&scan->refusal, "NOAUTH");
    return mc_error_create(pool, rights ? MC_ERR_FORBIDDEN : MC_ERR_IO, "%s: %s", mc_remote_name(remote),
                           scan->refusal.text);
}

static mc_error *
scan_server(redis_scan *scan, const mc_remote_address *address, const mc_remote_call *call)
{
    mc_remote *remote;
    mc_error *error = MC_OK;
    strcpy(scan->cursor, "0");
    do {
        apr_pool_clear(scan->call.pool);
        MC_TRY(mc_ctx_check(call->ctx, call->pool));
        MC_TRY(find_scanned_server(&remote, address, call));
        const mc_resp_word words[] = {
            MC_RESP_WORD("SCAN"),        MC_RESP_WORD(scan->cursor), MC_RESP_WORD("MATCH"),
            MC_RESP_WORD(scan->pattern), MC_RESP_WORD("COUNT"),      MC_RESP_WORD(page_size)
        };
        error = ask_scanned_server(remote, words, 6, read_scan_page, scan, &scan->call);
        if (error == MC_OK && scan->refusal.kind == MC_RESP_ERROR)
            error = refused_scan(scan, remote, call->pool);
        memcpy(scan->cursor, scan->next, sizeof(scan->cursor));
    } while (error == MC_OK && !scan->ended && strcmp(scan->cursor, "0") != 0);
    return mc_error_copy(error, call->pool);
}

/* --- the servers -------------------------------------------------------------------------------------------------- */

typedef struct slot_question {
    redis_scan *scan;
    mc_cluster_node self;
} slot_question;

static mc_error *
read_all_slots(void *baton, mc_stream *stream)
{
    slot_question *question = baton;
    return mc_cluster_read_all(question->scan->redis->cluster, &question->self, &question->scan->refusal, stream);
}

/* Asks the seeds, until one answers, where all slots are. *clustered is false where the server is one by itself; `seed`
 * is the one that has answered. */
static mc_error *
ask_where_slots_are(bool *clustered, const mc_remote_address **seed, redis_scan *scan, const mc_remote_call *call)
{
    const mc_resp_word words[] = { MC_RESP_WORD("CLUSTER"), MC_RESP_WORD("SLOTS") };
    mc_error *error = MC_OK;
    for (int i = 0; i < scan->redis->count; i++) {
        mc_remote *remote;
        slot_question question = { .scan = scan };
        *seed = &scan->redis->seeds[i];
        error = find_scanned_server(&remote, *seed, call);
        if (error != MC_OK)
            continue;
        apr_cpystrn(question.self.host, mc_remote_host(remote), sizeof(question.self.host));
        error = ask_scanned_server(remote, words, 2, read_all_slots, &question, call);
        if (error != MC_OK)
            continue;
        *clustered = scan->refusal.kind != MC_RESP_ERROR;
        /* Who may not ask does not know whether the server has all keys. */
        return mc_resp_is_error(&scan->refusal, "NOPERM") || mc_resp_is_error(&scan->refusal, "NOAUTH")
                   ? refused_scan(scan, remote, call->pool)
                   : MC_OK;
    }
    return error;
}

static mc_error *
scan_cluster(redis_scan *scan, const mc_remote_call *call)
{
    bool *asked = apr_pcalloc(call->pool, sizeof(*asked) * MC_CLUSTER_NODES_MAX);
    for (int slot = 0; slot < MC_CLUSTER_SLOTS && !scan->ended; slot++) {
        const int number = mc_cluster_find(scan->redis->cluster, slot);
        if (number < 0)
            return mc_error_create(call->pool, MC_ERR_IO, "the cluster does not tell which server has slot %d", slot);
        if (asked[number])
            continue;
        asked[number] = true;
        const mc_cluster_node node = mc_cluster_node_of(scan->redis->cluster, number);
        mc_remote_address address = scan->redis->seeds[0];
        address.host = node.host;
        address.port = node.port;
        address.socket = NULL;
        address.told = true;
        MC_TRY(scan_server(scan, &address, call));
    }
    return MC_OK;
}

mc_error *
mc_redis_scan(mc_redis *redis, const char *prefix, mc_redis_key_visit *visit, void *baton, const mc_remote_call *call)
{
    bool clustered = false;
    const mc_remote_address *seed = NULL;
    redis_scan scan = { .redis = redis,
                        .pattern = make_scan_pattern(prefix, call->pool),
                        .prefix = prefix,
                        .visit = visit,
                        .baton = baton,
                        .call = *call };
    apr_pool_create(&scan.call.pool, call->pool);
    mc_error *error = ask_where_slots_are(&clustered, &seed, &scan, call);
    if (error == MC_OK)
        error = clustered ? scan_cluster(&scan, call) : scan_server(&scan, seed, call);
    apr_pool_destroy(scan.call.pool);
    return error;
}
