/* HTTP around an answer: types, validators, lifetimes, and errors as the configuration wants them. */
#include <apr_strings.h>
#include <inttypes.h>
#include <string.h>

#include "base/admission.h"
#include "compress/packing.h"
#include "server/server_private.h"
#include "service/service_base.h"
#include "service/wms/wms.h"
#include "text/text.h"

#define MESSAGE_MAX 1000 /* bytes of an error that a client sees */

static void
set_lifetime(mc_http_response *response, const mc_result *result, apr_pool_t *pool)
{
    const char *extra = result->cache_control, *control = NULL;
    if (result->age > 0) { /* an old one because there is no new one yet */
        control = result->grace > 0 ? "max-age=0" : "max-age=0, must-revalidate";
        apr_table_setn(response->headers, "Age", apr_psprintf(pool, "%" PRId64, result->age));
    } else if (result->lifetime > 0) {
        int64_t expires = apr_time_sec(apr_time_now()) + result->lifetime;
        control = apr_psprintf(pool, "max-age=%d", result->lifetime);
        apr_table_setn(response->headers, "Expires", mc_http_date(expires, pool));
    }
    if (control != NULL && result->grace > 0)
        control = apr_psprintf(pool, "%s, stale-if-error=%" PRId64, control, result->grace);
    if (extra != NULL && *extra != '\0')
        control = control == NULL ? extra : apr_pstrcat(pool, control, ", ", extra, NULL);
    if (control != NULL)
        apr_table_setn(response->headers, "Cache-Control", control);
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
        if (result->vary != NULL)
            apr_table_mergen(response->headers, "Vary", result->vary);
        return;
    }
    const char *tag;
    response->status = mc_preconditions_evaluate(&tag, result, call, pool);
    if (result->headers != NULL)
        response->headers = apr_table_copy(pool, result->headers);
    if (result->vary != NULL)
        apr_table_mergen(response->headers, "Vary", result->vary);
    if (response->status == 412)
        return;
    if (tag != NULL)
        apr_table_setn(response->headers, "ETag", tag);
    set_lifetime(response, result, pool);
    for (int i = 0; result->warnings != NULL && i < result->warnings->nelts; i++)
        apr_table_addn(response->headers, "Warning",
                       mc_header_value(APR_ARRAY_IDX(result->warnings, i, const char *), pool));
    if (result->negotiated)
        apr_table_mergen(response->headers, "Vary", "Accept-Encoding");
    if (response->status == 304)
        return;
    response->body = result->data;
    if (result->negotiated && result->packing != MC_NOT_PACKED)
        apr_table_setn(response->headers, "Content-Encoding", mc_packing_coding((mc_packing)result->packing));
    if (result->mime != NULL)
        apr_table_setn(response->headers, "Content-Type", mc_header_value(result->mime, pool));
    if (result->policy != NULL) {
        apr_table_setn(response->headers, "Content-Security-Policy", result->policy);
        apr_table_setn(response->headers, "X-Content-Type-Options", "nosniff");
        apr_table_setn(response->headers, "Referrer-Policy", "same-origin");
    }
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

/* <errors>report_img: the message in an image, of the size and the format of the map that was asked for. */
static void
show_error_image(mc_http_response *response, const mc_error *error, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_document image = { 0 };
    mc_error *failure = mc_wms_error_image(&image, error, call, pool);
    apr_table_setn(response->headers, "X-Mapcache-Error", mc_header_value(error->message, pool));
    if (failure != MC_OK) {
        mc_log_error(ctx, MC_LOG_ERROR, failure);
        return;
    }
    response->body = image.text;
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

/* Whether an error may be drawn, at the size of the map that was asked for: under the same limit as maps, so that those
 * who are refused do not keep the threads busy with pictures of refusals. */
static bool
may_draw_error(const mc_error *error, const mc_call *call, mc_ctx *ctx)
{
    const bool asked =
        call->config->errors == MC_ERRORS_REPORT_IMG || (call->params != NULL && mc_param(call, "EXCEPTIONS") != NULL);
    return asked && error->kind != MC_ERR_BUSY && mc_admission_lets_in(ctx);
}

void
mc_response_failure(mc_http_response *response, const mc_error *error, const mc_call *call, mc_ctx *ctx,
                    apr_pool_t *pool)
{
    response->status = mc_error_status(error->kind);
    bool gone = mc_ctx_abandoned(ctx);
    bool telling = response->status >= 500 && !gone && error->kind != MC_ERR_BUSY; /* those are told by their number */
    mc_log_error(ctx, telling ? MC_LOG_ERROR : MC_LOG_INFO, error);
    mc_error shown = *error; /* messages quote the request, whose bytes may be anything, and many */
    shown.message = mc_message_text(error->message, MESSAGE_MAX, pool);
    mc_call shown_by = *call;
    shown_by.draws_errors = may_draw_error(error, call, ctx);
    switch (call->config->errors) {
    case MC_ERRORS_LOG:
        break;
    case MC_ERRORS_REPORT:
        write_error_document(response, &shown, &shown_by, pool);
        break;
    case MC_ERRORS_EMPTY_IMG:
        show_empty_image(response, &shown, call, ctx, pool);
        break;
    case MC_ERRORS_REPORT_IMG:
        if (shown_by.draws_errors)
            show_error_image(response, &shown, call, ctx, pool);
        else {
            apr_table_setn(response->headers, "X-Mapcache-Error", mc_header_value(shown.message, pool));
            write_error_document(response, &shown, &shown_by, pool);
        }
        break;
    }
    if (response->status == 503 || response->status == 429)
        apr_table_setn(response->headers, "Retry-After", "1");
    if (response->status == 401)
        apr_table_setn(response->headers, "WWW-Authenticate", "Bearer realm=\"mapcache\"");
    if (response->status == 405)
        mc_response_allow(response, call, pool);
    if (response->status == 406)
        apr_table_mergen(response->headers, "Vary", "Accept");
}
