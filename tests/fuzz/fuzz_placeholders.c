/*
 * Any statement through the scanner that numbers its parameters, and any text through the one that fills them in. What
 * is put in must come out as it is, and nothing of it may be taken for a parameter.
 */
#include <apr_strings.h>
#include <string.h>

#include "dimension/placeholders.h"
#include "fuzz_support.h"

/* Every "$n" of a parameter is there, and the rest of the statement is as long as it was. */
static void
check_numbers(const char *sql, apr_pool_t *pool)
{
    mc_placeholders found = mc_placeholders_number(sql, pool);
    MC_ASSERT(found.count >= 0 && found.count <= MC_QUERY_PARAMETER_COUNT);
    MC_ASSERT(strlen(found.sql) <= strlen(sql));
    MC_ASSERT(found.count > 0 || strcmp(found.sql, sql) == 0);
    for (int i = 0; i < found.count; i++) {
        char number[3] = { '$', (char)('1' + i), '\0' };
        MC_ASSERT(strstr(found.sql, number) != NULL);
        MC_ASSERT(strstr(sql, mc_query_parameter_names[found.parameters[i]]) != NULL);
        for (int j = 0; j < i; j++)
            MC_ASSERT(found.parameters[i] != found.parameters[j]);
    }
}

static size_t
count_of(const char *text, const char *wanted)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at += strlen(wanted))
        count++;
    return count;
}

static void
check_texts(const char *query, apr_pool_t *pool)
{
    static const char value[] = "\x01:minx :dim :tileset\x02";
    const char *texts[MC_QUERY_PARAMETER_COUNT];
    for (int i = 0; i < MC_QUERY_PARAMETER_COUNT; i++)
        texts[i] = i % 2 == 0 ? value : NULL;
    const char *filled = mc_placeholders_fill(query, texts, pool);
    size_t expected = 0, length = strlen(query);
    for (int i = 0; i < MC_QUERY_PARAMETER_COUNT; i++) {
        size_t count = count_of(query, mc_query_parameter_names[i]);
        expected += texts[i] != NULL ? count : 0;
        length += count * (texts[i] == NULL ? 0 : strlen(value));
        length -= count * strlen(mc_query_parameter_names[i]);
    }
    MC_ASSERT(strlen(filled) == length);
    MC_ASSERT(count_of(filled, value) >= expected);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    const char *text = apr_pstrmemdup(pool, (const char *)data, size);
    check_numbers(text, pool);
    check_texts(text, pool);
    apr_pool_destroy(pool);
    return 0;
}
