/* `mapcache keys` and `mapcache parameters`: the references, as docs/configuration.md and docs/parameters.md hold them.
 */
#include <stdio.h>

#include "cli/commands.h"
#include "server/reference.h"

int
mc_command_keys(mc_cli_call *call)
{
    fputs(mc_reference_markdown(call->pool), stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}

int
mc_command_parameters(mc_cli_call *call)
{
    fputs(mc_parameters_markdown(call->pool), stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
