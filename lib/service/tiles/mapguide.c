/* MapGuide Open Source tiles: /mg/S<scale>/<layers>/R<row>/C<column>/<row>_<column>.<ext> (spec 6.5). */
#include <apr_strings.h>
#include <string.h>

#include "service/service_base.h"
#include "text/text.h"

typedef struct mapguide {
    mc_service_base base;
    int rows_per_folder, columns_per_folder;
} mapguide;

static const mc_key mapguide_keys[] = {
    MC_SERVICE_KEYS(mapguide),
    MC_KEY_INT("@rows_per_folder", offsetof(mapguide, rows_per_folder),
               "Rows that a client groups into one folder; for the demo page.", .min = 1, .max = 1000000,
               .fallback = "30"),
    MC_KEY_INT("@cols_per_folder", offsetof(mapguide, columns_per_folder),
               "Columns that a client groups into one folder; for the demo page.", .min = 1, .max = 1000000,
               .fallback = "30"),
    MC_KEY_END,
};

static mc_service *
mapguide_from_config(const mc_node *node, mc_build *build)
{
    mapguide *service = apr_pcalloc(build->pool, sizeof(*service));
    return mc_service_read(&service->base, &mc_service_mapguide, node, build) ? &service->base.service : NULL;
}

static mc_error *
parse_prefixed(int *number, char letter, const char *what, const char *text, apr_pool_t *pool)
{
    if (text[0] != letter || !mc_parse_int(number, text + 1, 0, INT32_MAX))
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "%s \"%s\" is not %c and a number", what, text, letter);
    return MC_OK;
}

/* "<row>_<column>.<extension>" inside the folder. */
static mc_error *
parse_cell(int *row, int *column, const char *text, apr_pool_t *pool)
{
    const char *extension;
    const char *underscore = strchr(text, '_');
    if (underscore == NULL ||
        !mc_parse_int(row, apr_pstrndup(pool, text, (apr_size_t)(underscore - text)), 0, INT32_MAX) ||
        !mc_path_number(column, &extension, underscore + 1, pool) || extension == NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "\"%s\" is not <row>_<column>.<extension>", text);
    return MC_OK;
}

static mc_error *
mapguide_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)ctx;
    const apr_array_header_t *path = mc_path_segments(call->path, pool);
    if (path->nelts != 5)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "path \"%s\" has a wrong number of elements", call->path);
    request->kind = MC_REQUEST_TILE;
    mc_tile_stack *stack = &request->u.tile;
    int scale = 0, first_row = 0, first_column = 0, row = 0, column = 0;
    MC_TRY(parse_prefixed(&scale, 'S', "level", APR_ARRAY_IDX(path, 0, const char *), pool));
    MC_TRY(mc_layers_parse(stack, APR_ARRAY_IDX(path, 1, const char *), call, MC_ERR_NOT_FOUND, pool));
    MC_TRY(parse_prefixed(&first_row, 'R', "row", APR_ARRAY_IDX(path, 2, const char *), pool));
    MC_TRY(parse_prefixed(&first_column, 'C', "column", APR_ARRAY_IDX(path, 3, const char *), pool));
    MC_TRY(parse_cell(&row, &column, APR_ARRAY_IDX(path, 4, const char *), pool));
    int z = scale <= stack->tiles[0].link->maxzoom ? stack->tiles[0].link->maxzoom - scale : -1;
    if (z < 0)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "scale %d has no level", scale);
    if (row > INT32_MAX - first_row || column > INT32_MAX - first_column)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "the tile lies outside of its level");
    return mc_stack_place(stack, z, first_column + column, first_row + row, true, pool);
}

const mc_service_ops mc_service_mapguide = {
    "mapguide", "mg", mapguide_keys, "MapGuide Open Source tiles.", mapguide_from_config, mapguide_parse, NULL,
};
