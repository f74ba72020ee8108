/* See tile_cover.h: strip by strip between the rows in which ranges begin and end. */
#include "ingest/pyramid/tile_cover.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX INT64_C(200000000)

static int
compare_int_values(const void *a, const void *b)
{
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

static int
compare_range_rows(const void *a, const void *b)
{
    const mc_tile_range *left = a, *right = b;
    return compare_int_values(&left->miny, &right->miny);
}

static bool
is_cover_range_empty(const mc_tile_range *range)
{
    return range->minx >= range->maxx || range->miny >= range->maxy;
}

/* The ranges that reach into the strip, by their first columns. */
typedef struct open_ranges {
    const mc_tile_range **list;
    int count;
    apr_int64_t steps;
} open_ranges;

static void
open_range(open_ranges *open, const mc_tile_range *range)
{
    int at = open->count++;
    for (; at > 0 && open->list[at - 1]->minx > range->minx; at--)
        open->list[at] = open->list[at - 1];
    open->steps += open->count - at;
    open->list[at] = range;
}

/* Columns that the ranges of a strip cover; those that have ended above it are left out from now on. */
static apr_int64_t
count_open_columns(open_ranges *open, int row)
{
    apr_int64_t columns = 0;
    int kept = 0, end = 0;
    open->steps += open->count;
    for (int i = 0; i < open->count; i++) {
        const mc_tile_range *range = open->list[i];
        if (range->maxy <= row)
            continue;
        open->list[kept++] = range;
        int from = columns == 0 || range->minx > end ? range->minx : end;
        if (range->maxx <= from)
            continue;
        columns += range->maxx - from;
        end = range->maxx;
    }
    open->count = kept;
    return columns;
}

static apr_int64_t
estimate_cover(const mc_tile_range *ranges, int count)
{
    apr_int64_t sum = 0;
    mc_tile_range all = ranges[0];
    for (int i = 0; i < count; i++) {
        all = mc_tile_range_union(&all, &ranges[i]);
        sum += (apr_int64_t)(ranges[i].maxx - ranges[i].minx) * (ranges[i].maxy - ranges[i].miny);
    }
    apr_int64_t box = (apr_int64_t)(all.maxx - all.minx) * (all.maxy - all.miny);
    return sum < box ? sum : box;
}

apr_int64_t
mc_tile_cover_count(mc_tile_range *ranges, int count, apr_pool_t *pool)
{
    int used = 0, next = 0;
    apr_int64_t tiles = 0;
    for (int i = 0; i < count; i++)
        if (!is_cover_range_empty(&ranges[i]))
            ranges[used++] = ranges[i];
    if (used == 0)
        return 0;
    int *rows = apr_palloc(pool, sizeof(*rows) * 2 * (size_t)used);
    open_ranges open = { .list = apr_palloc(pool, sizeof(*open.list) * (size_t)used) };
    for (int i = 0; i < used; i++) {
        rows[2 * i] = ranges[i].miny;
        rows[2 * i + 1] = ranges[i].maxy;
    }
    qsort(rows, 2 * (size_t)used, sizeof(*rows), compare_int_values);
    qsort(ranges, (size_t)used, sizeof(*ranges), compare_range_rows);
    for (int i = 0; i + 1 < 2 * used; i++) {
        if (rows[i] == rows[i + 1])
            continue;
        while (next < used && ranges[next].miny <= rows[i])
            open_range(&open, &ranges[next++]);
        tiles += count_open_columns(&open, rows[i]) * (rows[i + 1] - rows[i]);
        if (open.steps > STEPS_MAX)
            return estimate_cover(ranges, used);
    }
    return tiles;
}
