/* Which form of gzipped bytes a client gets. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "compress/gzip.h"
#include "server/server_private.h"
#include "text/text.h"

/* A tile that expands to more was not made by anybody sane. */
#define EXPANDED_MAX ((size_t)256 << 20)

/* The weight that follows a coding in Accept-Encoding: 1 where there is none that can be read. */
static double
weight_of(const char *parameters, apr_pool_t *pool)
{
    double weight = 1;
    const char *q = strcasestr(parameters, "q=");
    if (q == NULL)
        return 1;
    const char *number = apr_pstrmemdup(pool, q + 2, strcspn(q + 2, " \t;"));
    return mc_parse_double(&weight, number) ? weight : 1;
}

/* Whether a list of codings allows gzip: named with a weight above 0, or not named and "*" has one. */
static bool
accepts_gzip(const char *accepted, apr_pool_t *pool)
{
    double any = 0;
    char *rest = apr_pstrdup(pool, accepted);
    for (char *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ",")) {
        item += strspn(item, " \t");
        char *end = item + strcspn(item, " \t;");
        const char *parameters = *end == '\0' ? "" : end + 1;
        *end = '\0';
        if (strcasecmp(item, "gzip") == 0 || strcasecmp(item, "x-gzip") == 0)
            return weight_of(parameters, pool) > 0;
        if (strcmp(item, "*") == 0)
            any = weight_of(parameters, pool);
    }
    return any > 0;
}

mc_error *
mc_result_negotiate(mc_result *result, const mc_http_request *request, apr_pool_t *pool)
{
    const char *accepted = request->headers == NULL ? NULL : apr_table_get(request->headers, "Accept-Encoding");
    if (accepted != NULL && accepts_gzip(accepted, pool))
        return MC_OK;
    result->expanded = true;
    result->unmodified = false; /* that was about the other form */
    if (result->tag != 0)
        result->tag = mc_hash64("expanded", 8, result->tag);
    return mc_gunzip(&result->data, result->data->data, result->data->size, EXPANDED_MAX, pool);
}
