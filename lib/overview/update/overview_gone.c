/* See overview_gone.h. The bytes are a block of a level (vector/levels/level_blocks.h), whose features have one
 * attribute more: their ordinal. */
#include "overview/update/overview_gone.h"

#include <apr_strings.h>
#include <string.h>

#include "text/text.h"
#include "vector/levels/level_blocks.h"

mc_error *
mc_overview_gone_read(apr_array_header_t *features, const void *bytes, size_t size, const mc_overview_job *job,
                      apr_pool_t *pool)
{
    apr_array_header_t *read = apr_array_make(pool, 64, sizeof(mc_level_feature));
    if (size == 0)
        return MC_OK;
    MC_TRY(mc_level_read_block(read, bytes, size, job->attribute_count + 1, pool));
    for (int i = 0; i < read->nelts; i++) {
        const mc_level_feature *feature = &APR_ARRAY_IDX(read, i, mc_level_feature);
        const char *ordinal = feature->values[job->attribute_count];
        mc_overview_feature *made = &APR_ARRAY_PUSH(features, mc_overview_feature);
        *made = (mc_overview_feature){
            .values = feature->values, .geometry = feature->geometry, .size = feature->size, .packed = feature->packed
        };
        if (ordinal == NULL || !mc_parse_int64(&made->ordinal, ordinal, 0, INT64_MAX))
            return mc_error_create(pool, MC_ERR_CORRUPT, "what has gone from a level is broken");
    }
    return MC_OK;
}

static void
append_value(mc_wkb_buffer *bytes, const char *value)
{
    const size_t length = value == NULL ? 0 : strlen(value);
    mc_wkb_append_packed(bytes, value == NULL ? 0 : length + 1);
    mc_wkb_append(bytes, value == NULL ? "" : value, length);
}

void
mc_overview_gone_write(mc_wkb_buffer *bytes, const apr_array_header_t *features, const mc_overview_job *job,
                       apr_pool_t *pool)
{
    if (features->nelts == 0)
        return;
    mc_wkb_append_packed(bytes, (uint64_t)job->attribute_count + 1);
    mc_wkb_append_packed(bytes, (uint64_t)features->nelts);
    for (int i = 0; i < features->nelts; i++) {
        const mc_overview_feature *feature = APR_ARRAY_IDX(features, i, const mc_overview_feature *);
        for (int k = 0; k < job->attribute_count; k++)
            append_value(bytes, feature->values[k]);
        append_value(bytes, apr_psprintf(pool, "%" APR_INT64_T_FMT, (apr_int64_t)feature->ordinal));
    }
    for (int i = 0; i < features->nelts; i++) {
        const mc_overview_feature *feature = APR_ARRAY_IDX(features, i, const mc_overview_feature *);
        mc_wkb_append_packed(bytes, i > 0);
        mc_wkb_append_packed(bytes, (uint64_t)i);
        mc_wkb_append_packed(bytes, (uint64_t)feature->size * 2 + feature->packed);
        mc_wkb_append(bytes, feature->geometry, feature->size);
    }
}
