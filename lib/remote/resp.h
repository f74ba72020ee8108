/*
 * RESP2, what redis and its kin speak (redis.io, "Redis serialization protocol"): commands as lists of words, answers
 * of five kinds.
 */
#ifndef MC_REMOTE_RESP_H
#define MC_REMOTE_RESP_H

#include "remote/stream.h"

enum { MC_RESP_TEXT_MAX = 256 };

typedef enum mc_resp_kind {
    MC_RESP_STATUS,  /* text */
    MC_RESP_ERROR,   /* text: a word in capitals, and for people */
    MC_RESP_INTEGER, /* number */
    MC_RESP_VALUE,   /* value */
    MC_RESP_ARRAY,   /* number: so many answers follow, which the caller reads one by one */
    MC_RESP_NIL,     /* a value or an array that is not there */
} mc_resp_kind;

typedef struct mc_resp {
    mc_resp_kind kind;
    int64_t number;
    char text[MC_RESP_TEXT_MAX]; /* as much of it as fits */
    mc_buf *value;               /* attached to the call's pool */
} mc_resp;

/* One answer, or the beginning of an array. MC_ERR_CORRUPT: it is none, or a value of more than `most` bytes. */
mc_error *mc_resp_read(mc_resp *answer, mc_stream *stream, size_t most) MC_CHECKED;

/* The same; of a value of more than `most` bytes the size is read, and the bytes are dropped: value is NULL then. */
mc_error *mc_resp_read_short(mc_resp *answer, mc_stream *stream, size_t most) MC_CHECKED;

/* Reads and drops what an array of `count` answers has, arrays in it included; at most *budget answers. */
mc_error *mc_resp_skip(mc_stream *stream, int64_t count, int *budget) MC_CHECKED;

/* Whether an error begins with that word. */
bool mc_resp_is_error(const mc_resp *answer, const char *word);

typedef struct mc_resp_word {
    const void *bytes;
    size_t size;
} mc_resp_word;

#define MC_RESP_WORD(text_)                                                                                            \
    {                                                                                                                  \
        .bytes = (text_), .size = strlen(text_)                                                                        \
    }

/* Writes a command of so many words; or only its head, where the caller writes the words by mc_resp_write_word. */
mc_error *mc_resp_write(mc_buf *out, const mc_resp_word *words, int count, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_resp_write_head(mc_buf *out, int count, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_resp_write_word(mc_buf *out, const void *bytes, size_t size, apr_pool_t *pool) MC_CHECKED;

#endif
