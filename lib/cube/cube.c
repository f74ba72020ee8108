/* <cube>: what a cube is, from the configuration. */
#include "mapcache/cube.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "cube/chunk.h"
#include "cube/store.h"

/* The side of a chunk by default: 26 * 26 * 12 bytes are 8112, and no more than 8124 fit into a row of a page of
 * PostgreSQL (8192 bytes) beside its key. 12 is a multiple of all numbers of bands but one, which leaves little. */
enum { DEFAULT_SIDE = 26, DEFAULT_BYTES = 12 };

/* Pixels of a level that needs no overview: a map of all of it reads little more than it shows. */
#define ENOUGH ((int64_t)1 << 20)

/* An extent that is off by less than that part of a pixel is meant to be whole. */
#define WHOLE 1e-3

/* Pixels between two coordinates; 0: not a whole number of them, or too many. */
static int
whole_pixels(double from, double to, double resolution)
{
    double pixels = (to - from) / resolution, whole = rint(pixels);
    return whole >= 1 && whole <= mc_cube_side_max && fabs(pixels - whole) < WHOLE ? (int)whole : 0;
}

static bool
set_cube_extent(mc_cube_shape *shape, const mc_cube_config *config, const mc_node *node, mc_build *build)
{
    const double *e = config->extent.values;
    shape->extent = (mc_extent){ e[0], e[1], e[2], e[3] };
    shape->resolution = config->resolution;
    if (!mc_extent_valid(&shape->extent)) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "extent"),
                    "<extent> is west, south, east and north: east above west, north above south");
        return false;
    }
    shape->width = whole_pixels(e[0], e[2], config->resolution);
    shape->height = whole_pixels(e[1], e[3], config->resolution);
    if (shape->width == 0 || shape->height == 0)
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "extent"),
                    "<extent> should be a whole number of pixels of <resolution>, at most %d on a side",
                    (int)mc_cube_side_max);
    return shape->width > 0 && shape->height > 0;
}

static bool
set_chunk(mc_cube_shape *shape, const mc_cube_config *config, const mc_node *node, mc_build *build)
{
    double sizes[3] = { DEFAULT_SIDE, DEFAULT_SIDE, DEFAULT_BYTES / shape->bands };
    const double most[3] = { mc_chunk_side_max, mc_chunk_side_max, mc_chunk_dates_max };
    for (int i = 0; i < config->chunk.count; i++)
        sizes[i] = config->chunk.values[i];
    bool fits = sizes[0] * sizes[1] * sizes[2] * shape->bands <= mc_chunk_bytes_max;
    for (int i = 0; i < 3; i++)
        fits = fits && sizes[i] >= 1 && sizes[i] <= most[i] && rint(sizes[i]) == sizes[i];
    if (!fits) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "chunk"),
                    "<chunk> is columns, rows (1 to %d) and dates (1 to %d), of at most %d bytes together",
                    (int)mc_chunk_side_max, (int)mc_chunk_dates_max, (int)mc_chunk_bytes_max);
        return false;
    }
    shape->chunk_width = (int)sizes[0];
    shape->chunk_height = (int)sizes[1];
    shape->chunk_dates = (int)sizes[2];
    shape->columns = (shape->width - 1) / shape->chunk_width + 1;
    shape->rows = (shape->height - 1) / shape->chunk_height + 1;
    return true;
}

/* The overview of a cube, or of an overview; its last column or row may reach beyond the extent. */
static mc_cube_shape
halve_cube_shape(const mc_cube_shape *fine)
{
    mc_cube_shape shape = *fine;
    shape.resolution = fine->resolution * 2;
    shape.width = (fine->width + 1) / 2;
    shape.height = (fine->height + 1) / 2;
    shape.columns = (shape.width - 1) / shape.chunk_width + 1;
    shape.rows = (shape.height - 1) / shape.chunk_height + 1;
    shape.first_row = fine->first_row + fine->rows;
    return shape;
}

/* Chunks of an overview are made of four whole ones, which takes even sides. */
static bool
set_overviews(mc_cube *cube, int wanted, const mc_node *node, mc_build *build)
{
    bool even = cube->shape.chunk_width % 2 == 0 && cube->shape.chunk_height % 2 == 0;
    if (wanted > 0 && !even)
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "overviews"),
                    "<overviews> need a <chunk> of even columns and rows, not %d x %d", cube->shape.chunk_width,
                    cube->shape.chunk_height);
    cube->overviews = apr_pcalloc(build->pool, sizeof(*cube->overviews) * mc_cube_overviews_max);
    for (int i = 0; even && i < (wanted < 0 ? mc_cube_overviews_max : wanted); i++) {
        const mc_cube_shape *fine = mc_cube_level(cube, i);
        if (wanted < 0 ? (int64_t)fine->width * fine->height <= ENOUGH : fine->width == 1 && fine->height == 1)
            break;
        cube->overviews[i] = halve_cube_shape(fine);
        cube->overview_count++;
    }
    return wanted <= 0 || even;
}

bool
mc_cube_set_up(mc_cube *cube, const mc_cube_config *config, const mc_node *node, mc_build *build)
{
    static const int bands[] = { 1, 3, 4 };
    cube->name = config->name;
    cube->shape.srs = config->srs;
    cube->shape.bands = bands[config->bands];
    return set_cube_extent(&cube->shape, config, node, build) && set_chunk(&cube->shape, config, node, build) &&
           set_overviews(cube, config->overviews, node, build);
}

mc_cube *
mc_cube_with_overviews(const mc_cube *cube, int count, apr_pool_t *pool)
{
    mc_cube *made = apr_pmemdup(pool, cube, cube->ops->size);
    MC_ASSERT(count <= mc_cube_overviews_max);
    made->overview_count = count;
    return made;
}

const char *
mc_cube_signature(const mc_cube *cube, apr_pool_t *pool)
{
    const mc_cube_shape *s = &cube->shape;
    return apr_psprintf(
        pool,
        "version %d, %s, west %.9f, north %.9f, resolution %.12f, %d x %d pixels, %d bands, chunks of %d"
        " x %d x %d%s",
        MC_CUBE_VERSION, s->srs, s->extent.minx, s->extent.maxy, s->resolution, s->width, s->height, s->bands,
        s->chunk_width, s->chunk_height, s->chunk_dates,
        cube->overview_count == 0 ? "" : apr_psprintf(pool, ", %d overviews", cube->overview_count));
}

mc_error *
mc_cube_reshaped_error(const mc_cube *cube, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_UNAVAILABLE, "cube \"%s\" was given another shape while it was read",
                           cube->name);
}

mc_error *
mc_cube_check_signature(const mc_cube *cube, const char *found, apr_pool_t *pool)
{
    const char *wanted = mc_cube_signature(cube, pool);
    if (strcmp(found, wanted) == 0)
        return MC_OK;
    bool count_only = false; /* of overviews */
    for (int i = 0; i <= mc_cube_overviews_max; i++)
        count_only = count_only || strcmp(found, mc_cube_signature(mc_cube_with_overviews(cube, i, pool), pool)) == 0;
    mc_error *cause = mc_error_create(pool, MC_ERR_CONFIG, "configured: %s; stored: %s%s", wanted, found,
                                      count_only ? "; `mapcache cube overviews` makes those that are configured" : "");
    return mc_error_wrap(pool, cause, MC_ERR_CONFIG,
                         "cube \"%s\" has been stored with another shape than it is configured with", cube->name);
}
