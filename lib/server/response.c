/* HTTP around an answer: types, validators, preconditions (RFC 9110 section 13), lifetimes, CORS, and errors as the
 * configuration wants them. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/server_private.h"
#include "service/service_base.h"
#include "text/text.h"

#define TAG_DIGITS 16
#define MESSAGE_MAX 1000 /* bytes of an error that a client sees */

/* Reads "0123456789abcdef" with its quotes; false for tags of another form. */
static bool
parse_tag(uint64_t *tag, const char *text)
{
    char digits[TAG_DIGITS + 1];
    if (text[0] != '"' || strspn(text + 1, "0123456789abcdef") != TAG_DIGITS || text[TAG_DIGITS + 1] != '"')
        return false;
    memcpy(digits, text + 1, TAG_DIGITS);
    digits[TAG_DIGITS] = '\0';
    *tag = strtoull(digits, NULL, 16);
    return true;
}

/* Calls for each tag of a list; true if one of them is `wanted` (or the first of our form, with wanted 0). */
static bool
find_tag(uint64_t *found, const char *list, uint64_t wanted)
{
    for (const char *quote = strchr(list, '"'); quote != NULL;) {
        uint64_t tag;
        if (parse_tag(&tag, quote) && (wanted == 0 || tag == wanted)) {
            *found = tag;
            return true;
        }
        const char *end = strchr(quote + 1, '"');
        quote = end == NULL ? NULL : strchr(end + 1, '"');
    }
    return false;
}

uint64_t
mc_request_tag(const mc_http_request *request)
{
    const char *list = request->headers == NULL ? NULL : apr_table_get(request->headers, "If-None-Match");
    uint64_t tag = 0;
    if (list != NULL)
        (void)find_tag(&tag, list, 0);
    return tag;
}

/* 200, 304 or 412 by the request's preconditions. */
static int
evaluate_preconditions(const mc_result *result, const mc_call *call)
{
    int64_t modified = apr_time_sec(result->mtime);
    uint64_t found;
    bool validators = result->tag != 0 || result->mtime != 0;
    const char *match = mc_call_header(call, "If-Match");
    if (match != NULL && strcmp(match, "*") != 0 && !(result->tag != 0 && find_tag(&found, match, result->tag)))
        return 412;
    const char *unmodified = mc_call_header(call, "If-Unmodified-Since");
    int64_t since = unmodified == NULL ? 0 : mc_http_date_parse(unmodified);
    if (match == NULL && since > 0 && modified > 0 && modified > since)
        return 412;
    const char *none_match = mc_call_header(call, "If-None-Match");
    if (none_match != NULL) {
        if (validators && strcmp(none_match, "*") == 0)
            return 304;
        return result->tag != 0 && find_tag(&found, none_match, result->tag) ? 304 : 200;
    }
    const char *modified_since = mc_call_header(call, "If-Modified-Since");
    since = modified_since == NULL ? 0 : mc_http_date_parse(modified_since);
    return since > 0 && modified > 0 && since >= modified && since <= apr_time_sec(apr_time_now()) ? 304 : 200;
}

/* The tag in quotes, as parse_tag reads it. */
static const char *
format_tag(uint64_t tag, apr_pool_t *pool)
{
    char *text = apr_palloc(pool, TAG_DIGITS + 3);
    text[0] = text[TAG_DIGITS + 1] = '"';
    text[TAG_DIGITS + 2] = '\0';
    for (int i = TAG_DIGITS; i > 0; i--, tag >>= 4)
        text[i] = "0123456789abcdef"[tag & 15];
    return text;
}

static void
set_lifetime(mc_http_response *response, const mc_result *result, apr_pool_t *pool)
{
    const char *extra = result->cache_control;
    if (result->lifetime > 0) {
        int64_t expires = apr_time_sec(apr_time_now()) + result->lifetime;
        apr_table_setn(
            response->headers, "Cache-Control",
            apr_pstrcat(pool, "max-age=", apr_itoa(pool, result->lifetime), extra == NULL ? NULL : ", ", extra, NULL));
        apr_table_setn(response->headers, "Expires", mc_http_date(expires, pool));
    } else if (extra != NULL) {
        apr_table_setn(response->headers, "Cache-Control", extra);
    }
}

/* The answer of another server, status and headers included. */
static void
pass_on(mc_http_response *response, const mc_result *result, apr_pool_t *pool)
{
    response->status = result->status;
    response->body = result->data;
    if (result->headers != NULL)
        response->headers = apr_table_copy(pool, result->headers);
}

void
mc_response_success(mc_http_response *response, const mc_result *result, const mc_call *call, apr_pool_t *pool)
{
    if (result->status != 0) {
        pass_on(response, result, pool);
        return;
    }
    response->status = result->unmodified ? 304 : evaluate_preconditions(result, call);
    if (response->status == 412)
        return;
    if (result->tag != 0)
        apr_table_setn(response->headers, "ETag", format_tag(result->tag, pool));
    set_lifetime(response, result, pool);
    if (result->gzipped)
        apr_table_mergen(response->headers, "Vary", "Accept-Encoding");
    if (response->status == 304)
        return;
    response->body = result->data;
    if (result->gzipped && !result->expanded)
        apr_table_setn(response->headers, "Content-Encoding", "gzip");
    if (result->mime != NULL)
        apr_table_setn(response->headers, "Content-Type", mc_header_value(result->mime, pool));
    if (result->mtime != 0)
        apr_table_setn(response->headers, "Last-Modified", mc_http_date(apr_time_sec(result->mtime), pool));
}

/* <errors>empty_img: an image of 256 pixels a side, transparent where the default format can be
 * (docs/reference/configuration.md 1.2). */
static void
show_empty_image(mc_http_response *response, const mc_error *error, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    static const uint8_t white[3] = { 255, 255, 255 };
    mc_result image;
    const mc_format *format = call->config->default_format;
    mc_error *failure = mc_map_empty(&image, 256, 256, format, true, white, ctx, pool);
    apr_table_setn(response->headers, "X-Mapcache-Error", mc_header_value(error->message, pool));
    if (failure != MC_OK) {
        mc_log_error(ctx, MC_LOG_ERROR, failure);
        return;
    }
    response->body = image.data;
    if (image.mime != NULL)
        apr_table_setn(response->headers, "Content-Type", image.mime);
}

static void
write_error_document(mc_http_response *response, const mc_error *error, const mc_call *call, apr_pool_t *pool)
{
    mc_document body = { .mime = "text/plain" };
    if (call->service != NULL && call->service->ops->report != NULL)
        call->service->ops->report(&body, &response->status, error, call, pool);
    if (body.text == NULL) {
        body.mime = "text/plain; charset=utf-8";
        body.text = mc_buf_attach(mc_buf_copy(error->message, strlen(error->message)), pool);
    }
    response->body = body.text;
    apr_table_setn(response->headers, "Content-Type", body.mime);
}

void
mc_response_failure(mc_http_response *response, const mc_error *error, const mc_call *call, mc_ctx *ctx,
                    apr_pool_t *pool)
{
    response->status = mc_error_status(error->kind);
    bool gone = mc_ctx_abandoned(ctx);
    mc_log_error(ctx, response->status >= 500 && !gone ? MC_LOG_ERROR : MC_LOG_INFO, error);
    mc_error shown = *error; /* messages quote the request, whose bytes may be anything, and many */
    shown.message = mc_message_text(error->message, MESSAGE_MAX, pool);
    switch (call->config->errors) {
    case MC_ERRORS_LOG:
        break;
    case MC_ERRORS_REPORT:
        write_error_document(response, &shown, call, pool);
        break;
    case MC_ERRORS_EMPTY_IMG:
        show_empty_image(response, &shown, call, ctx, pool);
        break;
    }
    if (response->status == 503)
        apr_table_setn(response->headers, "Retry-After", "1");
    if (response->status == 405)
        apr_table_setn(response->headers, "Allow", "GET, HEAD, POST");
}

static bool
origin_listed(const char *list, const char *origin)
{
    size_t size = strlen(origin);
    for (const char *item = list; *item != '\0';) {
        item += strspn(item, " ,\t\r\n");
        size_t length = strcspn(item, " ,\t\r\n");
        if (length == size && strncasecmp(item, origin, size) == 0)
            return true;
        item += length;
    }
    return false;
}

void
mc_response_cors(mc_http_response *response, const mc_call *call, apr_pool_t *pool)
{
    const char *origins =
        call->service != NULL && call->service->cors != NULL ? call->service->cors : call->config->cors;
    if (origins == NULL || strcmp(origins, "off") == 0)
        return;
    if (strcmp(origins, "*") == 0) {
        apr_table_setn(response->headers, "Access-Control-Allow-Origin", "*");
    } else {
        const char *origin = mc_call_header(call, "Origin");
        apr_table_mergen(response->headers, "Vary", "Origin");
        if (origin == NULL || !origin_listed(origins, origin))
            return;
        apr_table_setn(response->headers, "Access-Control-Allow-Origin", mc_header_value(origin, pool));
    }
    if (call->config->server_timing) {
        apr_table_setn(response->headers, "Timing-Allow-Origin", strcmp(origins, "*") == 0 ? "*" : origins);
        apr_table_setn(response->headers, "Access-Control-Expose-Headers", "Server-Timing, ETag");
    }
}
