#include "remote/redis_commands.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

enum { GREETING_MAX = 4096 };

/* A server that does not know AUTH quotes what came with it. */
static void
cut_off_arguments(char *text)
{
    char *arguments = strstr(text, ", with args");
    if (arguments != NULL)
        *arguments = '\0';
}

static mc_error *
read_redis_greeting(mc_stream *stream, int commands)
{
    for (int i = 0; i < commands; i++) {
        mc_resp answer;
        MC_TRY(mc_resp_read(&answer, stream, 0));
        cut_off_arguments(answer.text);
        if (answer.kind == MC_RESP_ERROR)
            return mc_error_create(mc_stream_call(stream)->pool, MC_ERR_FORBIDDEN,
                                   "%s lets nobody in: %s (by <user>, <password> and <database>)",
                                   mc_remote_name(mc_stream_remote(stream)), answer.text);
        if (answer.kind != MC_RESP_STATUS)
            return mc_stream_nonsense(stream, "no status");
    }
    return MC_OK;
}

mc_error *
mc_redis_write_greeting(mc_remote_address *address, const mc_redis_config *config, apr_pool_t *pool)
{
    char number[16];
    mc_buf *text = mc_buf_attach(mc_buf_create(0, GREETING_MAX), pool);
    snprintf(number, sizeof(number), "%d", config->database);
    if (config->password != NULL) {
        MC_TRY(mc_resp_write_head(text, config->user == NULL ? 2 : 3, pool));
        MC_TRY(mc_resp_write_word(text, "AUTH", 4, pool));
        if (config->user != NULL)
            MC_TRY(mc_resp_write_word(text, config->user, strlen(config->user), pool));
        MC_TRY(mc_resp_write_word(text, config->password, strlen(config->password), pool));
        address->greeting_commands++;
    }
    if (config->database != 0) {
        const mc_resp_word words[] = { MC_RESP_WORD("SELECT"), MC_RESP_WORD(number) };
        MC_TRY(mc_resp_write(text, words, 2, pool));
        address->greeting_commands++;
    }
    address->greeting = apr_pmemdup(pool, text->data, text->size + 1);
    address->greeting_size = text->size;
    address->greet = read_redis_greeting;
    return MC_OK;
}

static mc_error *
write_get_command(mc_buf *request, const mc_redis_own *own, const mc_remote_value *value, apr_pool_t *pool)
{
    (void)own;
    const mc_resp_word words[] = { MC_RESP_WORD("GET"), { value->key, value->key_size } };
    return mc_resp_write(request, words, 2, pool);
}

static bool
take_found_value(const mc_redis_own *own, mc_remote_value *value, const mc_resp *answer, apr_pool_t *pool)
{
    (void)own, (void)pool;
    value->found = answer->value;
    return answer->kind == MC_RESP_VALUE || answer->kind == MC_RESP_NIL;
}

static mc_error *
write_exists_command(mc_buf *request, const mc_redis_own *own, const mc_remote_value *value, apr_pool_t *pool)
{
    (void)own;
    const mc_resp_word words[] = { MC_RESP_WORD("EXISTS"), { value->key, value->key_size } };
    return mc_resp_write(request, words, 2, pool);
}

static bool
take_existence(const mc_redis_own *own, mc_remote_value *value, const mc_resp *answer, apr_pool_t *pool)
{
    (void)own;
    value->found = answer->number > 0 ? mc_buf_attach(mc_buf_create(0, 1), pool) : NULL;
    return answer->kind == MC_RESP_INTEGER;
}

static mc_error *
write_set_command(mc_buf *request, const mc_redis_own *own, const mc_remote_value *value, apr_pool_t *pool)
{
    (void)own;
    char seconds[16], size[40];
    int length = snprintf(size, sizeof(size), "$%zu\r\n", value->data_size + value->tail_size);
    snprintf(seconds, sizeof(seconds), "%d", value->lifetime);
    MC_TRY(mc_resp_write_head(request, value->lifetime > 0 ? 4 : 3, pool));
    MC_TRY(mc_resp_write_word(request, value->lifetime > 0 ? "SETEX" : "SET", value->lifetime > 0 ? 5 : 3, pool));
    MC_TRY(mc_resp_write_word(request, value->key, value->key_size, pool));
    if (value->lifetime > 0)
        MC_TRY(mc_resp_write_word(request, seconds, strlen(seconds), pool));
    MC_TRY(mc_buf_append(request, size, (size_t)length, pool));
    MC_TRY(mc_buf_append(request, value->data, value->data_size, pool));
    MC_TRY(mc_buf_append(request, value->tail, value->tail_size, pool));
    return mc_buf_append(request, "\r\n", 2, pool);
}

static bool
take_status(const mc_redis_own *own, mc_remote_value *value, const mc_resp *answer, apr_pool_t *pool)
{
    (void)own, (void)value, (void)pool;
    return answer->kind == MC_RESP_STATUS && strcmp(answer->text, "OK") == 0;
}

static mc_error *
write_delete_command(mc_buf *request, const mc_redis_own *own, const mc_remote_value *value, apr_pool_t *pool)
{
    (void)own;
    const mc_resp_word words[] = { MC_RESP_WORD("DEL"), { value->key, value->key_size } };
    return mc_resp_write(request, words, 2, pool);
}

static bool
take_number(const mc_redis_own *own, mc_remote_value *value, const mc_resp *answer, apr_pool_t *pool)
{
    (void)own, (void)value, (void)pool;
    return answer->kind == MC_RESP_INTEGER;
}

static mc_error *
write_own_command(mc_buf *request, const mc_redis_own *own, const mc_remote_value *value, apr_pool_t *pool)
{
    (void)value;
    return mc_resp_write(request, own->words, own->count, pool);
}

static bool
take_any_answer(const mc_redis_own *own, mc_remote_value *value, const mc_resp *answer, apr_pool_t *pool)
{
    (void)value, (void)pool;
    *own->answer = *answer;
    return answer->kind != MC_RESP_ARRAY;
}

const mc_redis_verb mc_redis_verb_get = { write_get_command, take_found_value, true, false };
const mc_redis_verb mc_redis_verb_set = { write_set_command, take_status, false, false };
const mc_redis_verb mc_redis_verb_has = { write_exists_command, take_existence, false, false };
const mc_redis_verb mc_redis_verb_delete = { write_delete_command, take_number, false, false };
const mc_redis_verb mc_redis_verb_own = { write_own_command, take_any_answer, false, true };
