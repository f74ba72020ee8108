/* Labels along lines, and the placing of whole labels. */
#include <apr_strings.h>
#include <math.h>

#include "draw/label/label_private.h"

/* How far hinting and rounding may take the edge of a glyph from where its metrics say. */
#define ROUNDING 2.0F

#define UNDERLINE_DEPTH 0.12F /* ems */

enum { SAMPLES_MAX = 16384, ROUNDS = 8, ROUNDS_GENERALIZED = 32 };

static void
measure_label_path(mc_label_path *path)
{
    path->lengths[0] = 0;
    for (int i = 1; i < path->count; i++)
        path->lengths[i] = path->lengths[i - 1] + hypotf(path->points[i * 2] - path->points[i * 2 - 2],
                                                         path->points[i * 2 + 1] - path->points[i * 2 - 1]);
    path->length = path->count > 0 ? path->lengths[path->count - 1] : 0;
}

void
mc_label_path_point(float at[2], const mc_label_path *path, float distance)
{
    int low = 0, high = path->count - 1; /* the segment from low to high */
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (path->lengths[middle] <= distance)
            low = middle;
        else
            high = middle;
    }
    const float *a = path->points + low * 2, *b = path->points + high * 2;
    float length = path->lengths[high] - path->lengths[low];
    float t = length > 0 ? (distance - path->lengths[low]) / length : 0;
    at[0] = a[0] + t * (b[0] - a[0]);
    at[1] = a[1] + t * (b[1] - a[1]);
}

void
mc_label_path_make(mc_label_path *path, const float *points, int count, float size, bool generalize, apr_pool_t *pool)
{
    mc_label_path given = { (float *)(uintptr_t)points, apr_palloc(pool, sizeof(float) * (size_t)(count + 1)), count,
                            0 };
    measure_label_path(&given);
    int samples = (int)fminf(ceilf(given.length / (size / 2)), SAMPLES_MAX) + 1;
    float step = given.length / (float)(samples - 1);
    *path = (mc_label_path){ apr_palloc(pool, sizeof(float) * 2 * (size_t)samples),
                             apr_palloc(pool, sizeof(float) * (size_t)samples), samples, 0 };
    float *made = path->points;
    for (int i = 0; i < samples; i++)
        mc_label_path_point(made + i * 2, &given, step * (float)i);
    for (int round = generalize ? ROUNDS_GENERALIZED : ROUNDS; round > 0; round--) {
        float before[2] = { made[0], made[1] };
        for (int i = 1; i + 1 < samples; i++)
            for (int c = 0; c < 2; c++) {
                float own = made[i * 2 + c];
                made[i * 2 + c] = (before[c] + own * 2 + made[i * 2 + 2 + c]) / 4;
                before[c] = own;
            }
    }
    measure_label_path(path);
}

static void
widen_label_box(mc_label_box *box, float x, float y)
{
    box->minx = x < box->minx ? x : box->minx; /* fminf would be a call */
    box->miny = y < box->miny ? y : box->miny;
    box->maxx = x > box->maxx ? x : box->maxx;
    box->maxy = y > box->maxy ? y : box->maxy;
}

static const mc_label_box nothing = { INFINITY, INFINITY, -INFINITY, -INFINITY };

static bool
is_blank(const mc_label_glyph *glyph)
{
    return glyph->left == glyph->right;
}

static mc_label_box
expand_label_box(const mc_label_box *box, float by)
{
    return (mc_label_box){ box->minx - by, box->miny - by, box->maxx + by, box->maxy + by };
}

static void
add_box(mc_label_spot *spot, const mc_label_box *ink, float halo)
{
    mc_label_box box = expand_label_box(ink, halo);
    spot->boxes[spot->box_count++] = box;
    box = expand_label_box(&box, ROUNDING);
    widen_label_box(&spot->bounds, box.minx, box.miny);
    widen_label_box(&spot->bounds, box.maxx, box.maxy);
}

/* Adds a glyph with its ink's box. */
static void
add_spot_glyph(mc_label_spot *spot, const mc_label_glyph *glyph, float x, float y, float cosine, float sine, float halo)
{
    if (is_blank(glyph))
        return;
    spot->glyphs[spot->glyph_count++] = (mc_placed_glyph){ glyph->face, glyph->index, x, y, cosine, sine };
    if (sine == 0 && cosine == 1) {
        add_box(spot, &(mc_label_box){ x + glyph->left, y + glyph->top, x + glyph->right, y + glyph->bottom }, halo);
        return;
    }
    mc_label_box box = nothing;
    for (int corner = 0; corner < 4; corner++) {
        float gx = corner % 2 == 0 ? glyph->left : glyph->right, gy = corner < 2 ? glyph->top : glyph->bottom;
        widen_label_box(&box, x + gx * cosine - gy * sine, y + gx * sine + gy * cosine);
    }
    add_box(spot, &box, halo);
}

static void
clear_label_spot(mc_label_spot *spot, bool upright)
{
    spot->glyph_count = spot->box_count = spot->underline_count = 0;
    spot->bounds = nothing;
    spot->upright = upright;
}

/* Angle of the path for what lies from `begin` to `end`: a little more of it is looked at, so that the jags of a line
 * do not make letters dance. */
static float
angle_of(const mc_label_path *path, float begin, float end, float size, float sign)
{
    float a[2], b[2];
    mc_label_path_point(a, path, begin - sign * size / 2);
    mc_label_path_point(b, path, end + sign * size / 2);
    return atan2f(b[1] - a[1], b[0] - a[0]);
}

static float
turned_by(float from, float to)
{
    float turn = remainderf(to - from, (float)(2 * M_PI));
    return fabsf(turn);
}

/* ---- The line under the text ---- */

float
mc_label_underline_depth(const mc_label_layout *layout)
{
    return fmaxf(layout->size * UNDERLINE_DEPTH, layout->underline / 2 + 1);
}

int
mc_label_underline_pieces(const mc_label_layout *layout)
{
    return layout->underline > 0 ? (int)fminf(layout->width / layout->size * 2, SAMPLES_MAX) + layout->lines + 2 : 0;
}

static void
add_underline_piece(mc_label_spot *spot, const float from[2], const float to[2], float width, float halo)
{
    mc_label_box box = nothing;
    float more = width / 2 + halo + ROUNDING;
    spot->underline[spot->underline_count++] = (mc_label_stroke){ from[0], from[1], to[0], to[1], width };
    widen_label_box(&box, from[0], from[1]);
    widen_label_box(&box, to[0], to[1]);
    box = expand_label_box(&box, more);
    widen_label_box(&spot->bounds, box.minx, box.miny);
    widen_label_box(&spot->bounds, box.maxx, box.maxy);
}

/* Along a path from `begin` to `end`, below the letters. */
static void
underline_along(mc_label_spot *spot, const mc_label_layout *layout, const mc_label_path *path, float begin, float end,
                float across, const mc_label_course *course)
{
    int pieces = course->curved ? mc_label_underline_pieces(layout) - layout->lines - 1 : 1;
    float sign = end < begin ? -1 : 1, last[2] = { 0, 0 };
    across += mc_label_underline_depth(layout);
    for (int i = 0; i <= pieces; i++) {
        float distance = begin + (end - begin) * (float)i / (float)pieces, at[2];
        float angle = course->curved ? angle_of(path, distance, distance, layout->size, sign) : spot->angle;
        mc_label_path_point(at, path, distance);
        if (!course->curved) { /* straight, as the text is */
            float chord[2], from_middle = distance - (begin + end) / 2;
            mc_label_path_point(at, path, begin);
            mc_label_path_point(chord, path, end);
            at[0] = (at[0] + chord[0]) / 2 + sign * from_middle * cosf(angle);
            at[1] = (at[1] + chord[1]) / 2 + sign * from_middle * sinf(angle);
        }
        at[0] -= sinf(angle) * across;
        at[1] += cosf(angle) * across;
        if (i > 0)
            add_underline_piece(spot, last, at, layout->underline, course->halo);
        last[0] = at[0];
        last[1] = at[1];
    }
}

static void
underline_lines(mc_label_spot *spot, const mc_label_layout *layout, float x, float y, const float around[2], float halo)
{
    float cosine = cosf(spot->angle), sine = sinf(spot->angle);
    for (int i = 0; i < layout->lines; i++) {
        float left = x + layout->line_begins[i] - around[0], right = left + layout->line_widths[i];
        float down = y + layout->ascent + layout->height / (float)layout->lines * (float)i +
                     mc_label_underline_depth(layout) - around[1];
        const float from[2] = { around[0] + left * cosine - down * sine, around[1] + left * sine + down * cosine };
        const float to[2] = { around[0] + right * cosine - down * sine, around[1] + right * sine + down * cosine };
        add_underline_piece(spot, from, to, layout->underline, halo);
    }
}

bool
mc_label_along(mc_label_spot *spot, const mc_label_layout *layout, const mc_label_path *path, float middle,
               const mc_label_course *course)
{
    float begin = middle - layout->width / 2, end = middle + layout->width / 2;
    if (layout->lines != 1 || path->count < 2 || begin < 0 || end > path->length)
        return false;
    float a[2], b[2], sign = 1;
    mc_label_path_point(a, path, begin);
    mc_label_path_point(b, path, end);
    if (b[0] < a[0] && !course->any_direction) { /* from its other end, so that it can be read */
        sign = -1;
        begin = middle + layout->width / 2;
    }
    clear_label_spot(spot, false);
    float last = NAN;
    float across = layout->middle - course->offset * sign; /* of the baseline, to the right of where it runs */
    for (int i = 0, next; i < layout->count; i = next) {
        /* Glyphs of one cluster go together: a letter and its marks. */
        float from = layout->glyphs[i].begin, advance = 0;
        bool blank = true;
        for (next = i; next < layout->count && layout->glyphs[next].from == layout->glyphs[i].from; next++) {
            advance += layout->glyphs[next].advance;
            blank &= is_blank(&layout->glyphs[next]);
        }
        if (!course->curved) { /* all of it */
            advance = layout->width;
            next = layout->count;
            blank = false;
        }
        if (blank)
            continue;
        float first = begin + sign * from, second = first + sign * advance;
        float angle = angle_of(path, first, second, course->curved ? layout->size : 0, sign);
        if (!isnan(last) && turned_by(last, angle) > course->max_angle)
            return false;
        last = angle;
        float cosine = cosf(angle), sine = sinf(angle);
        mc_label_path_point(a, path, first);
        mc_label_path_point(b, path, second);
        /* The middle of the cluster, at the baseline, in the middle between both points. */
        float x = (a[0] + b[0]) / 2 - sine * across, y = (a[1] + b[1]) / 2 + cosine * across;
        float down = layout->height / 2 - layout->ascent; /* only of use where all of it is straight */
        spot->middle[0] = x - down * sine;
        spot->middle[1] = y + down * cosine;
        spot->angle = angle;
        for (int g = i; g < next; g++) {
            const mc_label_glyph *glyph = &layout->glyphs[g];
            float dx = glyph->x - from - advance / 2, dy = glyph->y - layout->ascent;
            add_spot_glyph(spot, glyph, x + dx * cosine - dy * sine, y + dx * sine + dy * cosine, cosine, sine,
                           course->halo);
        }
    }
    if (layout->underline > 0)
        underline_along(spot, layout, path, begin, begin + sign * layout->width, across, course);
    return spot->glyph_count > 0;
}

void
mc_label_at(mc_label_spot *spot, const mc_label_layout *layout, float x, float y, float angle, const float around[2],
            float halo)
{
    bool upright = angle == 0;
    float cosine = cosf(angle), sine = sinf(angle);
    clear_label_spot(spot, upright);
    if (upright) /* hinted glyphs stand on whole pixels */
        y = rintf(y + layout->ascent) - layout->ascent;
    float mx = x + layout->width / 2 - around[0], my = y + layout->height / 2 - around[1];
    spot->middle[0] = around[0] + mx * cosine - my * sine;
    spot->middle[1] = around[1] + mx * sine + my * cosine;
    spot->angle = angle;
    for (int i = 0; i < layout->count; i++) {
        const mc_label_glyph *glyph = &layout->glyphs[i];
        float gx = x + glyph->x - around[0], gy = y + glyph->y - around[1];
        add_spot_glyph(spot, glyph, around[0] + gx * cosine - gy * sine, around[1] + gx * sine + gy * cosine, cosine,
                       sine, halo);
    }
    if (layout->underline > 0)
        underline_lines(spot, layout, x, y, around, halo);
    if (upright && spot->box_count > 0) { /* one box for all: quicker, and nothing fits between its letters */
        spot->boxes[0] = expand_label_box(&spot->bounds, -ROUNDING);
        spot->box_count = 1;
    }
}

void
mc_label_spot_move(mc_label_spot *spot, float dx, float dy)
{
    for (int i = 0; i < spot->glyph_count; i++) {
        spot->glyphs[i].x += dx;
        spot->glyphs[i].y += dy;
    }
    for (int i = 0; i < spot->underline_count; i++) {
        mc_label_stroke *piece = &spot->underline[i];
        *piece = (mc_label_stroke){ piece->x0 + dx, piece->y0 + dy, piece->x1 + dx, piece->y1 + dy, piece->width };
    }
    for (int i = 0; i < spot->box_count; i++) {
        mc_label_box *box = &spot->boxes[i];
        *box = (mc_label_box){ box->minx + dx, box->miny + dy, box->maxx + dx, box->maxy + dy };
    }
    spot->middle[0] += dx;
    spot->middle[1] += dy;
    spot->shield.at.x += (int32_t)lrintf(dx * MC_SUBPIXELS);
    spot->shield.at.y += (int32_t)lrintf(dy * MC_SUBPIXELS);
    mc_label_box *all = &spot->bounds;
    *all = (mc_label_box){ all->minx + dx, all->miny + dy, all->maxx + dx, all->maxy + dy };
}
