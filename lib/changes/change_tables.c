/* Whose tables these are, and who looks after them. */
#include <string.h>

#include "changes/changes_private.h"

void
mc_changes_visit_tables(mc_changes *changes, const char *connection, mc_watch_visit *visit, void *baton)
{
    for (int i = 0; i < changes->following_count; i++) {
        const apr_array_header_t *watches = changes->followings[i].watches;
        for (int j = 0; j < watches->nelts; j++) {
            mc_watch *watch = APR_ARRAY_IDX(watches, j, mc_watch *);
            for (int k = 0; k < watch->tables->nelts; k++) {
                const mc_watch_table *table = &APR_ARRAY_IDX(watch->tables, k, const mc_watch_table);
                if (strcmp(table->connection, connection) == 0)
                    visit(baton, watch, table);
            }
        }
    }
}

bool
mc_changes_lead(const mc_changes *changes, const char *connection)
{
    for (int i = 0; i < changes->listener_count; i++)
        if (strcmp(mc_listener_connection(changes->listeners[i]), connection) == 0)
            return mc_keeper_leads(changes->keepers[i]);
    return false;
}
