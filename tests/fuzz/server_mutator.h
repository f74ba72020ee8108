/* Changes requests by their parts: a parameter, a segment of the path, a header, the body. Of the bytes of a part, and
 * now and then of all, libFuzzer changes some. */
#ifndef FUZZ_SERVER_MUTATOR_H
#define FUZZ_SERVER_MUTATOR_H

#include <apr_strings.h>
#include <apr_tables.h>
#include <stdint.h>
#include <string.h>

#include "server_words.h"

enum { PART_MAX = 4096 };

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* A request as the input has it. Lists are of strings; what separates them is not in them. */
typedef struct parts {
    const char *method;
    apr_array_header_t *segments, *parameters, *headers;
    const char *body;
    size_t body_size;
} parts;

static uint64_t dice;

static size_t
throw_dice(size_t sides)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(dice >> 33) % sides;
}

#define ANY_OF(words) ((words)[throw_dice(sizeof(words) / sizeof((words)[0]))])

static apr_array_header_t *
split_text(const char *text, char separator, apr_pool_t *pool)
{
    apr_array_header_t *list = apr_array_make(pool, 8, sizeof(const char *));
    for (const char *end; text != NULL && *text != '\0'; text = *end == '\0' ? NULL : end + 1) {
        end = strchrnul(text, separator);
        APR_ARRAY_PUSH(list, const char *) = apr_pstrmemdup(pool, text, (apr_size_t)(end - text));
    }
    return list;
}

/* The next line of the input as a string; *data is moved behind it. */
static const char *
next_line(const uint8_t **data, const uint8_t *end, apr_pool_t *pool)
{
    const uint8_t *line = *data;
    const uint8_t *newline = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;
    const uint8_t *stop = newline != NULL ? newline : end;
    *data = newline != NULL ? newline + 1 : end;
    return apr_pstrmemdup(pool, (const char *)line, (apr_size_t)(stop - line));
}

static parts
split_request(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    const uint8_t *end = data + size;
    parts p = { .method = next_line(&data, end, pool) };
    p.segments = split_text(next_line(&data, end, pool), '/', pool);
    p.parameters = split_text(next_line(&data, end, pool), '&', pool);
    p.headers = apr_array_make(pool, 8, sizeof(const char *));
    while (data < end) {
        const char *line = next_line(&data, end, pool);
        if (*line == '\0')
            break;
        APR_ARRAY_PUSH(p.headers, const char *) = line;
    }
    p.body = (const char *)data;
    p.body_size = (size_t)(end - data);
    return p;
}

/* Some bytes of a text are others. */
static const char *
mutate_text(const char *text, apr_pool_t *pool)
{
    size_t size = strlen(text);
    uint8_t *room = apr_pcalloc(pool, PART_MAX + 1);
    size = size < PART_MAX ? size : PART_MAX;
    memcpy(room, text, size);
    size = LLVMFuzzerMutate(room, size, PART_MAX);
    for (size_t i = 0; i < size; i++)
        if (room[i] == '\n' || room[i] == '\0')
            room[i] = '.';
    room[size] = '\0';
    return (const char *)room;
}

/* One element of a list is replaced, changed, doubled, moved or removed, or `fresh` is added. */
static void
mutate_list(apr_array_header_t *list, const char *fresh, apr_pool_t *pool)
{
    const char **all = (const char **)list->elts;
    size_t count = (size_t)list->nelts, action = throw_dice(8);
    if (count == 0 || action < 2) {
        APR_ARRAY_PUSH(list, const char *) = fresh;
        return;
    }
    size_t at = throw_dice(count), other = throw_dice(count);
    const char *chosen = all[at];
    if (action == 2)
        all[at] = mutate_text(chosen, pool);
    else if (action == 3)
        APR_ARRAY_PUSH(list, const char *) = chosen;
    else if (action == 4 && all[at] != all[other]) {
        all[at] = all[other];
        all[other] = chosen;
    } else if (action == 5) {
        all[at] = all[count - 1];
        list->nelts--;
    } else
        all[at] = fresh;
}

/* Another value of a parameter that is there, mostly. */
static void
mutate_parameter(parts *p, apr_pool_t *pool)
{
    if (p->parameters->nelts == 0 || throw_dice(4) == 0) {
        mutate_list(p->parameters, apr_pstrcat(pool, ANY_OF(names), "=", ANY_OF(values), NULL), pool);
        return;
    }
    const char **chosen = &APR_ARRAY_IDX(p->parameters, (int)throw_dice((size_t)p->parameters->nelts), const char *);
    const char *equals = strchrnul(*chosen, '=');
    const char *name = apr_pstrmemdup(pool, *chosen, (apr_size_t)(equals - *chosen));
    const char *value = *equals == '=' ? equals + 1 : "";
    const char *fresh = throw_dice(3) == 0   ? mutate_text(value, pool)
                        : throw_dice(8) == 0 ? apr_pstrcat(pool, value, ",", ANY_OF(values), NULL)
                                             : ANY_OF(values);
    *chosen = apr_pstrcat(pool, name, "=", fresh, NULL);
}

static void
mutate_body(parts *p, size_t most, apr_pool_t *pool)
{
    if (throw_dice(2) == 0) {
        p->body = ANY_OF(bodies);
        p->body_size = strlen(p->body);
        return;
    }
    uint8_t *room = apr_palloc(pool, most + 1);
    p->body_size = p->body_size < most ? p->body_size : most;
    memcpy(room, p->body, p->body_size);
    p->body_size = LLVMFuzzerMutate(room, p->body_size, most);
    p->body = (const char *)room;
}

/* Writes the parts into `data`; what does not fit is left out. */
static size_t
join_request(uint8_t *data, size_t most, const parts *p, apr_pool_t *pool)
{
    const char *path = p->segments->nelts == 0 ? "" : apr_array_pstrcat(pool, p->segments, '/');
    const char *query = p->parameters->nelts == 0 ? "" : apr_array_pstrcat(pool, p->parameters, '&');
    const char *headers = p->headers->nelts == 0 ? "" : apr_array_pstrcat(pool, p->headers, '\n');
    const char *head =
        apr_pstrcat(pool, p->method, "\n", path, "\n", query, "\n", headers, *headers == '\0' ? "\n" : "\n\n", NULL);
    size_t size = strlen(head) < most ? strlen(head) : most;
    memcpy(data, head, size);
    size_t rest = p->body_size < most - size ? p->body_size : most - size;
    memcpy(data + size, p->body, rest);
    return size + rest;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    dice = seed;
    size_t action = throw_dice(16);
    if (action == 0)
        return LLVMFuzzerMutate(data, size, most);
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    const char *whole = ANY_OF(whole_requests);
    parts p = action == 1 ? split_request((const uint8_t *)whole, strlen(whole), pool)
                          : split_request(apr_pmemdup(pool, data, size), size, pool);
    if (action < 7)
        mutate_parameter(&p, pool);
    else if (action < 12)
        mutate_list(p.segments, ANY_OF(segments), pool);
    else if (action < 14)
        mutate_list(p.headers, ANY_OF(header_lines), pool);
    else if (action == 14)
        p.method = ANY_OF(methods);
    else
        mutate_body(&p, most, pool);
    size = join_request(data, most, &p, pool);
    apr_pool_destroy(pool);
    return size;
}

#endif
