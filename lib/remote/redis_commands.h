/* Commands of redis: those that a connection begins with, and what can be done to a value: the command that is sent,
 * and what its answer says. */
#ifndef MC_REMOTE_REDIS_COMMANDS_H
#define MC_REMOTE_REDIS_COMMANDS_H

#include "remote/redis.h"
#include "remote/resp.h"
#include "remote/values.h"

/* User, password and database, as the first words on each connection to the address. MC_ERR_LIMIT: they are too long.
 */
mc_error *mc_redis_write_greeting(mc_remote_address *address, const mc_redis_config *config,
                                  apr_pool_t *pool) MC_CHECKED;

/* A command of the caller's own, and where its answer goes. */
typedef struct mc_redis_own {
    const mc_resp_word *words;
    int count;
    mc_resp *answer;
} mc_redis_own;

typedef struct mc_redis_verb {
    mc_error *(*write)(mc_buf *request, const mc_redis_own *own, const mc_remote_value *value, apr_pool_t *pool);
    /* What is found lives as long as the pool. False: that is no answer to the command. */
    bool (*take)(const mc_redis_own *own, mc_remote_value *value, const mc_resp *answer, apr_pool_t *pool);
    bool gets;         /* many at a time by MGET, where there is no cluster */
    bool takes_errors; /* errors of the command itself are answers */
} mc_redis_verb;

extern const mc_redis_verb mc_redis_verb_get, mc_redis_verb_set, mc_redis_verb_has, mc_redis_verb_delete,
    mc_redis_verb_own;

#endif
