/* See changes.h. */
#include "changes/changes.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "changes/changes_counters.h"
#include "changes/listener.h"
#include "changes/mark_boxes.h"

enum { MARKS = 1 << 16, LISTENERS_MAX = 16, FOLLOWINGS_MAX = 256 };

/* Microseconds by which clocks may differ without being moved, beside what the way to the database takes. */
#define CLOCK_NOISE 5000

struct mc_changes {
    mc_process *process;
    const mc_log *log;
    mc_marks *marks;
    _Atomic apr_time_t offset; /* of the first database's clock from ours */
    _Atomic unsigned number;   /* changes with what is followed */
    pthread_mutex_t lock;      /* of what follows, also while watches are used */
    mc_following followings[FOLLOWINGS_MAX];
    int following_count;
    mc_listener *listeners[LISTENERS_MAX]; /* the first one is that of the reference clock */
    int listener_count;
};

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
    for (int i = 0; i < changes->listener_count; i++)
        mc_listener_stop(changes->listeners[i]);
    for (int i = 0; i < changes->following_count; i++)
        changes->followings[i].drop(changes->followings[i].owner);
    mc_marks_destroy(changes->marks);
    pthread_mutex_destroy(&changes->lock);
    free(changes);
}

apr_time_t
mc_changes_now(const mc_changes *changes)
{
    return apr_time_now() + (changes == NULL ? 0 : atomic_load_explicit(&changes->offset, memory_order_relaxed));
}

/* ---- what a listener asks and tells */

/* Calls `visit` with each table of all watches that stands in the database, in one order for one number. With the lock
 * held. */
static void
visit_tables(mc_changes *changes, const char *connection,
             void (*visit)(void *baton, mc_watch *watch, const mc_watch_table *table), void *baton)
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

static void
push_table_name(void *baton, mc_watch *watch, const mc_watch_table *table)
{
    apr_array_header_t *names = baton;
    (void)watch;
    APR_ARRAY_PUSH(names, const char *) = apr_pstrdup(names->pool, table->table);
}

static unsigned
list_watched_names(apr_array_header_t **names, void *baton, const char *connection, apr_pool_t *pool)
{
    mc_changes *changes = baton;
    *names = apr_array_make(pool, 8, sizeof(const char *));
    pthread_mutex_lock(&changes->lock);
    visit_tables(changes, connection, push_table_name, *names);
    unsigned number = atomic_load(&changes->number);
    pthread_mutex_unlock(&changes->lock);
    return number;
}

static unsigned
number_of_names(void *baton)
{
    return atomic_load(&((mc_changes *)baton)->number);
}

/* The marking of one batch. */
typedef struct batch_marking {
    const mc_log_batch *batch;
    const apr_array_header_t *found; /* mc_log_name */
    const mc_box_set *everything;
    apr_time_t time;
    int index; /* of the next name */
    int64_t ranges;
    apr_pool_t *pool;
} batch_marking;

static void
mark_table(void *baton, mc_watch *watch, const mc_watch_table *table)
{
    batch_marking *marking = baton;
    const mc_log_batch *batch = marking->batch;
    int index = marking->index++;
    if (batch->lost) {
        marking->ranges += mc_mark_boxes(watch, table, 0, marking->everything, marking->time, marking->pool);
        return;
    }
    for (int i = 0; i < marking->found->nelts; i++) {
        const mc_log_name *name = &APR_ARRAY_IDX(marking->found, i, const mc_log_name);
        for (int j = 0; j < batch->tables->nelts && name->index == index; j++) {
            const mc_log_table *changed = &APR_ARRAY_IDX(batch->tables, j, const mc_log_table);
            if (changed->relation == name->relation)
                marking->ranges +=
                    mc_mark_boxes(watch, table, changed->srid, changed->boxes, marking->time, marking->pool);
        }
    }
}

/* The clock of the first database is that of all hosts. Differences below what can be measured are none. */
static apr_time_t
settle_clock(mc_changes *changes, const char *connection, const mc_log_batch *batch)
{
    if (strcmp(mc_listener_connection(changes->listeners[0]), connection) == 0) {
        apr_interval_time_t size = batch->offset < 0 ? -batch->offset : batch->offset;
        atomic_store(&changes->offset, size <= batch->trip + CLOCK_NOISE ? 0 : batch->offset);
    }
    apr_time_t offset = atomic_load(&changes->offset);
    return batch->seen + offset + (offset == 0 ? 0 : batch->trip);
}

static void
take_changes(void *baton, const char *connection, const mc_log_batch *batch, const apr_array_header_t *found,
             apr_pool_t *pool)
{
    mc_changes *changes = baton;
    mc_box_set *everything = mc_box_set_create(pool);
    everything->whole = true;
    pthread_mutex_lock(&changes->lock);
    batch_marking marking = { batch, found, everything, settle_clock(changes, connection, batch), 0, 0, pool };
    if (batch->lost || batch->tables->nelts > 0)
        visit_tables(changes, connection, mark_table, &marking);
    pthread_mutex_unlock(&changes->lock);
    mc_count(changes->process->metrics, MC_COUNT_change_reads_total, 1);
    mc_count(changes->process->metrics, MC_COUNT_change_rows_total, (uint64_t)batch->rows);
    mc_count(changes->process->metrics, MC_COUNT_change_marks_total, (uint64_t)marking.ranges);
    if (!batch->lost)
        return;
    mc_count(changes->process->metrics, MC_COUNT_change_losses_total, 1);
    mc_ctx ctx = { .pool = pool, .log = changes->log };
    mc_log_write(&ctx, MC_LOG_WARN,
                 "a change log has lost what was not read of it: all of its tables count as changed");
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

/* With the lock held. */
static void
start_listeners(mc_changes *changes, const mc_following *following)
{
    const mc_listener_client client = { changes, list_watched_names, number_of_names, take_changes };
    apr_pool_t *scratch;
    apr_pool_create(&scratch, NULL);
    const char *reader = reader_name(following, scratch);
    for (int i = 0; i < following->watches->nelts; i++) {
        const mc_watch *watch = APR_ARRAY_IDX(following->watches, i, const mc_watch *);
        for (int j = 0; j < watch->tables->nelts; j++) {
            const char *connection = APR_ARRAY_IDX(watch->tables, j, const mc_watch_table).connection;
            if (changes->listener_count < LISTENERS_MAX && !is_listened_to(changes, connection))
                changes->listeners[changes->listener_count++] = mc_listener_start(
                    connection, reader, (apr_interval_time_t)(following->config->poll * APR_USEC_PER_SEC), &client,
                    changes->process, changes->log);
        }
    }
    apr_pool_destroy(scratch);
}

/* Gives the watches their marks. With the lock held. */
static void
connect_marks(mc_changes *changes, const mc_following *following)
{
    if (changes->marks == NULL)
        changes->marks = mc_marks_create(MARKS);
    for (int i = 0; i < following->watches->nelts; i++) {
        mc_watch *watch = APR_ARRAY_IDX(following->watches, i, mc_watch *);
        for (int j = 0; j < watch->link_count; j++) {
            mc_watch_link *link = &watch->links[j];
            atomic_store(&link->marks,
                         mc_marks_set(changes->marks, watch->tileset, link->link->grid, link->columns, link->rows));
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
    bool room = place < FOLLOWINGS_MAX;
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
    if (dropped.drop != NULL)
        dropped.drop(dropped.owner);
    if (!room)
        following->drop(following->owner);
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
                                          mc_listener_last_read(listener) });
    }
    pthread_mutex_unlock(&changes->lock);
}

mc_marks_statistics
mc_changes_marks(mc_changes *changes)
{
    return changes == NULL || changes->marks == NULL ? (mc_marks_statistics){ 0 } : mc_marks_stat(changes->marks);
}
