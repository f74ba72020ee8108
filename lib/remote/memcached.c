#include "remote/memcached.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "remote/stream.h"

enum { NOT_ASKED = -1, GONE = -2 /* of a value's server */ };

/* What is done to values. */
typedef struct memcached_verb {
    mc_error *(*write)(mc_buf *request, const mc_remote_value *const *values, int count, apr_pool_t *pool);
    mc_error *(*read)(void *batch, mc_stream *stream);
} memcached_verb;

/* The values of one request to one server. */
typedef struct memcached_batch {
    int count;
    mc_remote_value *values[MC_VALUES_AT_ONCE];
} memcached_batch;

/* Which server works, as far as this call has found out. */
typedef enum server_state { SERVER_UNKNOWN, SERVER_WORKS, SERVER_FAILS } server_state;

typedef struct memcached_work {
    const memcached_verb *verb;
    mc_remote *const *servers;
    int server_count;
    server_state *states;
    mc_error *why;        /* of the last server that failed */
    apr_pool_t *requests; /* of those under way */
    const mc_remote_call *call;
} memcached_work;

bool
mc_memcached_key_valid(const char *key, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)key[i] <= ' ' || key[i] == 0x7f)
            return false;
    return size >= 1 && size <= MC_MEMCACHED_KEY_MAX;
}

int
mc_memcached_server_of(const char *key, size_t size, int count)
{
    uLong hash = crc32(0, (const Bytef *)key, (uInt)size) >> 16 & 0x7fff;
    return (int)((unsigned)(hash == 0 ? 1 : hash) % (unsigned)count);
}

static mc_error *
write_get_request(mc_buf *request, const mc_remote_value *const *values, int count, apr_pool_t *pool)
{
    MC_TRY(mc_buf_append(request, "get", 3, pool));
    for (int i = 0; i < count; i++) {
        MC_TRY(mc_buf_append(request, " ", 1, pool));
        MC_TRY(mc_buf_append(request, values[i]->key, values[i]->key_size, pool));
    }
    return mc_buf_append(request, "\r\n", 2, pool);
}

/* A whole number of digits only, at most `most`; NULL: it is none, else what is behind it. */
static const char *
read_memcached_number(uint64_t *number, const char *text, uint64_t most)
{
    const char *at = text;
    for (*number = 0; *at >= '0' && *at <= '9'; at++) {
        *number = *number * 10 + (uint64_t)(*at - '0');
        if (*number > most)
            return NULL;
    }
    return at == text ? NULL : at;
}

/* "VALUE key flags bytes": which of the values, from `*next` on, and how many bytes. False: it is no such line. */
static bool
read_value_head(int *next, uint64_t *bytes, const memcached_batch *batch, const char *line)
{
    uint64_t flags;
    if (strncmp(line, "VALUE ", 6) != 0)
        return false;
    const char *key = line + 6;
    size_t size = strcspn(key, " ");
    while (*next < batch->count &&
           (batch->values[*next]->key_size != size || memcmp(batch->values[*next]->key, key, size) != 0))
        ++*next;
    if (*next == batch->count || key[size] != ' ')
        return false;
    const char *at = read_memcached_number(&flags, key + size + 1, UINT32_MAX);
    if (at == NULL || *at != ' ')
        return false;
    at = read_memcached_number(bytes, at + 1, UINT32_MAX);
    return at != NULL && *at == '\0';
}

static mc_error *
read_get_answer(void *baton, mc_stream *stream)
{
    memcached_batch *batch = baton;
    char *line;
    size_t size;
    for (int i = 0; i < batch->count; i++)
        batch->values[i]->found = NULL;
    for (int next = 0;; next++) {
        uint64_t bytes;
        MC_TRY(mc_stream_line(&line, &size, stream));
        if (strcmp(line, "END") == 0)
            return MC_OK;
        if (!read_value_head(&next, &bytes, batch, line))
            return mc_stream_nonsense(stream, line);
        mc_remote_value *value = batch->values[next];
        MC_TRY(mc_stream_value(&value->found, stream, (size_t)bytes, value->most));
        MC_TRY(mc_stream_end_of_value(stream));
    }
}

/* Seconds as the protocol has them: beyond 30 days it takes them for a date. */
static long long
expiry_of_lifetime(int lifetime)
{
    return lifetime <= MC_MEMCACHED_EXPIRY_MAX ? lifetime : (long long)apr_time_sec(apr_time_now()) + lifetime;
}

static mc_error *
write_set_request(mc_buf *request, const mc_remote_value *const *values, int count, apr_pool_t *pool)
{
    for (int i = 0; i < count; i++) {
        const mc_remote_value *value = values[i];
        char numbers[80];
        int size = snprintf(numbers, sizeof(numbers), " 0 %lld %zu\r\n", expiry_of_lifetime(value->lifetime),
                            value->data_size + value->tail_size);
        MC_TRY(mc_buf_append(request, "set ", 4, pool));
        MC_TRY(mc_buf_append(request, value->key, value->key_size, pool));
        MC_TRY(mc_buf_append(request, numbers, (size_t)size, pool));
        MC_TRY(mc_buf_append(request, value->data, value->data_size, pool));
        MC_TRY(mc_buf_append(request, value->tail, value->tail_size, pool));
        MC_TRY(mc_buf_append(request, "\r\n", 2, pool));
    }
    return MC_OK;
}

static mc_error *
read_set_answers(void *baton, mc_stream *stream)
{
    memcached_batch *batch = baton;
    char *line;
    size_t size;
    for (int i = 0; i < batch->count; i++) {
        MC_TRY(mc_stream_line(&line, &size, stream));
        batch->values[i]->refusal = NULL;
        if (strcmp(line, "STORED") == 0)
            continue;
        if (strncmp(line, "SERVER_ERROR ", 13) != 0 && strcmp(line, "NOT_STORED") != 0)
            return mc_stream_nonsense(stream, line);
        batch->values[i]->refusal = apr_pstrndup(mc_stream_call(stream)->pool, line, 120);
    }
    return MC_OK;
}

static mc_error *
write_delete_request(mc_buf *request, const mc_remote_value *const *values, int count, apr_pool_t *pool)
{
    for (int i = 0; i < count; i++) {
        MC_TRY(mc_buf_append(request, "delete ", 7, pool));
        MC_TRY(mc_buf_append(request, values[i]->key, values[i]->key_size, pool));
        MC_TRY(mc_buf_append(request, "\r\n", 2, pool));
    }
    return MC_OK;
}

static mc_error *
read_delete_answers(void *baton, mc_stream *stream)
{
    memcached_batch *batch = baton;
    char *line;
    size_t size;
    for (int i = 0; i < batch->count; i++) {
        MC_TRY(mc_stream_line(&line, &size, stream));
        if (strcmp(line, "DELETED") != 0 && strcmp(line, "NOT_FOUND") != 0)
            return mc_stream_nonsense(stream, line);
    }
    return MC_OK;
}

static bool
server_works(memcached_work *work, int server)
{
    server_state *state = &work->states[server];
    if (*state == SERVER_UNKNOWN) {
        *state = mc_remote_admits(work->servers[server]) ? SERVER_WORKS : SERVER_FAILS;
        if (*state == SERVER_FAILS && work->why == MC_OK)
            work->why = mc_remote_resting(work->servers[server], work->call);
    }
    return *state == SERVER_WORKS;
}

/* The server of a key, or the next one that works; GONE: none does. */
static int
choose_server(memcached_work *work, const mc_remote_value *value)
{
    int first = mc_memcached_server_of(value->key, value->key_size, work->server_count);
    for (int i = 0; i < work->server_count; i++)
        if (server_works(work, (first + i) % work->server_count))
            return (first + i) % work->server_count;
    return GONE;
}

/* Takes values that are not done, in their order, as many as go at once; chosen[i] is the server that each was given
 * to. Returns how many. */
static int
fill_memcached_batches(memcached_batch *batches, int *chosen, mc_remote_value *values, int count, const bool *done,
                       memcached_work *work)
{
    int taken = 0;
    size_t bytes = 0;
    for (int i = 0; i < work->server_count; i++)
        batches[i].count = 0;
    for (int i = 0; i < count; i++) {
        chosen[i] = NOT_ASKED;
        bytes += done[i] ? 0 : values[i].data_size;
        if (done[i] || taken == MC_VALUES_AT_ONCE || (taken > 0 && bytes > MC_VALUES_BYTES_AT_ONCE))
            continue;
        chosen[i] = choose_server(work, &values[i]);
        if (chosen[i] == GONE)
            return GONE;
        memcached_batch *batch = &batches[chosen[i]];
        batch->values[batch->count++] = &values[i];
        taken++;
    }
    return taken;
}

static mc_error *
prepare_memcached_request(mc_remote_exchange *exchange, memcached_batch *batch, mc_remote *server,
                          const memcached_work *work)
{
    apr_pool_t *pool = work->call->pool;
    mc_buf *request = mc_buf_attach(mc_buf_create(0, SIZE_MAX / 2), work->requests);
    *exchange = (mc_remote_exchange){ .remote = server, .request = request, .read = work->verb->read, .baton = batch };
    return work->verb->write(request, (const mc_remote_value *const *)batch->values, batch->count, pool);
}

/* Asks all servers of these batches together. An error that is not a server's ends the work. */
static mc_error *
exchange_memcached_batches(memcached_batch *batches, memcached_work *work)
{
    mc_remote_exchange *list = apr_palloc(work->call->pool, sizeof(*list) * (size_t)work->server_count);
    int *places = apr_palloc(work->call->pool, sizeof(*places) * (size_t)work->server_count);
    int count = 0;
    for (int i = 0; i < work->server_count; i++)
        if (batches[i].count > 0) {
            MC_TRY(prepare_memcached_request(&list[count], &batches[i], work->servers[i], work));
            places[count++] = i;
        }
    mc_remote_exchange_all(list, count, work->call);
    for (int i = 0; i < count; i++) {
        mc_error *error = list[i].error;
        if (error == MC_OK)
            continue;
        if (error->kind != MC_ERR_IO && error->kind != MC_ERR_CORRUPT)
            return error;
        work->states[places[i]] = SERVER_FAILS;
        work->why = error;
    }
    return MC_OK;
}

static mc_error *
do_at_memcached(mc_remote_value *values, int count, memcached_work *work)
{
    apr_pool_t *pool = work->call->pool;
    memcached_batch *batches = apr_palloc(pool, sizeof(*batches) * (size_t)work->server_count);
    bool *done = apr_pcalloc(pool, sizeof(*done) * (size_t)(count + 1));
    int *chosen = apr_palloc(pool, sizeof(*chosen) * (size_t)(count + 1));
    mc_error *error = MC_OK;
    work->states = apr_pcalloc(pool, sizeof(*work->states) * (size_t)work->server_count);
    apr_pool_create(&work->requests, pool);
    for (int taken = 1; error == MC_OK && taken > 0;) {
        taken = fill_memcached_batches(batches, chosen, values, count, done, work);
        error = taken == GONE ? work->why : exchange_memcached_batches(batches, work);
        for (int i = 0; i < count; i++)
            done[i] = done[i] || (chosen[i] >= 0 && work->states[chosen[i]] == SERVER_WORKS);
        apr_pool_clear(work->requests);
    }
    apr_pool_destroy(work->requests);
    return error;
}

mc_error *
mc_memcached_get(mc_remote_value *values, int count, mc_remote *const *servers, int server_count,
                 const mc_remote_call *call)
{
    static const memcached_verb get = { write_get_request, read_get_answer };
    memcached_work work = { .verb = &get, .servers = servers, .server_count = server_count, .call = call };
    return do_at_memcached(values, count, &work);
}

mc_error *
mc_memcached_set(mc_remote_value *values, int count, mc_remote *const *servers, int server_count,
                 const mc_remote_call *call)
{
    static const memcached_verb set = { write_set_request, read_set_answers };
    memcached_work work = { .verb = &set, .servers = servers, .server_count = server_count, .call = call };
    return do_at_memcached(values, count, &work);
}

mc_error *
mc_memcached_delete(mc_remote_value *values, int count, mc_remote *const *servers, int server_count,
                    const mc_remote_call *call)
{
    static const memcached_verb deletion = { write_delete_request, read_delete_answers };
    memcached_work work = { .verb = &deletion, .servers = servers, .server_count = server_count, .call = call };
    return do_at_memcached(values, count, &work);
}
