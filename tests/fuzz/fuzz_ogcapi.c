/* What strangers write to the OGC API: `subset` and `datetime`. No text breaks a reader, and what is accepted is
 * bounded. */
#include <apr_strings.h>
#include <string.h>

#include "fuzz_support.h"
#include "mapcache/error.h"
#include "service/ogcapi/subset.h"

static apr_pool_t *pool;

int LLVMFuzzerInitialize(int *count, char ***values);
int
LLVMFuzzerInitialize(int *count, char ***values)
{
    (void)count;
    (void)values;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : 1;
}

static void
check_subset(const char *text)
{
    mc_subset list[MC_SUBSET_AXES_MAX], time = { .axis = "time" };
    int count = 0;
    int64_t start, end;
    const char *wrong = mc_subset_parse(list, &count, text, pool);
    MC_ASSERT(count >= 0 && count <= MC_SUBSET_AXES_MAX);
    for (int i = 0; wrong == NULL && i < count; i++) {
        MC_ASSERT(*list[i].axis != '\0' && strlen(list[i].axis) <= strlen(text));
        MC_ASSERT(list[i].low == NULL || *list[i].low != '\0');
        MC_ASSERT(list[i].interval || list[i].high == NULL);
        int which;
        MC_ASSERT(!mc_subset_is_place(&which, list[i].axis, true) || which == 0 || which == 1);
    }
    if (mc_subset_datetime(&time, text, pool) == NULL)
        MC_ASSERT(time.interval || (time.low != NULL && mc_subset_time(&start, &end, time.low) && start <= end));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = apr_pstrmemdup(pool, (const char *)data, size);
    check_subset(text);
    apr_pool_clear(pool);
    return 0;
}
