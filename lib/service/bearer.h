/* Who may change something: the holder of a token, which comes in the header Authorization (RFC 6750). No page of
 * another site can send that header, so that there is nothing to forge. */
#ifndef MC_SERVICE_BEARER_H
#define MC_SERVICE_BEARER_H

#include "mapcache/service.h"

/* Characters of a token at least. */
enum { MC_BEARER_MIN = 16 };

/* Whether a token is long enough, and may stand in a header. */
bool mc_bearer_usable(const char *token);

/* Whether the request has the token (NULL: nobody has). Takes as long for one that is nearly right as for one that is
 * not at all. */
bool mc_bearer_matches(const mc_call *call, const char *token);

/* MC_ERR_FORBIDDEN where a browser says that a page of another site asks. */
mc_error *mc_bearer_check_site(const mc_call *call, apr_pool_t *pool) MC_CHECKED;

#endif
