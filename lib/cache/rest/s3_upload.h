/*
 * A file as one object of a store of S3's kind: by one request, or in parts (Amazon S3 API Reference, "Multipart
 * upload") where it is larger than a part. The object is there whole or not at all, and what was there before stays
 * until then.
 */
#ifndef MC_CACHE_REST_S3_UPLOAD_H
#define MC_CACHE_REST_S3_UPLOAD_H

#include "cache/rest/aws_options.h"

/* Bytes of a part; larger where a file would have more than 10,000 of them. */
#define MC_S3_PART_BYTES (16 << 20)

typedef struct mc_s3_upload {
    const char *name; /* of the cache, for messages */
    const char *url;  /* of the object, encoded, without a query */
    const char *type; /* media type */
    const mc_aws_options *aws;
} mc_s3_upload;

/*
 * Puts the file at `path` there, whose size must not change meanwhile, and looks at the end whether the object has that
 * size. A part that fails for a passing reason is sent again; after an error the parts in the store are removed, unless
 * the process is killed. MC_ERR_UPSTREAM, MC_ERR_UNAVAILABLE, MC_ERR_TIMEOUT: of the store, with the name of the cache.
 */
mc_error *mc_s3_upload_file(const mc_s3_upload *upload, const char *path, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
