/* What is read of a change log becomes marks. */
#include <apr_strings.h>
#include <string.h>

#include "changes/changes_counters.h"
#include "changes/changes_private.h"
#include "changes/mark_boxes.h"

/* Microseconds by which clocks may differ without being moved, beside what the way to the database takes. */
#define CLOCK_NOISE 5000

/* Seconds that marks are kept for longer than they have to be, and from one look for those to the next. */
#define KEPT 30
#define FORGET_EACH 10

apr_time_t
mc_changes_now(const mc_changes *changes)
{
    return apr_time_now() + (changes == NULL ? 0 : atomic_load_explicit(&changes->offset, memory_order_relaxed));
}

static void
push_table_name(void *baton, mc_watch *watch, const mc_watch_table *table)
{
    apr_array_header_t *names = baton;
    (void)watch;
    APR_ARRAY_PUSH(names, const char *) = apr_pstrdup(names->pool, table->table);
}

unsigned
mc_changes_list_names(apr_array_header_t **names, void *baton, const char *connection, apr_pool_t *pool)
{
    mc_changes *changes = baton;
    *names = apr_array_make(pool, 8, sizeof(const char *));
    pthread_mutex_lock(&changes->lock);
    mc_changes_visit_tables(changes, connection, push_table_name, *names);
    unsigned number = atomic_load(&changes->number);
    pthread_mutex_unlock(&changes->lock);
    return number;
}

unsigned
mc_changes_names_number(void *baton)
{
    return atomic_load(&((mc_changes *)baton)->number);
}

/* The marking of one batch. */
typedef struct batch_marking {
    const mc_log_batch *batch;
    const apr_array_header_t *found; /* mc_log_name */
    const mc_box_set *everything;
    apr_time_t time, lost;
    int index; /* of the next name */
    int64_t ranges;
    apr_pool_t *pool;
} batch_marking;

static void
tell_of_change(const mc_watch *watch, const mc_watch_table *table)
{
    if (table->told && watch->changed != NULL)
        watch->changed(watch);
}

static void
mark_table(void *baton, mc_watch *watch, const mc_watch_table *table)
{
    batch_marking *marking = baton;
    const mc_log_batch *batch = marking->batch;
    int index = marking->index++;
    if (batch->lost)
        tell_of_change(watch, table);
    if (batch->lost)
        marking->ranges += mc_mark_boxes(watch, table, 0, marking->everything, marking->lost, marking->pool);
    for (int i = 0; i < marking->found->nelts; i++) {
        const mc_log_name *name = &APR_ARRAY_IDX(marking->found, i, const mc_log_name);
        for (int j = 0; j < batch->tables->nelts && name->index == index; j++) {
            const mc_log_table *changed = &APR_ARRAY_IDX(batch->tables, j, const mc_log_table);
            if (changed->relation != name->relation)
                continue;
            tell_of_change(watch, table);
            marking->ranges += mc_mark_boxes(watch, table, changed->srid, changed->boxes, marking->time, marking->pool);
        }
    }
}

apr_time_t
mc_changes_time_seen(const mc_changes *changes, const mc_log_batch *batch)
{
    apr_time_t offset = atomic_load(&changes->offset);
    return mc_clock_watch_after(&changes->clock, batch->seen + offset + (offset == 0 ? 0 : batch->trip));
}

apr_time_t
mc_changes_time_lost(const mc_changes *changes, const mc_log_batch *batch)
{
    apr_time_t seen = mc_changes_time_seen(changes, batch);
    apr_time_t lost = mc_clock_watch_after(&changes->clock, batch->lost_by + atomic_load(&changes->offset));
    return lost < seen ? lost : seen;
}

static void
tell_of_step_back(const mc_changes *changes, apr_interval_time_t back, apr_pool_t *pool)
{
    mc_ctx ctx = { .pool = pool, .process = changes->process, .log = changes->log };
    mc_log_write(
        &ctx, MC_LOG_WARN,
        "the clock of the first database with a change log was set back by %.3f s: until it has made up for that, "
        "each process draws changed tiles once in %d seconds, as nobody can tell which ones are new",
        (double)back / APR_USEC_PER_SEC, MC_MARKS_HOLD);
}

/* The clock of the first database is that of all hosts. Differences below what can be measured are none, and the offset
 * stays as it is unless it is certainly another one: tiles and marks have times that can be compared. */
static void
measure_clock(mc_changes *changes, const char *connection, const mc_log_batch *batch, apr_pool_t *pool)
{
    apr_interval_time_t unsure = batch->trip + CLOCK_NOISE, before = atomic_load(&changes->offset);
    if (strcmp(mc_listener_connection(changes->listeners[0]), connection) != 0)
        return;
    apr_interval_time_t back = mc_clock_watch_read(&changes->clock, batch->seen + batch->offset, batch->steady, unsure);
    if (back > 0)
        tell_of_step_back(changes, back, pool);
    if (batch->offset - before <= unsure && before - batch->offset <= unsure)
        return;
    atomic_store(&changes->offset, batch->offset <= unsure && -batch->offset <= unsure ? 0 : batch->offset);
    mc_marks_set_clock(changes->marks, atomic_load(&changes->offset));
}

/* Marks that no store has anything older than any more, nor any memory. With the lock held. */
static void
forget_settled_marks(mc_changes *changes)
{
    apr_time_t limit = mc_changes_now(changes) - (apr_interval_time_t)((changes->memory + KEPT) * APR_USEC_PER_SEC);
    for (int i = 0; i < changes->listener_count; i++) {
        apr_time_t unsettled = mc_listener_unsettled(changes->listeners[i]);
        if (mc_listener_last_read(changes->listeners[i]) == 0)
            return;
        limit = unsettled != 0 && unsettled - 1 < limit ? unsettled - 1 : limit;
    }
    if (limit < changes->forgotten + APR_USEC_PER_SEC * FORGET_EACH)
        return;
    changes->forgotten = limit;
    mc_marks_forget(changes->marks, limit);
}

static void
count_log_batch(const mc_changes *changes, const mc_log_batch *batch, int64_t ranges, apr_pool_t *pool)
{
    mc_metrics *metrics = changes->process->metrics;
    mc_count(metrics, MC_COUNT_change_reads_total, 1);
    mc_count(metrics, MC_COUNT_change_rows_total, (uint64_t)batch->rows);
    mc_count(metrics, MC_COUNT_change_marks_total, (uint64_t)ranges);
    if (!batch->lost)
        return;
    mc_count(metrics, MC_COUNT_change_losses_total, 1);
    mc_ctx ctx = { .pool = pool, .process = changes->process, .log = changes->log };
    mc_log_write(&ctx, MC_LOG_WARN,
                 "a change log has lost what was not read of it: all of its tables count as changed");
}

bool
mc_changes_take(apr_time_t *time, void *baton, const char *connection, const mc_log_batch *batch,
                const apr_array_header_t *found, unsigned number, apr_pool_t *pool)
{
    mc_changes *changes = baton;
    batch_marking marking = {
        .batch = batch, .found = found, .everything = mc_box_set_create_whole(pool), .pool = pool
    };
    pthread_mutex_lock(&changes->lock);
    bool same = atomic_load(&changes->number) == number;
    if (same) {
        measure_clock(changes, connection, batch, pool);
        marking.time = mc_changes_time_seen(changes, batch);
        marking.lost = mc_changes_time_lost(changes, batch);
        if (batch->lost || batch->tables->nelts > 0)
            mc_changes_visit_tables(changes, connection, mark_table, &marking);
        if (batch->lost || batch->tables->nelts > 0)
            atomic_fetch_add(&changes->told, 1);
        if (mc_changes_lead(changes, connection))
            mc_changes_purge(changes, connection, batch, found, true, pool);
        forget_settled_marks(changes);
    }
    pthread_mutex_unlock(&changes->lock);
    *time = batch->lost ? marking.lost : marking.time;
    if (same)
        count_log_batch(changes, batch, marking.ranges, pool);
    return same;
}
