/* FORMAT of maps and legends: what a service offers, and what a request comes to. */
#include <apr_strings.h>
#include <string.h>

#include "service/wms/wms.h"

static bool
is_plain_png(const mc_format *format)
{
    return format->type == MC_FORMAT_PNG && strcmp(format->mime, "image/png") == 0;
}

static void
add_format(apr_array_header_t *formats, const mc_format *format)
{
    if (format->type == MC_FORMAT_MIXED) {
        add_format(formats, format->transparent);
        add_format(formats, format->opaque);
        return;
    }
    if (!mc_format_is_image(format) || format->mime == NULL)
        return;
    for (int i = 0; i < formats->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(formats, i, const mc_format *)->mime, format->mime) == 0)
            return;
    APR_ARRAY_PUSH(formats, const mc_format *) = format;
}

/* The format of image/png: the service's own one, or the first that is configured or builtin. */
static const mc_format *
find_png(const mc_call *call)
{
    const mc_format *png = mc_wms_of(call)->format;
    if (png->type == MC_FORMAT_MIXED)
        png = png->transparent;
    for (int i = 0; !is_plain_png(png) && i < call->config->formats->nelts; i++)
        png = APR_ARRAY_IDX(call->config->formats, i, const mc_format *);
    return is_plain_png(png) ? png : NULL;
}

/* Whether any layer of the service is drawn from vector data. */
static bool
draws_layers(const mc_call *call)
{
    for (int i = 0; i < call->config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(call->config->tilesets, i, const mc_tileset *);
        if (mc_tileset_has_legend(tileset) && mc_wms_offers(mc_wms_of(call), tileset))
            return true;
    }
    return false;
}

const apr_array_header_t *
mc_wms_formats(const mc_call *call, apr_pool_t *pool)
{
    const mc_wms *wms = mc_wms_of(call);
    apr_array_header_t *formats = apr_array_make(pool, 8, sizeof(const mc_format *));
    add_format(formats, wms->format);
    if (draws_layers(call) && find_png(call) != NULL)
        add_format(formats, find_png(call));
    for (int i = 0; wms->allow_client_override && i < call->config->formats->nelts; i++)
        add_format(formats, APR_ARRAY_IDX(call->config->formats, i, const mc_format *));
    return formats;
}

static bool
format_answers(const mc_format *format, const char *text)
{
    return strcmp(format->name, text) == 0 || (format->mime != NULL && strcmp(format->mime, text) == 0);
}

static const mc_format *
find_format(const mc_call *call, const char *text)
{
    const mc_wms *wms = mc_wms_of(call);
    if (format_answers(wms->format, text))
        return wms->format;
    for (int i = 0; i < call->config->formats->nelts; i++) {
        const mc_format *format = APR_ARRAY_IDX(call->config->formats, i, const mc_format *);
        if (mc_format_is_image(format) && format_answers(format, text))
            return format;
    }
    return NULL;
}

static const mc_format *
find_advertised(const mc_call *call, const char *text, apr_pool_t *pool)
{
    const apr_array_header_t *formats = mc_wms_formats(call, pool);
    for (int i = 0; i < formats->nelts; i++) {
        const mc_format *format = APR_ARRAY_IDX(formats, i, const mc_format *);
        if (strcmp(format->mime, text) == 0)
            return format;
    }
    return NULL;
}

/* What FORMAT comes to. */
typedef struct wms_format_choice {
    const char *text;
    bool drawn;
    const mc_format *format;
    bool named;
} wms_format_choice;

/* The table of docs/reference/requests.md: a strict service takes what it advertises; one whose clients may choose
 * takes what is configured; else FORMAT is not read, but PNG is to be had of layers that are drawn. */
static mc_error *
choose_format(mc_param_reader *reader)
{
    wms_format_choice *choice = reader->target;
    const mc_call *call = reader->call;
    const char *text = choice->text;
    const mc_format *found = NULL;
    if (text == NULL)
        return MC_OK;
    if (call->service->strict) {
        if (*text == '\0' && !mc_wms_of(call)->allow_client_override)
            return mc_wms_omitted(call, "format", reader->pool);
        found = find_advertised(call, text, reader->pool);
    } else if (mc_wms_of(call)->allow_client_override) {
        found = find_format(call, text);
    } else {
        found = choice->drawn && strncmp(text, "image/png", 9) == 0 ? find_png(call) : NULL;
        if (found == NULL)
            return MC_OK;
    }
    if (found == NULL)
        return mc_param_refuse(reader);
    choice->format = found;
    choice->named = true;
    return MC_OK;
}

const mc_param_row mc_wms_format_params[] = {
    MC_PARAM_TEXT("FORMAT", offsetof(wms_format_choice, text),
                  "The media type of the answer. A strict service takes those that it advertises; one with "
                  "allow_client_override those of configured formats, and their names; else the service's format "
                  "decides, but image/png is to be had of layers that are drawn.",
                  .flags = MC_PARAM_STRICT, .locator = "format", .kind = MC_ERR_INVALID_FORMAT,
                  .refusal = "FORMAT \"{value}\" is not offered"),
    MC_PARAM_STEP(choose_format),
    MC_PARAM_END,
};

mc_error *
mc_wms_format(const mc_format **format, bool *named, bool drawn, const mc_call *call, apr_pool_t *pool)
{
    wms_format_choice choice = { .format = mc_wms_of(call)->format, .drawn = drawn };
    mc_error *error = mc_params_read(&choice, mc_wms_format_params, call, pool);
    *format = choice.format;
    *named = choice.named;
    return error;
}
