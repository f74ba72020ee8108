/* Which form of gzipped bytes a client gets. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "compress/gzip.h"
#include "server/server_private.h"
#include "text/text.h"

/* What expands further was not made of features: vector tiles shrink to a third or a twentieth. Few bytes may expand to
 * LEAST_ROOM whatever they are. */
#define EXPANDED_MAX ((size_t)64 << 20)
#define LEAST_ROOM ((size_t)8 << 20)
enum { RATIO_MAX = 64 };

static size_t
expanded_most(size_t size)
{
    if (size > EXPANDED_MAX / RATIO_MAX)
        return EXPANDED_MAX;
    return size * RATIO_MAX > LEAST_ROOM ? size * RATIO_MAX : LEAST_ROOM;
}

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
    size_t size = result->data->size;
    return mc_gunzip(&result->data, result->data->data, size, expanded_most(size), pool);
}
