/* Values in memcached servers: its text protocol (doc/protocol.txt there), many keys in one round trip. */
#ifndef MC_REMOTE_MEMCACHED_H
#define MC_REMOTE_MEMCACHED_H

#include "remote/values.h"

enum { MC_MEMCACHED_KEY_MAX = 250, MC_MEMCACHED_EXPIRY_MAX = 30 * 24 * 3600 /* seconds; more is taken for a date */ };

/* Whether bytes may be a key: 1 to MC_MEMCACHED_KEY_MAX of them, no blanks, no control characters. */
bool mc_memcached_key_valid(const char *key, size_t size);

/* Which of `count` servers has a key: the same one for all processes and for other clients of memcached's kind (APR's),
 * which take the upper half of the CRC-32. */
int mc_memcached_server_of(const char *key, size_t size, int count);

/*
 * Gets, sets or removes the values, whose keys are valid. A server that does not work is passed over: the next one in
 * the list has its keys meanwhile, as with other clients. MC_ERR_IO: none of those that could have a key works;
 * MC_ERR_UNAVAILABLE: the client has gone, or has no time left. value->refusal says what a server would not store.
 */
mc_error *mc_memcached_get(mc_remote_value *values, int count, mc_remote *const *servers, int server_count,
                           const mc_remote_call *call) MC_CHECKED;
mc_error *mc_memcached_set(mc_remote_value *values, int count, mc_remote *const *servers, int server_count,
                           const mc_remote_call *call) MC_CHECKED;
mc_error *mc_memcached_delete(mc_remote_value *values, int count, mc_remote *const *servers, int server_count,
                              const mc_remote_call *call) MC_CHECKED;

#endif
