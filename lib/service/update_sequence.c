/* The age of capabilities: UPDATESEQUENCE. */
#include <apr_strings.h>

#include "service/param.h"
#include "service/service_base.h"
#include "text/text.h"

const char *
mc_update_sequence(const mc_call *call, apr_pool_t *pool)
{
    apr_time_t mtime = call->config->mtime;
    return mtime > 0 ? apr_psprintf(pool, "%" APR_INT64_T_FMT, (apr_int64_t)apr_time_sec(mtime)) : NULL;
}

mc_error *
mc_update_sequence_check(mc_param_reader *reader)
{
    mc_capabilities_params *params = reader->target;
    apr_time_t mtime = reader->call->config->mtime;
    int64_t theirs, ours = apr_time_sec(mtime);
    if (reader->text == NULL || mtime <= 0)
        return MC_OK;
    if (!mc_parse_int64(&theirs, reader->text, INT64_MIN, INT64_MAX) || theirs > ours)
        return mc_param_refuse(reader);
    params->is_current = theirs == ours;
    return MC_OK;
}
