/* Passwords in addresses, connection strings and messages about them, kept from logs, terminals and documents. */
#ifndef MC_TEXT_SECRET_H
#define MC_TEXT_SECRET_H

#include <apr_pools.h>

/*
 * The address of data (a URL, or a connection string of PostgreSQL) with *** for its passwords: that of
 * scheme://user:password@host, and those of all keys that hold "password" or "passwd", also where the key is escaped.
 * Passwords end where libpq and libcurl let them end, so that no character in them shows the rest. Returns `address`
 * itself where there is none.
 */
const char *mc_hide_address_password(const char *address, apr_pool_t *pool);

/* The same in place, with letters x: for the words of a command line, which everybody may list. */
void mc_blank_address_password(char *address);

/*
 * A text for people, in which addresses may stand among other words: as mc_hide_address_password, but passwords in
 * queries and connection strings end at a blank. `address`: one that the text may quote, with the passwords that it
 * has; or NULL.
 */
const char *mc_hide_passwords(const char *text, const char *address, apr_pool_t *pool);

/* A URL for the log, with *** for the values of parameters that may be keys of an API: those whose name holds "key",
 * "token", "secret", "sig", "pass" or "auth". Returns `url` itself where there is none. */
const char *mc_hide_query_keys(const char *url, apr_pool_t *pool);

#endif
