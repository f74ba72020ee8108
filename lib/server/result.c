/* From a parsed request to its answer: a tile, a map, feature info, a document, or what another server says. */
#include <apr_strings.h>

#include "base/admission.h"
#include "base/hash.h"
#include "base/semaphore.h"
#include "mapcache/trace.h"
#include "server/server_private.h"
#include "service/info_join.h"
#include "text/text.h"

static mc_error *
answer_info(mc_result *result, mc_request *request, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_core_get_featureinfo");
    const mc_info_question *questions = request->u.info.questions;
    int count = request->u.info.count;
    mc_buf **parts = apr_pcalloc(pool, sizeof(*parts) * (size_t)count);
    for (int i = 0; i < count; i++) {
        mc_tileset *tileset = questions[i].tileset;
        if (tileset->source == NULL || tileset->source->ops->info == NULL)
            return mc_error_create(pool, MC_ERR_NOT_QUERYABLE, "layer %s has no feature info", tileset->name);
        MC_TRY(mc_source_info(&parts[i], tileset->source, &questions[i].info, ctx, pool));
    }
    result->mime = questions[0].info.format;
    result->data = parts[0];
    return count == 1 ? MC_OK : mc_info_join(&result->data, parts, count, questions[0].info.format, pool);
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
    result->policy = document->policy;
    if (document->momentary)
        result->cache_control = "no-store";
    else
        result->tag = document->tag != 0 ? document->tag : mc_hash64(document->text->data, document->text->size, 0);
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
    if (request->kind == MC_REQUEST_MAP && mc_map_is_drawn(&request->u.map))
        MC_TRY(mc_semaphore_expect(ctx->process->drawing, ctx, pool));
    if (request->kind == MC_REQUEST_INFO || request->kind == MC_REQUEST_FORWARD)
        MC_TRY(mc_admission_enter(ctx, pool)); /* tiles and maps: where something has to be drawn or asked for */
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
    MC_ASSERT(false); /* a document is answered without a result */
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
