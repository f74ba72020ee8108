/* From a plan to what is to be done: the headers of all images, the levels, the tiles that each image may touch. */
#include <apr_strings.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ingest/pyramid/ingest_private.h"
#include "ingest/pyramid/tile_cover.h"

/* Pixels that the halves of a level may be off their place where its resolution is not quite twice the finer one. */
#define HALVES_OFF 0.05

enum { ROWS_MAX = 1 << 22 };

const mc_ingest_chain *
mc_ingest_chain_of(const mc_ingest *ingest, int z)
{
    for (int i = 0; i < ingest->chain_count; i++)
        if (z >= ingest->chains[i].top && z <= ingest->chains[i].direct)
            return &ingest->chains[i];
    return NULL;
}

int
mc_ingest_touched_below(const mc_ingest *ingest, const mc_ingest_chain *chain, int z, int x, int y)
{
    int steps = chain->direct - z - 1, touched = 0;
    (void)ingest;
    for (int i = 0; i < 4; i++) {
        int64_t left = ((int64_t)x * 2 + i % 2) << steps, first = ((int64_t)y * 2 + i / 2) << steps;
        int64_t side = (int64_t)1 << steps;
        if (left > INT32_MAX - side || first > INT32_MAX - side)
            continue;
        mc_tile_range block = { (int)left, (int)first, (int)(left + side), (int)(first + side) };
        touched += mc_tile_index_any(chain->tile_index, &block, -1);
    }
    return touched;
}

/* --- images ------------------------------------------------------------------------------------------------------- */

static mc_error *
check_image_placement(mc_ingest *ingest, mc_ingest_image *image, apr_pool_t *scratch)
{
    const mc_grid_link *link = ingest->plan.link;
    mc_error *error = mc_image_placement_create(&image->placement, &image->info, link->grid, scratch);
    if (error == MC_OK && !image->info.georeferenced)
        error = mc_error_create(scratch, MC_ERR_CORRUPT,
                                "nothing says where it lies: it has no world file beside it and no GeoTIFF tags");
    if (error == MC_OK && image->info.srs == NULL)
        error = mc_error_create(scratch, MC_ERR_CORRUPT,
                                "nothing says which CRS it is in: --srs has to (--srs %s, where it is the grid's)",
                                link->grid->srs);
    if (error == MC_OK && !mc_extent_intersects(&image->placement.box, &link->extent))
        error = mc_error_create(scratch, MC_ERR_CORRUPT,
                                "it lies outside of grid \"%s\": its place is %.15g %.15g %.15g %.15g, by %s%s%s",
                                link->grid->name, image->placement.box.minx, image->placement.box.miny,
                                image->placement.box.maxx, image->placement.box.maxy, image->info.origin,
                                image->info.srs == NULL ? "" : " in ", image->info.srs == NULL ? "" : image->info.srs);
    return error == MC_OK
               ? MC_OK
               : mc_error_create(scratch, error->kind, "%s: %s", image->info.path, mc_error_chain(error, scratch));
}

/* The header of one image; it is closed again. */
static mc_error *
read_ingest_header(mc_ingest *ingest, mc_ingest_image *image, const char *path, apr_pool_t *scratch)
{
    mc_raster *raster;
    MC_TRY(mc_raster_open(&raster, path, &ingest->plan.raster, scratch));
    image->info = *mc_raster_about(raster);
    image->info.path = path;
    if (image->info.srs != NULL)
        image->info.srs = apr_pstrdup(ingest->pool, image->info.srs);
    mc_error *error = check_image_placement(ingest, image, scratch);
    image->info.origin = NULL; /* of the scratch pool */
    image->placement.image = &image->info;
    mc_raster_close(raster);
    return error;
}

static mc_error *
read_headers(mc_ingest *ingest, apr_pool_t *scratch)
{
    const mc_ingest_plan *plan = &ingest->plan;
    ingest->images = apr_pcalloc(ingest->pool, sizeof(*ingest->images) * (size_t)(plan->paths->nelts + 1));
    for (int i = 0; i < plan->paths->nelts; i++) {
        mc_ingest_image *image = &ingest->images[ingest->count];
        image->number = i;
        apr_pool_clear(scratch);
        mc_error *error = read_ingest_header(ingest, image, APR_ARRAY_IDX(plan->paths, i, const char *), scratch);
        if (error == MC_OK) {
            ingest->count++;
            continue;
        }
        ingest->counts.bad++;
        if (plan->complain != NULL)
            plan->complain(plan->baton, mc_error_chain(error, scratch));
    }
    ingest->counts.inputs = ingest->count;
    if (ingest->counts.bad > 0 && !plan->skip_bad)
        return mc_error_create(ingest->pool, MC_ERR_CORRUPT, "%d of %d images cannot be used: nothing was changed",
                               ingest->counts.bad, plan->paths->nelts);
    if (ingest->count == 0)
        return mc_error_create(ingest->pool, MC_ERR_CORRUPT, "there is no image to ingest");
    return MC_OK;
}

/* --- levels ------------------------------------------------------------------------------------------------------- */

static double
shrink_of(const mc_ingest *ingest, const mc_ingest_image *image, int z, apr_pool_t *scratch)
{
    const mc_grid *grid = ingest->plan.link->grid;
    mc_projection *projection = NULL;
    if (image->info.srs != NULL && !mc_grid_has_srs(grid, image->info.srs))
        mc_error_ignore(mc_projection_open(&projection, grid->srs, image->info.srs, scratch));
    return mc_image_placement_shrink(&image->placement, projection, z);
}

/* The level whose pixels are nearest in size to those of the finest image. */
static int
find_ingest_level(const mc_ingest *ingest, apr_pool_t *scratch)
{
    const mc_grid_link *link = ingest->plan.link;
    int best = link->minzoom;
    for (int i = 0; i < ingest->count; i++) {
        int nearest = link->minzoom;
        double least = HUGE_VAL;
        apr_pool_clear(scratch);
        for (int z = link->minzoom; z <= link->maxzoom && z < link->grid->level_count; z++) {
            double distance = fabs(log(shrink_of(ingest, &ingest->images[i], z, scratch)));
            if (distance <= least) {
                least = distance;
                nearest = z;
            }
        }
        best = nearest > best ? nearest : best;
    }
    return best;
}

/* Rows of tiles are listed, image by image. */
static mc_error *
check_rows(const mc_ingest *ingest)
{
    const mc_grid *grid = ingest->plan.link->grid;
    const mc_extent *box = &ingest->outline.extent;
    double side = grid->levels[ingest->outline.maxzoom].resolution * grid->tile_height;
    if ((fmin(box->maxy, grid->extent.maxy) - fmax(box->miny, grid->extent.miny)) / side <= ROWS_MAX)
        return MC_OK;
    return mc_error_create(ingest->pool, MC_ERR_CONFIG,
                           "level %d is too fine for these images: more than %d rows of tiles", ingest->outline.maxzoom,
                           ROWS_MAX);
}

static mc_error *
choose_levels(mc_ingest *ingest, apr_pool_t *scratch)
{
    const mc_grid_link *link = ingest->plan.link;
    mc_ingest_outline *outline = &ingest->outline;
    int last = link->maxzoom < link->grid->level_count ? link->maxzoom : link->grid->level_count - 1;
    if (link->max_cached_zoom >= 0 && last > link->max_cached_zoom)
        last = link->max_cached_zoom;
    outline->minzoom = ingest->plan.minzoom < 0 ? link->minzoom : ingest->plan.minzoom;
    outline->maxzoom = ingest->plan.maxzoom < 0 ? find_ingest_level(ingest, scratch) : ingest->plan.maxzoom;
    if (ingest->plan.maxzoom < 0 && outline->maxzoom > last)
        outline->maxzoom = last;
    if (outline->minzoom >= link->minzoom && outline->minzoom <= outline->maxzoom && outline->maxzoom <= last)
        return check_rows(ingest);
    return mc_error_create(ingest->pool, MC_ERR_CONFIG,
                           "the levels %d to %d are not to be had: grid \"%s\" of tileset \"%s\" stores %d to %d",
                           outline->minzoom, outline->maxzoom, link->grid->name, ingest->plan.tileset->name,
                           link->minzoom, last);
}

/* The farthest that anything lies from where the grid counts its tiles, in pixels of a level. */
static double
outline_reach_pixels(const mc_ingest *ingest, int z)
{
    const mc_grid *grid = ingest->plan.link->grid;
    const mc_extent *box = &ingest->outline.extent;
    bool from_right = grid->origin == MC_TOP_RIGHT || grid->origin == MC_BOTTOM_RIGHT;
    bool from_top = grid->origin == MC_TOP_LEFT || grid->origin == MC_TOP_RIGHT;
    double x = from_right ? grid->extent.maxx - box->minx : box->maxx - grid->extent.minx;
    double y = from_top ? grid->extent.maxy - box->miny : box->maxy - grid->extent.miny;
    return fmax(x, y) / grid->levels[z].resolution;
}

/* Whether level z is halved from the next one. */
static bool
level_halves_exactly(const mc_ingest *ingest, int z)
{
    const mc_grid *grid = ingest->plan.link->grid;
    double ratio = grid->levels[z].resolution / grid->levels[z + 1].resolution;
    return grid->tile_width % 2 == 0 && grid->tile_height % 2 == 0 &&
           fabs(ratio / 2 - 1) * outline_reach_pixels(ingest, z) < HALVES_OFF;
}

static void
add_chain(mc_ingest *ingest, int direct, apr_pool_t *scratch)
{
    const mc_grid_link *link = ingest->plan.link;
    mc_ingest_chain *chain = &ingest->chains[ingest->chain_count++];
    chain->direct = chain->top = direct;
    while (chain->top > ingest->outline.minzoom && level_halves_exactly(ingest, chain->top - 1))
        chain->top--;
    chain->ranges = apr_pcalloc(ingest->pool, sizeof(mc_tile_range) * (size_t)ingest->count);
    chain->modes = apr_palloc(ingest->pool, sizeof(mc_ingest_resample) * (size_t)ingest->count);
    for (int i = 0; i < ingest->count; i++) {
        mc_ingest_image *image = &ingest->images[i];
        mc_tile_range range;
        apr_pool_clear(scratch);
        if (mc_grid_link_tiles(link, &image->placement.box, direct, &range))
            chain->ranges[i] = range;
        chain->modes[i] = ingest->plan.resample;
        if (chain->modes[i] == MC_INGEST_AUTO)
            chain->modes[i] =
                mc_draw_shrinks(shrink_of(ingest, image, direct, scratch)) ? MC_INGEST_AVERAGE : MC_INGEST_BILINEAR;
    }
    chain->tile_index = mc_tile_index_create(chain->ranges, ingest->count, ingest->pool);
}

static mc_tile_range
halve_range(const mc_tile_range *range)
{
    return (mc_tile_range){ range->minx / 2, range->miny / 2, (range->maxx + 1) / 2, (range->maxy + 1) / 2 };
}

static void
count_ingest_tiles(mc_ingest *ingest, apr_pool_t *scratch)
{
    apr_int64_t *tiles = apr_pcalloc(ingest->pool, sizeof(*tiles) * (size_t)ingest->plan.link->grid->level_count);
    size_t count = (size_t)ingest->count;
    for (int c = 0; c < ingest->chain_count; c++) {
        apr_pool_clear(scratch);
        mc_tile_range *ranges = apr_pmemdup(scratch, ingest->chains[c].ranges, sizeof(*ranges) * count);
        for (int z = ingest->chains[c].direct; z >= ingest->chains[c].top; z--) {
            tiles[z] = mc_tile_cover_count(ranges, ingest->count, scratch);
            for (size_t i = 0; i < count; i++)
                ranges[i] = halve_range(&ranges[i]);
        }
    }
    ingest->outline.tiles = tiles;
}

static void
join_extents(mc_ingest *ingest)
{
    mc_extent *all = &ingest->outline.extent;
    *all = ingest->images[0].placement.box;
    for (int i = 0; i < ingest->count; i++) {
        const mc_extent *box = &ingest->images[i].placement.box;
        *all = mc_extent_union(all, box);
        ingest->outline.told += ingest->images[i].info.srs_told;
        ingest->outline.pixels += (apr_int64_t)ingest->images[i].info.width * ingest->images[i].info.height;
    }
}

/* --- how tiles are stored ----------------------------------------------------------------------------------------- */

static const mc_format *
choose_fast_format(const mc_format *format, apr_pool_t *pool)
{
    mc_format *made = apr_pmemdup(pool, format, sizeof(*format));
    if (made->type == MC_FORMAT_PNG && made->compression == MC_PNG_DEFAULT)
        made->compression = MC_PNG_FAST;
    if (made->type == MC_FORMAT_MIXED) {
        made->transparent = choose_fast_format(made->transparent, pool);
        made->opaque = choose_fast_format(made->opaque, pool);
    }
    return made;
}

static mc_error *
choose_pyramid_format(mc_ingest *ingest)
{
    const mc_tileset *tileset = ingest->plan.tileset;
    const mc_format *format = tileset->format != NULL ? tileset->format : tileset->synthetic_format;
    if (tileset->not_built != NULL)
        return mc_error_create(ingest->pool, MC_ERR_CONFIG, "tileset \"%s\": %s", tileset->name, tileset->not_built);
    if (!mc_format_is_image(format))
        return mc_error_create(ingest->pool, MC_ERR_CONFIG, "tiles of tileset \"%s\" hold no pixels: its format is %s",
                               tileset->name, format->name);
    ingest->format = choose_fast_format(format, ingest->pool);
    ingest->dimensions =
        apr_pcalloc(ingest->pool, sizeof(*ingest->dimensions) * (size_t)(tileset->dimension_count + 1));
    for (int i = 0; i < tileset->dimension_count; i++)
        ingest->dimensions[i] = (mc_dimension_value){ tileset->dimensions[i]->name, ingest->plan.values[i],
                                                      tileset->dimensions[i]->ops->from_backend };
    return MC_OK;
}

mc_error *
mc_ingest_prepare(mc_ingest **ingest, const mc_ingest_plan *plan, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_ingest *made = apr_pcalloc(pool, sizeof(*made));
    apr_pool_t *scratch;
    (void)ctx;
    made->plan = *plan;
    made->pool = pool;
    apr_pool_create(&scratch, pool);
    MC_TRY(choose_pyramid_format(made));
    MC_TRY(read_headers(made, scratch));
    join_extents(made);
    MC_TRY(choose_levels(made, scratch));
    made->chains = apr_pcalloc(pool, sizeof(*made->chains) * (size_t)(made->outline.maxzoom + 1));
    for (int z = made->outline.maxzoom; z >= made->outline.minzoom; z = made->chains[made->chain_count - 1].top - 1)
        add_chain(made, z, scratch);
    count_ingest_tiles(made, scratch);
    apr_pool_destroy(scratch);
    *ingest = made;
    return MC_OK;
}

const mc_ingest_outline *
mc_ingest_outlined(const mc_ingest *ingest)
{
    return &ingest->outline;
}

const mc_ingest_counts *
mc_ingest_counted(const mc_ingest *ingest)
{
    return &ingest->counts;
}
