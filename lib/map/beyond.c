/* What lies beyond the area in which the CRS of a map is valid (OGC 20-058, 9: void-color, void-transparent). */
#include <math.h>
#include <string.h>

#include "map/map_private.h"

/* The first pixel of a side of so many whose middle lies at `position`, or behind it. */
static int
find_first_pixel(double position, int size)
{
    double first = ceil(position - 0.5 - 1e-6);
    return first <= 0 ? 0 : first >= size ? size : (int)first;
}

static void
fill_beyond_row(mc_pixels *canvas, int y, int first, int end, const uint8_t bgra[4])
{
    uint8_t *row = canvas->data + (size_t)y * canvas->stride;
    for (int x = first; x < end; x++)
        memcpy(row + (size_t)x * 4, bgra, 4);
}

void
mc_map_mark_beyond(mc_pixels *canvas, const mc_map_request *wanted)
{
    const mc_map_beyond *beyond = wanted->beyond;
    const mc_extent *box = &wanted->box;
    uint8_t bgra[4] = { 0, 0, 0, 0 };
    if (beyond == NULL)
        return;
    if (!beyond->transparent || wanted->format->type == MC_FORMAT_JPEG) {
        for (int i = 0; i < 3; i++)
            bgra[i] = beyond->rgb[2 - i];
        bgra[3] = 255;
    }
    double across = canvas->width / (box->maxx - box->minx), down = canvas->height / (box->maxy - box->miny);
    int left = find_first_pixel((beyond->valid.minx - box->minx) * across, canvas->width);
    int right = find_first_pixel((beyond->valid.maxx - box->minx) * across, canvas->width);
    int top = find_first_pixel((box->maxy - beyond->valid.maxy) * down, canvas->height);
    int bottom = find_first_pixel((box->maxy - beyond->valid.miny) * down, canvas->height);
    for (int y = 0; y < canvas->height; y++) {
        bool inside = y >= top && y < bottom;
        fill_beyond_row(canvas, y, 0, inside ? left : canvas->width, bgra);
        if (inside)
            fill_beyond_row(canvas, y, right, canvas->width, bgra);
    }
    canvas->opacity = MC_OPACITY_UNKNOWN;
}
