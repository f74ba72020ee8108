/* `mapcache keys`: the configuration reference, as docs/configuration.md holds it. */
#include <stdio.h>

#include "cli/commands.h"
#include "server/reference.h"

int
mc_command_keys(mc_cli_call *call)
{
    fputs(mc_reference_markdown(call->pool), stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
