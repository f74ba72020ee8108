/* Edges that are near each other are found as they are by looking at each pair. */
#include "vector/mvt/mvt_edges.h"

#include <string.h>

#include "unit.h"

enum { EDGES_MAX = 1200 };

static mc_shape rings;
static int nexts[EDGES_MAX];
static bool found[EDGES_MAX][EDGES_MAX], near[EDGES_MAX];
static int twice, wrong;
static unsigned state = 5;

static int
number_below(int limit)
{
    state = state * 1664525U + 1013904223U;
    return (int)((state >> 8) % (unsigned)limit);
}

/* Rings of about `count` vertices together, which run on by small steps, around any place within `reach`. */
static void
make_rings(int count, int reach)
{
    mc_shape_clear(&rings, MC_SHAPE_POLYGONS);
    for (int left = count; left >= 3; left = count - rings.point_count) {
        int begin = rings.point_count, size = number_below(9) == 0 || left < 40 ? left : 3 + number_below(30);
        int x = number_below(reach), y = number_below(reach);
        for (int i = 0; i < size; i++) {
            x += number_below(reach / 50 + 3) - reach / 100 - 1;
            y += number_below(reach / 50 + 3) - reach / 100 - 1;
            mc_shape_add(&rings, x, y);
        }
        mc_shape_end_part(&rings); /* an end that is its beginning is taken back */
        for (int i = begin; i < rings.point_count; i++)
            nexts[i] = i + 1 < rings.point_count ? i + 1 : begin;
    }
}

static mc_mvt_box
box_of_edge(int edge)
{
    return mc_mvt_box_of(rings.points[edge], rings.points[nexts[edge]]);
}

static bool
edges_have_to_be_found(int one, int other)
{
    mc_shape_point a = rings.points[one], b = rings.points[nexts[one]];
    mc_shape_point c = rings.points[other], d = rings.points[nexts[other]];
    mc_mvt_box box = box_of_edge(one), other_box = box_of_edge(other);
    int64_t of_c = mc_mvt_side(a, b, c), of_d = mc_mvt_side(a, b, d), of_a = mc_mvt_side(c, d, a),
            of_b = mc_mvt_side(c, d, b);
    bool apart = (of_c > 0 && of_d > 0) || (of_c < 0 && of_d < 0) || (of_a > 0 && of_b > 0) || (of_a < 0 && of_b < 0);
    return nexts[one] != other && nexts[other] != one && !apart && mc_mvt_boxes_meet(&box, &other_box);
}

static void
note_pair(mc_mvt_edges *edges, int one, int other)
{
    (void)edges;
    twice += found[one][other] || found[other][one];
    found[one][other] = found[other][one] = true;
}

static void
note_edge(mc_mvt_edges *edges, mc_mvt_placed_edge edge, void *baton)
{
    (void)edges;
    (void)baton;
    twice += near[edge.from];
    wrong += edge.to != nexts[edge.from];
    near[edge.from] = true;
}

/* Returns how many pairs there are. */
static int
count_pairs(mc_mvt_edges *edges)
{
    int pairs = 0;
    memset(found, 0, sizeof(found));
    mc_mvt_edges_pair(edges, note_pair);
    ck_assert(!edges->failed);
    for (int one = 0; one < rings.point_count; one++)
        for (int other = 0; other < one; other++) {
            bool needed = edges_have_to_be_found(one, other);
            wrong += needed ? !found[one][other] : found[one][other] && edges->shift == 0;
            pairs += needed;
        }
    return pairs;
}

static void
look_near(mc_mvt_edges *edges, int reach)
{
    int x = number_below(reach) - reach / 10, y = number_below(reach) - reach / 10;
    const mc_mvt_box box = { x, y, x + number_below(reach / 4), y + number_below(reach / 4) };
    memset(near, 0, sizeof(near));
    mc_mvt_edges_near(edges, &box, note_edge, NULL);
    for (int i = 0; i < rings.point_count; i++) {
        mc_mvt_box edge = box_of_edge(i);
        bool needed = mc_mvt_boxes_meet(&edge, &box);
        wrong += needed ? !near[i] : near[i] && edges->shift == 0;
    }
}

START_TEST(what_is_near_is_found_once)
{
    static const int counts[] = { 3, 7, 8, 9, 15, 16, 17, 40, 63, 64, 65, 130, 511, 512, 513, EDGES_MAX };
    mc_mvt_edges edges = { 0 };
    int pairs = 0;
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        for (int reach = 20; reach < 1 << 20; reach *= 6) {
            make_rings(counts[i], reach);
            ck_assert(mc_mvt_edges_take(&edges, &rings));
            pairs += count_pairs(&edges);
            for (int round = 0; round < 20; round++)
                look_near(&edges, reach);
            ck_assert_int_eq(twice, 0);
            ck_assert_int_eq(wrong, 0);
        }
    ck_assert_int_gt(pairs, 1000);
    mc_mvt_edges_free(&edges);
    mc_shape_free(&rings);
}
END_TEST

UNIT_MAIN("mvt_edges", what_is_near_is_found_once)
