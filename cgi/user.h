/* Who the program is: a server that was started by root becomes somebody else before the first request. */
#ifndef MC_CGI_USER_H
#define MC_CGI_USER_H

#include "mapcache/ctx.h"

/*
 * Becomes `user`, with the groups of that user and without a way back; before any thread. socket_path: a local socket
 * that is given to the user as well, so that a web server of the same user may connect; or NULL. MC_ERR_CONFIG: there
 * is no such user, or who started the program is not root and is another one.
 */
mc_error *mc_user_become(const char *user, const char *socket_path, apr_pool_t *pool) MC_CHECKED;

/* Tells the log that the program runs as root, where it does. */
void mc_user_warn_of_root(apr_pool_t *pool);

#endif
