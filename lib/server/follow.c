/* A configuration follows the change logs of the databases that its maps show. */
#include "changes/changes.h"
#include "overview/update/overview_follower.h"
#include "server/expire_folder.h"
#include "server/server_private.h"

void
mc_config_follow_changes(const mc_config *config, const mc_owner *owner, mc_process *process)
{
    mc_expire_folders_watch(process->expire_folders, config, owner);
    if (config->changes == NULL || process->changes == NULL)
        return;
    apr_array_header_t *watches = apr_array_make(config->tilesets->pool, 8, sizeof(mc_watch *));
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        if (tileset->watch != NULL)
            APR_ARRAY_PUSH(watches, mc_watch *) = tileset->watch;
    }
    owner->take(owner->thing);
    mc_changes_follow(process->changes, &(mc_following){ config->file, config->changes, watches, owner });
    mc_overview_follower_want(process->overviews, config->changes);
}
