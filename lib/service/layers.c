/* Layer names as clients write them: tilesets, dimensions in brackets, grids after '@', lists with ';'. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "service/service_base.h"
#include "text/text.h"

#define MIRROR_TILESET "mirror"
/* Of a name in the mirror modes; combined_mirror takes lists for names. */
#define MIRRORED_BYTES 2000
/* What stands in an address behind the name of a layer or a grid, and how many of them a name may hold. */
#define SEPARATORS "[@;"
#define SEPARATORS_MAX 64

/* Whether an origin could have a layer of this name. What the name would mean in a path is the caches' affair. */
static bool
may_be_mirrored(const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            return false;
    return size > 0 && size <= MIRRORED_BYTES;
}

mc_tileset *
mc_call_tileset(const mc_call *call, const char *name, apr_pool_t *pool)
{
    if (call->config->mode == MC_MODE_NORMAL) {
        mc_tileset *tileset = apr_hash_get(call->config->tilesets_by_name, name, APR_HASH_KEY_STRING);
        return tileset == NULL || tileset->master != NULL ? NULL : tileset; /* a further format is no layer */
    }
    const mc_tileset *mirror = apr_hash_get(call->config->tilesets_by_name, MIRROR_TILESET, APR_HASH_KEY_STRING);
    if (mirror == NULL || !may_be_mirrored(name))
        return NULL;
    mc_tileset *named = apr_pmemdup(pool, mirror, sizeof(*mirror));
    named->name = apr_pstrdup(pool, name);
    named->client_named = true;
    return named;
}

const char *
mc_dimension_wanted(const mc_dimension *dimension, const char *text)
{
    bool none = text == NULL || *text == '\0' || (dimension->time && strcasecmp(text, "default") == 0);
    return none ? dimension->default_value : text;
}

/* [style=name] of a tileset with palettes. */
static mc_error *
read_style_bracket(const mc_color_map **style, const char *name, const mc_tileset *tileset, apr_pool_t *pool)
{
    if (mc_tileset_find_style(style, tileset, name))
        return MC_OK;
    return mc_error_create(pool, MC_ERR_BAD_REQUEST, "layer %s has no style \"%s\"", tileset->name,
                           mc_message_text(name, 100, pool));
}

/* Reads "[dim=value]..." at *text, which is moved behind it. */
static mc_error *
parse_brackets(const char **values, const mc_color_map **style, const char **text, const mc_tileset *tileset,
               apr_pool_t *pool)
{
    const char *at = *text;
    while (*at == '[') {
        const char *end = strchr(at, ']');
        const char *equals = strchr(at, '=');
        if (end == NULL || equals == NULL || equals > end)
            return mc_error_create(pool, MC_ERR_BAD_REQUEST, "\"%s\" is not a list of [dimension=value]", at);
        const char *name = apr_pstrndup(pool, at + 1, (apr_size_t)(equals - at - 1));
        const char *value = apr_pstrndup(pool, equals + 1, (apr_size_t)(end - equals - 1));
        int index = mc_tileset_dimension(tileset, name, false);
        at = end + 1;
        if (index >= 0)
            values[index] = mc_dimension_wanted(tileset->dimensions[index], value);
        else if (strcmp(name, "style") == 0 && tileset->palette_count > 0)
            MC_TRY(read_style_bracket(style, value, tileset, pool));
        else
            return mc_error_create(pool, MC_ERR_BAD_REQUEST, "layer %s has no dimension \"%s\"", tileset->name, name);
    }
    *text = at;
    return MC_OK;
}

bool
mc_layers_use_separators(const mc_config *config)
{
    for (int i = 0; i < config->tilesets->nelts; i++)
        if (strpbrk(APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *)->name, ";@[") != NULL)
            return true;
    return false;
}

/* The bytes of the tileset's name at the beginning of a layer key. Where names have separators, the longest that is
 * one; else up to the first separator. */
static size_t
tileset_name_size(const char *text, const char *stops, const mc_call *call)
{
    size_t first = strcspn(text, stops), found = first;
    if (!call->config->names_use_separators || call->config->mode != MC_MODE_NORMAL)
        return first;
    for (size_t size = first, tried = 0; tried < SEPARATORS_MAX; tried++) {
        if (apr_hash_get(call->config->tilesets_by_name, text, (apr_ssize_t)size) != NULL)
            found = size;
        if (text[size] == '\0')
            break;
        size += 1 + strcspn(text + size + 1, SEPARATORS);
    }
    return found;
}

/* The same of a grid's name behind '@'. */
static size_t
grid_name_size(const char *text, const char *stops, const mc_tileset *tileset)
{
    size_t found = 0;
    for (int i = 0; i < tileset->link_count + tileset->dense_link_count; i++) {
        const mc_grid_link *link =
            i < tileset->link_count ? tileset->links[i] : tileset->dense_links[i - tileset->link_count];
        const char *name = link->grid->name;
        size_t size = strlen(name);
        if (size > found && strncmp(text, name, size) == 0 && (text[size] == '\0' || strchr(SEPARATORS, text[size])))
            found = size;
    }
    return found > 0 ? found : strcspn(text, stops);
}

/* Reads one key at *text, which is moved behind it: to `;` where the key is one of a list, to the end otherwise. */
static mc_error *
take_layer(mc_tile_request *tile, const char **text, bool listed, const mc_call *call, mc_error_kind kind,
           apr_pool_t *pool)
{
    const char *at = *text;
    size_t name_size = tileset_name_size(at, listed ? "[@;" : "[@", call);
    const char *name = apr_pstrndup(pool, at, name_size);
    tile->tileset = mc_call_tileset(call, name, pool);
    if (tile->tileset == NULL)
        return mc_error_create(pool, kind, "layer \"%s\" is not known", name);
    MC_TRY(mc_tileset_check_built(tile->tileset, pool));
    const char **values = mc_tileset_defaults(tile->tileset, pool);
    tile->values = values;
    tile->style = NULL;
    at += name_size;
    MC_TRY(parse_brackets(values, &tile->style, &at, tile->tileset, pool));
    const char *grid = NULL;
    if (*at == '@') { /* brackets may also follow the grid */
        size_t grid_size = grid_name_size(++at, listed ? "[;" : "[", tile->tileset);
        grid = apr_pstrndup(pool, at, grid_size);
        at += grid_size;
        MC_TRY(parse_brackets(values, &tile->style, &at, tile->tileset, pool));
    }
    if (*at != '\0' && !(listed && *at == ';'))
        return mc_error_create(pool, kind, "unexpected \"%s\" behind the dimensions of layer %s", at, name);
    tile->link = mc_tileset_link(tile->tileset, grid);
    if (tile->link == NULL && strlen(grid) == 2 && grid[1] == 'x') /* name@2x: of the first grid */
        tile->link = mc_tileset_dense_link(tile->tileset, tile->tileset->links[0], grid[0] - '0');
    if (tile->link == NULL)
        return mc_error_create(pool, kind, "layer %s has no grid \"%s\"", name, grid == NULL ? "" : grid);
    *text = at;
    return MC_OK;
}

mc_error *
mc_layer_parse(mc_tile_request *tile, const char *text, const mc_call *call, mc_error_kind kind, apr_pool_t *pool)
{
    return take_layer(tile, &text, false, call, kind, pool);
}

static mc_error *
add_stacked_layer(mc_tile_stack *stack, const char **text, bool listed, const mc_call *call, mc_error_kind kind,
                  apr_pool_t *pool)
{
    if (stack->count == MC_LAYERS_MAX)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "more than %d layers", MC_LAYERS_MAX);
    mc_tile_request *tile = &stack->tiles[stack->count];
    MC_TRY(take_layer(tile, text, listed, call, kind, pool));
    if (stack->count > 0 && tile->link->grid != stack->tiles[0].link->grid)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "layers %s and %s are not wanted on the same grid",
                               stack->tiles[0].tileset->name, tile->tileset->name);
    if (stack->count > 0 &&
        (mc_format_is_vector(tile->tileset->format) || mc_format_is_vector(stack->tiles[0].tileset->format)))
        return mc_error_create(pool, MC_ERR_BAD_REQUEST,
                               "layers %s and %s cannot be merged: vector tiles are no images",
                               stack->tiles[0].tileset->name, tile->tileset->name);
    stack->count++;
    return MC_OK;
}

mc_error *
mc_layers_parse(mc_tile_stack *stack, const char *text, const mc_call *call, mc_error_kind kind, apr_pool_t *pool)
{
    bool listed = call->config->mode != MC_MODE_COMBINED_MIRROR;
    size_t most = 1;
    for (const char *at = text; *at != '\0' && most < MC_LAYERS_MAX; at++)
        most += *at == ';';
    *stack = (mc_tile_stack){ .tiles = apr_pcalloc(pool, most * sizeof(mc_tile_request)) };
    while (*text != '\0') {
        if (listed && *text == ';')
            text++;
        else
            MC_TRY(add_stacked_layer(stack, &text, listed, call, kind, pool));
    }
    if (stack->count == 0)
        return mc_error_create(pool, kind, "no layer is named");
    const mc_format *format = stack->tiles[0].tileset->format;
    stack->format = format != NULL ? format : call->config->default_format;
    return MC_OK;
}

mc_error *
mc_stack_clip(mc_tile_stack *stack, apr_pool_t *pool)
{
    mc_error *first = MC_OK;
    int kept = 0;
    for (int i = 0; i < stack->count; i++) {
        const mc_tile_request *tile = &stack->tiles[i];
        mc_error *error = mc_grid_link_check(tile->link, tile->z, tile->x, tile->y, pool);
        if (error == MC_OK)
            stack->tiles[kept++] = *tile;
        else if (first == MC_OK)
            first = error;
    }
    if (kept == 0)
        return first;
    stack->count = kept;
    return MC_OK;
}

mc_error *
mc_stack_place(mc_tile_stack *stack, int z, int x, int row, bool from_top, apr_pool_t *pool)
{
    const mc_grid *grid = stack->tiles[0].link->grid;
    if (z < 0 || z >= grid->level_count)
        return mc_error_located(pool, MC_ERR_TILE_OUT_OF_RANGE, "TileMatrix", "level %d is not one of 0 to %d", z,
                                grid->level_count - 1);
    const mc_level *level = &grid->levels[z];
    if (row < 0 || row >= level->rows)
        return mc_error_located(pool, MC_ERR_TILE_OUT_OF_RANGE, "TileRow", "row %d of level %d is not one of 0 to %d",
                                row, z, level->rows - 1);
    if (x < 0 || x >= level->columns)
        return mc_error_located(pool, MC_ERR_TILE_OUT_OF_RANGE, "TileCol",
                                "column %d of level %d is not one of 0 to %d", x, z, level->columns - 1);
    int y = from_top ? mc_grid_flip_y(grid, z, row) : mc_grid_tms_y(grid, z, row);
    for (int i = 0; i < stack->count; i++) {
        stack->tiles[i].z = z;
        stack->tiles[i].x = x;
        stack->tiles[i].y = y;
    }
    return mc_stack_clip(stack, pool);
}

const apr_array_header_t *
mc_path_segments(const char *path, apr_pool_t *pool)
{
    apr_array_header_t *segments = apr_array_make(pool, 8, sizeof(const char *));
    char *rest = apr_pstrdup(pool, path);
    while (rest != NULL && *rest != '\0') {
        char *segment = segments->nelts < MC_SEGMENTS_MAX - 1 ? strsep(&rest, "/") : rest;
        APR_ARRAY_PUSH(segments, const char *) = segment;
        if (segments->nelts == MC_SEGMENTS_MAX)
            break;
    }
    return segments;
}

bool
mc_path_number(int *number, const char **extension, const char *text, apr_pool_t *pool)
{
    const char *dot = strchr(text, '.');
    *extension = dot != NULL ? dot + 1 : NULL;
    if (dot != NULL)
        text = apr_pstrndup(pool, text, (apr_size_t)(dot - text));
    return mc_parse_int(number, text, 0, INT32_MAX);
}
