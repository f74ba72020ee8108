/* Which pixels of a plane are looked at, and which features may reach these. See overview_reveal_private.h. */
#include <math.h>
#include <string.h>

#include "overview/reveal/overview_reveal_private.h"

/* Pixels by which what is painted of a geometry may lie beside where its bounds and the reach of its symbols say. */
#define PIXELS_OFF 1

static double
reach_of_values(mc_reveal_plane *look, const char *const *values)
{
    const size_t at = ((uintptr_t)values / sizeof(void *)) % MC_REVEAL_KNOWN;
    if (look->known[at].values != values) {
        const mc_feature valued = { .values = (const char **)values, .query = &look->plane->query };
        look->known[at].values = values;
        look->known[at].reach = mc_sieve_reach_of(look->plane->sieve, &valued);
    }
    return look->known[at].reach;
}

/* Bounds in pixels of a level as those of a plane. */
static mc_extent
bounds_in_plane(const mc_overview_reveal *reveal, const mc_reveal_plane *look, const mc_extent *bounds)
{
    const double by = reveal->levels[look->level].level->resolution / look->plane->resolution;
    const double left = (double)look->plane->grid.left, top = (double)look->plane->grid.top;
    return (mc_extent){ bounds->minx * by - left, bounds->miny * by - top, bounds->maxx * by - left,
                        bounds->maxy * by - top };
}

/* The same of bounds in units of the CRS. */
static mc_extent
extent_in_plane(const mc_reveal_plane *look, const mc_extent *extent)
{
    const mc_pixel_grid *grid = &look->plane->grid;
    const double left = (double)grid->left, top = (double)grid->top;
    return (mc_extent){ (extent->minx - grid->x0) * grid->per_x - left, (grid->y0 - extent->maxy) * grid->per_y - top,
                        (extent->maxx - grid->x0) * grid->per_x - left, (grid->y0 - extent->miny) * grid->per_y - top };
}

/* Pixels of the plane in reach of bounds there, on any lattice; false: there are none. */
static bool
find_pixels(mc_sieve_box *box, const mc_reveal_plane *look, const mc_extent *bounds, double reach)
{
    const double more = reach + PIXELS_OFF, x0 = bounds->minx - more, y0 = bounds->miny - more;
    const double x1 = ceil(bounds->maxx + more + 0.5), y1 = ceil(bounds->maxy + more + 0.5);
    if (!(x1 > 0 && y1 > 0 && x0 < look->plane->width && y0 < look->plane->height))
        return false;
    *box = (mc_sieve_box){ x0 < 0 ? 0 : (int)x0, y0 < 0 ? 0 : (int)y0,
                           x1 > look->plane->width ? look->plane->width : (int)x1,
                           y1 > look->plane->height ? look->plane->height : (int)y1 };
    return box->x0 < box->x1 && box->y0 < box->y1;
}

bool
mc_reveal_find_pixels(mc_sieve_box *box, const mc_reveal_plane *look, const mc_extent *extent)
{
    const mc_extent bounds = extent_in_plane(look, extent);
    return find_pixels(box, look, &bounds, look->reach);
}

/* A bit for each square stays in the processor's cache, where the pixels of a plane do not. */
bool
mc_reveal_meets_square(const mc_reveal_plane *look, const mc_sieve_box *box)
{
    const int left = box->x0 / MC_REVEAL_SQUARE, right = (box->x1 - 1) / MC_REVEAL_SQUARE;
    for (int y = box->y0 / MC_REVEAL_SQUARE; y <= (box->y1 - 1) / MC_REVEAL_SQUARE; y++) {
        const uint64_t *row = look->bits + (size_t)y * look->words;
        for (int x = left; x <= right; x = (x | (MC_REVEAL_SQUARE_BITS - 1)) + 1) {
            const int last = right < (x | (MC_REVEAL_SQUARE_BITS - 1)) ? right : x | (MC_REVEAL_SQUARE_BITS - 1);
            const uint64_t mask = ~(uint64_t)0 >> (MC_REVEAL_SQUARE_BITS - 1 - (last - x));
            if ((row[x / MC_REVEAL_SQUARE_BITS] >> x % MC_REVEAL_SQUARE_BITS & mask) != 0)
                return true;
        }
    }
    return false;
}

/* Whether the box has a pixel that is looked at and that nothing hides so far. */
static bool
meets_open(const mc_reveal_plane *look, const mc_sieve_box *box)
{
    return mc_reveal_meets_square(look, box) && mc_sieve_is_open(look->plane->sieve, box);
}

bool
mc_reveal_may_be_shown(mc_sieve_box *box, const mc_overview_reveal *reveal, mc_reveal_plane *look,
                       const mc_reveal_item *item)
{
    const mc_extent bounds = item->row != NULL ? extent_in_plane(look, &item->row->extent)
                                               : bounds_in_plane(reveal, look, &item->feature->bounds);
    return find_pixels(box, look, &bounds, reach_of_values(look, item->values)) && meets_open(look, box);
}

mc_sieve_box
mc_reveal_box_of_square(const mc_reveal_plane *look, int x, int y)
{
    const int right = (x + 1) * MC_REVEAL_SQUARE, bottom = (y + 1) * MC_REVEAL_SQUARE;
    return (mc_sieve_box){ x * MC_REVEAL_SQUARE, y * MC_REVEAL_SQUARE,
                           right < look->plane->width ? right : look->plane->width,
                           bottom < look->plane->height ? bottom : look->plane->height };
}

void
mc_reveal_note_squares(mc_reveal_plane *look)
{
    look->open = 0;
    memset(look->bits, 0, sizeof(*look->bits) * look->words * (size_t)look->rows);
    for (int y = 0; y < look->rows; y++)
        for (int x = 0; x < look->columns; x++) {
            const mc_sieve_box box = mc_reveal_box_of_square(look, x, y);
            mc_reveal_square *square = &look->squares[y * look->columns + x];
            square->looked_at = mc_sieve_is_open(look->plane->sieve, &box);
            look->bits[(size_t)y * look->words + (size_t)x / MC_REVEAL_SQUARE_BITS] |= (uint64_t)square->looked_at
                                                                                       << x % MC_REVEAL_SQUARE_BITS;
            look->open += square->looked_at;
        }
    look->looked_at = look->open > 0;
}

void
mc_reveal_close_square(mc_reveal_plane *look, int x, int y)
{
    uint64_t *bits = &look->bits[(size_t)y * look->words + (size_t)x / MC_REVEAL_SQUARE_BITS];
    const uint64_t bit = (uint64_t)1 << x % MC_REVEAL_SQUARE_BITS;
    const mc_sieve_box box = mc_reveal_box_of_square(look, x, y);
    if ((*bits & bit) == 0 || mc_sieve_is_open(look->plane->sieve, &box))
        return;
    *bits &= ~bit;
    look->open--;
}

/* ---- Features ---- */

bool
mc_reveal_read(mc_feature *read, mc_overview_plane *plane, const mc_overview_feature *feature)
{
    apr_pool_clear(plane->scratch);
    mc_error *error = (feature->packed ? mc_twkb_read : mc_wkb_read)(&plane->geometry, feature->geometry, feature->size,
                                                                     &plane->grid, plane->scratch);
    mc_error_ignore(error);
    *read =
        (mc_feature){ .geometry = &plane->geometry, .values = (const char **)feature->values, .query = &plane->query };
    return error == MC_OK && !mc_geometry_is_empty(&plane->geometry);
}

/* What only one of two levels has was not laid over the plane that they have in common when they were built, and hides
 * nothing there. But what has gone opens pixels, and is taken for what hid others, wherever it was. */
static bool
counts_in_plane(const mc_overview_reveal *reveal, const mc_reveal_plane *look, const mc_reveal_item *item)
{
    return item->role >= MC_REVEAL_GONE || look->finest == look->level ||
           mc_overview_ordinals_have(reveal->levels[look->finest].known, item->feature->ordinal);
}

bool
mc_reveal_reaches(mc_sieve_box *box, mc_feature *read, const mc_overview_reveal *reveal, mc_reveal_plane *look,
                  const mc_reveal_item *item)
{
    return mc_reveal_may_be_shown(box, reveal, look, item) && counts_in_plane(reveal, look, item) &&
           mc_reveal_read(read, look->plane, item->feature);
}
