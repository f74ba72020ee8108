/* WMS exceptions: as XML of the request's version, drawn into an image, or as a blank image (EXCEPTIONS). */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "service/wms/wms.h"
#include "text/text.h"

#define PROLOGUE_111                                                                                                   \
    "<?xml version='1.0' encoding=\"UTF-8\" standalone=\"no\" ?>\n"                                                    \
    "<!DOCTYPE ServiceExceptionReport SYSTEM \"http://schemas.opengis.net/wms/1.1.1/exception_1_1_1.dtd\">\n"
#define PROLOGUE_130 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

typedef enum exception_form { FORM_XML, FORM_INIMAGE, FORM_BLANK } exception_form;

/* The codes of WMS (1.3.0 table E.1), and those two of OWS that servers and clients of WMS know as well; others are
 * left out. */
static const char *
wms_code(mc_error_kind kind, bool v130)
{
    switch (kind) {
    case MC_ERR_INVALID_CRS:
        return v130 ? "InvalidCRS" : "InvalidSRS";
    case MC_ERR_INVALID_PARAMETER:
    case MC_ERR_MISSING_PARAMETER:
    case MC_ERR_INVALID_DIMENSION:
    case MC_ERR_MISSING_DIMENSION:
    case MC_ERR_INVALID_POINT:
    case MC_ERR_LAYER_NOT_DEFINED:
    case MC_ERR_STYLE_NOT_DEFINED:
    case MC_ERR_INVALID_FORMAT:
    case MC_ERR_NOT_QUERYABLE:
    case MC_ERR_OPERATION_NOT_SUPPORTED:
    case MC_ERR_CURRENT_UPDATE_SEQUENCE:
    case MC_ERR_INVALID_UPDATE_SEQUENCE:
        return mc_error_code(kind);
    default:
        return NULL;
    }
}

static void
report_xml(mc_document *body, const mc_error *error, bool v130, apr_pool_t *pool)
{
    mc_xml *xml = mc_xml_create(v130 ? PROLOGUE_130 : PROLOGUE_111, pool);
    mc_xml_open(xml, "ServiceExceptionReport");
    mc_xml_attr(xml, "version", v130 ? "1.3.0" : "1.1.1");
    if (v130) {
        mc_xml_attr(xml, "xmlns", "http://www.opengis.net/ogc");
        mc_xml_attr(xml, "xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance");
        mc_xml_attr(xml, "xsi:schemaLocation",
                    "http://www.opengis.net/ogc http://schemas.opengis.net/wms/1.3.0/exceptions_1_3_0.xsd");
    }
    mc_xml_open(xml, "ServiceException");
    mc_xml_attr(xml, "code", wms_code(error->kind, v130));
    mc_xml_text(xml, apr_pstrcat(pool, "\n", error->message, "\n", NULL));
    mc_xml_close(xml);
    mc_xml_close(xml);
    if (mc_xml_finish(&body->text, xml) == MC_OK)
        body->mime = v130 ? "text/xml" : "application/vnd.ogc.se_xml";
}

/* EXCEPTIONS in the words of either version; unknown ones are XML. Only GetMap has an image to answer with. */
static exception_form
requested_form(const mc_call *call)
{
    const char *text = mc_param(call, "EXCEPTIONS");
    const char *operation = mc_param(call, "REQUEST");
    if (text == NULL || operation == NULL || strcasecmp(operation, "GetMap") != 0)
        return FORM_XML;
    if (strcasecmp(text, "INIMAGE") == 0 || strcasecmp(text, "application/vnd.ogc.se_inimage") == 0)
        return FORM_INIMAGE;
    if (strcasecmp(text, "BLANK") == 0 || strcasecmp(text, "application/vnd.ogc.se_blank") == 0)
        return FORM_BLANK;
    return FORM_XML;
}

/* True and the picture's size if the request names a usable one. */
static bool
picture_size(int *width, int *height, const mc_call *call)
{
    const mc_wms *wms = mc_wms_of(call);
    const char *w = mc_param(call, "WIDTH");
    const char *h = mc_param(call, "HEIGHT");
    return w != NULL && h != NULL && mc_parse_int(width, w, 1, wms->maxsize) &&
           mc_parse_int(height, h, 1, wms->maxsize) && (apr_int64_t)*width * *height <= wms->max_pixels;
}

/* An image in place of a map. `message` NULL: a blank one. */
static mc_error *
encode_error_image(mc_document *body, const char *message, const mc_map_request *look, const mc_format *format,
                   apr_pool_t *pool)
{
    mc_pixels *pixels;
    mc_ctx ctx = { .pool = pool };
    MC_TRY(mc_pixels_create(&pixels, look->width, look->height, true, pool));
    mc_pixels_attach(pixels, pool);
    uint8_t background[4] = { look->background[2], look->background[1], look->background[0], 255 };
    if (!look->transparent || format->type == MC_FORMAT_JPEG)
        mc_pixels_fill(pixels, background);
    if (message != NULL)
        mc_wms_write_message(pixels, message);
    MC_TRY(mc_format_encode(&body->text, format, pixels, MC_ON_THE_FLY, &ctx, pool));
    body->mime =
        format->mime != NULL ? format->mime : mc_coding_mime(mc_image_sniff(body->text->data, body->text->size));
    return MC_OK;
}

/* Size, format and background are those of the request. */
static mc_error *
report_image(mc_document *body, const char *message, int width, int height, const mc_call *call, apr_pool_t *pool)
{
    mc_map_request look = { .width = width, .height = height };
    const mc_format *format;
    bool named;
    mc_error *ignored = mc_wms_format(&format, &named, true, call, pool);
    if (ignored != MC_OK)
        format = mc_wms_of(call)->format; /* FORMAT may be what is wrong with the request */
    ignored = mc_wms_background(&look, call, pool);
    mc_error_ignore(ignored);
    return encode_error_image(body, message, &look, format, pool);
}

/* The format of images that a path ends with (.png, .jpeg) or FORMAT names by its media type; else the default one. */
static const mc_format *
find_asked_format(const mc_call *call)
{
    const char *dot = call->path == NULL ? NULL : strrchr(call->path, '.'), *mime = mc_param(call, "FORMAT");
    for (int i = 0; i < call->config->formats->nelts; i++) {
        const mc_format *format = APR_ARRAY_IDX(call->config->formats, i, const mc_format *);
        if (!mc_format_is_image(format))
            continue;
        if ((mime != NULL && format->mime != NULL && strcasecmp(mime, format->mime) == 0) ||
            (mime == NULL && dot != NULL && format->extension != NULL && strcasecmp(dot + 1, format->extension) == 0))
            return format;
    }
    return call->config->default_format;
}

mc_error *
mc_wms_error_image(mc_document *body, const mc_error *error, const mc_call *call, apr_pool_t *pool)
{
    int width, height;
    if (call->service != NULL && strcmp(call->service->ops->type, "wms") == 0 && picture_size(&width, &height, call))
        return report_image(body, error->message, width, height, call, pool);
    const mc_map_request look = { .width = 256, .height = 256, .background = { 255, 255, 255 } };
    return encode_error_image(body, error->message, &look, find_asked_format(call), pool);
}

void
mc_wms_report(mc_document *body, int *status, const mc_error *error, const mc_call *call, apr_pool_t *pool)
{
    if (mc_param(call, "SERVICE") == NULL && mc_param(call, "REQUEST") == NULL)
        return;
    exception_form form = requested_form(call);
    int width, height;
    if (form != FORM_XML && call->draws_errors && picture_size(&width, &height, call)) {
        mc_error *failure = report_image(body, form == FORM_INIMAGE ? error->message : NULL, width, height, call, pool);
        if (failure == MC_OK) {
            *status = 200; /* the client asked for an image, whatever happens */
            return;
        }
        *body = (mc_document){ 0 };
    }
    report_xml(body, error, mc_wms_is_130(call), pool);
}
