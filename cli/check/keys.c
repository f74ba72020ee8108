/* `mapcache keys` and `mapcache parameters`: the references, as docs/configuration.md and docs/parameters.md hold them.
 */
#include <apr_pools.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "server/reference.h"

/* Prints the text that `write` makes. */
static int
print_reference(int argc, const char *const *argv, const char *usage, const char *(*write)(apr_pool_t *pool))
{
    bool wants_help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (argc > 1) {
        fputs(usage, wants_help ? stdout : stderr);
        return wants_help ? 0 : 1;
    }
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    fputs(write(pool), stdout);
    apr_pool_destroy(pool);
    return fflush(stdout) == 0 ? 0 : 1;
}

int
mc_command_keys(int argc, const char *const *argv)
{
    return print_reference(argc, argv,
                           "usage: mapcache keys\n\nWrites the reference of all configuration keys, in Markdown.\n",
                           mc_reference_markdown);
}

int
mc_command_parameters(int argc, const char *const *argv)
{
    return print_reference(
        argc, argv, "usage: mapcache parameters\n\nWrites the reference of all parameters of requests, in Markdown.\n",
        mc_parameters_markdown);
}
