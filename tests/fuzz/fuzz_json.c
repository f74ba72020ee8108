/* An answer of a database in JSON, walked along a path. Input: the path, a newline, the answer. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_support.h"
#include "text/json.h"

static mc_error *
take(void *baton, const char *text, size_t size)
{
    apr_pool_t *pool = baton;
    MC_ASSERT(strlen(text) == size);
    if (size == 4 && memcmp(text, "stop", 4) == 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "enough");
    return MC_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = size == 0 ? NULL : memchr(data, '\n', size);
    if (newline == NULL)
        return 0;
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_json_path path;
    mc_error *error =
        mc_json_path_parse(&path, apr_pstrmemdup(pool, (const char *)data, (size_t)(newline - data)), pool);
    MC_ASSERT(error == MC_OK || error->kind == MC_ERR_CONFIG);
    if (error == MC_OK) {
        MC_ASSERT(path.count > 0);
        size_t rest = size - (size_t)(newline + 1 - data);
        /* A block of its own, so that a byte read beyond it is noticed. */
        char *answer = malloc(rest + 1);
        memcpy(answer, newline + 1, rest);
        char *exact = rest == 0 ? answer : realloc(answer, rest);
        error = mc_json_walk(exact, rest, &path, take, pool, pool);
        MC_ASSERT(error == MC_OK || error->kind == MC_ERR_UPSTREAM || error->kind == MC_ERR_LIMIT);
        free(exact);
    }
    apr_pool_destroy(pool);
    return 0;
}
