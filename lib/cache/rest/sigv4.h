/*
 * AWS Signature Version 4 in the Authorization header, as Amazon S3 and stores like it want it (Amazon S3 API
 * Reference, "Authenticating Requests: Using the Authorization Header").
 */
#ifndef MC_CACHE_REST_SIGV4_H
#define MC_CACHE_REST_SIGV4_H

#include <apr_tables.h>
#include <apr_time.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct mc_aws_secret {
    const char *id, *key;
    const char *token; /* of a session, or NULL */
} mc_aws_secret;

typedef struct mc_sigv4 {
    const char *method;
    const char *service; /* NULL: "s3" */
    const char *path;    /* encoded as it is sent; S3 encodes once and leaves dots alone */
    const char *query;   /* "name=value" pairs, encoded and sorted; "" without */
    const void *body;    /* or NULL */
    size_t body_size;
    bool unsigned_body; /* TLS proves that it is whole */
    const char *region;
    apr_time_t now;
} mc_sigv4;

/* Signs the request with all of `headers`, which have Host: adds x-amz-date, x-amz-content-sha256,
 * x-amz-security-token and Authorization. */
void mc_sigv4_sign(apr_table_t *headers, const mc_sigv4 *request, const mc_aws_secret *secret, apr_pool_t *pool);

#endif
