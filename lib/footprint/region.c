/* Rectangles minus rectangles. */
#include "footprint/region.h"

void
mc_region_set(mc_region *region, int width, int height)
{
    region->count = 1;
    region->rects[0] = (mc_rect){ 0, 0, width, height };
}

static bool
region_rects_meet(const mc_rect *a, const mc_rect *b)
{
    return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

bool
mc_region_touches(const mc_region *region, const mc_rect *rect)
{
    for (int i = 0; i < region->count; i++)
        if (region_rects_meet(&region->rects[i], rect))
            return true;
    return false;
}

/* Up to four pieces of `a` outside of `hole`: above, below, left, right. */
static int
cut_region_rect(mc_rect pieces[4], const mc_rect *a, const mc_rect *hole)
{
    int count = 0;
    int top = hole->y0 > a->y0 ? hole->y0 : a->y0;
    int bottom = hole->y1 < a->y1 ? hole->y1 : a->y1;
    if (a->y0 < top)
        pieces[count++] = (mc_rect){ a->x0, a->y0, a->x1, top };
    if (bottom < a->y1)
        pieces[count++] = (mc_rect){ a->x0, bottom, a->x1, a->y1 };
    if (a->x0 < hole->x0)
        pieces[count++] = (mc_rect){ a->x0, top, hole->x0, bottom };
    if (hole->x1 < a->x1)
        pieces[count++] = (mc_rect){ hole->x1, top, a->x1, bottom };
    return count;
}

void
mc_region_subtract(mc_region *region, const mc_rect *rect)
{
    mc_region rest = { 0 };
    for (int i = 0; i < region->count; i++) {
        mc_rect pieces[4] = { region->rects[i] };
        int count = region_rects_meet(&region->rects[i], rect) ? cut_region_rect(pieces, &region->rects[i], rect) : 1;
        if (rest.count + count > mc_region_max)
            return;
        for (int j = 0; j < count; j++)
            rest.rects[rest.count++] = pieces[j];
    }
    *region = rest;
}
