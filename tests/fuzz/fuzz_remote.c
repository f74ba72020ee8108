/* Any answers of redis and memcached: values of the keys that were asked for, or an error; never what lies outside of
 * what has come. The first byte says what was asked. */
#include "../../lib/remote/memcached.c"
#include "../../lib/remote/redis.c"

#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "fuzz_support.h"

enum { KEYS = 3, QUESTIONS = 8 };

/* A connection on which the server has said all that it says. */
static mc_stream *
open_told_stream(int *peer, const uint8_t *data, size_t size, mc_remote *remote, const mc_remote_call *call)
{
    int ends[2], room = 1 << 20;
    MC_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    (void)!send(ends[1], data, size, MSG_NOSIGNAL);
    shutdown(ends[1], SHUT_WR);
    *peer = ends[1];
    return mc_stream_adopt(remote, ends[0], call);
}

/* Every byte is there: a sanitizer looks at those that are read. */
static void
check_found_values(const mc_remote_value *values)
{
    for (int i = 0; i < KEYS; i++)
        MC_ASSERT(values[i].found == NULL || (values[i].found->size <= values[i].most &&
                                              mc_hash64(values[i].found->data, values[i].found->size, 0) != 1));
}

static mc_error *
read_as_redis(mc_remote_value *values, int question, mc_stream *stream, const mc_remote_call *call)
{
    const mc_redis_verb *verb = question == 3 ? &mc_redis_verb_set : &mc_redis_verb_get;
    mc_cluster_node self = { .host = "here", .port = 1 };
    mc_redis redis = { .cluster = mc_cluster_create(call->pool) };
    redis_work work = { .redis = &redis, .verb = verb, .call = call, .pool = call->pool };
    redis_item items[KEYS], *list[KEYS];
    redis_group group = { &work, mc_stream_remote(stream), AT_A_SEED, question == 0, KEYS, list };
    for (int i = 0; i < KEYS; i++) {
        items[i] = (redis_item){ .value = &values[i], .node = AT_A_SEED, .asking = question == 2 };
        list[i] = &items[i];
    }
    if (question == 4)
        return mc_cluster_read_slots(redis.cluster, &self, stream);
    MC_TRY(read_redis_group(&group, stream));
    for (int i = 0; i < KEYS; i++)
        MC_ASSERT(items[i].outcome != REDIS_UNANSWERED && items[i].node >= AT_A_SEED);
    return MC_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mc_remotes *remotes;
    apr_pool_t *pool;
    int peer;
    if (size == 0 || size > 60000)
        return 0;
    if (remotes == NULL)
        remotes = mc_remotes_create();
    apr_pool_create(&pool, NULL);
    mc_ctx ctx = { .pool = pool };
    mc_remote_call call = { &ctx, pool, APR_USEC_PER_SEC };
    mc_remote *remote = mc_remote_find(remotes, &(mc_remote_address){ .kind = "any", .host = "127.0.0.1", .port = 1 });
    mc_stream *stream = open_told_stream(&peer, data + 1, size - 1, remote, &call);
    mc_remote_value values[KEYS] = { { .key = "a", .key_size = 1, .most = 1 << 16 },
                                     { .key = "bb", .key_size = 2, .most = 1 << 16 },
                                     { .key = "ccc", .key_size = 3, .most = 1 << 16 } };
    memcached_batch batch = { KEYS, { &values[0], &values[1], &values[2] } };
    int question = data[0] % QUESTIONS;
    if (question < 5)
        mc_error_ignore(read_as_redis(values, question, stream, &call));
    else if (question == 5)
        mc_error_ignore(read_get_answer(&batch, stream));
    else if (question == 6)
        mc_error_ignore(read_set_answers(&batch, stream));
    else
        mc_error_ignore(read_delete_answers(&batch, stream));
    check_found_values(values);
    mc_stream_close(stream);
    close(peer);
    apr_pool_destroy(pool);
    return 0;
}
