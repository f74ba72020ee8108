/* See changes.h. */
#include "changes/changes.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "changes/changes_private.h"

enum { MARKS = 1 << 16, MARK_SETS = 1 << 14 };

mc_changes *
mc_changes_create(mc_process *process, const mc_log *log)
{
    mc_changes *changes = calloc(1, sizeof(*changes));
    MC_ASSERT(changes != NULL);
    changes->process = process;
    changes->log = log;
    pthread_mutex_init(&changes->lock, NULL);
    return changes;
}

void
mc_changes_destroy(mc_changes *changes)
{
    if (changes == NULL)
        return;
    for (int i = 0; i < changes->listener_count; i++) {
        mc_keeper_stop(changes->keepers[i]);
        mc_listener_stop(changes->listeners[i]);
    }
    for (int i = 0; i < changes->following_count; i++)
        changes->followings[i].owner->drop(changes->followings[i].owner->thing);
    mc_marks_destroy(changes->marks);
    pthread_mutex_destroy(&changes->lock);
    free(changes);
}

/* ---- what is followed */

/* By host and configuration, where nothing else is configured. */
static const char *
reader_name(const mc_following *following, apr_pool_t *pool)
{
    char host[256] = "";
    if (following->config->name != NULL)
        return following->config->name;
    (void)gethostname(host, sizeof(host) - 1);
    return apr_pstrcat(pool, host, ":", following->file, NULL);
}

static bool
is_listened_to(const mc_changes *changes, const char *connection)
{
    for (int i = 0; i < changes->listener_count; i++)
        if (strcmp(mc_listener_connection(changes->listeners[i]), connection) == 0)
            return true;
    return false;
}

/* What is over a bound is served as if it never changed. */
static void
tell_of_bound(const mc_changes *changes, const char *kind, const char *what, int bound)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, NULL);
    mc_ctx ctx = { .pool = scratch, .process = changes->process, .log = changes->log };
    mc_log_write(&ctx, MC_LOG_ERROR,
                 "changes of %s \"%s\" are not followed, and its tiles stay as they are: a process follows at most %d",
                 kind, what, bound);
    apr_pool_destroy(scratch);
}

/* With the lock held. */
static void
start_listeners(mc_changes *changes, const mc_following *following)
{
    const mc_listener_client listener = { changes, mc_changes_list_names, mc_changes_names_number, mc_changes_take };
    const mc_keeper_client keeper = { changes, mc_changes_list_names, mc_changes_begin_leading, mc_changes_settle };
    apr_interval_time_t poll = (apr_interval_time_t)(following->config->poll * APR_USEC_PER_SEC);
    apr_interval_time_t settle = (apr_interval_time_t)(following->config->settle * APR_USEC_PER_SEC);
    apr_pool_t *scratch;
    apr_pool_create(&scratch, NULL);
    const char *reader = reader_name(following, scratch);
    for (int i = 0; i < following->watches->nelts; i++) {
        const mc_watch *watch = APR_ARRAY_IDX(following->watches, i, const mc_watch *);
        for (int j = 0; j < watch->tables->nelts; j++) {
            const char *connection = APR_ARRAY_IDX(watch->tables, j, const mc_watch_table).connection;
            if (is_listened_to(changes, connection))
                continue;
            if (changes->listener_count == MC_LISTENERS_MAX) {
                tell_of_bound(changes, "the database of tileset", watch->tileset, MC_LISTENERS_MAX);
                continue;
            }
            changes->keepers[changes->listener_count] =
                mc_keeper_start(connection, reader, poll, settle, &keeper, changes->process, changes->log);
            changes->listeners[changes->listener_count++] =
                mc_listener_start(connection, reader, poll, &listener, changes->process, changes->log);
        }
    }
    apr_pool_destroy(scratch);
}

/* Which tiles have changed is not known there: more are drawn anew than have to be. */
static void
tell_of_rest(const mc_changes *changes, const mc_watch *watch, const mc_grid *grid)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, NULL);
    mc_ctx ctx = { .pool = scratch, .process = changes->process, .log = changes->log };
    mc_log_write(&ctx, MC_LOG_ERROR,
                 "tileset \"%s\", grid \"%s\": each change of a table makes all of these tiles old, as a process tells "
                 "changed tiles apart for at most %d tilesets and grids of at most 64 levels",
                 watch->tileset, grid->name, MARK_SETS);
    apr_pool_destroy(scratch);
}

/* The marks of another link of the watch that are those of this link, too; NULL: there are none. */
static mc_mark_set *
find_shared_marks(const mc_watch *watch, const mc_watch_link *link)
{
    for (const mc_watch_link *other = watch->links; other < link; other++) {
        mc_mark_set *marks = atomic_load(&other->marks);
        if (marks != NULL && mc_marks_kept_apart(marks) && mc_watch_same_metatiles(watch, link, other))
            return marks;
    }
    return NULL;
}

/* Gives the watches their marks. With the lock held. */
static void
connect_marks(mc_changes *changes, const mc_following *following)
{
    if (changes->marks == NULL)
        changes->marks = mc_marks_create(MARKS, MARK_SETS);
    for (int i = 0; i < following->watches->nelts; i++) {
        mc_watch *watch = APR_ARRAY_IDX(following->watches, i, mc_watch *);
        changes->memory = watch->memory > changes->memory ? watch->memory : changes->memory;
        if (watch->changed != NULL)
            watch->changed(watch); /* before, nobody looked */
        for (int j = 0; j < watch->link_count; j++) {
            mc_watch_link *link = &watch->links[j];
            mc_mark_set *marks = mc_marks_set(changes->marks, watch->tileset, link->link->grid, link->columns,
                                              link->rows, find_shared_marks(watch, link));
            if (mc_marks_is_rest(marks))
                tell_of_rest(changes, watch, link->link->grid);
            atomic_store(&link->marks, marks);
        }
    }
}

static bool
has_watch(const mc_following *following, const mc_watch *wanted)
{
    for (int i = 0; following->watches != NULL && i < following->watches->nelts; i++) {
        const mc_watch *watch = APR_ARRAY_IDX(following->watches, i, const mc_watch *);
        if (strcmp(watch->tileset, wanted->tileset) != 0 || watch->link_count != wanted->link_count ||
            watch->tables->nelts != wanted->tables->nelts)
            continue;
        bool same = true;
        for (int j = 0; j < watch->link_count && same; j++)
            same = atomic_load(&watch->links[j].marks) == atomic_load(&wanted->links[j].marks);
        for (int j = 0; j < watch->tables->nelts && same; j++) {
            const mc_watch_table *a = &APR_ARRAY_IDX(watch->tables, j, const mc_watch_table);
            const mc_watch_table *b = &APR_ARRAY_IDX(wanted->tables, j, const mc_watch_table);
            same = strcmp(a->table, b->table) == 0 && strcmp(a->connection, b->connection) == 0;
        }
        return same;
    }
    return false;
}

/* Whether all that is to be followed was followed before. */
static bool
watches_the_same(const mc_following *before, const mc_following *now)
{
    for (int i = 0; i < now->watches->nelts; i++)
        if (!has_watch(before, APR_ARRAY_IDX(now->watches, i, const mc_watch *)))
            return false;
    return true;
}

void
mc_changes_follow(mc_changes *changes, const mc_following *following)
{
    mc_following dropped = { 0 };
    int place = 0;
    pthread_mutex_lock(&changes->lock);
    while (place < changes->following_count && strcmp(changes->followings[place].file, following->file) != 0)
        place++;
    bool room = place < MC_FOLLOWINGS_MAX;
    if (room) {
        bool first = changes->listener_count == 0;
        if (place < changes->following_count)
            dropped = changes->followings[place];
        else
            changes->following_count++;
        changes->followings[place] = *following;
        connect_marks(changes, following);
        atomic_fetch_add(&changes->number, 1);
        for (int i = 0; i < changes->listener_count && !first && !watches_the_same(&dropped, following); i++)
            mc_listener_begin_again(changes->listeners[i]); /* for tiles that were not watched before */
        start_listeners(changes, following);
    }
    pthread_mutex_unlock(&changes->lock);
    if (dropped.owner != NULL)
        dropped.owner->drop(dropped.owner->thing);
    if (!room)
        tell_of_bound(changes, "the configuration", following->file, MC_FOLLOWINGS_MAX);
    if (!room)
        following->owner->drop(following->owner->thing);
}

void
mc_changes_visit(mc_changes *changes, void (*visit)(void *baton, const mc_changes_state *state), void *baton)
{
    if (changes == NULL)
        return;
    pthread_mutex_lock(&changes->lock);
    for (int i = 0; i < changes->listener_count; i++) {
        const mc_listener *listener = changes->listeners[i];
        visit(baton, &(mc_changes_state){ mc_listener_connection(listener), mc_listener_connected(listener),
                                          mc_keeper_leads(changes->keepers[i]), mc_listener_last_read(listener) });
    }
    pthread_mutex_unlock(&changes->lock);
}

mc_marks_statistics
mc_changes_marks(mc_changes *changes)
{
    return changes == NULL || changes->marks == NULL ? (mc_marks_statistics){ 0 } : mc_marks_stat(changes->marks);
}
