/* Headers as they go into what is signed. */
#ifndef MC_CACHE_REST_SIGNED_HEADERS_H
#define MC_CACHE_REST_SIGNED_HEADERS_H

#include "cache/rest/rest_base.h"

/* "" where there is none. */
const char *mc_signed_value(const apr_table_t *headers, const char *name);

/* "name:value\n" of the headers whose lower-case names begin so, sorted by name; values with single blanks. `other`:
 * another beginning, or NULL. Prefix "": all headers. */
const char *mc_signed_lines(const apr_table_t *headers, const char *prefix, const char *other, apr_pool_t *pool);

/* The lines of all headers, and their names as "name;name" in the same order. */
void mc_signed_texts(const char **lines, const char **names, const apr_table_t *headers, apr_pool_t *pool);

const char *mc_base64_text(const uint8_t *bytes, size_t size, apr_pool_t *pool);

/* What google.c signs with, for the examples of the standard. */
const char *mc_google_string_to_sign(const mc_rest_request *request, apr_pool_t *pool);
const char *mc_google_signature(const char *text, const char *secret, apr_pool_t *pool);

/* Adds the time and the signature to a request that is complete but for these. */
void mc_google_authorize(mc_rest_request *request, const char *access, const char *secret, apr_pool_t *pool);

#endif
