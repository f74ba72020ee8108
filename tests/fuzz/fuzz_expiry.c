/* <auto_expire>: no text breaks the reader; what it accepts ends after the making, and nothing ends earlier that was
 * made later. */
#include <apr_strings.h>
#include <string.h>

#include "fuzz_support.h"
#include "mapcache/error.h"
#include "text/expiry.h"

static apr_pool_t *pool;

int LLVMFuzzerInitialize(int *count, char ***values);
int
LLVMFuzzerInitialize(int *count, char ***values)
{
    (void)count;
    (void)values;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : 1;
}

/* The first eight bytes are a time, the rest is the text. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mc_expiry *expiry;
    int64_t made = 0;
    size_t head = size < sizeof(made) ? size : sizeof(made);
    memcpy(&made, data, head);
    const char *wrong = mc_expiry_parse(&expiry, apr_pstrmemdup(pool, (const char *)data + head, size - head), pool);
    MC_ASSERT(wrong == NULL || (expiry == NULL && *wrong != '\0'));
    const int64_t times[] = { made, made / 1000, made == INT64_MAX ? made : made + 1 };
    int64_t ends[3];
    for (int i = 0; i < 3; i++) {
        ends[i] = mc_expiry_end(expiry, times[i]);
        MC_ASSERT(ends[i] == MC_EXPIRY_NEVER || ends[i] > times[i]);
        MC_ASSERT(ends[i] == mc_expiry_end(expiry, times[i]));
    }
    MC_ASSERT(ends[2] >= ends[0]);
    apr_pool_clear(pool);
    return 0;
}
