/* See bearer.h. */
#include "service/bearer.h"

#include <string.h>
#include <strings.h>

#include "service/service_base.h"

bool
mc_bearer_usable(const char *token)
{
    for (const char *at = token; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            return false;
    return strlen(token) >= MC_BEARER_MIN;
}

static bool
same_text(const char *a, const char *b)
{
    size_t size = strlen(b);
    unsigned difference = strlen(a) != size;
    for (size_t i = 0; i < size && a[i] != '\0'; i++)
        difference |= (unsigned char)a[i] ^ (unsigned char)b[i];
    return difference == 0;
}

bool
mc_bearer_matches(const mc_call *call, const char *token)
{
    static const char scheme[] = "Bearer ";
    const char *said = mc_call_header(call, "Authorization");
    return token != NULL && said != NULL && strncasecmp(said, scheme, sizeof(scheme) - 1) == 0 &&
           same_text(said + sizeof(scheme) - 1, token);
}

mc_error *
mc_bearer_check_site(const mc_call *call, apr_pool_t *pool)
{
    const char *site = mc_call_header(call, "Sec-Fetch-Site"); /* browsers say where a request comes from */
    if (site == NULL || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_FORBIDDEN, "a page of another site may not change anything");
}
