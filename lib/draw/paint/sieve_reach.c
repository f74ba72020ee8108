/* How far symbols reach over the geometry of a feature, and whether they reach anything that is open. */
#include <math.h>
#include <string.h>

#include "draw/paint/painter_private.h"
#include "draw/paint/sieve_private.h"

/* Pixels by which paint may lie beside what symbols cover: within half a pixel it is told by the distance. */
#define PAINTED_OFF 0.5625

static bool
is_plain_stroke(const mc_symbolizer *symbol)
{
    return symbol->kind != MC_SYMBOL_POINT && symbol->stroke.graphic == NULL && symbol->stroke.width_value == NULL &&
           !mc_painter_is_moved(symbol) && symbol->offset == 0;
}

/* `wide`: times the width of a stroke. Symbols that are no plain strokes reach as far as their margin says. */
static double
reach_of_rule(const mc_rule_style *rule, double scale, double wide)
{
    double most = 1;
    for (int i = 0; i < rule->symbolizer_count; i++) {
        const mc_symbolizer *symbol = &rule->symbolizers[i];
        if (!is_plain_stroke(symbol))
            return mc_painter_rule_margin(rule, scale);
        most = fmax(most, symbol->stroke.width * mc_uom_pixels(symbol->uom, scale) * wide + 1);
    }
    return fmin(most, mc_painter_rule_margin(rule, scale));
}

double
mc_sieve_rule_reach(const mc_rule_style *rule, double scale)
{
    return reach_of_rule(rule, scale, M_SQRT1_2);
}

/* Hairlines are half a pixel wide on both sides. */
double
mc_sieve_rule_half(const mc_rule_style *rule, double scale)
{
    double most = 0.5;
    for (int i = 0; i < rule->symbolizer_count; i++) {
        const mc_symbolizer *symbol = &rule->symbolizers[i];
        const double half = symbol->stroke.width * mc_uom_pixels(symbol->uom, scale) / 2;
        if (!is_plain_stroke(symbol))
            return INFINITY;
        most = fmax(most, symbol->stroke.cap == MC_CAP_SQUARE ? half * M_SQRT2 : half);
    }
    return most;
}

int
mc_sieve_reach(const mc_style *style, double scale)
{
    double most = 1;
    for (int p = 0; p < style->pass_count; p++)
        for (int r = 0; r < style->passes[p].rule_count; r++)
            if (mc_rule_applies(&style->passes[p].rules[r], scale))
                most = fmax(most, reach_of_rule(&style->passes[p].rules[r], scale, 1));
    return (int)ceil(most);
}

/* The least cosine of the angle between a segment and the way from the first point to the last one. The segments that
 * are left when a stroke is straightened run between those angles, too. */
static double
least_cosine_of_part(const mc_shape_point *points, int count)
{
    const double along_x = (double)points[count - 1].x - points[0].x,
                 along_y = (double)points[count - 1].y - points[0].y;
    const double along = along_x * along_x + along_y * along_y;
    double least = 1; /* its square */
    for (int i = 1; count > 2 && i < count; i++) {
        const double x = (double)points[i].x - points[i - 1].x, y = (double)points[i].y - points[i - 1].y;
        const double dot = x * along_x + y * along_y, lengths = (x * x + y * y) * along;
        if (dot < 0 || along <= 0)
            return 0;
        if (dot * dot < least * lengths)
            least = dot * dot / lengths;
    }
    return sqrt(least);
}

/* Segments that run within an angle of the way bend by at most twice that angle. */
double
mc_sieve_mitre(const mc_geometry *geometry)
{
    const mc_shape *lines = &geometry->shapes[MC_SHAPE_LINES];
    double least = geometry->shapes[MC_SHAPE_POLYGONS].point_count > 0 ? 0 : 1;
    for (int i = 0; i < lines->part_count && least > 0; i++) {
        const int begin = mc_shape_part_begin(lines, i);
        least = fmin(least, least_cosine_of_part(lines->points + begin, lines->ends[i] - begin));
    }
    return least < M_SQRT1_2 ? MC_SIEVE_MITRE : 1 / least;
}

bool
mc_sieve_clip_box(mc_sieve_box *box, const mc_sieve *sieve)
{
    const mc_sieve_box all = *box;
    box->x0 = box->x0 < 0 ? 0 : box->x0;
    box->y0 = box->y0 < 0 ? 0 : box->y0;
    box->x1 = box->x1 > sieve->width ? sieve->width : box->x1;
    box->y1 = box->y1 > sieve->height ? sieve->height : box->y1;
    box->x1 = box->x1 < box->x0 ? box->x0 : box->x1;
    box->y1 = box->y1 < box->y0 ? box->y0 : box->y1;
    return memcmp(&all, box, sizeof(all)) != 0;
}

bool
mc_sieve_hides_box(const mc_sieve *sieve, const mc_sieve_box *box)
{
    for (int y = box->y0; y < box->y1; y++)
        if (memchr(sieve->open + (size_t)y * sieve->stride + box->x0, 1, (size_t)(box->x1 - box->x0)) != NULL)
            return false;
    return true;
}

/* Whether nothing shines through in any pixel that may be painted on any lattice around bounds. */
static bool
hides_around(const mc_sieve *sieve, const int32_t bounds[4], int reach)
{
    const int past = reach + MC_SUBPIXELS / 2 + MC_SUBPIXELS - 1;
    mc_sieve_box box = { (bounds[0] - reach) >> 8, (bounds[1] - reach) >> 8, (bounds[2] + past) >> 8,
                         (bounds[3] + past) >> 8 };
    (void)mc_sieve_clip_box(&box, sieve);
    return mc_sieve_hides_box(sieve, &box);
}

/* The same around each segment of the lines of a geometry; of those that are left when a stroke is straightened,
 * too. */
static bool
hides_around_lines(const mc_sieve *sieve, const mc_shape *lines, int reach)
{
    for (int part = 0, i = 0; part < lines->part_count; part++)
        for (i = mc_shape_part_begin(lines, part); i < lines->ends[part]; i++) {
            const mc_shape_point a = lines->points[i], b = lines->points[i + (i + 1 < lines->ends[part])];
            const int32_t bounds[4] = { a.x < b.x ? a.x : b.x, a.y < b.y ? a.y : b.y, a.x > b.x ? a.x : b.x,
                                        a.y > b.y ? a.y : b.y };
            if (!hides_around(sieve, bounds, reach))
                return false;
        }
    return true;
}

bool
mc_sieve_hides_painted(const mc_sieve *sieve, const mc_geometry *geometry, const int32_t bounds[4], double exact)
{
    if (!(exact < MC_SIEVE_SCRATCH))
        return false;
    const int reach = (int)ceil((exact + PAINTED_OFF) * MC_SUBPIXELS);
    const mc_shape *lines = &geometry->shapes[MC_SHAPE_LINES];
    return hides_around(sieve, bounds, reach) ||
           (lines->point_count > 2 && geometry->shapes[MC_SHAPE_POLYGONS].point_count == 0 &&
            geometry->shapes[MC_SHAPE_POINTS].point_count == 0 &&
            hides_around_lines(sieve, lines, reach + MC_SIEVE_THINNING));
}
