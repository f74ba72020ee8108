/* Extents and ranges of tiles as sets. */
#include <math.h>

#include "mapcache/grid.h"

bool
mc_extent_valid(const mc_extent *extent)
{
    return isfinite(extent->minx) && isfinite(extent->miny) && isfinite(extent->maxx) && isfinite(extent->maxy) &&
           extent->minx < extent->maxx && extent->miny < extent->maxy;
}

bool
mc_extent_intersects(const mc_extent *a, const mc_extent *b)
{
    return a->minx < b->maxx && b->minx < a->maxx && a->miny < b->maxy && b->miny < a->maxy;
}

mc_extent
mc_extent_union(const mc_extent *a, const mc_extent *b)
{
    return (mc_extent){ fmin(a->minx, b->minx), fmin(a->miny, b->miny), fmax(a->maxx, b->maxx),
                        fmax(a->maxy, b->maxy) };
}

mc_extent
mc_extent_intersection(const mc_extent *a, const mc_extent *b)
{
    return (mc_extent){ fmax(a->minx, b->minx), fmax(a->miny, b->miny), fmin(a->maxx, b->maxx),
                        fmin(a->maxy, b->maxy) };
}

static int
lesser_of(int a, int b)
{
    return a < b ? a : b;
}

static int
greater_of(int a, int b)
{
    return a > b ? a : b;
}

mc_tile_range
mc_tile_range_union(const mc_tile_range *a, const mc_tile_range *b)
{
    return (mc_tile_range){ lesser_of(a->minx, b->minx), lesser_of(a->miny, b->miny), greater_of(a->maxx, b->maxx),
                            greater_of(a->maxy, b->maxy) };
}

mc_tile_range
mc_tile_range_intersection(const mc_tile_range *a, const mc_tile_range *b)
{
    return (mc_tile_range){ greater_of(a->minx, b->minx), greater_of(a->miny, b->miny), lesser_of(a->maxx, b->maxx),
                            lesser_of(a->maxy, b->maxy) };
}
