/* See simplify.h. */
#include "vector/geometry/simplify.h"

/* One of two numbers by a mask of all bits or none. Whether a vertex is kept cannot be foreseen: there are no branches
 * on the way there. */
static inline int64_t
select_by_mask(int64_t mask, int64_t yes, int64_t no)
{
    return no ^ ((yes ^ no) & mask);
}

/* Directions are in quarters of a unit: differences have 28 bits (MC_SHAPE_REACH), so that sums of products of two
 * directions fit. */
enum { QUARTERS = 4 };

/* The directions from an anchor in which a line passes all vertices since then closely enough. */
typedef struct sector {
    int64_t left_x, left_y, right_x, right_y; /* all 0: every direction */
    int64_t far;                              /* square of the distance of the last vertex that is not close to it */
} sector;

/* Whether the line from the anchor along (x, y) still does, and does not turn back: all bits, or none. */
static inline int64_t
sector_holds(const sector *s, int64_t x, int64_t y)
{
    int64_t right = s->right_x * y - s->right_y * x, left = x * s->left_y - y * s->left_x;
    int64_t ahead = s->right_x * x + s->right_y * y, beyond = x * x + y * y - s->far;
    return ~((right | left | ahead | beyond) >> 63);
}

/* From now on the line has to pass (x, y), too: at most `tolerance` quarters above or below it or, where it is steep,
 * beside it. That is never further away, and needs no root. */
static inline void
sector_narrow(sector *s, int64_t x, int64_t y, int64_t tolerance)
{
    int64_t x_sign = x >> 63, y_sign = y >> 63, square = x * x + y * y;
    int64_t steep = ((x ^ x_sign) - x_sign - (y ^ y_sign) + y_sign) >> 63;
    int64_t apart = (tolerance * tolerance - square * QUARTERS * QUARTERS) >> 63;
    int64_t off_x = steep & ((-tolerance ^ y_sign) - y_sign), off_y = ~steep & ((tolerance ^ x_sign) - x_sign);
    int64_t left_x = x * QUARTERS + off_x, left_y = y * QUARTERS + off_y;
    int64_t right_x = x * QUARTERS - off_x, right_y = y * QUARTERS - off_y;
    int64_t left = apart & ~((left_x * s->left_y - left_y * s->left_x) >> 63);
    int64_t right = apart & ~((s->right_x * right_y - s->right_y * right_x) >> 63);
    s->left_x = select_by_mask(left, left_x, s->left_x);
    s->left_y = select_by_mask(left, left_y, s->left_y);
    s->right_x = select_by_mask(right, right_x, s->right_x);
    s->right_y = select_by_mask(right, right_y, s->right_y);
    s->far = select_by_mask(apart, square, s->far);
}

/* Writes what is left of a part, for which there is room for one vertex more than it has; returns how many. */
static int
simplify_part(mc_shape_point *out, const mc_shape_point *points, int count, bool closed, int64_t tolerance)
{
    sector s = { 0 };
    mc_shape_point anchor = points[0], last = anchor;
    int kept = 1;
    out[0] = last;
    for (int i = 1; i < count + closed; i++) {
        mc_shape_point p = points[i == count ? 0 : i];
        int64_t holds = sector_holds(&s, (int64_t)p.x - anchor.x, (int64_t)p.y - anchor.y);
        out[kept] = last; /* written over by the next one unless it is kept */
        kept += (int)(holds + 1);
        anchor.x = (int32_t)select_by_mask(holds, anchor.x, last.x);
        anchor.y = (int32_t)select_by_mask(holds, anchor.y, last.y);
        s = (sector){ s.left_x & holds, s.left_y & holds, s.right_x & holds, s.right_y & holds, s.far & holds };
        sector_narrow(&s, (int64_t)p.x - anchor.x, (int64_t)p.y - anchor.y, tolerance);
        last = p;
    }
    if (!closed && !mc_shape_same_point(out[kept - 1], last))
        out[kept++] = last;
    return kept;
}

void
mc_shape_simplify(mc_shape *out, const mc_shape *in, double tolerance)
{
    mc_shape_clear(out, in->kind);
    if (!mc_shape_reserve(out, in->point_count + in->part_count + 1))
        return;
    for (int part = 0; part < in->part_count; part++) {
        int begin = mc_shape_part_begin(in, part);
        out->point_count += simplify_part(out->points + out->point_count, in->points + begin, in->ends[part] - begin,
                                          in->kind == MC_SHAPE_POLYGONS, (int64_t)(tolerance * QUARTERS));
        mc_shape_end_part(out);
    }
}
