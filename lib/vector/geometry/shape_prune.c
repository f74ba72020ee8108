/* See shape_prune.h. */
#include "vector/geometry/shape_prune.h"

#include <math.h>

enum { WORTH = 64 }; /* vertices */

typedef struct prune_frame {
    int32_t left, top, right, bottom;
} prune_frame;

/* Beyond which sides a point lies. */
static inline unsigned
sides_of(const prune_frame *f, mc_shape_point p)
{
    return (unsigned)(p.x < f->left) | (unsigned)(p.x > f->right) << 1 | (unsigned)(p.y < f->top) << 2 |
           (unsigned)(p.y > f->bottom) << 3;
}

static void
add_pruned_part(mc_shape *out, const mc_shape_point *points, int count, const prune_frame *f)
{
    unsigned before = 0, last = 0, all = 15; /* sides of the last two points that were kept; of all */
    int begin = out->point_count;
    for (int i = 0; i < count; i++) {
        unsigned sides = sides_of(f, points[i]);
        all &= sides;
        if ((before & last & sides) != 0) {
            out->points[out->point_count - 1] = points[i];
        } else {
            mc_shape_add(out, points[i].x, points[i].y);
            before = i == 0 ? 0 : last;
        }
        last = sides;
    }
    if (all != 0) /* the whole of it is beyond one side */
        out->point_count = begin;
    mc_shape_end_part(out);
}

const mc_shape *
mc_shape_prune(const mc_shape *shape, mc_shape *scratch, int width, int height, double reach)
{
    if (shape->point_count < WORTH)
        return shape;
    int32_t margin = (int32_t)ceil(fmin(reach, 1 << 16)) * MC_SUBPIXELS + MC_SUBPIXELS;
    const prune_frame f = { -margin, -margin, width * MC_SUBPIXELS + margin, height * MC_SUBPIXELS + margin };
    mc_shape_clear(scratch, shape->kind);
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++])
        add_pruned_part(scratch, shape->points + begin, shape->ends[part] - begin, &f);
    return scratch->failed ? shape : scratch;
}
