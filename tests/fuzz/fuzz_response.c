/* Any request headers (lines "Name: value") against a tile, a document and a failure: whatever they say, one of the
 * statuses of RFC 9110, and header values that stay on their lines. */
#include <apr_strings.h>
#include <string.h>

#include "fuzz_support.h"
#include "server/server_private.h"

static apr_table_t *
read_headers(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    apr_table_t *headers = apr_table_make(pool, 8);
    char *rest = apr_pstrndup(pool, (const char *)data, size);
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        char *colon = strchr(line, ':');
        if (colon == NULL)
            continue;
        *colon = '\0';
        apr_table_addn(headers, line, colon[1] == ' ' ? colon + 2 : colon + 1);
    }
    return headers;
}

static int
is_one_line(void *baton, const char *name, const char *value)
{
    (void)baton;
    (void)name;
    MC_ASSERT(strpbrk(value, "\r\n") == NULL);
    return 1;
}

static mc_http_response
fresh(apr_pool_t *pool)
{
    return (mc_http_response){ .headers = apr_table_make(pool, 8) };
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    mc_http_request http = { .method = "GET", .path = "/", .query = "", .headers = read_headers(data, size, pool) };
    mc_config config = { .errors = MC_ERRORS_REPORT, .cors = "http://one.example, http://two.example" };
    mc_call call = { .config = &config, .http = &http };
    mc_ctx ctx = { .pool = pool };
    mc_buf *body = mc_buf_attach(mc_buf_copy("tile", 4), pool);
    const mc_result answers[] = {
        { .data = body,
          .mime = "image/png",
          .tag = 0xfedcba9876543210,
          .mtime = apr_time_from_sec(1700000000),
          .lifetime = 60 },
        { .data = body, .mime = "text/xml", .tag = 1 },
        { .data = body, .mime = "text/html" },
    };
    (void)mc_request_tag(&http);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        mc_http_response response = fresh(pool);
        mc_response_success(&response, &answers[i], &call, pool);
        mc_response_cors(&response, &call, pool);
        MC_ASSERT(response.status == 200 || response.status == 304 || response.status == 412);
        MC_ASSERT((response.body != NULL) == (response.status == 200));
        apr_table_do(is_one_line, NULL, response.headers, NULL);
    }
    mc_http_response response = fresh(pool);
    mc_error *error = mc_error_create(pool, MC_ERR_NOT_FOUND, "%s", apr_pstrndup(pool, (const char *)data, size));
    mc_response_failure(&response, error, &call, &ctx, pool);
    MC_ASSERT(response.status == 404 && response.body != NULL && response.body->size <= 3100);
    apr_pool_destroy(pool);
    return 0;
}
