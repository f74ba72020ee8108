/* See mark_areas.h. */
#include "changes/mark_areas.h"

#include <stdbool.h>
#include <string.h>

typedef struct mc_mark_area mark_area;

apr_time_t
mc_mark_areas_find(const mc_mark_areas *areas, int x, int y)
{
    apr_time_t newest = 0;
    int count = atomic_load_explicit(&areas->count, memory_order_acquire);
    for (int i = 0; i < count; i++) {
        const mark_area *area = &areas->areas[i];
        apr_time_t time = atomic_load_explicit(&area->time, memory_order_acquire);
        if (time > newest && x >= atomic_load_explicit(&area->minx, memory_order_acquire) &&
            x < atomic_load_explicit(&area->maxx, memory_order_acquire) &&
            y >= atomic_load_explicit(&area->miny, memory_order_acquire) &&
            y < atomic_load_explicit(&area->maxy, memory_order_acquire))
            newest = time;
    }
    return newest;
}

static double
size_of(const mc_tile_range *range)
{
    return ((double)range->maxx - range->minx) * ((double)range->maxy - range->miny);
}

static mc_tile_range
range_of(const mark_area *area)
{
    return (mc_tile_range){ atomic_load_explicit(&area->minx, memory_order_relaxed),
                            atomic_load_explicit(&area->miny, memory_order_relaxed),
                            atomic_load_explicit(&area->maxx, memory_order_relaxed),
                            atomic_load_explicit(&area->maxy, memory_order_relaxed) };
}

static apr_time_t
time_of_area(const mark_area *area)
{
    return atomic_load_explicit(&area->time, memory_order_relaxed);
}

static void
set_area(mark_area *area, const mc_tile_range *range, apr_time_t time)
{
    atomic_store_explicit(&area->minx, range->minx, memory_order_release);
    atomic_store_explicit(&area->miny, range->miny, memory_order_release);
    atomic_store_explicit(&area->maxx, range->maxx, memory_order_release);
    atomic_store_explicit(&area->maxy, range->maxy, memory_order_release);
    atomic_store_explicit(&area->time, time, memory_order_release);
}

static bool
range_covers(const mc_tile_range *outer, const mc_tile_range *inner)
{
    const mc_tile_range both = mc_tile_range_union(outer, inner);
    return memcmp(&both, outer, sizeof(both)) == 0;
}

/* An area that is inside of a later one says nothing. Where all are taken, the new one is joined with the one with
 * which it grows least. */
void
mc_mark_areas_add(mc_mark_areas *areas, const mc_tile_range *range, apr_time_t time)
{
    int count = atomic_load_explicit(&areas->count, memory_order_relaxed), best = 0;
    double least = 0;
    for (int i = 0; i < count; i++) {
        mark_area *area = &areas->areas[i];
        const mc_tile_range known = range_of(area), both = mc_tile_range_union(&known, range);
        double growth = size_of(&both) - size_of(&known) - size_of(range);
        if (time_of_area(area) >= time && range_covers(&known, range))
            return;
        if (time_of_area(area) <= time && range_covers(range, &known)) {
            set_area(area, range, time);
            return;
        }
        if (i == 0 || growth < least) {
            least = growth;
            best = i;
        }
    }
    if (count < MC_MARK_AREAS) {
        set_area(&areas->areas[count], range, time);
        atomic_store_explicit(&areas->count, count + 1, memory_order_release);
        return;
    }
    mark_area *area = &areas->areas[best];
    const mc_tile_range known = range_of(area), both = mc_tile_range_union(&known, range);
    set_area(area, &both, time_of_area(area) > time ? time_of_area(area) : time);
}

int
mc_mark_areas_keep(mc_mark_areas *areas, apr_time_t time)
{
    int count = atomic_load_explicit(&areas->count, memory_order_relaxed), kept = 0;
    for (int i = 0; i < count; i++) {
        const mc_tile_range range = range_of(&areas->areas[i]);
        apr_time_t own = time_of_area(&areas->areas[i]);
        if (own > time)
            set_area(&areas->areas[kept++], &range, own);
    }
    atomic_store_explicit(&areas->count, kept, memory_order_release);
    return kept;
}
