/* See drawn.h. */
#include "seed/drawn.h"

#include <math.h>

#include "source/tiles/mosaic.h"
#include "vector/crs/projection.h"

/* The map of a whole metatile. */
static mc_render
describe_block_map(const mc_tile_request *first, const mc_metatile *block)
{
    const mc_grid *grid = first->link->grid;
    const mc_tile_range range = { block->x, block->y, block->x + block->columns, block->y + block->rows };
    return (mc_render){ .tileset = first->tileset->name,
                        .grid = grid,
                        .box = mc_grid_range_extent(grid, first->z, &range),
                        .width = block->columns * grid->tile_width,
                        .height = block->rows * grid->tile_height };
}

static mc_mosaic_supply
describe_stored_supply(const mc_seed_task *task)
{
    const mc_grid_link *link = task->drawn_link;
    return (mc_mosaic_supply){ .source = task->drawn_from->name,
                               .grid = link->grid,
                               .tile_width = link->grid->tile_width,
                               .tile_height = link->grid->tile_height,
                               .first = link->minzoom,
                               .last = link->maxzoom < link->grid->level_count ? link->maxzoom
                                                                               : link->grid->level_count - 1,
                               .limit = &link->extent };
}

/* The stored tiles of the mosaic, drawn. *pixels stays NULL where none is stored. */
static mc_error *
draw_stored_mosaic(mc_pixels **pixels, const mc_mosaic *mosaic, const mc_seed_task *task, mc_ctx *ctx)
{
    const int columns = mosaic->range.maxx - mosaic->range.minx;
    const int count = columns * (mosaic->range.maxy - mosaic->range.miny);
    mc_tile_request *requests = apr_palloc(ctx->pool, sizeof(*requests) * (size_t)count);
    mc_tile **tiles = apr_pcalloc(ctx->pool, sizeof(mc_tile *) * (size_t)count);
    for (int i = 0; i < count; i++)
        requests[i] = (mc_tile_request){ task->drawn_from,
                                         task->drawn_link,
                                         mosaic->z,
                                         mc_mosaic_column(mosaic, mosaic->range.minx + i % columns),
                                         mosaic->range.miny + i / columns,
                                         task->values,
                                         NULL };
    MC_TRY(mc_tileset_stored_all(tiles, requests, count, ctx, ctx->pool));
    for (int i = 0; i < count; i++) {
        if (tiles[i] == NULL || tiles[i]->no_data)
            continue;
        if (*pixels == NULL) {
            MC_TRY(mc_pixels_create(pixels, mosaic->width, mosaic->height, true, ctx->pool));
            mc_pixels_attach(*pixels, ctx->pool);
        }
        const double shift = mc_mosaic_shift(mosaic, requests[i].x, requests[i].y);
        mc_extent extent = mc_grid_tile_extent(mosaic->supply->grid, mosaic->z, requests[i].x, requests[i].y);
        extent.minx += shift;
        extent.maxx += shift;
        MC_TRY(mc_mosaic_draw(*pixels, mosaic, tiles[i]->data, &extent, &extent, ctx, ctx->pool));
    }
    return MC_OK;
}

/* One tile out of the map of its block; *tile stays NULL where it shows nothing. */
static mc_error *
cut_drawn_tile(mc_tile **tile, const mc_tile_request *wanted, const mc_pixels *map, const mc_render *about,
               const mc_seed_task *task, mc_ctx *ctx)
{
    const mc_grid *grid = about->grid;
    const double resolution = grid->levels[wanted->z].resolution;
    const mc_extent box = mc_grid_tile_extent(grid, wanted->z, wanted->x, wanted->y);
    const int left = (int)lround((box.minx - about->box.minx) / resolution);
    const int top = (int)lround((about->box.maxy - box.maxy) / resolution);
    mc_pixels part;
    uint8_t bgra[4];
    if (!mc_pixels_part(&part, map, left, top, grid->tile_width, grid->tile_height))
        return mc_error_create(ctx->pool, MC_ERR_IO, "a tile is not part of its block");
    const bool blank = mc_pixels_uniform(&part, bgra);
    if (blank && bgra[3] == 0)
        return MC_OK;
    *tile = apr_pcalloc(ctx->pool, sizeof(**tile));
    MC_TRY(mc_format_encode(&(*tile)->data, task->target->format, &part, MC_FOR_STORE, ctx, ctx->pool));
    (*tile)->coding = mc_image_sniff((*tile)->data->data, (*tile)->data->size);
    (*tile)->blank = blank;
    for (int i = 0; i < 4 && blank; i++)
        (*tile)->bgra[i] = bgra[i];
    return MC_OK;
}

mc_error *
mc_seed_draw_tiles(mc_tile **tiles, const mc_tile_request *wanted, int count, const mc_seed_task *task, mc_ctx *ctx)
{
    const mc_mosaic_supply supply = describe_stored_supply(task);
    const mc_metatile block = mc_tileset_metatile(task->tileset, task->link->grid, wanted->z, wanted->x, wanted->y);
    const mc_render about = describe_block_map(wanted, &block);
    mc_mosaic mosaic;
    mc_pixels *pixels = NULL, *map;
    MC_TRY(mc_mosaic_plan(&mosaic, &supply, &about, ctx->pool));
    if (mosaic.range.minx < mosaic.range.maxx)
        MC_TRY(draw_stored_mosaic(&pixels, &mosaic, task, ctx));
    if (pixels == NULL)
        return MC_OK;
    MC_TRY(mc_mosaic_finish(&map, pixels, &mosaic, &about, ctx, ctx->pool));
    for (int i = 0; i < count; i++)
        MC_TRY(cut_drawn_tile(&tiles[i], &wanted[i], map, &about, task, ctx));
    return MC_OK;
}

const mc_tile_range *
mc_seed_drawn_limits(const mc_grid_link *link, const mc_grid_link *from, apr_pool_t *pool)
{
    mc_projection *projection;
    mc_extent box = from->extent;
    mc_error *error = mc_projection_open(&projection, from->grid->srs, link->grid->srs, pool);
    if (error != MC_OK || (projection != NULL && !mc_projection_box(&box, projection, false))) {
        mc_error_ignore(error); /* drawing the first block says it */
        return link->limits;
    }
    mc_tile_range *limits = apr_palloc(pool, sizeof(*limits) * (size_t)link->grid->level_count);
    const mc_tile_range *touched = mc_seed_limits(link->grid, &box, pool);
    for (int z = 0; z < link->grid->level_count; z++)
        limits[z] = mc_tile_range_intersection(&touched[z], &link->limits[z]);
    return limits;
}
