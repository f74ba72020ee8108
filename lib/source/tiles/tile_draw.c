/* Maps from the tiles of a server: bytes as they are where the map is one tile, else pixels of a mosaic. */
#include <apr_strings.h>
#include <string.h>

#include "compress/packing.h"
#include "mapcache/trace.h"
#include "source/tiles/tile_origin.h"
#include "vector/mvt/mvt.h"

/* So many levels above a tile that is absent are looked into at most. */
enum { CLIMB = 8 };

/* A map while it is made. */
typedef struct tile_map {
    const mc_tile_origin *origin;
    const mc_render *wanted;
    mc_mosaic_supply supply;
    mc_mosaic mosaic;
    mc_origin_tile *tiles; /* of the mosaic, by rows of the grid */
    int count;
    mc_pixels *pixels;
    apr_pool_t *pool;
} tile_map;

static mc_error *
describe_supply(tile_map *map)
{
    const mc_tile_origin *origin = map->origin;
    const mc_grid *grid = origin->grid != NULL ? origin->grid : map->wanted->grid;
    int density = grid->density > 1 ? grid->density : 1; /* the server knows nothing of our variants */
    int last = grid->level_count - 1;
    map->supply = (mc_mosaic_supply){
        .source = origin->base.source.name,
        .grid = grid,
        .tile_width = origin->tile_size > 0 ? origin->tile_size : grid->tile_width / density,
        .tile_height = origin->tile_size > 0 ? origin->tile_size : grid->tile_height / density,
        .first = origin->minzoom,
        .last = origin->maxzoom >= 0 && origin->maxzoom < last ? origin->maxzoom : last,
        .limit = origin->extent_numbers.count == 4 ? &origin->extent : NULL,
    };
    if (map->supply.first > map->supply.last)
        return mc_error_create(map->pool, MC_ERR_CONFIG, "source \"%s\": grid \"%s\" has no level %d",
                               origin->base.source.name, grid->name, origin->minzoom);
    return MC_OK;
}

static mc_error *
absent_error(const tile_map *map)
{
    return mc_error_create(map->pool, MC_ERR_NOT_FOUND, "source \"%s\" has no tile there", map->supply.source);
}

static void
list_mosaic_tiles(tile_map *map)
{
    const mc_tile_range *range = &map->mosaic.range;
    map->count = (range->maxx - range->minx) * (range->maxy - range->miny);
    map->tiles = apr_pcalloc(map->pool, sizeof(*map->tiles) * (size_t)(map->count + 1));
    mc_origin_tile *tile = map->tiles;
    for (int y = range->miny; y < range->maxy; y++)
        for (int x = range->minx; x < range->maxx; x++, tile++)
            *tile = (mc_origin_tile){ .z = map->mosaic.z, .x = mc_mosaic_column(&map->mosaic, x), .y = y };
}

/* Draws a tile, or of a tile of a level above the part where `place`, a tile of the mosaic, is. */
static mc_error *
draw_origin_tile(tile_map *map, const mc_origin_tile *tile, const mc_origin_tile *place, mc_ctx *ctx)
{
    double shift = mc_mosaic_shift(&map->mosaic, place->x, place->y);
    mc_extent extent = mc_grid_tile_extent(map->supply.grid, tile->z, tile->x, tile->y);
    mc_extent clip = mc_grid_tile_extent(map->supply.grid, place->z, place->x, place->y);
    extent.minx += shift;
    extent.maxx += shift;
    clip.minx += shift;
    clip.maxx += shift;
    return mc_mosaic_draw(map->pixels, &map->mosaic, tile->body, &extent, &clip, ctx, map->pool);
}

/* The tile of a level above among those that are listed, which is added where it is not there. */
static void
add_parent(apr_array_header_t *parents, int z, int x, int y)
{
    for (int i = 0; i < parents->nelts; i++) {
        const mc_origin_tile *known = &APR_ARRAY_IDX(parents, i, mc_origin_tile);
        if (known->x == x && known->y == y)
            return;
    }
    APR_ARRAY_PUSH(parents, mc_origin_tile) = (mc_origin_tile){ .z = z, .x = x, .y = y };
}

/* Draws a missing tile from those above it that are there; whether there was one. */
static mc_error *
draw_from_parents(bool *drawn, tile_map *map, const mc_origin_tile *child, const mc_tile_range *range,
                  const apr_array_header_t *parents, mc_ctx *ctx)
{
    *drawn = false;
    for (int i = 0; i < parents->nelts; i++) {
        const mc_origin_tile *parent = &APR_ARRAY_IDX(parents, i, mc_origin_tile);
        if (parent->body == NULL || parent->x < range->minx || parent->x >= range->maxx || parent->y < range->miny ||
            parent->y >= range->maxy)
            continue;
        MC_TRY(draw_origin_tile(map, parent, child, ctx));
        *drawn = true;
    }
    return MC_OK;
}

/* One level up for all that is missing. The missing tiles that stay so come to the front of `missing`. */
static mc_error *
climb_level(const mc_origin_tile **missing, int *count, tile_map *map, int z, mc_ctx *ctx)
{
    apr_array_header_t *parents = apr_array_make(map->pool, 16, sizeof(mc_origin_tile));
    mc_tile_range *ranges = apr_pcalloc(map->pool, sizeof(*ranges) * (size_t)*count);
    for (int i = 0; i < *count; i++) {
        mc_extent extent = mc_grid_tile_extent(map->supply.grid, missing[i]->z, missing[i]->x, missing[i]->y);
        if (!mc_mosaic_tiles_of(&ranges[i], &map->supply, &extent, z, map->pool))
            continue;
        for (int y = ranges[i].miny; y < ranges[i].maxy; y++)
            for (int x = ranges[i].minx; x < ranges[i].maxx; x++)
                add_parent(parents, z, x, y);
    }
    MC_TRY(mc_tile_origin_fetch((mc_origin_tile *)(void *)parents->elts, parents->nelts, map->origin, map->supply.grid,
                                map->wanted, ctx, map->pool));
    int left = 0;
    for (int i = 0; i < *count; i++) {
        bool drawn;
        MC_TRY(draw_from_parents(&drawn, map, missing[i], &ranges[i], parents, ctx));
        if (!drawn)
            missing[left++] = missing[i];
    }
    *count = left;
    return MC_OK;
}

static mc_error *
fill_missing_tiles(tile_map *map, int count, mc_ctx *ctx)
{
    const mc_origin_tile **missing = apr_pcalloc(map->pool, sizeof(*missing) * (size_t)count);
    int left = 0;
    for (int i = 0; i < map->count; i++)
        if (map->tiles[i].body == NULL)
            missing[left++] = &map->tiles[i];
    for (int z = map->mosaic.z - 1; left > 0 && z >= map->supply.first && z >= map->mosaic.z - CLIMB; z--)
        MC_TRY(climb_level(missing, &left, map, z, ctx));
    return MC_OK;
}

static int
count_missing(const tile_map *map)
{
    int missing = 0;
    for (int i = 0; i < map->count; i++)
        missing += map->tiles[i].body == NULL;
    return missing;
}

static mc_error *
draw_tile_map(mc_rendered *rendered, tile_map *map, mc_ctx *ctx)
{
    int missing = count_missing(map);
    bool overzooms = map->origin->absent == MC_ABSENT_OVERZOOM;
    if (map->count > 0 && (missing < map->count || overzooms)) {
        MC_TRY(mc_pixels_create(&map->pixels, map->mosaic.width, map->mosaic.height, true, map->pool));
        mc_pixels_attach(map->pixels, map->pool);
    }
    for (int i = 0; i < map->count; i++)
        if (map->tiles[i].body != NULL)
            MC_TRY(draw_origin_tile(map, &map->tiles[i], &map->tiles[i], ctx));
    if (missing > 0 && overzooms)
        MC_TRY(fill_missing_tiles(map, missing, ctx));
    return mc_mosaic_finish(&rendered->pixels, map->pixels, &map->mosaic, map->wanted, ctx, map->pool);
}

/* Vector tiles begin with a layer (Mapbox Vector Tile Specification 2.1, 4.1); an empty one has no bytes. */
static mc_error *
zip_vector_tile(mc_buf **zipped, const mc_buf *body, const tile_map *map)
{
    if (body == NULL || body->size == 0)
        return mc_mvt_empty(zipped, map->pool);
    mc_buf *plain;
    *zipped = NULL;
    mc_packing packed = mc_packing_of(body->data, body->size);
    if (packed != MC_NOT_PACKED) {
        mc_error *error = mc_unpack(&plain, body->data, body->size, packed, 256 << 20, map->pool);
        if (error != MC_OK)
            return mc_error_wrap(map->pool, error, MC_ERR_UPSTREAM, "source \"%s\": a vector tile cannot be expanded",
                                 map->supply.source);
        if (plain->size == 0)
            return mc_mvt_empty(zipped, map->pool);
        body = plain;
    }
    if (((const uint8_t *)body->data)[0] != 0x1a)
        return mc_error_create(map->pool, MC_ERR_UPSTREAM,
                               "source \"%s\" answered with something that is no vector tile", map->supply.source);
    const mc_mvt_options *options = map->wanted->vector_tile;
    return mc_pack(zipped, body->data, body->size, (mc_packing)options->encoding, (mc_gzip_level)options->compression,
                   map->pool);
}

/* The place of a tile of the mosaic in the block that is wanted, by rows from the upper left tile; -1: none. */
static int
place_in_block(const tile_map *map, const mc_origin_tile *tile, int columns, int rows)
{
    int left, top;
    mc_mosaic_slot(&left, &top, &map->mosaic, tile->x, tile->y);
    left -= map->mosaic.left;
    top -= map->mosaic.top;
    int column = left / map->supply.tile_width, row = top / map->supply.tile_height;
    if (column * map->supply.tile_width != left || row * map->supply.tile_height != top || column < 0 ||
        column >= columns || row < 0 || row >= rows)
        return -1;
    return row * columns + column;
}

/* One by one, as vector tiles are not drawn. Empty where the server is not asked. */
static mc_error *
hand_on_vector_tiles(mc_rendered *rendered, tile_map *map)
{
    int columns = map->wanted->width / map->supply.tile_width, rows = map->wanted->height / map->supply.tile_height;
    bool fits = columns * map->supply.tile_width == map->wanted->width &&
                rows * map->supply.tile_height == map->wanted->height && columns > 0 && rows > 0 &&
                (map->count == 0 || map->mosaic.exact) && map->origin->absent != MC_ABSENT_OVERZOOM;
    rendered->tiles = apr_pcalloc(map->pool, sizeof(mc_buf *) * (size_t)(fits ? columns * rows : 1));
    for (int i = 0; i < map->count && fits; i++) {
        int at = place_in_block(map, &map->tiles[i], columns, rows);
        fits = at >= 0;
        if (fits)
            MC_TRY(zip_vector_tile(&rendered->tiles[at], map->tiles[i].body, map));
    }
    if (!fits)
        return mc_error_create(map->pool, MC_ERR_CONFIG,
                               "source \"%s\": vector tiles are handed on as they are: the server's grid and tile size "
                               "must be those of the tileset, and <absent> error or empty",
                               map->supply.source);
    for (int i = 0; i < columns * rows; i++)
        if (rendered->tiles[i] == NULL)
            MC_TRY(mc_mvt_empty(&rendered->tiles[i], map->pool));
    rendered->data = rendered->tiles[0];
    return MC_OK;
}

/* The bytes of the one tile, whatever it is where RAW is wanted. */
static mc_error *
hand_on_tile(mc_rendered *rendered, tile_map *map, mc_ctx *ctx)
{
    int width = 0, height = 0;
    const mc_buf *body = map->tiles[0].body;
    if (!map->wanted->raw && mc_image_sniff(body->data, body->size) != MC_CODING_UNKNOWN &&
        (mc_image_size(&width, &height, body->data, body->size, map->pool) != MC_OK || width != map->wanted->width ||
         height != map->wanted->height))
        return draw_tile_map(rendered, map, ctx);
    rendered->data = map->tiles[0].body;
    return MC_OK;
}

static mc_error *
finish_tile_map(mc_rendered *rendered, tile_map *map, mc_ctx *ctx)
{
    if (map->wanted->vector_tile != NULL)
        return hand_on_vector_tiles(rendered, map);
    bool one = map->count == 1 && mc_mosaic_is_one_tile(&map->mosaic, map->wanted);
    if (one && map->tiles[0].body != NULL)
        return hand_on_tile(rendered, map, ctx);
    if (map->wanted->raw)
        return one || map->count == 0
                   ? absent_error(map)
                   : mc_error_create(map->pool, MC_ERR_CONFIG,
                                     "source \"%s\": tiles that are not decoded are handed on as they are: the "
                                     "server's grid and tile size must be those of the tileset",
                                     map->supply.source);
    return draw_tile_map(rendered, map, ctx);
}

/* The tiles that the map needs; *absent: the levels that the server has are too coarse for it, or too fine. */
static mc_error *
plan_tile_map(bool *absent, tile_map *map)
{
    const bool vector = map->wanted->vector_tile != NULL;
    mc_error *error = mc_mosaic_plan(&map->mosaic, &map->supply, map->wanted, map->pool);
    const bool too_many = error != MC_OK && error->kind == MC_ERR_LIMIT && map->mosaic.coarser;
    if (error != MC_OK && !too_many)
        return error;
    mc_error_ignore(error);
    *absent = too_many || map->mosaic.beyond || (vector && map->mosaic.coarser);
    if (*absent && (!map->mosaic.beyond || map->origin->absent == MC_ABSENT_EMPTY))
        map->mosaic.range = (mc_tile_range){ 0 };
    return MC_OK;
}

mc_error *
mc_tile_origin_render(mc_rendered *rendered, mc_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    tile_map map = { .origin = (const mc_tile_origin *)source, .wanted = wanted, .pool = pool };
    bool absent, strict = map.origin->absent == MC_ABSENT_ERROR;
    MC_TRY(describe_supply(&map));
    MC_TRY(plan_tile_map(&absent, &map));
    if (absent && strict)
        return absent_error(&map);
    list_mosaic_tiles(&map);
    if (map.count > 0)
        MC_TRY(mc_tile_origin_fetch(map.tiles, map.count, map.origin, map.supply.grid, wanted, ctx, pool));
    if (strict && count_missing(&map) > 0)
        return absent_error(&map);
    return finish_tile_map(rendered, &map, ctx);
}

/* Whether the upper left tile of a level is one of the server, or none is asked for. */
static bool
is_level_handed_on(tile_map map, const mc_grid *grid, int z)
{
    bool absent;
    mc_render wanted = { .grid = grid,
                         .box = mc_grid_tile_extent(grid, z, 0, grid->levels[z].rows - 1),
                         .width = grid->tile_width,
                         .height = grid->tile_height };
    map.wanted = &wanted;
    map.mosaic = (mc_mosaic){ 0 };
    mc_error *error = plan_tile_map(&absent, &map);
    if (error != MC_OK) {
        mc_error_ignore(error);
        return false;
    }
    return absent || map.mosaic.coarser || map.mosaic.range.minx >= map.mosaic.range.maxx ||
           mc_mosaic_is_one_tile(&map.mosaic, &wanted);
}

const char *
mc_tile_origin_no_vector_tiles(mc_source *source, const mc_grid *grid, mc_build *build)
{
    mc_tile_origin origin = *(const mc_tile_origin *)source; /* which is not connected yet */
    tile_map map = { .origin = &origin, .pool = build->pool };
    mc_render any = { .grid = grid };
    if (origin.absent == MC_ABSENT_OVERZOOM)
        return "its <absent> is overzoom, which is for images: error and empty are for vector tiles";
    if (origin.grid_name != NULL)
        origin.grid = apr_hash_get(build->grids, origin.grid_name, APR_HASH_KEY_STRING);
    if (origin.grid_name != NULL && origin.grid == NULL)
        return NULL; /* told when it is connected */
    map.wanted = &any;
    mc_error *error = describe_supply(&map);
    if (error != MC_OK)
        return error->message;
    map.supply.limit = NULL;
    for (int z = 0; z < grid->level_count; z++)
        if (!is_level_handed_on(map, grid, z))
            return apr_psprintf(build->pool,
                                "the server's tiles are handed on as they are, and level %d of grid \"%s\" has others: "
                                "<grid> and <tile_size> of the source have to be those of the tileset",
                                z, grid->name);
    return NULL;
}
