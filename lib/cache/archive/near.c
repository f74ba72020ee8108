/*
 * Many parts of a file behind HTTP: neighbours stand close together in an archive of tiles, so that a few requests
 * bring them all, sent together. What stands between two parts is fetched along where it is less than a request is
 * worth.
 */
#include <stdlib.h>

#include "cache/archive/ranges.h"

enum { GAP_WORTH_A_REQUEST = 64 << 10, FETCHED_MAX = 8 << 20 };

static int
compare_parts(const void *a, const void *b)
{
    const mc_range_part *one = *(mc_range_part *const *)a, *other = *(mc_range_part *const *)b;
    return one->offset < other->offset ? -1 : one->offset > other->offset;
}

/* The part behind those from `first` on that are fetched together, as `whole`. */
static int
join_parts(mc_range_part *whole, mc_range_part *const *parts, int first, int count)
{
    int next = first + 1;
    uint64_t begin = parts[first]->offset, end = begin + parts[first]->size;
    for (; next < count; next++) {
        uint64_t its = parts[next]->offset + parts[next]->size, further = its > end ? its : end;
        if (parts[next]->offset > end + GAP_WORTH_A_REQUEST || further - begin > FETCHED_MAX)
            break;
        end = further;
    }
    *whole = (mc_range_part){ .offset = begin, .size = (size_t)(end - begin) };
    return next;
}

mc_error *
mc_ranges_fetch_near(mc_range_part *parts, int count, mc_ranged_file *file, apr_pool_t *pool)
{
    mc_range_part **sorted = apr_palloc(pool, sizeof(*sorted) * (size_t)(count + 1));
    mc_range_part *wholes = apr_palloc(pool, sizeof(*wholes) * (size_t)(count + 1));
    int *ends = apr_palloc(pool, sizeof(*ends) * (size_t)(count + 1)), made = 0;
    for (int i = 0; i < count; i++) {
        if (!mc_ranges_holds(file, parts[i].offset, parts[i].size))
            return mc_error_create(pool, MC_ERR_CORRUPT, "a part lies beyond the end of the archive");
        sorted[i] = &parts[i];
    }
    qsort(sorted, (size_t)count, sizeof(mc_range_part *), compare_parts);
    for (int first = 0; first < count; first = ends[made - 1]) {
        ends[made] = join_parts(&wholes[made], sorted, first, count);
        made++;
    }
    MC_TRY(mc_ranges_fetch_all(wholes, made, file, pool));
    for (int i = 0, first = 0; i < made; first = ends[i++])
        for (int part = first; part < ends[i]; part++) {
            const mc_range_part *whole = &wholes[i];
            if (sorted[part]->size == whole->size)
                sorted[part]->data = whole->data;
            else
                MC_TRY(mc_buf_duplicate(&sorted[part]->data, whole->data->data + (sorted[part]->offset - whole->offset),
                                        sorted[part]->size, pool));
        }
    return MC_OK;
}
