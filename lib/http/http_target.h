/*
 * Where a redirect of an origin may lead (docs/reference/configuration.md 3.6). Part of the module mapcache-curl.so.
 */
#ifndef MC_HTTP_HTTP_TARGET_H
#define MC_HTTP_HTTP_TARGET_H

#include <curl/curl.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "http/http.h"

/* One request of a call: that of the call, or the one to which a redirect leads. */
typedef struct mc_http_hop {
    const char *url, *method;
    const apr_table_t *headers; /* or NULL */
    const void *body;           /* or NULL */
    size_t body_size;
    bool guarded; /* only public addresses */
} mc_http_hop;

mc_http_hop mc_http_first_hop(const mc_http_call *call);

/* Whether an answer of that status names another address to ask. */
bool mc_http_is_redirect(int status);

/*
 * Turns the hop into the next one, after an answer of `status` from `address` that leads to `target`. The method is
 * chosen as RFC 9110 15.4 and browsers have it. Headers of the call, which may be secrets, end with the origin for
 * which they are configured, for good: another one gets the type of a body at most. An origin with a public address
 * leads to public addresses only.
 */
void mc_http_next_hop(mc_http_hop *hop, int status, const char *target, const char *address, apr_pool_t *pool);

/* Keeps a transfer of a guarded hop from addresses that are not public: those that a name has now, and those of
 * connections that are open. Sets *refused where that happened. */
void mc_http_guard(CURL *easy, bool *refused);

/* Whether anybody may have the address: not loopback, private, link-local, multicast or reserved (RFC 6890), also not
 * inside an IPv6 address that stands for one of IPv4. */
bool mc_address_is_public(const struct sockaddr *address);

/* The same of an address as text; false for what is no address. */
bool mc_address_text_is_public(const char *text);

/* Whether two URLs have the same scheme, host and port. False for what is no URL. */
bool mc_url_has_same_origin(const char *one, const char *other);

#endif
