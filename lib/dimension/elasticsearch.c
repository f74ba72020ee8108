/*
 * Dimensions whose values an Elasticsearch index knows (docs/reference/configuration.md 7.4). A query is a JSON text
 * that is posted; values take the place of their names in it, escaped so that they stay inside the JSON string that the
 * name stands in.
 */
#include <apr_strings.h>
#include <float.h>
#include <string.h>

#include "dimension/placeholders.h"
#include "source/http_block.h"
#include "text/json.h"
#include "text/text.h"

/* Bytes of an answer. */
#define ANSWER_MAX (16 << 20)

typedef struct elasticsearch_config {
    mc_query_config query; /* first: the rows of MC_QUERY_KEYS count from here */
    const mc_node *http;
    const char *validate_response, *list_response;
} elasticsearch_config;

typedef struct elasticsearch_dimension {
    mc_query_dimension query; /* first */
    mc_http_block *http;
    mc_json_path paths[MC_QUERY_KINDS];
} elasticsearch_dimension;

static const mc_key elasticsearch_keys[] = {
    MC_QUERY_KEYS,
    MC_KEY_TREE("http", offsetof(elasticsearch_config, http), mc_http_block_keys,
                "The search address of the index, which queries are posted to.", .flags = MC_KEY_REQUIRED),
    MC_KEY_TEXT(
        "validate_response", offsetof(elasticsearch_config, validate_response),
        "Where the values are in the answer to validate_query: a JSON list of members and indices, e.g. [\"hits\", "
        "\"hits\", \"_id\"]. A member of a list is that member of each of its elements.",
        .flags = MC_KEY_REQUIRED),
    MC_KEY_TEXT("list_response", offsetof(elasticsearch_config, list_response), "The same for list_query.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};

/* 15 decimals and an exponent, as MapCache writes them; zero, too. */
static const char *
elastic_coordinate_text(double value, apr_pool_t *pool)
{
    if (value == 0)
        return "0.000000000000000e-01";
    /* 15 decimals round the greatest number up to one that is none. */
    if (value == DBL_MAX || value == -DBL_MAX)
        return value > 0 ? "1.797693134862315e+308" : "-1.797693134862315e+308";
    return mc_double_text('e', 15, value, pool);
}

static const char *
escape_or_empty(const char *text, apr_pool_t *pool)
{
    return text == NULL ? "" : mc_json_escape(text, pool);
}

static const char *
fill_elasticsearch_query(const char *query, const mc_query_binds *binds, apr_pool_t *pool)
{
    const char *texts[MC_QUERY_PARAMETER_COUNT];
    mc_query_texts(texts, binds, 1000, elastic_coordinate_text, pool);
    texts[MC_QUERY_TILESET] = escape_or_empty(texts[MC_QUERY_TILESET], pool);
    texts[MC_QUERY_DIM] = escape_or_empty(texts[MC_QUERY_DIM], pool);
    texts[MC_QUERY_GRIDSRS] = escape_or_empty(texts[MC_QUERY_GRIDSRS], pool);
    return mc_placeholders_fill(query, texts, pool);
}

static mc_error *
take_row(void *baton, const char *text, size_t size)
{
    return mc_query_rows_add(baton, text, size);
}

static mc_error *
elasticsearch_error(mc_error *error, const elasticsearch_dimension *dimension, apr_pool_t *pool)
{
    const char *name = dimension->query.base.name;
    if (error->kind == MC_ERR_TIMEOUT)
        return mc_error_wrap(pool, error, MC_ERR_UNAVAILABLE, "the database of dimension %s has no answer in time",
                             name);
    return mc_error_wrap(pool, error, error->kind, "the database of dimension %s cannot be asked", name);
}

static mc_error *
post_elasticsearch_query(mc_http_reply *reply, const elasticsearch_dimension *dimension, const char *body, mc_ctx *ctx,
                         apr_pool_t *pool)
{
    mc_http_call call = mc_http_block_call(dimension->http, dimension->http->url, ctx, pool);
    apr_table_t *headers = apr_table_copy(pool, call.headers);
    if (apr_table_get(headers, "Content-Type") == NULL)
        apr_table_setn(headers, "Content-Type", "application/json");
    call.headers = headers;
    call.method = "POST";
    call.body = body;
    call.body_size = strlen(body);
    call.max_response = ANSWER_MAX;
    MC_TRY(mc_http_send(reply, ctx->process == NULL ? NULL : ctx->process->http, &call, ctx, pool));
    if (reply->status >= 200 && reply->status < 300)
        return MC_OK;
    mc_error *said =
        mc_error_create(pool, MC_ERR_UPSTREAM, "%s",
                        mc_message_text(apr_pstrmemdup(pool, (const char *)reply->body->data,
                                                       reply->body->size < 1000 ? reply->body->size : 1000),
                                        1000, pool));
    bool busy = reply->status == 429 || reply->status == 503;
    return mc_error_wrap(pool, said, busy ? MC_ERR_UNAVAILABLE : MC_ERR_UPSTREAM, "the origin's status is %d",
                         reply->status);
}

static mc_error *
query_elasticsearch_once(const elasticsearch_dimension *dimension, const mc_query_batch *batch, int i, mc_ctx *ctx,
                         apr_pool_t *pool)
{
    mc_http_reply reply;
    mc_error *error = post_elasticsearch_query(
        &reply, dimension, fill_elasticsearch_query(batch->statement->text, &batch->binds[i], pool), ctx, pool);
    if (error == MC_OK)
        error = mc_json_walk((const char *)reply.body->data, reply.body->size, &dimension->paths[batch->kind], take_row,
                             batch->rows[i], pool);
    /* Too many values are the dimension's own word. */
    return error == MC_OK || error->kind == MC_ERR_LIMIT ? error : elasticsearch_error(error, dimension, pool);
}

static mc_error *
elasticsearch_ask(mc_query_dimension *base, mc_query_batch *batch, mc_ctx *ctx, apr_pool_t *pool)
{
    const elasticsearch_dimension *dimension = (const elasticsearch_dimension *)base;
    for (int i = 0; i < batch->count; i++) {
        apr_pool_t *scratch; /* answers are large */
        apr_pool_create(&scratch, pool);
        mc_error *error = query_elasticsearch_once(dimension, batch, i, ctx, scratch);
        error = mc_error_copy(error, pool);
        apr_pool_destroy(scratch);
        MC_TRY(error);
    }
    return MC_OK;
}

static bool
read_elasticsearch_path(mc_json_path *path, const char *key, const char *text, const mc_node *node, mc_build *build)
{
    mc_error *error = mc_json_path_parse(path, text, build->pool);
    if (error == MC_OK)
        return true;
    bool lacking = error->kind == MC_ERR_UNAVAILABLE;
    mc_complain(build->diagnostics, lacking ? MC_NOT_BUILT : MC_REFUSED, mc_node_child(node, key), "<%s> %s: %s", key,
                lacking ? "cannot be read" : "is of no use", mc_error_chain(error, build->pool));
    return false;
}

static mc_dimension *
elasticsearch_from_config(const mc_node *node, mc_build *build)
{
    elasticsearch_config config = { 0 };
    elasticsearch_dimension *dimension =
        mc_dimension_create(sizeof(*dimension), &config, elasticsearch_keys, node, build);
    if (dimension == NULL)
        return NULL;
    dimension->http = mc_http_block_from_config(config.http, build);
    if (dimension->http == NULL ||
        !read_elasticsearch_path(&dimension->paths[MC_QUERY_VALIDATE], "validate_response", config.validate_response,
                                 node, build) ||
        !read_elasticsearch_path(&dimension->paths[MC_QUERY_LIST], "list_response", config.list_response, node, build))
        return NULL;
    /* Answers are told apart by what they are taken from, too. */
    const char *source =
        apr_psprintf(build->pool, "%s\n%s\n%s", dimension->http->url, config.validate_response, config.list_response);
    if (!mc_query_set_up(&dimension->query, &config.query, source, false, &(mc_query_extras){ NULL, NULL }, node,
                         build))
        return NULL;
    dimension->query.ask = elasticsearch_ask;
    return &dimension->query.base;
}

const mc_dimension_ops mc_dimension_elasticsearch = {
    MC_KIND("elasticsearch", elasticsearch_keys, elasticsearch_from_config,
            "Values that are asked of an Elasticsearch index, or anything else that answers posted JSON with JSON."),
    MC_QUERY_OPS,
};
