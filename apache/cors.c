/*
 * Headers of CORS where httpd sets some of its own, by mod_headers or another module: two of them make browsers refuse
 * an answer, so ours give way. Those modules set theirs in output filters, which is why this is one that runs after
 * theirs, before the headers are written.
 */
#include "mod_mapcache.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>
#include <util_filter.h>

static const char filter_name[] = "MAPCACHE_CORS";
static const char allow_origin[] = "Access-Control-Allow-Origin";

bool
frontend_cors_owns(const char *name)
{
    return strncasecmp(name, "Access-Control-", 15) == 0 || strcasecmp(name, "Timing-Allow-Origin") == 0;
}

/* Leaves of a header what others have added to ours. */
static void
take_ours_out(request_rec *r, const char *name, const char *ours)
{
    const char *all = apr_table_getm(r->pool, r->headers_out, name);
    size_t size = strlen(ours);
    if (all == NULL || strncmp(all, ours, size) != 0)
        return;
    if (all[size] == '\0')
        apr_table_unset(r->headers_out, name);
    else if (all[size] == ',')
        apr_table_setn(r->headers_out, name, all + size + 1 + strspn(all + size + 1, " "));
}

/* Whether somebody else says who may read the answer, or has taken out what we said. */
static bool
others_decide(const request_rec *r, const char *ours)
{
    const char *now = apr_table_getm(r->pool, r->headers_out, allow_origin);
    return now == NULL || strcmp(now, ours) != 0 || apr_table_get(r->err_headers_out, allow_origin) != NULL;
}

static apr_status_t
settle_cors(ap_filter_t *filter, apr_bucket_brigade *brigade)
{
    request_rec *r = filter->r;
    const apr_table_t *ours = filter->ctx;
    const char *origin = apr_table_get(ours, allow_origin);
    const apr_array_header_t *headers = apr_table_elts(ours);
    const apr_table_entry_t *entry = (const apr_table_entry_t *)(const void *)headers->elts;
    if (origin != NULL && others_decide(r, origin))
        for (int i = 0; i < headers->nelts; i++)
            take_ours_out(r, entry[i].key, entry[i].val);
    ap_remove_output_filter(filter);
    return ap_pass_brigade(filter->next, brigade);
}

void
frontend_cors_register(void)
{
    ap_register_output_filter(filter_name, settle_cors, NULL, (ap_filter_type)(AP_FTYPE_CONTENT_SET + 5));
}

void
frontend_cors_set(request_rec *r, const apr_table_t *headers)
{
    if (apr_table_get(r->headers_out, allow_origin) != NULL || apr_table_get(r->err_headers_out, allow_origin) != NULL)
        return; /* httpd has decided already */
    apr_table_t *ours = apr_table_make(r->pool, 4);
    const apr_array_header_t *all = apr_table_elts(headers);
    const apr_table_entry_t *entry = (const apr_table_entry_t *)(const void *)all->elts;
    for (int i = 0; i < all->nelts; i++) {
        if (!frontend_cors_owns(entry[i].key))
            continue;
        apr_table_addn(ours, entry[i].key, entry[i].val);
        apr_table_addn(r->headers_out, entry[i].key, entry[i].val);
    }
    if (!apr_is_empty_table(ours))
        ap_add_output_filter(filter_name, ours, r, r->connection);
}
