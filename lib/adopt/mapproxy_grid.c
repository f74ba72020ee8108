/* Grids of MapProxy: the resolutions and boxes that its documentation (configuration, "grids") gives them. */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "adopt/mapproxy.h"
#include "text/text.h"
#include "vector/crs/projection.h"

static const double half_world = 20037508.342789244;

static bool
is_web_srs(int epsg)
{
    return epsg == 3857 || epsg == 900913 || epsg == 102100 || epsg == 102113;
}

/* Grids that are there without being configured. */
static bool
read_builtin_grid(mc_mapproxy_grid *grid, const char **srs)
{
    if (strcmp(grid->own, "GLOBAL_GEODETIC") == 0)
        *srs = "EPSG:4326";
    else if (strcmp(grid->own, "GLOBAL_MERCATOR") == 0)
        *srs = "EPSG:900913";
    else if (strcmp(grid->own, "GLOBAL_WEBMERCATOR") == 0)
        *srs = "EPSG:3857", grid->north_west = true;
    else
        return false;
    return true;
}

/* The value of a grid, or of the one that it is based on. */
static mc_branch *
grid_value(mc_mapproxy *proxy, mc_branch *branch, const char *key)
{
    for (int depth = 0; branch != NULL && depth < 16; depth++) {
        mc_branch *value = mc_branch_get(branch, key);
        if (value != NULL)
            return value;
        const char *base = mc_branch_text(branch, "base", NULL);
        branch = base == NULL ? NULL : mc_branch_get(mc_branch_get(proxy->root, "grids"), base);
    }
    return NULL;
}

/* The builtin grid at the end of the chain of bases, or NULL. */
static const char *
builtin_base(mc_mapproxy *proxy, mc_branch *branch)
{
    const char *base = NULL;
    for (int depth = 0; branch != NULL && depth < 16; depth++) {
        base = mc_branch_text(branch, "base", NULL);
        branch = base == NULL ? NULL : mc_branch_get(mc_branch_get(proxy->root, "grids"), base);
    }
    return base;
}

static bool
read_box(mc_mapproxy_grid *grid, mc_mapproxy *proxy, mc_branch *branch, int epsg)
{
    double edges[4];
    mc_branch *box = grid_value(proxy, branch, "bbox"), *from = grid_value(proxy, branch, "bbox_srs");
    if (box == NULL) {
        if (is_web_srs(epsg))
            grid->box = (mc_extent){ -half_world, -half_world, half_world, half_world };
        else if (epsg == 4326)
            grid->box = (mc_extent){ -180, -90, 180, 90 };
        else
            return false;
        return true;
    }
    if (mc_branch_numbers(edges, 4, box) != 4)
        return false;
    grid->box = (mc_extent){ edges[0], edges[1], edges[2], edges[3] };
    if (!mc_extent_valid(&grid->box))
        return false;
    if (from == NULL || from->text == NULL || mc_projection_same(from->text, grid->srs) == 1)
        return true;
    mc_projection *projection;
    mc_error *error = mc_projection_open(&projection, from->text, grid->srs, proxy->pool);
    if (error != MC_OK || (projection != NULL && !mc_projection_box(&grid->box, projection, false)))
        return false;
    if (projection != NULL && !mc_projection_is_formula(from->text, grid->srs))
        mc_draft_note_at(
            proxy->adopt, from,
            "the box of grid %s is transformed from %s; where MapProxy's differs in the last digits, tiles "
            "shift: compare <extent> with what `mapproxy-util grids` says",
            grid->own, from->text);
    return mc_extent_valid(&grid->box);
}

static int
compare_falling(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left < right) - (left > right);
}

/* A list `res`; false where there is none. Items may be [name, number]. */
static bool
read_resolution_list(mc_mapproxy_grid *grid, mc_branch *list)
{
    if (list == NULL)
        return false;
    for (mc_branch *item = mc_branch_item(list, 0); item != NULL && grid->levels < MC_MAPPROXY_LEVELS;
         item = item->next) {
        item->taken = true;
        const mc_branch *number = item->kind == MC_BRANCH_LIST ? mc_branch_item(item, 1) : item;
        if (item->kind == MC_BRANCH_LIST)
            mc_branch_pass(item);
        if (number != NULL && number->text != NULL && mc_parse_double(&grid->resolutions[grid->levels], number->text) &&
            grid->resolutions[grid->levels] > 0)
            grid->levels++;
    }
    qsort(grid->resolutions, (size_t)grid->levels, sizeof(double), compare_falling);
    return true;
}

static double
number_of(mc_branch *value, double otherwise)
{
    double number;
    return value != NULL && value->text != NULL && mc_parse_double(&number, value->text) ? number : otherwise;
}

static void
keep_level(mc_mapproxy_grid *grid, double resolution)
{
    if (grid->levels < MC_MAPPROXY_LEVELS && resolution > 0 && isfinite(resolution))
        grid->resolutions[grid->levels++] = resolution;
}

/* The first `count` resolutions by the factor, or from the first to the last one in `count` steps. */
static void
make_resolutions(mc_mapproxy_grid *grid, mc_mapproxy *proxy, mc_branch *branch)
{
    const mc_branch *factor_said = grid_value(proxy, branch, "res_factor");
    bool root_of_two = factor_said != NULL && factor_said->text != NULL && strcmp(factor_said->text, "sqrt2") == 0;
    double factor = root_of_two ? sqrt(2) : number_of(grid_value(proxy, branch, "res_factor"), 2);
    double first = number_of(grid_value(proxy, branch, "min_res"), 0),
           last = number_of(grid_value(proxy, branch, "max_res"), 0);
    int count = (int)fmax(0, fmin(MC_MAPPROXY_LEVELS, number_of(grid_value(proxy, branch, "num_levels"), 0)));
    if (!(factor > 1.0001))
        factor = 2;
    if (!(first > 0))
        first = fmax((grid->box.maxx - grid->box.minx) / grid->tile_width,
                     (grid->box.maxy - grid->box.miny) / grid->tile_height);
    if (last > 0 && count > 1) {
        double step = (log10(first) - log10(last)) / (count - 1);
        for (int i = 0; i < count; i++)
            keep_level(grid, pow(10, log10(first) - step * i));
    } else if (last > 0) {
        keep_level(grid, first);
        for (double next = first / factor; next > last && grid->levels < MC_MAPPROXY_LEVELS; next /= factor)
            keep_level(grid, next);
    } else {
        if (count == 0)
            count = root_of_two ? 40 : 20;
        for (int i = 0; i < count; i++, first /= factor)
            keep_level(grid, first);
    }
}

/* Aligned levels have the factor of this grid: of steps of sqrt(2) every second level, or levels between those of 2. */
static void
adjust_factor(mc_mapproxy_grid *grid, mc_mapproxy *proxy, mc_branch *branch)
{
    const mc_branch *factor = grid_value(proxy, branch, "res_factor");
    bool root_of_two = factor != NULL && factor->text != NULL && strcmp(factor->text, "sqrt2") == 0;
    double step = grid->levels < 2 ? 0 : grid->resolutions[0] / grid->resolutions[1];
    int count = grid->levels;
    if (root_of_two && fabs(step - 2) < 1e-8) {
        grid->levels = count * 2 > MC_MAPPROXY_LEVELS ? MC_MAPPROXY_LEVELS : count * 2;
        for (int i = grid->levels - 1; i >= 0; i--)
            grid->resolutions[i] = grid->resolutions[i / 2] / (i % 2 == 0 ? 1 : sqrt(2));
    } else if (!root_of_two && (factor == NULL || number_of(grid_value(proxy, branch, "res_factor"), 0) == 2) &&
               fabs(step - sqrt(2)) < 1e-8) {
        grid->levels = (count + 1) / 2;
        for (int i = 0; i < grid->levels; i++)
            grid->resolutions[i] = grid->resolutions[2 * i];
    }
}

/* Those of another grid that lie in the range. */
static bool
align_resolutions(mc_mapproxy_grid *grid, mc_mapproxy *proxy, mc_branch *branch)
{
    const mc_branch *with = grid_value(proxy, branch, "align_resolutions_with");
    if (with == NULL || with->text == NULL || strcmp(with->text, grid->own) == 0)
        return false;
    const mc_mapproxy_grid *other = mc_mapproxy_find_grid(proxy, with->text, with);
    if (other == NULL)
        return false;
    double first = number_of(grid_value(proxy, branch, "min_res"), 0),
           last = number_of(grid_value(proxy, branch, "max_res"), 0);
    int most =
        (int)fmax(0, fmin(MC_MAPPROXY_LEVELS, number_of(grid_value(proxy, branch, "num_levels"), MC_MAPPROXY_LEVELS)));
    if (!(first > 0))
        first = fmax((grid->box.maxx - grid->box.minx) / grid->tile_width,
                     (grid->box.maxy - grid->box.miny) / grid->tile_height);
    for (int i = 0; i < other->levels && grid->levels < most; i++)
        if (other->resolutions[i] <= first && other->resolutions[i] >= last)
            keep_level(grid, other->resolutions[i]);
    adjust_factor(grid, proxy, branch);
    return true;
}

static void
write_mapproxy_grid(mc_mapproxy_grid *grid, mc_adopt *adopt, int epsg)
{
    const mc_extent *box = &grid->box;
    const char *list = "";
    double unit = epsg == 0 ? 1 : mc_crs_metres_per_unit(epsg);
    grid->name = mc_draft_name(adopt, MC_DRAFT_GRIDS, mc_replace_all(grid->own, ",", "_", adopt->pool));
    for (int i = 0; i < grid->levels; i++)
        list = apr_pstrcat(adopt->pool, list, i > 0 ? " " : "",
                           mc_double_text('g', 17, grid->resolutions[i], adopt->pool), NULL);
    mc_draft_put(adopt, MC_DRAFT_GRIDS, "  <grid name=\"%s\">\n", mc_xml_escape(grid->name, adopt->pool));
    mc_draft_element(adopt, MC_DRAFT_GRIDS, "    ", "srs", grid->srs);
    if (epsg == 3857)
        mc_draft_put(adopt, MC_DRAFT_GRIDS, "    <srsalias>EPSG:900913</srsalias>\n");
    mc_draft_put(adopt, MC_DRAFT_GRIDS, "    <extent>%s %s %s %s</extent>\n",
                 mc_double_text('g', 17, box->minx, adopt->pool), mc_double_text('g', 17, box->miny, adopt->pool),
                 mc_double_text('g', 17, box->maxx, adopt->pool), mc_double_text('g', 17, box->maxy, adopt->pool));
    mc_draft_put(adopt, MC_DRAFT_GRIDS, "    <size>%d %d</size>\n    <resolutions>%s</resolutions>\n",
                 (int)grid->tile_width, (int)grid->tile_height, list);
    mc_draft_put(adopt, MC_DRAFT_GRIDS, "    <units>%s</units>\n    <origin>%s</origin>\n  </grid>\n",
                 unit > 1000                     ? "dd"
                 : fabs(unit - 0.3048) < 0.00001 ? "ft"
                                                 : "m",
                 grid->north_west ? "top-left" : "bottom-left");
    adopt->counts.grids++;
}

static bool
read_grid(mc_mapproxy_grid *grid, mc_mapproxy *proxy, mc_branch *branch)
{
    double size[2];
    bool xy;
    const char *srs = NULL, *builtin = branch == NULL ? grid->own : builtin_base(proxy, branch);
    mc_mapproxy_grid base = { .own = builtin };
    if (builtin != NULL && !read_builtin_grid(&base, &srs))
        return false;
    grid->north_west = base.north_west;
    const mc_branch *said = grid_value(proxy, branch, "srs"), *origin = grid_value(proxy, branch, "origin");
    srs = said != NULL && said->text != NULL ? said->text : srs == NULL ? "EPSG:900913" : srs;
    int epsg = mc_crs_epsg(srs, &xy);
    grid->folder = mc_replace_all(srs, ":", "", proxy->pool);
    epsg = is_web_srs(epsg) ? 3857 : epsg;
    grid->srs = epsg == 0 ? srs : apr_psprintf(proxy->pool, "EPSG:%d", epsg);
    if (origin != NULL && origin->text != NULL)
        grid->north_west = strcasecmp(origin->text, "nw") == 0 || strcasecmp(origin->text, "ul") == 0;
    mc_branch *tile = grid_value(proxy, branch, "tile_size");
    if (tile == NULL)
        tile = mc_branch_find(proxy->root, "globals.grid.tile_size");
    bool sized =
        mc_branch_numbers(size, 2, tile) == 2 && size[0] >= 1 && size[1] >= 1 && size[0] <= 16384 && size[1] <= 16384;
    grid->tile_width = sized ? floor(size[0]) : 256;
    grid->tile_height = sized ? floor(size[1]) : 256;
    if (!read_box(grid, proxy, branch, epsg))
        return false;
    if (!read_resolution_list(grid, grid_value(proxy, branch, "res")) && !align_resolutions(grid, proxy, branch))
        make_resolutions(grid, proxy, branch);
    if (grid->levels > 0)
        write_mapproxy_grid(grid, proxy->adopt, epsg);
    return grid->levels > 0;
}

const mc_mapproxy_grid *
mc_mapproxy_find_grid(mc_mapproxy *proxy, const char *name, const mc_branch *at)
{
    mc_mapproxy_grid *grid = apr_hash_get(proxy->grids, name, APR_HASH_KEY_STRING);
    if (grid == NULL) {
        mc_branch *branch = mc_branch_get(mc_branch_get(proxy->root, "grids"), name);
        grid = apr_pcalloc(proxy->pool, sizeof(*grid));
        grid->own = name;
        grid->broken = true; /* while it is read: a grid that is aligned with itself ends here */
        apr_hash_set(proxy->grids, name, APR_HASH_KEY_STRING, grid);
        grid->broken = !read_grid(grid, proxy, branch);
        if (grid->broken)
            mc_draft_note_at(proxy->adopt, branch == NULL ? at : branch, "grid %s is not taken over: %s",
                             mc_message_text(name, 100, proxy->pool),
                             branch == NULL
                                 ? "it is not configured; add it to `grids`"
                                 : "its base, bbox or resolutions cannot be told; write srs, bbox and res as numbers");
    }
    return grid->broken ? NULL : grid;
}
