/* What the files of `mapcache invalidate` share. */
#ifndef MC_CLI_INVALIDATE_H
#define MC_CLI_INVALIDATE_H

#include "cli/commands.h"
#include "cli/seed/seed_options.h"

typedef struct mc_invalidate_options {
    bool sql, drop, json, dry_run, verbose;
    const char *config, *geometry, *role;
    const char *list, *tileset, *grid;
    mc_seed_options zooms; /* the levels, and nothing else */
} mc_invalidate_options;

const char *mc_check_expire_options(const mc_cli_call *call);

/* Marks the tiles that an expire list names. */
int mc_invalidate_list(const mc_cli_call *call, const mc_invalidate_options *options);

#endif
