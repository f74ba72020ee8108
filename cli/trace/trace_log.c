/*
 * From trace lines to groups of nested spans (docs/reference/tracing.md 2.3), with what the published parser lacks: an
 * END closes the innermost open BEGIN of its name, events that never end are kept, midnight is no wall.
 */
#include "trace_log.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapcache/error.h"
#include "trace_line.h"

enum {
    LINE_MAX_SIZE = 16384,     /* longer lines are no trace lines */
    NAME_MAX_SIZE = 120,       /* longer names are cut */
    REQUEST_MAX = 2048,        /* longer texts are cut */
    NAMES_MAX = 2048,          /* further names are counted as one */
    THREADS_MAX = 16384,       /* with more, all start again */
    NESTED_MAX = 8,            /* groups that are open in one thread */
    GROUP_SPANS_MAX = 1 << 20, /* a group's further spans are left out */
    OPEN_SPANS_MAX = 1 << 21,  /* in all open groups; with more, all are given out */
};

typedef struct trace_log_group {
    int number;
    int root_name;
    mc_trace_span *spans;
    int count, capacity;
    int open; /* innermost open span, -1 when there is none */
    int64_t last;
    bool full;
    char *request; /* malloc'ed; NULL: not told */
} trace_log_group;

/* A thread of a process; the groups that are open in it, innermost last. */
typedef struct thread {
    const char *key;
    int next_number;
    int depth;
    trace_log_group groups[NESTED_MAX];
} thread;

struct mc_trace_log {
    apr_pool_t *pool;
    mc_trace_group_sink *sink;
    void *baton;
    apr_hash_t *name_numbers; /* text -> int * */
    const char *names[NAMES_MAX];
    int name_count;
    apr_pool_t *thread_pool;
    apr_hash_t *threads; /* "pid:tid" -> thread * */
    int open_spans;
    uint64_t strays;
    char line[LINE_MAX_SIZE];
    size_t line_size;
    bool line_too_long;
};

static const char *const root_names[] = { "mapcache_handler", "_thread_get_tile", "_thread_get_subtile" };
enum { HANDLER = 0, ROOT_COUNT = 3, OTHER_NAMES = 3 };

/* The printable form of a name, as it stands in the table: cut to its bound, other bytes as \xNN. */
static void
escape_trace_name(char *out, size_t capacity, mc_slice name)
{
    size_t used = 0;
    for (size_t i = 0; i < name.size && used + 5 < capacity; i++) {
        unsigned char c = (unsigned char)name.text[i];
        if (c > ' ' && c < 127 && c != '\'' && c != '\\')
            out[used++] = (char)c;
        else
            used += (size_t)snprintf(out + used, capacity - used, "\\x%02x", c);
    }
    out[used] = '\0';
}

static int
name_number(mc_trace_log *log, mc_slice name)
{
    char text[NAME_MAX_SIZE + 1];
    escape_trace_name(text, sizeof(text), name);
    const int *known = apr_hash_get(log->name_numbers, text, APR_HASH_KEY_STRING);
    if (known != NULL)
        return *known;
    if (log->name_count == NAMES_MAX)
        return OTHER_NAMES;
    int *number = apr_palloc(log->pool, sizeof(*number));
    *number = log->name_count++;
    log->names[*number] = apr_pstrdup(log->pool, text);
    apr_hash_set(log->name_numbers, log->names[*number], APR_HASH_KEY_STRING, number);
    return *number;
}

/* Leaves the spans from the innermost open one up to, but not including, `outer` (-1: all) without an end. They have no
 * duration of their own, so what they hold counts as their parent's children. */
static void
leave_unclosed(trace_log_group *group, int outer)
{
    for (; group->open != outer; group->open = group->spans[group->open].parent) {
        mc_trace_span *span = &group->spans[group->open];
        span->end = group->last;
        if (span->parent >= 0)
            group->spans[span->parent].children += span->children;
    }
}

/* Gives out the innermost group of a thread and drops it. */
static void
close_group(mc_trace_log *log, thread *thread)
{
    trace_log_group *group = &thread->groups[--thread->depth];
    leave_unclosed(group, -1);
    mc_trace_group out = { thread->key, group->number, group->spans, group->count, group->request };
    log->sink(log->baton, log, &out);
    log->open_spans -= group->count;
    free(group->spans);
    free(group->request);
    *group = (struct trace_log_group){ 0 };
}

/* Gives out everything that is open and forgets all threads. */
static void
close_all(mc_trace_log *log)
{
    for (apr_hash_index_t *i = apr_hash_first(NULL, log->threads); i != NULL; i = apr_hash_next(i)) {
        thread *thread = apr_hash_this_val(i);
        while (thread->depth > 0)
            close_group(log, thread);
    }
    apr_pool_clear(log->thread_pool);
    log->threads = apr_hash_make(log->thread_pool);
}

static apr_status_t
free_groups(void *baton)
{
    mc_trace_log *log = baton;
    for (apr_hash_index_t *i = apr_hash_first(NULL, log->threads); i != NULL; i = apr_hash_next(i)) {
        thread *thread = apr_hash_this_val(i);
        while (thread->depth > 0) {
            free(thread->groups[--thread->depth].spans);
            free(thread->groups[thread->depth].request);
        }
    }
    return APR_SUCCESS;
}

static thread *
find_thread(mc_trace_log *log, const mc_trace_line *line)
{
    char key[48];
    snprintf(key, sizeof(key), "%llu:%llu", (unsigned long long)line->pid, (unsigned long long)line->tid);
    thread *found = apr_hash_get(log->threads, key, APR_HASH_KEY_STRING);
    if (found != NULL)
        return found;
    if (apr_hash_count(log->threads) >= THREADS_MAX)
        close_all(log);
    found = apr_pcalloc(log->thread_pool, sizeof(*found));
    found->key = apr_pstrdup(log->thread_pool, key);
    apr_hash_set(log->threads, found->key, APR_HASH_KEY_STRING, found);
    return found;
}

/* Opens a group. A handler never runs inside another group, nor a thread's body inside one of its own kind: an open one
 * was left by a thread that died, so it is given out first. */
static void
open_group(mc_trace_log *log, thread *thread, int root_name)
{
    bool stale = thread->depth == NESTED_MAX || root_name == HANDLER;
    for (int i = 0; i < thread->depth; i++)
        stale = stale || thread->groups[i].root_name == root_name;
    while (stale && thread->depth > 0)
        close_group(log, thread);
    thread->groups[thread->depth++] =
        (trace_log_group){ .number = thread->next_number++, .root_name = root_name, .open = -1 };
}

static void
begin_span(mc_trace_log *log, trace_log_group *group, int name, int64_t time)
{
    if (group->count == GROUP_SPANS_MAX)
        group->full = true;
    if (group->full)
        return;
    if (group->count == group->capacity) {
        group->capacity = group->capacity == 0 ? 16 : group->capacity * 2;
        group->spans = realloc(group->spans, (size_t)group->capacity * sizeof(*group->spans));
        MC_ASSERT(group->spans != NULL);
    }
    int depth = group->open < 0 ? 1 : group->spans[group->open].depth + 1;
    group->spans[group->count] =
        (mc_trace_span){ .begin = time, .end = time, .parent = group->open, .depth = depth, .name = name, .note = -1 };
    group->open = group->count++;
    log->open_spans++;
}

/* Closes the innermost open span of that name; those inside it that are still open stay unclosed. */
static void
end_span(mc_trace_log *log, trace_log_group *group, int name, int note, int64_t time)
{
    int found = group->open;
    while (found >= 0 && group->spans[found].name != name)
        found = group->spans[found].parent;
    if (found < 0) {
        log->strays++;
        return;
    }
    leave_unclosed(group, found);
    mc_trace_span *span = &group->spans[found];
    span->closed = true;
    span->note = note;
    span->end = time > span->begin ? time : span->begin; /* a clock that was set back */
    group->open = span->parent;
    if (span->parent >= 0)
        group->spans[span->parent].children += span->end - span->begin;
}

/* The line belongs to the group that is open in its thread; the last one of a group counts. */
static void
take_request(mc_trace_log *log, const mc_trace_line *line)
{
    thread *thread = find_thread(log, line);
    if (thread->depth == 0)
        return;
    trace_log_group *group = &thread->groups[thread->depth - 1];
    free(group->request);
    group->request = strndup(line->request.text, line->request.size < REQUEST_MAX ? line->request.size : REQUEST_MAX);
}

static void
take_event(mc_trace_log *log, const mc_trace_line *line)
{
    int name = name_number(log, line->name);
    thread *thread = find_thread(log, line);
    if (line->begin && name < ROOT_COUNT)
        open_group(log, thread, name);
    if (thread->depth == 0) {
        log->strays++;
        return;
    }
    trace_log_group *group = &thread->groups[thread->depth - 1];
    if (line->time > group->last)
        group->last = line->time;
    if (line->begin)
        begin_span(log, group, name, line->time);
    else if (!group->full || name == group->root_name)
        end_span(log, group, name, line->note.size > 0 ? name_number(log, line->note) : -1, line->time);
    if (!line->begin && name == group->root_name)
        close_group(log, thread);
    if (log->open_spans > OPEN_SPANS_MAX)
        close_all(log);
}

static void
handle_trace_log_line(mc_trace_log *log, const char *text, size_t size)
{
    mc_trace_line line;
    if (!mc_trace_line_parse(&line, text, size))
        return;
    if (line.request.size > 0)
        take_request(log, &line);
    else
        take_event(log, &line);
}

void
mc_trace_log_feed(mc_trace_log *log, const char *data, size_t size)
{
    const char *end = data + size;
    while (data < end) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        size_t piece = (size_t)((newline != NULL ? newline : end) - data);
        if (newline != NULL && log->line_size == 0 && !log->line_too_long) {
            if (piece <= LINE_MAX_SIZE)
                handle_trace_log_line(log, data, piece);
            data = newline + 1;
            continue;
        }
        /* The line began in an earlier piece, or ends in a later one. */
        log->line_too_long = log->line_too_long || piece > LINE_MAX_SIZE - log->line_size;
        if (!log->line_too_long) {
            memcpy(log->line + log->line_size, data, piece);
            log->line_size += piece;
        }
        data += piece;
        if (newline != NULL) {
            if (!log->line_too_long)
                handle_trace_log_line(log, log->line, log->line_size);
            log->line_size = 0;
            log->line_too_long = false;
            data++;
        }
    }
}

void
mc_trace_log_finish(mc_trace_log *log)
{
    if (log->line_size > 0 && !log->line_too_long)
        handle_trace_log_line(log, log->line, log->line_size);
    log->line_size = 0;
    close_all(log);
}

mc_trace_log *
mc_trace_log_create(mc_trace_group_sink *sink, void *baton, apr_pool_t *pool)
{
    mc_trace_log *log = apr_pcalloc(pool, sizeof(*log));
    log->pool = pool;
    log->sink = sink;
    log->baton = baton;
    log->name_numbers = apr_hash_make(pool);
    apr_pool_create(&log->thread_pool, pool);
    log->threads = apr_hash_make(log->thread_pool);
    for (int i = 0; i < ROOT_COUNT; i++)
        name_number(log, (mc_slice){ root_names[i], strlen(root_names[i]) });
    static const char other[] = "(other)";
    name_number(log, (mc_slice){ other, sizeof(other) - 1 });
    apr_pool_pre_cleanup_register(pool, log, free_groups);
    return log;
}

const char *
mc_trace_log_name(const mc_trace_log *log, int name)
{
    return log->names[name];
}

int
mc_trace_log_names(const mc_trace_log *log)
{
    return log->name_count;
}

uint64_t
mc_trace_log_strays(const mc_trace_log *log)
{
    return log->strays;
}

int64_t
mc_trace_span_self(const mc_trace_span *span)
{
    int64_t own = span->end - span->begin - span->children;
    return own > 0 ? own : 0;
}
