/*
 * Values in redis and its kin, on one server or on those of a cluster: many keys in one round trip, redirections of a
 * cluster followed, what it says of its slots remembered.
 */
#ifndef MC_REMOTE_REDIS_H
#define MC_REMOTE_REDIS_H

#include "remote/resp.h"
#include "remote/values.h"

enum { MC_REDIS_SEEDS_MAX = 64 };

/* What a configuration says of the servers. */
typedef struct mc_redis_config {
    const mc_remote_address *seeds; /* `kind`, `host` and `port` or `socket`, `tls`: one, or some of a cluster */
    int count;
    const char *user, *password; /* NULL: none */
    int database;                /* 0: the first */
} mc_redis_config;

typedef struct mc_redis mc_redis;

/* Lives as long as the pool; opens nothing. NULL: the user and the password are too long. */
mc_redis *mc_redis_create(const mc_redis_config *config, apr_pool_t *pool);

/*
 * Gets, sets, looks for, or deletes the values, all together. MC_ERR_IO: a server that has some of them cannot be
 * reached, or refuses; MC_ERR_FORBIDDEN: it does not let us in; MC_ERR_UNAVAILABLE: the client has gone, or has no time
 * left. Of a set, value->refusal says what a server would not store.
 */
mc_error *mc_redis_get(mc_redis *redis, mc_remote_value *values, int count, const mc_remote_call *call) MC_CHECKED;
mc_error *mc_redis_set(mc_redis *redis, mc_remote_value *values, int count, const mc_remote_call *call) MC_CHECKED;
mc_error *mc_redis_has(mc_redis *redis, mc_remote_value *values, int count, const mc_remote_call *call) MC_CHECKED;
mc_error *mc_redis_delete(mc_redis *redis, mc_remote_value *values, int count, const mc_remote_call *call) MC_CHECKED;

/* One command of at most 16 words on the server that has `key`. It must bear being sent twice. Errors as above; an
 * error that the server answers is the answer, but for those of the cluster and of who may do what. */
mc_error *mc_redis_ask(mc_resp *answer, mc_redis *redis, const char *key, const mc_resp_word *words, int count,
                       const mc_remote_call *call) MC_CHECKED;

/* Told of a key; false ends the scan. */
typedef bool mc_redis_key_visit(void *baton, const char *key, size_t size);

/*
 * All keys that begin with `prefix`, of the server or of all masters of the cluster, a page at a time: the memory is
 * constant. A key that is there all the time is told once or several times, one that comes or goes meanwhile perhaps;
 * so is one whose slot moves to another server meanwhile. Keys of more than 4,096 bytes are left out. Errors as above,
 * and MC_ERR_IO where a cluster does not tell where all of its slots are.
 */
mc_error *mc_redis_scan(mc_redis *redis, const char *prefix, mc_redis_key_visit *visit, void *baton,
                        const mc_remote_call *call) MC_CHECKED;

/* A number for the server that has `key`, as far as is known: another one once the cluster has told of another. */
int mc_redis_place(mc_redis *redis, const char *key);

/* A connection of one's own to that server, as when waiting for messages: a kept one, or a new one. The caller ends its
 * use, and tells by mc_remote_judge what asking has come to. */
mc_error *mc_redis_open(mc_stream **stream, mc_redis *redis, const char *key, const mc_remote_call *call) MC_CHECKED;

#endif
