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

uint64_t
mc_changes_number(mc_changes *changes)
{
    uint64_t leading = 0;
    pthread_mutex_lock(&changes->lock);
    for (int i = 0; i < changes->listener_count; i++)
        leading |= (uint64_t)mc_keeper_leads(changes->keepers[i]) << i;
    uint64_t number = atomic_load(&changes->told) << 32 | (uint64_t)(atomic_load(&changes->number) & 0xffff) << 16;
    pthread_mutex_unlock(&changes->lock);
    return number | leading;
}

bool
mc_changes_is_leader(mc_changes *changes, const char *connection)
{
    pthread_mutex_lock(&changes->lock);
    bool leads = mc_changes_lead(changes, connection);
    pthread_mutex_unlock(&changes->lock);
    return leads;
}

apr_array_header_t *
mc_changes_hold(mc_changes *changes, apr_pool_t *pool)
{
    apr_array_header_t *held = apr_array_make(pool, 4, sizeof(mc_following));
    pthread_mutex_lock(&changes->lock);
    for (int i = 0; i < changes->following_count; i++) {
        APR_ARRAY_PUSH(held, mc_following) = changes->followings[i];
        changes->followings[i].owner->take(changes->followings[i].owner->thing);
    }
    pthread_mutex_unlock(&changes->lock);
    return held;
}

void
mc_changes_release(const apr_array_header_t *held)
{
    for (int i = 0; i < held->nelts; i++) {
        const mc_owner *owner = APR_ARRAY_IDX(held, i, mc_following).owner;
        owner->drop(owner->thing);
    }
}
