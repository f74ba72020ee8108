/* See compare.h: one comparison, from the configuration to the page. */
#include "compare.h"

#include <apr_strings.h>
#include <string.h>

enum { PAGE_BYTES_MAX = 512 << 20 };

static const char *
without_slash(const char *url, apr_pool_t *pool)
{
    size_t size = strlen(url);
    while (size > 0 && url[size - 1] == '/' && strchr(url, '?') == NULL)
        size--;
    return apr_pstrmemdup(pool, url, size);
}

mc_error *
mc_compare_run(mc_compare *compare, const char *config, apr_pool_t *pool)
{
    compare->pool = pool;
    compare->url = without_slash(compare->url, pool);
    compare->page = mc_buf_attach(mc_buf_create(1 << 20, PAGE_BYTES_MAX), pool);
    MC_TRY(mc_server_load(&compare->server, config, mc_diagnostics_create(pool), pool));
    mc_error *error =
        mc_runtime_create(&compare->runtime, mc_server_config(compare->server), 1, true, compare->log, pool);
    if (error == MC_OK) {
        mc_compare_services(compare);
        mc_compare_tiles(compare);
        mc_compare_maps(compare);
        mc_runtime_drain(compare->runtime);
        mc_runtime_destroy(compare->runtime);
    }
    return error;
}

bool
mc_compare_agrees(const mc_compare *compare)
{
    bool agrees = compare->unlike == 0;
    for (int group = 0; group < 2; group++)
        for (int verdict = MC_COMPARE_DIFFERENT; verdict < MC_COMPARE_VERDICTS; verdict++)
            agrees = agrees && compare->pictures[group][verdict] == 0;
    return agrees && compare->asked[0] + compare->asked[1] > 0;
}
