/* Capabilities that are written with the load of a configuration, before anybody asks for them: those of a thousand
 * layers take some ten milliseconds each. */
#include <apr_tables.h>

#include "base/clock.h"
#include "base/workers.h"
#include "map/ahead.h"
#include "mapcache/dimension.h"
#include "mapcache/tileset.h"
#include "server/server_private.h"
#include "service/documents.h"
#include "service/service_base.h"

/* Requests whose answers lib/service keeps (documents.h). */
static const struct prepared_request {
    const char *path, *query;
} prepared_requests[] = {
    { "/", "SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities" },
    { "/", "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetCapabilities" },
    { "/wmts", "SERVICE=WMTS&VERSION=1.0.0&REQUEST=GetCapabilities" },
};

/* Whether documents say of the tileset only what the configuration says: no database and no data are asked. */
static bool
is_known_by_configuration(const mc_tileset *tileset)
{
    for (int i = 0; i < tileset->dimension_count; i++)
        if (tileset->dimensions[i]->ops->from_backend)
            return false;
    return tileset->place == NULL;
}

static bool
can_prepare(const mc_config *config, const mc_process *process)
{
    if (process->documents == NULL)
        return false;
    for (int i = 0; i < config->tilesets->nelts; i++)
        if (!is_known_by_configuration(APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *)))
            return false;
    return true;
}

static void
write_documents(const mc_config *config, apr_time_t deadline, mc_process *process, const mc_log *log)
{
    for (size_t i = 0; i < sizeof(prepared_requests) / sizeof(prepared_requests[0]); i++) {
        apr_pool_t *pool = mc_task_pool_acquire();
        mc_ctx ctx = { .pool = pool, .process = process, .log = log, .deadline = deadline };
        const mc_http_request http = { .method = "GET",
                                       .path = prepared_requests[i].path,
                                       .query = prepared_requests[i].query,
                                       .base_url = mc_documents_address(process->documents),
                                       .headers = apr_table_make(pool, 1) };
        mc_request request = { 0 };
        mc_call call = { .config = config, .http = &http };
        /* A service that is not there, or fails, answers whoever asks for it. */
        mc_error_ignore(mc_service_dispatch(&call, &request, config, &http, &ctx, pool));
        mc_task_pool_release(pool);
        if (mc_clock_now() >= deadline)
            return;
    }
}

void
mc_server_prepare(const mc_server *server, apr_time_t deadline, mc_process *process, const mc_log *log)
{
    const mc_config *config = mc_server_config(server);
    if (can_prepare(config, process))
        write_documents(config, deadline, process, log);
    mc_ahead_wait(process->ahead);
}
