/* What both forms of WMTS requests share. */
#include <string.h>

#include "service/wmts/wmts.h"

bool
mc_wmts_is_kvp(const mc_call *call)
{
    if (mc_param(call, "SERVICE") != NULL)
        return true;
    return *call->path == '\0' && mc_param(call, "REQUEST") != NULL;
}

/* Tiles are served with the type that their bytes tell. */
static const char *
coding_type(const mc_format *format)
{
    const char *type = mc_coding_mime(mc_format_coding(format));
    return type == NULL ? "image/png" : type;
}

static void
add_first_formats(apr_array_header_t *formats, const mc_format *format)
{
    if (format != NULL && format->mime != NULL) {
        /* Tiles are served with the type that their bytes tell: no word of "image/png; mode=8bit" then. */
        APR_ARRAY_PUSH(formats, const char *) = format->type == MC_FORMAT_PNG ? "image/png" : format->mime;
        return;
    }
    if (format != NULL && format->type == MC_FORMAT_RAW) {
        APR_ARRAY_PUSH(formats, const char *) = "application/octet-stream";
        return;
    }
    /* mixed, or as the source sent them: each tile is one or the other */
    bool mixed = format != NULL && format->type == MC_FORMAT_MIXED;
    APR_ARRAY_PUSH(formats, const char *) = mixed ? coding_type(format->transparent) : "image/png";
    APR_ARRAY_PUSH(formats, const char *) = mixed ? coding_type(format->opaque) : "image/jpeg";
}

const apr_array_header_t *
mc_wmts_formats(const mc_tileset *tileset, apr_pool_t *pool)
{
    apr_array_header_t *formats = apr_array_make(pool, 2, sizeof(const char *));
    add_first_formats(formats, tileset->format);
    for (int i = 0; i < tileset->variant_count; i++)
        APR_ARRAY_PUSH(formats, const char *) = coding_type(tileset->variants[i]->format);
    return formats;
}

/* The format's part for a media type, as tiles are served with it. */
static const mc_format *
part_of_type(const mc_format *format, const char *mime)
{
    if (format != NULL && format->type == MC_FORMAT_MIXED)
        return strcmp(mime, coding_type(format->transparent)) == 0 ? format->transparent
               : strcmp(mime, coding_type(format->opaque)) == 0    ? format->opaque
                                                                   : NULL;
    return format != NULL && mc_format_coding(format) != MC_CODING_UNKNOWN && strcmp(mime, coding_type(format)) == 0
               ? format
               : NULL;
}

const mc_format *
mc_wmts_format(const mc_tileset *tileset, const char *mime, const mc_call *call)
{
    if (!mc_tileset_is_image(tileset))
        return NULL;
    const mc_format *found = part_of_type(tileset->format, mime);
    for (int i = 0; found == NULL && i < call->config->formats->nelts; i++)
        found = part_of_type(APR_ARRAY_IDX(call->config->formats, i, const mc_format *), mime);
    return found;
}

const char *
mc_wmts_extension(const mc_tileset *tileset, const char *mime)
{
    const mc_format *format = tileset->format;
    const mc_tileset *variant = mc_tileset_variant_of_type(tileset, mime);
    if (variant != NULL)
        return mc_tileset_extension(variant);
    if (format != NULL && format->type != MC_FORMAT_MIXED)
        return mc_tileset_extension(tileset);
    return strcmp(mime, "image/jpeg") == 0 ? "jpg" : strcmp(mime, "image/webp") == 0 ? "webp" : "png";
}

const char *
mc_wmts_dimension_value(const mc_dimension *dimension, const char *text)
{
    if (text != NULL && strcmp(text, "default") == 0)
        return dimension->default_value;
    return mc_dimension_wanted(dimension, text);
}

mc_error *
mc_wmts_find_style(mc_tile_request *tile, mc_param_reader *reader)
{
    return mc_tileset_find_style(&tile->style, tile->tileset, reader->text) ? MC_OK : mc_param_refuse(reader);
}

mc_error *
mc_wmts_check_level(const mc_tile_request *tile, int z, mc_error_kind kind, apr_pool_t *pool)
{
    if (z >= tile->link->minzoom && z <= tile->link->maxzoom)
        return MC_OK;
    return mc_error_located(pool, kind, "TileMatrix", "TileMatrix %d is not one of %d to %d", z, tile->link->minzoom,
                            tile->link->maxzoom);
}

mc_error *
mc_wmts_info_request(mc_request *request, const mc_tile_request *tile, int i, int j, const char *format,
                     apr_pool_t *pool)
{
    const mc_grid *grid = tile->link->grid;
    mc_tileset *tileset = tile->tileset;
    if (i >= grid->tile_width)
        return mc_error_located(pool, MC_ERR_POINT_OUT_OF_RANGE, "I", "I %d is not one of 0 to %d", i,
                                grid->tile_width - 1);
    if (j >= grid->tile_height)
        return mc_error_located(pool, MC_ERR_POINT_OUT_OF_RANGE, "J", "J %d is not one of 0 to %d", j,
                                grid->tile_height - 1);
    mc_dimension_value *values = apr_pcalloc(pool, ((size_t)tileset->dimension_count + 1) * sizeof(*values));
    for (int d = 0; d < tileset->dimension_count; d++)
        values[d] = (mc_dimension_value){ tileset->dimensions[d]->name, tile->values[d], false };
    request->kind = MC_REQUEST_INFO;
    mc_info_question *question = apr_pcalloc(pool, sizeof(*question));
    request->u.info.questions = question;
    request->u.info.count = 1;
    question->tileset = tileset;
    question->info = (mc_info_request){
        .map = { .tileset = tileset->name,
                 .grid = grid,
                 .box = mc_grid_tile_extent(grid, tile->z, tile->x, tile->y),
                 .width = grid->tile_width,
                 .height = grid->tile_height,
                 .density = grid->density,
                 .dimension_count = tileset->dimension_count,
                 .dimensions = values },
        .x = i,
        .y = j,
        .format = format,
    };
    return MC_OK;
}
