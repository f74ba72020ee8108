/* See unsettled.h. */
#include "changes/unsettled.h"

#include <stdlib.h>
#include <string.h>

#include "changes/change_log.h"

static void
join_neighbours(mc_unsettled *unsettled)
{
    int kept = 0;
    for (int i = 0; i < unsettled->count; i += 2) {
        const struct mc_unsettled_batch *first = &unsettled->batches[i];
        const struct mc_unsettled_batch *second = i + 1 < unsettled->count ? first + 1 : first;
        apr_time_t time = second->time < first->time ? second->time : first->time;
        char *snapshot = second->snapshot;
        if (second != first)
            free(first->snapshot);
        unsettled->batches[kept].time = time;
        unsettled->batches[kept++].snapshot = snapshot;
    }
    unsettled->count = kept;
}

void
mc_unsettled_add(mc_unsettled *unsettled, const char *snapshot, apr_time_t time)
{
    if (unsettled->count == MC_UNSETTLED_MAX)
        join_neighbours(unsettled);
    char *copy = strdup(snapshot);
    MC_ASSERT(copy != NULL);
    unsettled->batches[unsettled->count].snapshot = copy;
    unsettled->batches[unsettled->count++].time = time;
}

static void
drop_first(mc_unsettled *unsettled, int count)
{
    for (int i = 0; i < count; i++)
        free(unsettled->batches[i].snapshot);
    unsettled->count -= count;
    memmove(unsettled->batches, unsettled->batches + count, sizeof(unsettled->batches[0]) * (size_t)unsettled->count);
}

void
mc_unsettled_settle(mc_unsettled *unsettled, const char *applied)
{
    int settled = 0;
    while (settled < unsettled->count && mc_log_covers(applied, unsettled->batches[settled].snapshot))
        settled++;
    drop_first(unsettled, settled);
}

apr_time_t
mc_unsettled_oldest(const mc_unsettled *unsettled)
{
    apr_time_t oldest = 0;
    for (int i = 0; i < unsettled->count; i++)
        if (oldest == 0 || unsettled->batches[i].time < oldest)
            oldest = unsettled->batches[i].time;
    return oldest;
}

void
mc_unsettled_clear(mc_unsettled *unsettled)
{
    drop_first(unsettled, unsettled->count);
}
