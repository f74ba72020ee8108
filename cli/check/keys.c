/* `mapcache keys`: the configuration reference, as docs/configuration.md holds it. */
#include <apr_pools.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "server/reference.h"

int
mc_command_keys(int argc, const char *const *argv)
{
    bool wants_help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (argc > 1) {
        fputs("usage: mapcache keys\n\nWrites the reference of all configuration keys, in Markdown.\n",
              wants_help ? stdout : stderr);
        return wants_help ? 0 : 1;
    }
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    fputs(mc_reference_markdown(pool), stdout);
    apr_pool_destroy(pool);
    return fflush(stdout) == 0 ? 0 : 1;
}
