/* Archives that are written here and kept in a store of S3's kind. */
#ifndef MC_CACHE_PMTILES_UPLOAD_H
#define MC_CACHE_PMTILES_UPLOAD_H

#include "mapcache/cache.h"

/* Puts the archive at `path` in place of that of the cache, whose <url> is the address of one object (s3://BUCKET/KEY).
 * Errors as of mc_s3_upload_file. */
mc_error *mc_pmtiles_upload(const mc_cache *cache, const char *path, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
