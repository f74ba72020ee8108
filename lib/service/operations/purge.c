/*
 * <service type="purge">: whoever has the token says that stored tiles are old. They are marked (cache/marked.h), so
 * that clients get them until new ones are drawn. Only POST with the header Authorization and a JSON body: no page of
 * another site can have a browser send that.
 */
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/admission.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/seldom.h"
#include "service/bearer.h"
#include "service/operations/operations.h"
#include "text/json.h"
#include "tileset/stored/mark_stored.h"
#include "vector/crs/projection.h"

enum {
    PURGE_BODY_MAX = 8192,    /* bytes */
    PURGE_TEXT_MAX = 1000,    /* bytes of a name or of a dimension's value */
    PURGE_ZOOM_MAX = 1000,    /* in whatever grid */
    TOKEN_FILE_MAX = 4096,    /* bytes */
    FAILURES_MAX = 10,        /* in a second, without a right token, in a process: more are answered 429 */
    PURGE_TILES_MAX = 100000, /* that one request marks; also the value of "limit" at most */
};

#define PURGE_TILES_SHOWN "100000"

typedef struct purge_service {
    mc_service_base base;
    const char *token, *token_file, *token_env;
    /* Of the process. */
    atomic_bool running;             /* one request at a time */
    _Atomic apr_time_t failing_from; /* mc_clock_now(): the begin of the second in which failures are counted */
    atomic_int failures;
    mc_seldom told;
} purge_service;

static const mc_key purge_keys[] = {
    MC_SERVICE_KEYS(purge_service),
    MC_KEY_TEXT("token", offsetof(purge_service, token),
                "What `Authorization: Bearer` has to say, at least 16 characters. One of `<token>`, `<token_file>` and "
                "`<token_env>` is needed.",
                .flags = MC_KEY_OURS),
    MC_KEY_TEXT("token_file", offsetof(purge_service, token_file), "A file that holds the token.",
                .flags = MC_KEY_OURS | MC_KEY_FILE),
    MC_KEY_TEXT("token_env", offsetof(purge_service, token_env), "A variable of the environment that holds the token.",
                .flags = MC_KEY_OURS),
    MC_KEY_END,
};

/* ---- the token */

/* The first line of the file; NULL with errno. */
static const char *
read_token_file(const char *path, apr_pool_t *pool)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0)
        return NULL;
    char *text = apr_pcalloc(pool, TOKEN_FILE_MAX + 1);
    ssize_t size = read(file, text, TOKEN_FILE_MAX);
    int why = errno;
    close(file);
    errno = why;
    if (size < 0)
        return NULL;
    text[strcspn(text, "\r\n")] = '\0';
    return text;
}

/* NULL, or what is wrong. */
static const char *
find_purge_token(purge_service *service, apr_pool_t *pool)
{
    int given = (service->token != NULL) + (service->token_file != NULL) + (service->token_env != NULL);
    if (given != 1)
        return "the service purge needs one of <token>, <token_file> and <token_env>";
    if (service->token_file != NULL) {
        service->token = read_token_file(service->token_file, pool);
        if (service->token == NULL)
            return apr_psprintf(pool, "<token_file>: %s", strerror(errno));
    }
    if (service->token_env != NULL && (service->token = getenv(service->token_env)) == NULL)
        return apr_psprintf(pool, "<token_env>: the environment has no variable \"%s\"", service->token_env);
    service->token = apr_pstrdup(pool, service->token);
    return mc_bearer_usable(service->token) ? NULL : "the token needs at least 16 printable characters without blanks";
}

static mc_service *
purge_from_config(const mc_service_ops *ops, const mc_node *node, mc_build *build)
{
    purge_service *service = apr_pcalloc(build->pool, sizeof(*service));
    if (!mc_service_read(&service->base, ops, node, build))
        return NULL;
    if (service->base.service.cors == NULL)
        service->base.service.cors = "off";
    const char *problem = find_purge_token(service, build->pool);
    if (problem == NULL)
        return &service->base.service;
    mc_complain(build->diagnostics, MC_REFUSED, node, "%s", problem);
    return NULL;
}

/* Whether there were too many failures in this second. */
static bool
count_failure(purge_service *service)
{
    apr_time_t now = mc_clock_now(), from = atomic_load(&service->failing_from);
    if (now - from >= APR_USEC_PER_SEC && atomic_compare_exchange_strong(&service->failing_from, &from, now))
        atomic_store(&service->failures, 0);
    return atomic_fetch_add(&service->failures, 1) >= FAILURES_MAX;
}

/* A right token is always let in: nobody can shut out its holder. */
static mc_error *
check_purge_token(purge_service *service, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    unsigned unsaid;
    if (mc_bearer_matches(call, service->token))
        return mc_bearer_check_site(call, pool);
    bool wrong = mc_call_header(call, "Authorization") != NULL;
    if (wrong && mc_seldom_due(&service->told, &unsaid))
        mc_log_write(ctx, MC_LOG_WARN, "the service purge was asked with a wrong token%s",
                     unsaid > 0 ? apr_psprintf(pool, " (%u times more since it was said)", unsaid) : "");
    if (count_failure(service))
        return mc_error_create(pool, MC_ERR_TOO_MANY, "too many requests without the right token");
    return mc_error_create(pool, MC_ERR_UNAUTHORIZED, "the token is needed: Authorization: Bearer TOKEN");
}

/* ---- what is meant */

typedef struct purge_params {
    const char *tileset, *grid, *crs;
    mc_extent box; /* not valid where the body has none */
    int minzoom, maxzoom, limit, dry_run;
    apr_table_t *dimensions;
} purge_params;

#define AT(field) offsetof(purge_params, field)

static const mc_param_row purge_body[] = {
    MC_PARAM_TEXT("tileset", AT(tileset), "The tileset.", .max = PURGE_TEXT_MAX, .flags = MC_PARAM_REQUIRED,
                  .locator = "tileset", .missing = "the field tileset is missing",
                  .missing_kind = MC_ERR_INVALID_PARAMETER),
    MC_PARAM_TEXT("grid", AT(grid), "One of its grids; all without it.", .max = PURGE_TEXT_MAX, .locator = "grid"),
    MC_PARAM_BOX("box", AT(box),
                 "The area, x first: minx, miny, maxx, maxy; a list of numbers, too. Everywhere without it.",
                 .locator = "box", .refusal = "box is four numbers: minx, miny, maxx, maxy"),
    MC_PARAM_TEXT("crs", AT(crs), "The CRS of `box`, `EPSG:` and a number or `CRS:84`; without it that of each grid.",
                  .max = PURGE_TEXT_MAX, .locator = "crs"),
    MC_PARAM_INTEGER("minzoom", AT(minzoom), "The coarsest level.", .max = PURGE_ZOOM_MAX, .fallback = "0",
                     .locator = "minzoom", .refusal = "minzoom is a level from {min} to {max}"),
    MC_PARAM_INTEGER("maxzoom", AT(maxzoom), "The finest level; levels that a grid does not have are none.",
                     .max = PURGE_ZOOM_MAX, .fallback = "1000", .locator = "maxzoom",
                     .refusal = "maxzoom is a level from {min} to {max}"),
    MC_PARAM_OBJECT("dimensions", AT(dimensions), "Values of dimensions by name, as stored; all values of the others.",
                    .max = PURGE_TEXT_MAX, .locator = "dimensions"),
    MC_PARAM_INTEGER("limit", AT(limit), "Tiles that are marked at most; 503 where there are more.", .min = 1,
                     .max = PURGE_TILES_MAX, .fallback = PURGE_TILES_SHOWN, .locator = "limit",
                     .refusal = "limit is a number from {min} to {max}"),
    MC_PARAM_BOOLEAN("dry_run", AT(dry_run), "Only counts.", .fallback = "false", .locator = "dry_run",
                     .refusal = "dry_run is true or false"),
    MC_PARAM_END,
};

static mc_error *
keep_purge_field(void *fields, const char *name, const char *text)
{
    apr_table_add(fields, name, text);
    return MC_OK;
}

static mc_error *
read_purge_body(purge_params *params, const mc_call *call, apr_pool_t *pool)
{
    mc_buf *body = NULL;
    const char *type = mc_call_header(call, "Content-Type");
    apr_table_t *fields = apr_table_make(pool, 16);
    if (type == NULL || strncasecmp(type, "application/json", 16) != 0)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "what is meant is sent as Content-Type: application/json");
    if (call->http->read_body != NULL)
        MC_TRY(call->http->read_body(&body, call->http->read_body_baton, PURGE_BODY_MAX, pool));
    if (body == NULL || body->size == 0)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "the request has no body");
    MC_TRY(mc_json_fields((const char *)body->data, body->size, keep_purge_field, fields, pool));
    return mc_params_read_fields(params, purge_body, fields, pool);
}

/* PROJ reads much more than this, also names of files. */
static bool
is_plain_crs(const char *crs)
{
    if (strcmp(crs, "CRS:84") == 0)
        return true;
    size_t digits = strncmp(crs, "EPSG:", 5) == 0 ? strspn(crs + 5, "0123456789") : 0;
    return digits > 0 && digits <= 9 && crs[5 + digits] == '\0';
}

static mc_error *
check_purge_crs(const purge_params *params, const mc_tileset *tileset, apr_pool_t *pool)
{
    mc_projection *projection;
    if (params->crs == NULL)
        return MC_OK;
    if (!mc_extent_valid(&params->box))
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "crs", "crs is the CRS of a box, and there is none");
    if (!is_plain_crs(params->crs))
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "crs", "crs is EPSG: and a number, or CRS:84");
    mc_error *error = mc_projection_open(&projection, params->crs, tileset->links[0]->grid->srs, pool);
    return error == MC_OK
               ? MC_OK
               : mc_error_wrap(pool, error, MC_ERR_INVALID_PARAMETER, "the CRS %s is not known", params->crs);
}

/* The values by the names of the tileset, which clients may write in any case. */
static mc_error *
check_purge_values(apr_table_t **values, const purge_params *params, const mc_tileset *tileset, apr_pool_t *pool)
{
    *values = apr_table_make(pool, 4);
    if (params->dimensions == NULL)
        return MC_OK;
    const apr_array_header_t *pairs = apr_table_elts(params->dimensions);
    for (int i = 0; i < pairs->nelts; i++) {
        const apr_table_entry_t *pair = &APR_ARRAY_IDX(pairs, i, apr_table_entry_t);
        int index = mc_tileset_dimension(tileset, pair->key, true);
        if (index < 0)
            return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "dimensions", "%s",
                                    mc_tileset_lacks_dimension(tileset, pair->key, pool));
        apr_table_set(*values, tileset->dimensions[index]->name, pair->val);
    }
    return MC_OK;
}

static mc_error *
find_purge_area(mc_mark_area *area, const mc_tileset **tileset, const purge_params *params, const mc_call *call,
                apr_pool_t *pool)
{
    apr_table_t *values;
    *tileset = mc_call_tileset(call, params->tileset, pool);
    if (*tileset == NULL)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "tileset", "%s",
                                mc_config_lacks_tileset(call->config, params->tileset, pool));
    if (params->grid != NULL && mc_tileset_link(*tileset, params->grid) == NULL)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "grid", "%s",
                                mc_tileset_lacks_grid(*tileset, params->grid, pool));
    if (params->minzoom > params->maxzoom)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "minzoom", "minzoom is above maxzoom");
    MC_TRY(check_purge_crs(params, *tileset, pool));
    MC_TRY(check_purge_values(&values, params, *tileset, pool));
    *area = (mc_mark_area){ .srs = params->crs,
                            .grid = params->grid,
                            .minzoom = params->minzoom,
                            .maxzoom = params->maxzoom,
                            .values = values,
                            .dry_run = params->dry_run == 1,
                            .most = params->limit };
    if (!mc_extent_valid(&params->box))
        return MC_OK;
    mc_box_set *boxes = mc_box_set_create(pool);
    mc_box_set_add(boxes, &params->box);
    area->boxes = boxes;
    return MC_OK;
}

/* ---- the request */

static mc_error *
answer_purge(mc_request *request, const mc_mark_counts *counts, const mc_tileset *tileset, bool dry_run,
             apr_pool_t *pool)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "tileset", tileset->name);
    mc_json_boolean(json, "dry_run", dry_run);
    mc_json_integer(json, dry_run ? "would_mark" : "marked", counts->marked);
    mc_json_integer(json, "marked_before", counts->looked - counts->marked);
    mc_json_close(json);
    return mc_operations_respond_json(request, json);
}

static mc_error *
purge_tiles(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    purge_params params = { 0 };
    mc_mark_area area;
    mc_mark_counts counts = { 0 };
    const mc_tileset *tileset;
    MC_TRY(read_purge_body(&params, call, pool));
    MC_TRY(find_purge_area(&area, &tileset, &params, call, pool));
    MC_SLOW(ctx);
    mc_error *error = mc_tileset_mark_stored(&counts, tileset, &area, ctx, pool);
    if (!area.dry_run)
        mc_log_write(ctx, MC_LOG_NOTICE, "purge of tileset \"%s\": %" APR_INT64_T_FMT " tiles are marked%s",
                     tileset->name, (apr_int64_t)counts.marked, error == MC_OK ? "" : ", and not all that were meant");
    if (error != MC_OK && error->kind == MC_ERR_BUSY)
        return mc_error_create(pool, MC_ERR_BUSY, "%" APR_INT64_T_FMT " tiles %s, and there are more: %s",
                               (apr_int64_t)counts.marked, area.dry_run ? "would be marked" : "are marked",
                               area.dry_run ? "a smaller area can be counted" : "the same request marks these");
    if (error != MC_OK && error->kind == MC_ERR_LIMIT)
        return mc_error_wrap(pool, error, MC_ERR_BAD_REQUEST, "%s: fewer levels, a smaller box or values of dimensions",
                             error->message);
    MC_TRY(error);
    return answer_purge(request, &counts, tileset, area.dry_run, pool);
}

static mc_error *
purge_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    purge_service *service = (purge_service *)call->service;
    MC_TRY(mc_operations_check(call, pool));
    MC_TRY(check_purge_token(service, call, ctx, pool));
    MC_TRY(mc_admission_enter(ctx, pool));
    if (atomic_exchange(&service->running, true))
        return mc_error_create(pool, MC_ERR_BUSY, "another request is marking tiles");
    mc_error *error = purge_tiles(request, call, ctx, pool);
    atomic_store(&service->running, false);
    return error;
}

static const char *
purge_methods(const mc_call *call, apr_pool_t *pool)
{
    (void)call, (void)pool;
    return "POST";
}

static size_t
purge_body_limit(const mc_call *call)
{
    (void)call;
    return PURGE_BODY_MAX;
}

static const mc_operation purge_operations[] = {
    { "the request",
      "POST /purge, a JSON object as Content-Type: application/json",
      { purge_body },
      { { "POST /purge", 200, "application/json",
          "Marks stored tiles as old. Needs the token: `Authorization: Bearer TOKEN`; 401 without it.",
          "{\"tileset\": \"world\", \"box\": [5, 45, 11, 48], \"crs\": \"EPSG:4326\", \"dry_run\": true}" },
        { "/purge", 405, "application/json", "Nothing is changed by GET.", NULL } } },
    { 0 },
};

const mc_service_ops mc_service_purge = {
    MC_SERVICE(purge, "purge", purge_keys, purge_from_config,
               "Says that stored tiles are old, for holders of a token."),
    .methods = purge_methods,
    .body_limit = purge_body_limit,
    .unlisted = true,
    .report = mc_operations_report,
};
