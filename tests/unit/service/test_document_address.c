/* Documents that were written before any client asked, and the memory of documents. */
#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "base/hash.h"
#include "service/document_address.h"
#include "service/documents.h"

#define MARK "http://0123.invalid/m"

static mc_config first_config = { .file = "first.xml", .serial = 1 },
                 other_config = { .file = "other.xml", .serial = 2 };
static mc_process own_process;

static mc_buf *
text_of(const char *text)
{
    return mc_buf_attach(mc_buf_copy(text, strlen(text)), pool);
}

/* The text with the address of a client. */
static const char *
filled_with(const char *base, const char *text)
{
    mc_buf *filled;
    first_config.metadata = mc_metadata_create(pool);
    mc_call call = { .config = &first_config, .base = base };
    ck_ok(mc_address_fill(&filled, text_of(text), MARK, &call, pool));
    return apr_pstrmemdup(pool, (const char *)filled->data, filled->size);
}

START_TEST(addresses_take_the_place_of_marks)
{
    ck_assert_str_eq(filled_with("http://h/mc/", "a " MARK "/wmts b " MARK "?c " MARK "/"),
                     "a http://h/mc/wmts b http://h/mc?c http://h/mc/");
    ck_assert_str_eq(filled_with("http://h/", MARK "?x" MARK "/y"), "http://h/?xhttp://h/y");
    ck_assert_str_eq(filled_with("/", MARK "?x" MARK "/y"), "/?x/y");
    ck_assert_str_eq(filled_with("http://h/mc/", "none"), "none");
    const char *far = "https://maps.a-rather-long-name.example.org:8443/some/prefix/of/ours/";
    ck_assert_str_eq(filled_with(far, MARK "/" MARK "/"), apr_pstrcat(pool, far, far, NULL));
}
END_TEST

START_TEST(only_texts_with_expected_marks_are_filled)
{
    ck_assert(mc_address_can_be_filled(text_of(MARK "/ " MARK "?"), MARK));
    ck_assert(!mc_address_can_be_filled(text_of(MARK), MARK));
    ck_assert(!mc_address_can_be_filled(text_of(MARK "/ " MARK "&amp;"), MARK));
    ck_assert(mc_address_is_plain("https://[::1]:8080/a-b_c~d/%20/"));
    ck_assert(!mc_address_is_plain("http://h/a&b/") && !mc_address_is_plain("http://h/'") &&
              !mc_address_is_plain("http://h/\xc3\xa4/"));
}
END_TEST

static mc_call
call_from(mc_config *config, const char *base)
{
    config->metadata = mc_metadata_create(pool);
    return (mc_call){ .config = config, .base = base };
}

static void
keep_document(mc_config *config, const char *name, const char *base, const char *text)
{
    mc_call call = call_from(config, base);
    mc_ctx document_ctx = { .pool = pool, .process = &own_process };
    mc_request request = { .kind = MC_REQUEST_DOCUMENT };
    request.u.document.text = text_of(text);
    mc_document_keep(&request, apr_pstrcat(pool, name, " ", base, NULL), &call, &document_ctx);
}

/* The kept text; NULL: there is none. */
static const char *
recalled(mc_config *config, const char *name, const char *base)
{
    mc_call call = call_from(config, base);
    mc_ctx document_ctx = { .pool = pool, .process = &own_process };
    mc_request request = { 0 };
    if (!mc_document_recall(&request, apr_pstrcat(pool, name, " ", base, NULL), "text/xml", &call, &document_ctx, pool))
        return NULL;
    const mc_buf *text = request.u.document.text;
    ck_assert_uint_eq(request.u.document.tag, mc_hash64(text->data, text->size, 0));
    return apr_pstrmemdup(pool, (const char *)text->data, text->size);
}

START_TEST(documents_of_several_configurations_stay)
{
    own_process.documents = mc_documents_create(1000);
    keep_document(&first_config, "wms", "http://h/a/", "first");
    keep_document(&other_config, "wms", "http://h/b/", "other");
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(recalled(&first_config, "wms", "http://h/a/"), "first");
        ck_assert_str_eq(recalled(&other_config, "wms", "http://h/b/"), "other");
    }
    mc_config reloaded = { .file = "first.xml", .serial = 3 };
    ck_assert_ptr_null(recalled(&reloaded, "wms", "http://h/a/"));
    keep_document(&reloaded, "wms", "http://h/a/", "again");
    ck_assert_ptr_null(recalled(&first_config, "wms", "http://h/a/"));
    ck_assert_str_eq(recalled(&reloaded, "wms", "http://h/a/"), "again");
    ck_assert_str_eq(recalled(&other_config, "wms", "http://h/b/"), "other");
    mc_documents_destroy(own_process.documents);
}
END_TEST

START_TEST(prepared_documents_serve_each_client)
{
    own_process.documents = mc_documents_create(200);
    const char *address = mc_documents_address(own_process.documents), *base = apr_pstrcat(pool, address, "/", NULL);
    keep_document(&first_config, "wms", base, apr_pstrcat(pool, "<a>", address, "/x</a>", NULL));
    keep_document(&first_config, "odd", base, apr_pstrcat(pool, "<a>", address, "</a>", NULL));
    ck_assert_ptr_null(recalled(&first_config, "odd", "http://h/"));
    ck_assert_ptr_null(recalled(&first_config, "wms", "http://h/a&b/"));
    for (int i = 0; i < 100; i++) { /* the prepared one stays, whatever hosts are asked for */
        const char *host = apr_psprintf(pool, "http://host%d/", i);
        ck_assert_str_eq(recalled(&first_config, "wms", host), apr_pstrcat(pool, "<a>", host, "x</a>", NULL));
    }
    keep_document(&first_config, "large", "http://h/", apr_pstrcat(pool, base, base, base, base, NULL));
    ck_assert_ptr_null(recalled(&first_config, "large", "http://h/")); /* it would take the place of the prepared one */
    ck_assert_str_eq(recalled(&first_config, "wms", "http://h/"), "<a>http://h/x</a>");
    mc_documents_destroy(own_process.documents);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { addresses_take_the_place_of_marks, only_texts_with_expected_marks_are_filled,
                                   documents_of_several_configurations_stay, prepared_documents_serve_each_client };
    return unit_run("document_address", tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
