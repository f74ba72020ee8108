#include "remote/resp.h"

#include <stdio.h>
#include <string.h>

enum {
    SKIPPED_MAX = 4096,   /* bytes of a value that nobody wants */
    KEY_LONGEST = 1 << 29 /* bytes of a key */
};

/* A whole number, perhaps negative, and nothing behind it. */
static bool
read_resp_number(int64_t *number, const char *text)
{
    bool negative = *text == '-';
    const char *at = text + negative;
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (value > INT64_MAX / 10 - 1)
            return false;
        value = value * 10 + (uint64_t)(*at - '0');
    }
    *number = negative ? -(int64_t)value : (int64_t)value;
    return *at == '\0' && at != text + negative;
}

/* The line of an answer; of a value its size, before its bytes. */
static mc_error *
read_resp_line(mc_resp *answer, mc_stream *stream)
{
    char *line;
    size_t size;
    MC_TRY(mc_stream_line(&line, &size, stream));
    answer->value = NULL;
    answer->number = 0;
    answer->text[0] = '\0';
    switch (line[0]) {
    case '+':
    case '-':
        answer->kind = line[0] == '+' ? MC_RESP_STATUS : MC_RESP_ERROR;
        snprintf(answer->text, sizeof(answer->text), "%s", line + 1);
        return MC_OK;
    case ':':
        answer->kind = MC_RESP_INTEGER;
        return read_resp_number(&answer->number, line + 1) ? MC_OK : mc_stream_nonsense(stream, line);
    case '$':
    case '*':
        answer->kind = line[0] == '$' ? MC_RESP_VALUE : MC_RESP_ARRAY;
        if (!read_resp_number(&answer->number, line + 1) || answer->number < -1)
            return mc_stream_nonsense(stream, line);
        if (answer->number == -1)
            answer->kind = MC_RESP_NIL;
        return MC_OK;
    default:
        return mc_stream_nonsense(stream, line);
    }
}

mc_error *
mc_resp_read(mc_resp *answer, mc_stream *stream, size_t most)
{
    MC_TRY(read_resp_line(answer, stream));
    if (answer->kind != MC_RESP_VALUE)
        return MC_OK;
    MC_TRY(mc_stream_value(&answer->value, stream, (size_t)answer->number, most));
    return mc_stream_end_of_value(stream);
}

mc_error *
mc_resp_read_short(mc_resp *answer, mc_stream *stream, size_t most)
{
    MC_TRY(read_resp_line(answer, stream));
    if (answer->kind != MC_RESP_VALUE)
        return MC_OK;
    if (answer->number <= (int64_t)most) {
        MC_TRY(mc_stream_value(&answer->value, stream, (size_t)answer->number, most));
        return mc_stream_end_of_value(stream);
    }
    if (answer->number > KEY_LONGEST)
        return mc_stream_nonsense(stream, "too long a value");
    answer->value = NULL;
    MC_TRY(mc_stream_pass(stream, (size_t)answer->number));
    return mc_stream_end_of_value(stream);
}

/* Arrays in arrays only lengthen the count of what is still to come. */
mc_error *
mc_resp_skip(mc_stream *stream, int64_t count, int *budget)
{
    mc_resp answer;
    for (int64_t left = count; left > 0; left--) {
        if (left > *budget)
            return mc_stream_nonsense(stream, "too long a list");
        --*budget;
        MC_TRY(read_resp_line(&answer, stream));
        if (answer.kind == MC_RESP_ARRAY)
            left += answer.number < *budget ? answer.number : *budget;
        if (answer.kind != MC_RESP_VALUE)
            continue;
        if (answer.number > SKIPPED_MAX)
            return mc_stream_nonsense(stream, "too long a value");
        MC_TRY(mc_stream_pass(stream, (size_t)answer.number));
        MC_TRY(mc_stream_end_of_value(stream));
    }
    return MC_OK;
}

bool
mc_resp_is_error(const mc_resp *answer, const char *word)
{
    size_t size = strlen(word);
    return answer->kind == MC_RESP_ERROR && strncmp(answer->text, word, size) == 0 &&
           (answer->text[size] == ' ' || answer->text[size] == '\0');
}

mc_error *
mc_resp_write_head(mc_buf *out, int count, apr_pool_t *pool)
{
    char head[32];
    int size = snprintf(head, sizeof(head), "*%d\r\n", count);
    return mc_buf_append(out, head, (size_t)size, pool);
}

mc_error *
mc_resp_write_word(mc_buf *out, const void *bytes, size_t size, apr_pool_t *pool)
{
    char head[32];
    int length = snprintf(head, sizeof(head), "$%zu\r\n", size);
    MC_TRY(mc_buf_append(out, head, (size_t)length, pool));
    MC_TRY(mc_buf_append(out, bytes, size, pool));
    return mc_buf_append(out, "\r\n", 2, pool);
}

mc_error *
mc_resp_write(mc_buf *out, const mc_resp_word *words, int count, apr_pool_t *pool)
{
    MC_TRY(mc_resp_write_head(out, count, pool));
    for (int i = 0; i < count; i++)
        MC_TRY(mc_resp_write_word(out, words[i].bytes, words[i].size, pool));
    return MC_OK;
}
