/* Capabilities that `mapcache adopt --compare` reads from another server: of WMS and of WMTS. */
#include <string.h>

#include "../../cli/adopt/compare_capabilities.c"
#include "fuzz_support.h"

static void
check_service(const mc_compare_service *service, apr_pool_t *pool)
{
    for (apr_hash_index_t *at = apr_hash_first(pool, service->sets); at != NULL; at = apr_hash_next(at)) {
        void *value;
        apr_hash_this(at, NULL, NULL, &value);
        const mc_compare_set *set = value;
        MC_ASSERT(set->count >= 0 && set->count <= MC_COMPARE_LEVELS && set->unit > 0);
        for (int i = 0; i < set->count; i++)
            MC_ASSERT(set->matrices[i].scale > 0 && set->matrices[i].tile_width > 0 && set->matrices[i].columns > 0);
    }
    for (apr_hash_index_t *at = apr_hash_first(pool, service->layers); at != NULL; at = apr_hash_next(at)) {
        void *value;
        apr_hash_this(at, NULL, NULL, &value);
        const mc_compare_layer *layer = value;
        MC_ASSERT(layer->name != NULL && layer->title != NULL && (!layer->has_box || mc_extent_valid(&layer->box)));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    mc_compare_service wms = { 0 }, wmts = { 0 };
    apr_pool_create(&pool, NULL);
    const mc_compare_answer answer = { .status = 200, .media = "", .body = mc_buf_copy(data, size) };
    mc_buf_attach(answer.body, pool);
    mc_compare_read_wms(&wms, &answer, pool);
    mc_compare_read_wmts(&wmts, &answer, "http://x/?", pool);
    check_service(&wms, pool);
    check_service(&wmts, pool);
    apr_pool_destroy(pool);
    return 0;
}
