/*
 * Tiles of both servers. Each layer is walked from its coarsest level down: below a tile in which a colour changes, the
 * next one is the tile at that place, so that most pictures show something.
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "compare.h"
#include "text/text.h"
#include "vector/crs/projection.h"

enum { TILE_ATTEMPTS = 60 };

/* A level that both servers have, with the same tiles. */
typedef struct tile_level {
    const mc_compare_matrix *matrices[2];
} tile_level;

typedef struct tile_walk {
    const mc_adopt_layer *names;
    const mc_compare_layer *layers[2];
    const mc_compare_set *sets[2];
    mc_extent box; /* of the layer, in the CRS of the sets */
    tile_level levels[MC_COMPARE_LEVELS];
    int count, next, step;
    bool has_focus;
    double focus[2]; /* in the CRS */
} tile_walk;

static double
tile_span(const mc_compare_set *set, const mc_compare_matrix *matrix)
{
    return matrix->scale * 0.00028 / set->unit * matrix->tile_width;
}

static const mc_compare_matrix *
find_same_matrix(const mc_compare_set *set, const mc_compare_matrix *wanted)
{
    double slack = tile_span(set, wanted) * 1e-3;
    for (int i = 0; i < set->count; i++) {
        const mc_compare_matrix *one = &set->matrices[i];
        if (fabs(one->scale / wanted->scale - 1) < 1e-5 && one->tile_width == wanted->tile_width &&
            one->tile_height == wanted->tile_height && fabs(one->left - wanted->left) <= slack &&
            fabs(one->top - wanted->top) <= slack)
            return one;
    }
    return NULL;
}

static int
join_levels(tile_walk *walk, const mc_compare_set *there, const mc_compare_set *here)
{
    walk->count = 0;
    for (int i = 0; i < there->count; i++) {
        const mc_compare_layer *mine = walk->layers[MC_COMPARE_HERE], *other = walk->layers[MC_COMPARE_THERE];
        const mc_compare_matrix *same = find_same_matrix(here, &there->matrices[i]);
        int level = same == NULL ? 0 : (int)(same - here->matrices);
        if (same == NULL || (mine->deep >= 0 && (level < mine->shallow || level > mine->deep)) ||
            (other->deep >= 0 && (i < other->shallow || i > other->deep)))
            continue;
        walk->levels[walk->count++] = (tile_level){ { &there->matrices[i], same } };
    }
    return walk->count;
}

/* The sets of both sides that have most levels in common; those of one name first. */
static bool
choose_sets(tile_walk *walk, const mc_compare *compare)
{
    int best = 0;
    for (int pass = 0; pass < 2 && best == 0; pass++)
        for (int i = 0; i < walk->layers[0]->sets->nelts; i++)
            for (int j = 0; j < walk->layers[1]->sets->nelts; j++) {
                const char *ids[2] = { APR_ARRAY_IDX(walk->layers[0]->sets, i, const char *),
                                       APR_ARRAY_IDX(walk->layers[1]->sets, j, const char *) };
                const mc_compare_set *there = apr_hash_get(compare->tiles[0].sets, ids[0], APR_HASH_KEY_STRING),
                                     *here = apr_hash_get(compare->tiles[1].sets, ids[1], APR_HASH_KEY_STRING);
                if (there == NULL || here == NULL || strcmp(there->srs, here->srs) != 0 ||
                    (pass == 0 && strcmp(ids[0], ids[1]) != 0) || join_levels(walk, there, here) <= best)
                    continue;
                best = walk->count;
                walk->sets[0] = there;
                walk->sets[1] = here;
            }
    return best > 0 && join_levels(walk, walk->sets[0], walk->sets[1]) > 0;
}

/* The area of the layer in the CRS of its set, within the coarsest tiles. */
static void
find_walk_box(tile_walk *walk, apr_pool_t *pool)
{
    const mc_compare_matrix *first = walk->levels[0].matrices[0];
    double width = tile_span(walk->sets[0], first), height = width / first->tile_width * first->tile_height;
    const mc_extent all = { first->left, first->top - height * first->rows, first->left + width * first->columns,
                            first->top };
    walk->box = all;
    for (int side = 0; side < 2; side++) {
        mc_projection *projection;
        mc_extent box = walk->layers[side]->box;
        if (!walk->layers[side]->has_box ||
            mc_projection_open(&projection, "EPSG:4326", walk->sets[0]->srs, pool) != MC_OK ||
            (projection != NULL && !mc_projection_box(&box, projection, false)))
            continue;
        box = (mc_extent){ fmax(box.minx, walk->box.minx), fmax(box.miny, walk->box.miny),
                           fmin(box.maxx, walk->box.maxx), fmin(box.maxy, walk->box.maxy) };
        if (mc_extent_valid(&box))
            walk->box = box;
    }
}

static bool
begin_walk(tile_walk *walk, const mc_compare *compare, const mc_adopt_layer *names, int turns, apr_pool_t *pool)
{
    *walk = (tile_walk){ .names = names };
    walk->layers[0] = mc_compare_find_layer(&compare->tiles[0], names->there);
    walk->layers[1] = mc_compare_find_layer(&compare->tiles[1], names->tileset);
    if (walk->layers[0] == NULL || walk->layers[1] == NULL || !choose_sets(walk, compare))
        return false;
    walk->step = (walk->count + turns - 1) / turns;
    find_walk_box(walk, pool);
    return true;
}

static const char *
fill_address(const char *address, const mc_compare_set *set, const mc_compare_matrix *matrix, int column, int row,
             const mc_extent *box, apr_pool_t *pool)
{
    const char *edges = apr_psprintf(pool, "%s,%s,%s,%s", mc_double_text('g', 17, box->minx, pool),
                                     mc_double_text('g', 17, box->miny, pool), mc_double_text('g', 17, box->maxx, pool),
                                     mc_double_text('g', 17, box->maxy, pool));
    const char *const words[][2] = { { "{TileMatrixSet}", mc_url_encode(set->id, "", true, false, pool) },
                                     { "{TileMatrix}", mc_url_encode(matrix->id, "", true, false, pool) },
                                     { "{TileCol}", apr_itoa(pool, column) },
                                     { "{TileRow}", apr_itoa(pool, row) },
                                     { "{Box}", edges } };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        address = mc_replace_all(address, words[i][0], words[i][1], pool);
    return address;
}

/* One tile of a walk. Whether one of the servers has a picture of it. */
static bool
compare_tile(mc_compare *compare, tile_walk *walk, apr_pool_t *pool)
{
    const tile_level *level = &walk->levels[walk->next];
    const mc_compare_matrix *matrix = level->matrices[0];
    double width = tile_span(walk->sets[0], matrix), height = width / matrix->tile_width * matrix->tile_height;
    double x = walk->has_focus ? walk->focus[0]
                               : walk->box.minx + mc_compare_random(compare) * (walk->box.maxx - walk->box.minx),
           y = walk->has_focus ? walk->focus[1]
                               : walk->box.miny + mc_compare_random(compare) * (walk->box.maxy - walk->box.miny);
    int column = (int)fmin(fmax(floor((x - matrix->left) / width), 0), matrix->columns - 1),
        row = (int)fmin(fmax(floor((matrix->top - y) / height), 0), matrix->rows - 1);
    const mc_extent box = { matrix->left + column * width, matrix->top - (row + 1) * height,
                            matrix->left + (column + 1) * width, matrix->top - row * height };
    mc_compare_pair pair = { .title = apr_psprintf(pool, "%s, %s, level %s, column %d, row %d", walk->names->there,
                                                   walk->sets[0]->id, matrix->id, column, row) };
    for (int side = 0; side < 2; side++) {
        pair.addresses[side] =
            fill_address(walk->layers[side]->address, walk->sets[side], level->matrices[side], column, row, &box, pool);
        pair.answers[side] = mc_compare_ask(compare, (mc_compare_side)side, pair.addresses[side], pool);
    }
    mc_compare_pictures(&pair, compare, pool);
    walk->has_focus = pair.has_focus;
    walk->focus[0] = box.minx + pair.focus[0] * width;
    walk->focus[1] = box.maxy - pair.focus[1] * height;
    walk->next += walk->step;
    if (walk->next >= walk->count) {
        walk->next %= walk->count;
        walk->has_focus = false;
    }
    if (pair.verdict == MC_COMPARE_NEITHER)
        return false;
    mc_compare_put_pair(compare, &pair, 0);
    return true;
}

void
mc_compare_tiles(mc_compare *compare)
{
    apr_pool_t *scratch;
    tile_walk *walks = apr_pcalloc(compare->pool, MC_COMPARE_PICTURES * sizeof(*walks));
    int count = 0, layers = compare->layers->nelts < MC_COMPARE_PICTURES ? compare->layers->nelts : MC_COMPARE_PICTURES;
    mc_compare_put_heading(compare, "Tiles");
    for (int i = 0; i < compare->layers->nelts && count < MC_COMPARE_PICTURES; i++)
        if (begin_walk(&walks[count], compare, &APR_ARRAY_IDX(compare->layers, i, mc_adopt_layer),
                       MC_COMPARE_PICTURES / layers, compare->pool))
            count++;
    if (count == 0)
        mc_compare_put(compare,
                       "<p>There are no tiles to compare: no layer has tiles of one grid on both sides.</p>\n");
    apr_pool_create(&scratch, compare->pool);
    apr_time_t begin = mc_clock_now();
    for (int i = 0; count > 0 && i < TILE_ATTEMPTS && compare->asked[0] < MC_COMPARE_PICTURES; i++) {
        if (!mc_compare_has_time(compare, begin))
            break;

        if (compare_tile(compare, &walks[i % count], scratch))
            compare->asked[0]++;
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    if (count > 0 && compare->asked[0] < MC_COMPARE_PICTURES)
        mc_compare_put(compare, "<p>%d of the places that were looked at have a tile on one side at least.</p>\n",
                       compare->asked[0]);
}
