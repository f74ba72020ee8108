/*
 * WMTS exceptions (OGC 07-057r7 and OWS 1.1.0): a report for key-value requests, with status 400 when the client is at
 * fault and 501 for what a layer does not offer; paths get a plain message.
 */
#include "service/wmts/wmts.h"

#define PROLOGUE "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

/* Codes of WMTS where the shared table has those of WMS. */
static const char *
wmts_code(const mc_error *error)
{
    const char *code = mc_error_code(error->kind);
    switch (error->kind) {
    case MC_ERR_NOT_FOUND: /* nothing for what a parameter says, a time for example */
        return error->locator != NULL ? "InvalidParameterValue" : "NoApplicableCode";
    case MC_ERR_INVALID_DIMENSION:
    case MC_ERR_LAYER_NOT_DEFINED:
    case MC_ERR_STYLE_NOT_DEFINED:
    case MC_ERR_INVALID_FORMAT:
        return "InvalidParameterValue";
    case MC_ERR_MISSING_DIMENSION:
        return "MissingParameterValue";
    default:
        return code != NULL ? code : "NoApplicableCode";
    }
}

static void
write_exception(mc_xml *xml, const char *code, const mc_error *error)
{
    mc_xml_open(xml, "Exception");
    mc_xml_attr(xml, "exceptionCode", code);
    bool located = error->kind != MC_ERR_VERSION_NEGOTIATION && error->kind != MC_ERR_INVALID_UPDATE_SEQUENCE;
    if (located && error->locator != NULL && *error->locator != '\0')
        mc_xml_attr(xml, "locator", error->locator);
    mc_xml_element(xml, "ExceptionText", error->message);
    mc_xml_close(xml);
}

void
mc_wmts_report(mc_document *body, int *status, const mc_error *error, const mc_call *call, apr_pool_t *pool)
{
    if (!mc_wmts_is_kvp(call))
        return;
    mc_xml *xml = mc_xml_create(PROLOGUE, pool);
    mc_xml_open(xml, "ExceptionReport");
    mc_xml_attr(xml, "xmlns", "http://www.opengis.net/ows/1.1");
    mc_xml_attr(xml, "xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance");
    mc_xml_attr(xml, "xsi:schemaLocation",
                "http://www.opengis.net/ows/1.1 http://schemas.opengis.net/ows/1.1.0/owsExceptionReport.xsd");
    mc_xml_attr(xml, "version", "1.0.0");
    mc_xml_attr(xml, "xml:lang", "en");
    write_exception(xml, wmts_code(error), error);
    /* the standard names the one, the conformance suite looks for the other */
    if (error->kind == MC_ERR_POINT_OUT_OF_RANGE)
        write_exception(xml, "TileOutOfRange", error);
    mc_xml_close(xml);
    if (mc_xml_finish(&body->text, xml) != MC_OK)
        return;
    body->mime = "application/xml";
    if (*status < 500)
        *status = 400;
}
