#include "cache/rest/signed_headers.h"

#include <apr_base64.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "text/text.h"

/* A header as it is signed: lower case, blanks once. */
typedef struct signed_header {
    const char *name, *value;
} signed_header;

static int
compare_signed_headers(const void *a, const void *b)
{
    return strcmp(((const signed_header *)a)->name, ((const signed_header *)b)->name);
}

static const char *
lower_header_name(const char *text, apr_pool_t *pool)
{
    char *lower = apr_pstrdup(pool, text);
    for (char *c = lower; *c != '\0'; c++)
        *c = (char)apr_tolower(*c);
    return lower;
}

static const char *
single_blanks(const char *text, apr_pool_t *pool)
{
    char *result = apr_pstrdup(pool, text), *to = result;
    for (const char *from = result; *from != '\0'; from++)
        if (*from != ' ' || (to != result && to[-1] != ' '))
            *to++ = *from;
    while (to != result && to[-1] == ' ')
        to--;
    *to = '\0';
    return result;
}

/* Those whose names begin so, sorted. */
static int
sort_signed_headers(signed_header **list, const apr_table_t *headers, const char *prefix, const char *other,
                    apr_pool_t *pool)
{
    const apr_array_header_t *items = apr_table_elts(headers);
    int count = 0;
    *list = apr_palloc(pool, sizeof(**list) * (size_t)(items->nelts + 1));
    for (int i = 0; i < items->nelts; i++) {
        const apr_table_entry_t *item = &APR_ARRAY_IDX(items, i, apr_table_entry_t);
        const char *name = lower_header_name(item->key, pool);
        if (strncmp(name, prefix, strlen(prefix)) != 0 && (other == NULL || strncmp(name, other, strlen(other)) != 0))
            continue;
        (*list)[count].name = name;
        (*list)[count++].value = single_blanks(mc_header_value(item->val, pool), pool);
    }
    qsort(*list, (size_t)count, sizeof(**list), compare_signed_headers);
    return count;
}

const char *
mc_signed_value(const apr_table_t *headers, const char *name)
{
    const char *value = apr_table_get(headers, name);
    return value == NULL ? "" : value;
}

const char *
mc_signed_lines(const apr_table_t *headers, const char *prefix, const char *other, apr_pool_t *pool)
{
    signed_header *list;
    int count = sort_signed_headers(&list, headers, prefix, other, pool);
    const char *text = "";
    for (int i = 0; i < count; i++)
        text = apr_pstrcat(pool, text, list[i].name, ":", list[i].value, "\n", NULL);
    return text;
}

void
mc_signed_texts(const char **lines, const char **names, const apr_table_t *headers, apr_pool_t *pool)
{
    signed_header *list;
    int count = sort_signed_headers(&list, headers, "", NULL, pool);
    size_t size = 1;
    for (int i = 0; i < count; i++)
        size += strlen(list[i].name) + strlen(list[i].value) + 2;
    char *line = apr_palloc(pool, size), *name = apr_palloc(pool, size);
    *lines = line;
    *names = name;
    for (int i = 0; i < count; i++) {
        if (i > 0)
            *name++ = ';';
        name = stpcpy(name, list[i].name);
        line = stpcpy(line, list[i].name);
        *line++ = ':';
        line = stpcpy(line, list[i].value);
        *line++ = '\n';
    }
    *line = *name = '\0';
}

const char *
mc_base64_text(const uint8_t *bytes, size_t size, apr_pool_t *pool)
{
    char *text = apr_palloc(pool, (apr_size_t)apr_base64_encode_len((int)size));
    apr_base64_encode_binary(text, bytes, (int)size);
    return text;
}
