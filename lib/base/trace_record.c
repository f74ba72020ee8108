/* What a trace keeps of its spans: sums by name, and the spans themselves, with those of the request's jobs. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/trace_private.h"

/* Constants of two files may be of equal text: most are found by their address. */
static mc_span_sum *
find_span_sum(mc_span_sums *sums, const char *name)
{
    for (int i = 0; i < sums->count; i++)
        if (sums->spans[i].name == name)
            return &sums->spans[i];
    for (int i = 0; i < sums->count; i++)
        if (strcmp(sums->spans[i].name, name) == 0)
            return &sums->spans[i];
    return NULL;
}

static void
add_span_sum(mc_span_sums *sums, const char *name, int64_t microseconds, int64_t own)
{
    mc_span_sum *sum = find_span_sum(sums, name);
    if (sum == NULL && sums->count < MC_TRACE_NAMES_MAX) {
        sum = &sums->spans[sums->count++];
        *sum = (mc_span_sum){ name, 0, 0 };
    }
    if (sum != NULL) {
        sum->microseconds += microseconds;
        sum->own += own;
    }
}

void
mc_trace_add_sum(mc_trace *trace, const char *name, int64_t microseconds, int64_t own)
{
    if (trace->sums == NULL) {
        trace->sums = apr_palloc(trace->pool, sizeof(*trace->sums));
        trace->sums->count = 0;
    }
    add_span_sum(trace->sums, name, microseconds, own);
}

/* Room for one more record of this trace. */
static mc_span_record *
next_span_record(mc_trace *trace)
{
    mc_span_chunk *chunk = trace->last;
    if (chunk == NULL || chunk->count == MC_TRACE_CHUNK) {
        chunk = apr_palloc(trace->pool, sizeof(*chunk));
        chunk->next = NULL;
        chunk->count = 0;
        *(trace->last == NULL ? &trace->first : &trace->last->next) = chunk;
        trace->last = chunk;
    }
    return &chunk->records[chunk->count++];
}

void
mc_trace_record(mc_trace *trace, const mc_span *span, int64_t duration, long thread)
{
    if (span->number > MC_TRACE_SPANS_MAX) {
        atomic_fetch_add_explicit(&trace->root->lost, 1, memory_order_relaxed);
        return;
    }
    mc_span_record *record = next_span_record(trace);
    record->name = span->name;
    record->note = span->note;
    record->begin = span->begin;
    record->duration = duration;
    record->number = span->number;
    record->parent = span->parent;
    record->thread = thread;
    record->subject[0] = '\0';
    if (span->subject != NULL)
        apr_cpystrn(record->subject, span->subject, sizeof(record->subject));
}

/* With the root's lock held. Without memory the spans are lost. */
static void
join_span_records(mc_trace *root, const mc_trace *fork)
{
    for (const mc_span_chunk *chunk = fork->first; chunk != NULL; chunk = chunk->next) {
        if (root->job_room - root->job_count < chunk->count) {
            int room = root->job_room * 2 + MC_TRACE_CHUNK;
            mc_span_record *jobs = realloc(root->jobs, (size_t)room * sizeof(*jobs));
            if (jobs == NULL)
                return;
            root->jobs = jobs;
            root->job_room = room;
        }
        memcpy(root->jobs + root->job_count, chunk->records, (size_t)chunk->count * sizeof(*root->jobs));
        root->job_count += chunk->count;
    }
}

void
mc_trace_join(mc_trace *fork)
{
    mc_trace *root = fork->root;
    if (fork->sums == NULL && fork->first == NULL)
        return;
    pthread_mutex_lock(&root->lock);
    if (fork->sums != NULL && root->joined == NULL)
        root->joined = calloc(1, sizeof(*root->joined));
    for (int i = 0; fork->sums != NULL && root->joined != NULL && i < fork->sums->count; i++)
        add_span_sum(root->joined, fork->sums->spans[i].name, fork->sums->spans[i].microseconds,
                     fork->sums->spans[i].own);
    join_span_records(root, fork);
    pthread_mutex_unlock(&root->lock);
}

unsigned
mc_trace_innermost(const mc_trace *trace)
{
    return trace == NULL ? 0 : trace->open;
}

unsigned
mc_trace_visit(mc_trace *trace, void (*take)(void *baton, const mc_span_record *span), void *baton)
{
    for (const mc_span_chunk *chunk = trace->first; chunk != NULL; chunk = chunk->next)
        for (int i = 0; i < chunk->count; i++)
            take(baton, &chunk->records[i]);
    pthread_mutex_lock(&trace->root->lock);
    for (int i = 0; i < trace->root->job_count; i++)
        take(baton, &trace->root->jobs[i]);
    pthread_mutex_unlock(&trace->root->lock);
    return atomic_load_explicit(&trace->root->lost, memory_order_relaxed);
}

static void
take_own(mc_span_sums *sums, void (*take)(void *baton, const char *name, int64_t microseconds), void *baton)
{
    for (int i = 0; sums != NULL && i < sums->count; i++) {
        if (sums->spans[i].own != 0)
            take(baton, sums->spans[i].name, sums->spans[i].own);
        sums->spans[i].own = 0;
    }
}

void
mc_trace_take_own(mc_trace *trace, void (*take)(void *baton, const char *name, int64_t microseconds), void *baton)
{
    take_own(trace->sums, take, baton);
    pthread_mutex_lock(&trace->root->lock);
    take_own(trace->root->joined, take, baton);
    pthread_mutex_unlock(&trace->root->lock);
}

static const char *
short_name(const char *name)
{
    static const char prefix[] = "mapcache_";
    const char *start = *name == '_' ? name + 1 : name;
    return strncmp(start, prefix, sizeof(prefix) - 1) == 0 ? start + sizeof(prefix) - 1 : name;
}

const char *
mc_trace_server_timing(const mc_trace *trace, apr_pool_t *pool)
{
    mc_span_sums all = { .count = 0 };
    mc_trace *root = trace->root;
    if (trace->sums != NULL)
        all = *trace->sums;
    pthread_mutex_lock(&root->lock);
    for (int i = 0; root->joined != NULL && i < root->joined->count; i++)
        add_span_sum(&all, root->joined->spans[i].name, root->joined->spans[i].microseconds, 0);
    pthread_mutex_unlock(&root->lock);
    const char *text = "";
    for (int i = 0; i < all.count; i++)
        text = apr_psprintf(pool, "%s%s%s;dur=%" APR_INT64_T_FMT ".%03d", text, i == 0 ? "" : ", ",
                            short_name(all.spans[i].name), all.spans[i].microseconds / 1000,
                            (int)(all.spans[i].microseconds % 1000));
    return text;
}
