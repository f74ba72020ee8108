/* Values by keys, as servers of keys and values keep them. */
#ifndef MC_REMOTE_VALUES_H
#define MC_REMOTE_VALUES_H

#include "remote/remote.h"

/* At once: keys, and bytes of a request, so that no server and no client holds more. */
enum { MC_VALUES_AT_ONCE = 256, MC_VALUES_BYTES_AT_ONCE = 4 << 20 };

/* One key with its value. What is stored is `data` and behind it `tail`. */
typedef struct mc_remote_value {
    const char *key;
    size_t key_size;
    const void *data;
    size_t data_size;
    const void *tail;
    size_t tail_size;
    int lifetime;        /* seconds; 0: the server keeps it as long as it can */
    size_t most;         /* of a get: more bytes are refused */
    mc_buf *found;       /* of a get; NULL: there is none */
    const char *refusal; /* why the server did not do it; NULL: it did */
} mc_remote_value;

#endif
