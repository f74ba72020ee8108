/* Maps of both servers, by WMS 1.1.1, whose boxes have x first in all CRSs. From the whole area of a layer down to
 * where a colour changes. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "compare.h"
#include "text/text.h"
#include "vector/crs/projection.h"

enum { MAP_LAYERS = MC_COMPARE_PICTURES, ZOOMS = 12 };

typedef struct map_walk {
    const mc_adopt_layer *names;
    apr_array_header_t *srs; /* of const char *: those that both servers have */
    mc_extent box;           /* degrees */
    bool has_focus;
    double focus[2]; /* degrees */
    int turn;
} map_walk;

static bool
begin_map_walk(map_walk *walk, const mc_compare *compare, const mc_adopt_layer *names, apr_pool_t *pool)
{
    const mc_compare_layer *there = mc_compare_find_layer(&compare->wms[0], names->there),
                           *here = mc_compare_find_layer(&compare->wms[1], names->tileset);
    *walk = (map_walk){ .names = names, .srs = apr_array_make(pool, 8, sizeof(const char *)) };
    if (there == NULL || here == NULL)
        return false;
    for (int i = 0; i < there->srs->nelts; i++)
        for (int j = 0; j < here->srs->nelts; j++) {
            bool xy;
            const char *srs = APR_ARRAY_IDX(there->srs, i, const char *);
            if (strcasecmp(srs, APR_ARRAY_IDX(here->srs, j, const char *)) == 0 && mc_crs_epsg(srs, &xy) != 0 &&
                strncasecmp(srs, "EPSG:", 5) == 0 && walk->srs->nelts < 8)
                APR_ARRAY_PUSH(walk->srs, const char *) = srs;
        }
    const mc_extent world = { -180, -85, 180, 85 };
    walk->box = there->has_box ? there->box : here->has_box ? here->box : world;
    walk->box.miny = fmax(walk->box.miny, -85);
    walk->box.maxy = fmin(walk->box.maxy, 85);
    return walk->srs->nelts > 0 && mc_extent_valid(&walk->box);
}

/* The box of a map in degrees: a part of the layer's area, half as wide and high with each zoom. */
static mc_extent
choose_map_box(mc_compare *compare, const map_walk *walk, int zoom)
{
    double width = ldexp(walk->box.maxx - walk->box.minx, -zoom),
           height = ldexp(walk->box.maxy - walk->box.miny, -zoom);
    double x = walk->has_focus ? walk->focus[0]
                               : walk->box.minx + mc_compare_random(compare) * (walk->box.maxx - walk->box.minx),
           y = walk->has_focus ? walk->focus[1]
                               : walk->box.miny + mc_compare_random(compare) * (walk->box.maxy - walk->box.miny);
    x = fmin(fmax(x - width / 2, walk->box.minx), walk->box.maxx - width);
    y = fmin(fmax(y - height / 2, walk->box.miny), walk->box.maxy - height);
    return (mc_extent){ x, y, x + width, y + height };
}

static const char *
map_address(const char *base, const char *layer, const char *srs, const mc_extent *box, int width, int height,
            apr_pool_t *pool)
{
    return apr_psprintf(pool,
                        "%sSERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=%s&STYLES=&SRS=%s&BBOX=%s,%s,%s,%s&WIDTH=%d&"
                        "HEIGHT=%d&FORMAT=image/png&TRANSPARENT=TRUE",
                        base, mc_url_encode(layer, "", true, false, pool), srs,
                        mc_double_text('g', 15, box->minx, pool), mc_double_text('g', 15, box->miny, pool),
                        mc_double_text('g', 15, box->maxx, pool), mc_double_text('g', 15, box->maxy, pool), width,
                        height);
}

static void
compare_map(mc_compare *compare, map_walk *walk, const char *base, int step, apr_pool_t *pool)
{
    mc_projection *projection = NULL;
    int zoom = walk->turn * step % ZOOMS, width = 256 + 32 * mc_compare_choose(compare, 9), height;
    const char *srs = APR_ARRAY_IDX(walk->srs, walk->turn % walk->srs->nelts, const char *);
    mc_extent degrees = choose_map_box(compare, walk, zoom), box = degrees;
    if (mc_projection_open(&projection, "EPSG:4326", srs, pool) != MC_OK ||
        (projection != NULL && !mc_projection_box(&box, projection, false)) || !mc_extent_valid(&box))
        box = degrees;
    height = (int)fmin(fmax(width * (box.maxy - box.miny) / (box.maxx - box.minx), 64), 512);
    /* pixels are squares: of others some servers draw another box than was asked for */
    double middle = (box.miny + box.maxy) / 2, half = height * (box.maxx - box.minx) / width / 2;
    box.miny = middle - half;
    box.maxy = middle + half;
    mc_compare_pair pair = { .title = apr_psprintf(pool, "%s, %s, %d x %d pixels, %s of the area", walk->names->there,
                                                   srs, width, height,
                                                   zoom == 0 ? "all" : apr_psprintf(pool, "1/%d", 1 << zoom)) };
    pair.addresses[0] = map_address(base, walk->names->there, srs, &box, width, height, pool);
    pair.addresses[1] = map_address(MC_COMPARE_HERE_URL "/?", walk->names->tileset, srs, &box, width, height, pool);
    for (int side = 0; side < 2; side++)
        pair.answers[side] = mc_compare_ask(compare, (mc_compare_side)side, pair.addresses[side], pool);
    mc_compare_pictures(&pair, compare, pool);
    walk->turn++;
    walk->has_focus = pair.has_focus && zoom + step < ZOOMS;
    walk->focus[0] = degrees.minx + pair.focus[0] * (degrees.maxx - degrees.minx);
    walk->focus[1] = degrees.maxy - pair.focus[1] * (degrees.maxy - degrees.miny);
    mc_compare_put_pair(compare, &pair, 1);
}

void
mc_compare_maps(mc_compare *compare)
{
    apr_pool_t *scratch;
    map_walk *walks = apr_pcalloc(compare->pool, MAP_LAYERS * sizeof(*walks));
    int count = 0;
    const char *base = compare->kind == MC_ADOPT_MAPPROXY      ? "/service?"
                       : compare->kind == MC_ADOPT_GEOWEBCACHE ? "/service/wms?"
                       : strchr(compare->url, '?') != NULL     ? "&"
                                                               : "?";
    base = apr_pstrcat(compare->pool, compare->url, base, NULL);
    mc_compare_put_heading(compare, "Maps");
    for (int i = 0; i < compare->layers->nelts && count < MAP_LAYERS; i++)
        if (begin_map_walk(&walks[count], compare, &APR_ARRAY_IDX(compare->layers, i, mc_adopt_layer), compare->pool))
            count++;
    if (count == 0)
        mc_compare_put(compare, "<p>There are no maps to compare: no layer has maps in one CRS on both sides.</p>\n");
    apr_pool_create(&scratch, compare->pool);
    apr_time_t begin = mc_clock_now();
    for (int i = 0; count > 0 && i < MC_COMPARE_PICTURES && mc_compare_has_time(compare, begin); i++) {
        int turns = (MC_COMPARE_PICTURES + count - 1) / count;
        compare_map(compare, &walks[i % count], base, ZOOMS > turns ? ZOOMS / turns : 1, scratch);
        compare->asked[1]++;
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
}
