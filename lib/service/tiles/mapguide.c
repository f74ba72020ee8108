/* MapGuide Open Source tiles: /mg/S<scale>/<layers>/R<row>/C<column>/<row>_<column>.<ext>
 * (docs/reference/services.md 6.5). */
#include <apr_strings.h>
#include <string.h>

#include "service/param.h"
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
mapguide_from_config(const mc_service_ops *ops, const mc_node *node, mc_build *build)
{
    mapguide *service = apr_pcalloc(build->pool, sizeof(*service));
    return mc_service_read(&service->base, ops, node, build) ? &service->base.service : NULL;
}

typedef struct mapguide_params {
    int scale, first_row, first_column, row, column;
    const char *layers, *cell;
    mc_tile_stack stack;
} mapguide_params;

static mc_error *
read_mapguide_layers(mc_param_reader *reader)
{
    mapguide_params *params = reader->target;
    return mc_layers_parse(&params->stack, params->layers, reader->call, reader->row->kind, reader->pool);
}

/* "<row>_<column>.<extension>" inside the folder. */
static mc_error *
read_cell(mc_param_reader *reader)
{
    mapguide_params *params = reader->target;
    const char *text = params->cell, *extension, *underscore = strchr(text, '_');
    if (underscore == NULL ||
        !mc_parse_int(&params->row, apr_pstrndup(reader->pool, text, (apr_size_t)(underscore - text)), 0, INT32_MAX) ||
        !mc_path_number(&params->column, &extension, underscore + 1, reader->pool) || extension == NULL)
        return mc_param_refuse(reader);
    return MC_OK;
}

static const mc_param_row mapguide_tile_params[] = {
    MC_PARAM_LETTERED("scale", offsetof(mapguide_params, scale), "S",
                      "The number of levels below this one, behind the letter S.", .flags = MC_PARAM_REQUIRED,
                      .kind = MC_ERR_BAD_REQUEST, .refusal = "level \"{value}\" is not S and a number"),
    MC_PARAM_TEXT("layers", offsetof(mapguide_params, layers), "Layers with `;` between them, each as name@grid.",
                  .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND),
    MC_PARAM_STEP(read_mapguide_layers),
    MC_PARAM_LETTERED("row", offsetof(mapguide_params, first_row), "R",
                      "The first row of the folder, behind the letter R.", .flags = MC_PARAM_REQUIRED,
                      .kind = MC_ERR_BAD_REQUEST, .refusal = "row \"{value}\" is not R and a number"),
    MC_PARAM_LETTERED("column", offsetof(mapguide_params, first_column), "C",
                      "The first column of the folder, behind the letter C.", .flags = MC_PARAM_REQUIRED,
                      .kind = MC_ERR_BAD_REQUEST, .refusal = "column \"{value}\" is not C and a number"),
    MC_PARAM_TEXT("cell", offsetof(mapguide_params, cell),
                  "Row and column in the folder, 0 at the upper left, as <row>_<column>.<extension>.",
                  .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,
                  .refusal = "\"{value}\" is not <row>_<column>.<extension>"),
    MC_PARAM_STEP(read_cell),
    MC_PARAM_END,
};

static const mc_operation mapguide_operations[] = {
    { "tiles",
      "/mg/<scale>/<layers>/<row>/<column>/<cell>",
      { mapguide_tile_params },
      { { "/mg/S16/world@GoogleMapsCompatible/R0/C0/1_1.png", 200, "image/png",
          "The tile that is 2/1/1 of gmaps: level 2 is the 16th from below.", NULL } } },
    { 0 },
};

static mc_error *
mapguide_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)ctx;
    const apr_array_header_t *path = mc_path_segments(call->path, pool);
    mapguide_params params = { 0 };
    int next = 0;
    if (path->nelts != 5)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "path \"%s\" has a wrong number of elements", call->path);
    request->kind = MC_REQUEST_TILE;
    MC_TRY(mc_params_read_path(&params, mapguide_tile_params, call, path, &next, pool));
    const mc_grid_link *link = params.stack.tiles[0].link;
    int z = params.scale <= link->maxzoom ? link->maxzoom - params.scale : -1;
    if (z < 0)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "scale %d has no level", params.scale);
    if (params.row > INT32_MAX - params.first_row || params.column > INT32_MAX - params.first_column)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "the tile lies outside of its level");
    request->u.tile = params.stack;
    return mc_stack_place(&request->u.tile, z, params.first_column + params.column, params.first_row + params.row, true,
                          pool);
}

const mc_service_ops mc_service_mapguide = {
    MC_SERVICE(mapguide, "mg", mapguide_keys, mapguide_from_config, "MapGuide Open Source tiles."),
};
