/* Capabilities and reports against the published schemas, which lie beside the checkout or where MAPCACHE_SCHEMAS says.
 */
#include "service_fixture.h"

#include <stdio.h>
#include <unistd.h>

static const char *schemas;

static void
write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    fclose(file);
}

/* Runs xmllint on the text, with all of the schemas' addresses resolved to local files. */
static void
validate(const mc_buf *text, const char *schema, bool dtd)
{
    char folder[] = "/tmp/mapcache-documents-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    const char *document = apr_pstrcat(pool, folder, "/document.xml", NULL);
    const char *catalogue = apr_pstrcat(pool, folder, "/catalogue.xml", NULL);
    const char *rules = apr_psprintf(
        pool,
        "<catalog xmlns=\"urn:oasis:names:tc:entity:xmlns:xml:catalog\">"
        "<rewriteURI uriStartString=\"http://schemas.opengis.net/\" rewritePrefix=\"file://%s/\"/>"
        "<rewriteSystem systemIdStartString=\"http://schemas.opengis.net/\" rewritePrefix=\"file://%s/\"/>"
        "<rewriteURI uriStartString=\"http://www.w3.org/1999/xlink.xsd\" rewritePrefix=\"file://%s/w3/xlink.xsd\"/>"
        "<rewriteSystem systemIdStartString=\"http://www.w3.org/1999/xlink.xsd\" "
        "rewritePrefix=\"file://%s/w3/xlink.xsd\"/>"
        "<rewriteURI uriStartString=\"http://www.w3.org/2001/xml.xsd\" rewritePrefix=\"file://%s/w3/xml.xsd\"/>"
        "<rewriteSystem systemIdStartString=\"http://www.w3.org/2001/xml.xsd\" rewritePrefix=\"file://%s/w3/xml.xsd\"/>"
        "</catalog>",
        schemas, schemas, schemas, schemas, schemas, schemas);
    write_file(document, text->data, text->size);
    write_file(catalogue, rules, strlen(rules));
    const char *option = dtd ? "--valid" : apr_psprintf(pool, "--schema '%s/%s'", schemas, schema);
    const char *command = apr_psprintf(pool, "XML_CATALOG_FILES='%s' xmllint --nonet --noout %s '%s' >'%s/log' 2>&1",
                                       catalogue, option, document, folder);
    int status = system(command);
    if (status != 0)
        status = system(apr_psprintf(pool, "head -c 3000 '%s/log' >&2; false", folder));
    const char *files[] = { document, catalogue, apr_pstrcat(pool, folder, "/log", NULL) };
    for (int i = 0; i < 3; i++)
        unlink(files[i]);
    rmdir(folder);
    ck_assert_msg(status == 0, "not valid: %.300s", buf_text(text));
}

static void
full_metadata(void)
{
    static const char *const keys[] = {
        "title",
        "abstract",
        "fees",
        "accessconstraints",
        "providername",
        "providerurl",
        "contactname",
        "contactposition",
        "contactphone",
        "contactfacsimile",
        "contactorganization",
        "contactcity",
        "contactstateorprovince",
        "contactpostcode",
        "contactcountry",
        "contactelectronicmailaddress",
        "keyword",
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        mc_metadata_set(service_config.metadata, keys[i], "http://e.example/?a=<1>&\"b\"");
}

static void
validate_capabilities(void)
{
    ck_ok(dispatch_request("", "SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0"));
    validate(service_request.u.document.text, "wms/1.3.0/capabilities_1_3_0.xsd", false);
    ck_ok(dispatch_request("", "SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1"));
    validate(service_request.u.document.text, NULL, true);
    ck_ok(dispatch_request("/wmts", "SERVICE=WMTS&REQUEST=GetCapabilities"));
    validate(service_request.u.document.text, "wmts/1.0/wmtsGetCapabilities_response.xsd", false);
}

START_TEST(capabilities)
{
    fixture_setup();
    validate_capabilities();
}
END_TEST

START_TEST(capabilities_with_all_metadata)
{
    fixture_setup();
    full_metadata();
    mc_tileset *tileset = APR_ARRAY_IDX(service_config.tilesets, 0, mc_tileset *);
    tileset->links[0]->restricted = true;
    mc_metadata_set(tileset->metadata, "abstract", "<&>");
    /* the schema's limits know no row 0, which the standard's text has: a strict service leaves such limits out */
    ck_assert(fixture_services("<mapcache>" SERVICE("wms", "") SERVICE("wmts", "<strict>true</strict>") "</mapcache>"));
    validate_capabilities();
    ck_ok(dispatch_request("/wmts", "SERVICE=WMTS&REQUEST=GetCapabilities&UPDATESEQUENCE=2023-11-14T22:13:20.000000Z"));
    validate(service_request.u.document.text, "wmts/1.0/wmtsGetCapabilities_response.xsd", false);
}
END_TEST

START_TEST(capabilities_without_layers)
{
    fixture_setup();
    apr_array_clear(service_config.tilesets);
    service_config.mtime = 0;
    ck_ok(dispatch_request("", "SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0"));
    validate(service_request.u.document.text, "wms/1.3.0/capabilities_1_3_0.xsd", false);
    ck_ok(dispatch_request("", "SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1"));
    validate(service_request.u.document.text, NULL, true);
}
END_TEST

START_TEST(reports)
{
    mc_document body;
    fixture_setup();
    ck_assert_int_eq(status_of("", "SERVICE=WMS&REQUEST=<a%c3b>", &body), 501);
    validate(body.text, NULL, true);
    ck_assert_int_eq(status_of("", "SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&BBOX=]]>&<!--", &body), 400);
    validate(body.text, "wms/1.3.0/exceptions_1_3_0.xsd", false);
    ck_assert_int_eq(status_of("/wmts", "SERVICE=WMTS&REQUEST=%ff%fe<a>", &body), 400);
    validate(body.text, "ows/1.1.0/owsExceptionReport.xsd", false);
    ck_assert_int_eq(status_of("/wmts",
                               "SERVICE=WMTS&REQUEST=GetFeatureInfo&LAYER=base&TILEMATRIXSET=WGS84&"
                               "TILEMATRIX=1&TILEROW=0&TILECOL=1&I=999&J=0&INFOFORMAT=text/html",
                               &body),
                     400);
    validate(body.text, "ows/1.1.0/owsExceptionReport.xsd", false);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { capabilities, capabilities_with_all_metadata, capabilities_without_layers, reports };
    char beside[4096];
    snprintf(beside, sizeof(beside), "%s/../shared/schemas", unit_source_folder);
    schemas = getenv("MAPCACHE_SCHEMAS");
    if (schemas == NULL)
        schemas = realpath(beside, NULL);
    if (schemas == NULL) {
        printf("skipped: no schemas at %s and MAPCACHE_SCHEMAS is not set\n", beside);
        return 77;
    }
    return unit_run("documents", tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
