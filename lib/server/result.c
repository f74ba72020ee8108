/* From a parsed request to its answer: a tile, a map, feature info, a document, or what another server says. */
#include <apr_strings.h>
#include <string.h>

#include "base/hash.h"
#include "mapcache/trace.h"
#include "server/server_private.h"
#include "text/text.h"

/* What a source is asked for is what the dimensions accept. */
static mc_error *
check_values(const mc_tileset *tileset, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int i = 0; i < wanted->dimension_count; i++) {
        apr_array_header_t *values;
        const char *value = wanted->dimensions[i].value;
        mc_dimension_query query = { tileset->name, wanted->grid, NULL, value };
        MC_TRY(mc_dimension_resolve(&values, tileset->dimensions[i], &query, ctx, pool));
        if (values->nelts == 0)
            return mc_error_located(pool, MC_ERR_NOT_FOUND, tileset->dimensions[i]->name,
                                    "dimension %s has nothing for \"%s\"", tileset->dimensions[i]->name,
                                    mc_message_text(value, 100, pool));
    }
    return MC_OK;
}

static mc_error *
answer_info(mc_result *result, mc_request *request, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_core_get_featureinfo");
    mc_tileset *tileset = request->u.info.tileset;
    if (tileset->source == NULL || tileset->source->ops->info == NULL)
        return mc_error_create(pool, MC_ERR_NOT_QUERYABLE, "layer %s has no feature info", tileset->name);
    MC_TRY(check_values(tileset, &request->u.info.info.map, ctx, pool));
    MC_TRY(mc_source_info(&result->data, tileset->source, &request->u.info.info, ctx, pool));
    result->mime = request->u.info.info.format;
    if (tileset->source->any_srs &&
        strcmp(result->mime, "text/plain") == 0) /* our own; else ASCII is meant (RFC 2046) */
        result->mime = "text/plain; charset=utf-8";
    return MC_OK;
}

static void
answer_document(mc_result *result, const mc_document *document, apr_pool_t *pool)
{
    if (document->location != NULL) {
        apr_table_t *headers = apr_table_make(pool, 1);
        apr_table_setn(headers, "Location", mc_header_value(document->location, pool));
        result->headers = headers;
        result->status = 302;
        return;
    }
    result->data = document->text;
    result->vary = document->vary;
    result->mime = document->mime;
    if (document->momentary)
        result->cache_control = "no-store";
    else
        result->tag = mc_hash64(document->text->data, document->text->size, 0);
}

/* A stored tile takes microseconds, unless a dimension has to ask its database. */
static bool
is_quick(const mc_tile_stack *wanted)
{
    for (int i = 0; i < wanted->count; i++)
        if (wanted->tiles[i].tileset->dimension_count > 0)
            return false;
    return true;
}

static mc_error *
answer_slowly(mc_result *result, const mc_config *config, mc_call *call, mc_request *request, uint64_t if_tag,
              mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SLOW(ctx);
    switch (request->kind) {
    case MC_REQUEST_TILE:
        return mc_map_tile(result, &request->u.tile, if_tag, ctx, pool);
    case MC_REQUEST_MAP:
        request->u.map.threaded = config->threaded_fetching;
        return mc_map_draw(result, &request->u.map, if_tag, ctx, pool);
    case MC_REQUEST_INFO:
        return answer_info(result, request, ctx, pool);
    case MC_REQUEST_FORWARD:
        return mc_server_forward(result, call, request, ctx, pool);
    case MC_REQUEST_DOCUMENT:
        break;
    }
    MC_ASSERT(!"request kind");
    return MC_OK;
}

mc_error *
mc_server_result(mc_result *result, const mc_config *config, mc_call *call, mc_request *request, uint64_t if_tag,
                 mc_ctx *ctx, apr_pool_t *pool)
{
    if (request->kind == MC_REQUEST_TILE && is_quick(&request->u.tile))
        return mc_map_tile(result, &request->u.tile, if_tag, ctx, pool);
    if (request->kind != MC_REQUEST_DOCUMENT)
        return answer_slowly(result, config, call, request, if_tag, ctx, pool);
    answer_document(result, &request->u.document, pool);
    return MC_OK;
}
