#include "cache/pmtiles/upload.h"

#include "cache/pmtiles/pmtiles_base.h"
#include "cache/rest/s3_upload.h"

mc_error *
mc_pmtiles_upload(const mc_cache *base, const char *path, mc_ctx *ctx, apr_pool_t *pool)
{
    const pmtiles_cache *cache = (const pmtiles_cache *)base;
    char url[MC_PATH_MAX];
    const mc_s3_upload upload = {
        .name = base->name, .url = url, .type = "application/vnd.pmtiles", .aws = cache->place.remote.aws
    };
    if (upload.aws == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "\"%s\" is no address of an object in a store", base->name);
    MC_TRY(mc_archive_place_address(url, &cache->place, pool));
    return mc_s3_upload_file(&upload, path, ctx, pool);
}
