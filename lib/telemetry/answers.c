/* See answers.h. Nothing here locks: a process that dies leaves nothing behind but a name that is never finished. */
#include "telemetry/answers.h"

#include <apr_strings.h>
#include <sched.h>
#include <string.h>

enum { STRIPES = 4, SERVICES = 16, CACHE_LINE = 64, PATIENCE = 1000 };
enum { NO_TILESET, OTHER_TILESETS, SEVERAL_TILESETS, FIRST_TILESET, PLACES = FIRST_TILESET + MC_ANSWER_TILESETS_MAX };
enum { OTHER_SERVICES = 0, FIRST_SERVICE = 1 };
enum { FREE, BEING_NAMED, NAMED };

/* All that the server answers by itself; others come from servers that requests were handed on to. */
static const int statuses[] = { 200, 304, 404, 400, 204, 206, 301, 302, 303, 307, 401, 403,
                                405, 406, 412, 413, 429, 431, 500, 501, 502, 503, 504 };
enum { STATUSES = sizeof(statuses) / sizeof(statuses[0]) + 1 }; /* the last one: others */

typedef struct shared_name {
    atomic_int state;
    char text[MC_ANSWER_NAME_SIZE];
} shared_name;

typedef struct answer_counts {
    _Alignas(CACHE_LINE) _Atomic uint64_t responses[SERVICES][STATUSES];
    _Atomic uint64_t results[MC_ANSWER_RESULT_COUNT];
    mc_histogram times;
} answer_counts;

typedef struct answer_table {
    shared_name tilesets[PLACES]; /* those before FIRST_TILESET have no name here */
    shared_name services[SERVICES];
    answer_counts counts[STRIPES][PLACES];
} answer_table;

static const char *const result_names[] = {
#define X(word, meaning) #word,
    MC_ANSWER_RESULTS(X)
#undef X
};

const char *
mc_answer_result_name(mc_answer_result result)
{
    MC_ASSERT(result < MC_ANSWER_RESULT_COUNT);
    return result_names[result];
}

mc_answer_result
mc_answer_classify(const mc_account *account)
{
    const unsigned events = atomic_load_explicit(&account->events, memory_order_relaxed);
    if (account->status >= 400)
        return MC_ANSWER_error;
    if ((events & MC_EVENT_STALE) != 0)
        return MC_ANSWER_stale;
    if ((events & MC_EVENT_RENDERED) != 0)
        return MC_ANSWER_rendered;
    if ((events & MC_EVENT_WAITED) != 0)
        return MC_ANSWER_waited;
    if (account->grid == NULL && account->width == 0)
        return MC_ANSWER_none;
    return (events & MC_EVENT_COMPOSED) != 0 ? MC_ANSWER_composed : MC_ANSWER_hit;
}

size_t
mc_answers_size(void)
{
    return sizeof(answer_table);
}

static bool
is_shared_name(const shared_name *name, const char *text)
{
    return atomic_load_explicit(&name->state, memory_order_acquire) == NAMED &&
           strncmp(name->text, text, MC_ANSWER_NAME_SIZE - 1) == 0;
}

/* Whoever is writing a name finishes in a moment, unless its process has died. */
static void
await_shared_name(shared_name *name)
{
    for (int i = 0; i < PATIENCE && atomic_load_explicit(&name->state, memory_order_acquire) == BEING_NAMED; i++)
        sched_yield();
}

/* The place of a name among `names`, from `first` on; a free one takes the name. -1: all have others. */
static int
claim_shared_name(shared_name *names, int first, int count, const char *text)
{
    for (int i = first; i < count; i++) {
        int state = FREE;
        if (atomic_compare_exchange_strong(&names[i].state, &state, BEING_NAMED)) {
            apr_cpystrn(names[i].text, text, MC_ANSWER_NAME_SIZE);
            atomic_store_explicit(&names[i].state, NAMED, memory_order_release);
            return i;
        }
        await_shared_name(&names[i]);
        if (is_shared_name(&names[i], text))
            return i;
    }
    return -1;
}

static int
place_of_tileset(answer_table *table, mc_answer_label *label)
{
    int place = atomic_load_explicit(&label->place, memory_order_relaxed);
    if (place >= FIRST_TILESET && is_shared_name(&table->tilesets[place], label->name))
        return place;
    place = claim_shared_name(table->tilesets, FIRST_TILESET, PLACES, label->name);
    if (place < 0)
        return OTHER_TILESETS;
    atomic_store_explicit(&label->place, place, memory_order_relaxed);
    return place;
}

/* The names of services are constants of the library: each process remembers where they are. */
static int
place_of_service(answer_table *table, const char *service)
{
    static _Atomic(const char *) known[SERVICES];
    if (service == NULL)
        return OTHER_SERVICES;
    for (int i = FIRST_SERVICE; i < SERVICES; i++)
        if (atomic_load_explicit(&known[i], memory_order_relaxed) == service &&
            is_shared_name(&table->services[i], service))
            return i;
    int place = claim_shared_name(table->services, FIRST_SERVICE, SERVICES, service);
    if (place < 0)
        return OTHER_SERVICES;
    atomic_store_explicit(&known[place], service, memory_order_relaxed);
    return place;
}

static int
place_of_status(int status)
{
    int place = 0;
    while (place < STATUSES - 1 && statuses[place] != status)
        place++;
    return place;
}

static unsigned
own_answer_stripe(void)
{
    static atomic_uint next;
    static _Thread_local unsigned stripe; /* 0: not yet chosen */
    if (stripe == 0)
        stripe = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % STRIPES + 1;
    return stripe - 1;
}

void
mc_answers_count(mc_metrics *metrics, mc_answer_label *label, bool several, const mc_account *account,
                 mc_answer_result result, int64_t microseconds)
{
    answer_table *table = mc_metrics_annex(metrics);
    if (table == NULL)
        return;
    const int tileset = several ? SEVERAL_TILESETS : label == NULL ? NO_TILESET : place_of_tileset(table, label);
    const int service = place_of_service(table, account->service);
    answer_counts *counts = &table->counts[own_answer_stripe()][tileset];
    atomic_fetch_add_explicit(&counts->responses[service][place_of_status(account->status)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts->results[result], 1, memory_order_relaxed);
    mc_histogram_add(&counts->times, microseconds);
}

/* --- as text -------------------------------------------------------------------------------------------------------
 */

/* NULL: nobody has that place. */
static const char *
tileset_at(const answer_table *table, int place)
{
    static const char *const fixed[] = { "(none)", "(other)", "(several)" };
    if (place < FIRST_TILESET)
        return fixed[place];
    const shared_name *name = &table->tilesets[place];
    return atomic_load_explicit(&name->state, memory_order_acquire) == NAMED ? name->text : NULL;
}

static void
sum_answers(mc_answer_sums *sums, const answer_table *table, int place)
{
    memset(sums, 0, sizeof(*sums));
    sums->tileset = tileset_at(table, place);
    sums->named = place >= FIRST_TILESET;
    for (int i = 0; i < STRIPES; i++) {
        const answer_counts *counts = &table->counts[i][place];
        for (int result = 0; result < MC_ANSWER_RESULT_COUNT; result++)
            sums->results[result] += atomic_load_explicit(&counts->results[result], memory_order_relaxed);
        mc_histogram_add_all(&sums->times, &counts->times);
    }
}

void
mc_answers_visit(mc_metrics *metrics, void (*visit)(void *baton, const mc_answer_sums *sums), void *baton)
{
    const answer_table *table = mc_metrics_annex(metrics);
    mc_answer_sums sums;
    for (int place = 0; table != NULL && place < PLACES; place++) {
        if (tileset_at(table, place) == NULL)
            continue;
        sum_answers(&sums, table, place);
        visit(baton, &sums);
    }
}

static uint64_t
sum_responses(const answer_table *table, int tileset, int service, int status)
{
    uint64_t sum = 0;
    for (int i = 0; i < STRIPES; i++)
        sum += atomic_load_explicit(&table->counts[i][tileset].responses[service][status], memory_order_relaxed);
    return sum;
}

static mc_error *
write_tileset_responses(const answer_table *table, int tileset, mc_buf *out, apr_pool_t *pool)
{
    const char *name = mc_metrics_escape_label(tileset_at(table, tileset), pool);
    for (int service = 0; service < SERVICES; service++)
        for (int status = 0; status < STATUSES; status++) {
            const uint64_t count = sum_responses(table, tileset, service, status);
            if (count == 0)
                continue;
            const char *code = status < STATUSES - 1 ? apr_itoa(pool, statuses[status]) : "other";
            const char *type = service == OTHER_SERVICES ? "(none)" : table->services[service].text;
            MC_TRY(mc_metrics_write_sample(out, "responses_total",
                                           apr_psprintf(pool, "service=\"%s\",tileset=\"%s\",status=\"%s\"",
                                                        mc_metrics_escape_label(type, pool), name, code),
                                           count, pool));
        }
    return MC_OK;
}

static mc_error *
write_tileset_results(const answer_table *table, int tileset, mc_buf *out, apr_pool_t *pool)
{
    const char *name = mc_metrics_escape_label(tileset_at(table, tileset), pool);
    for (int result = 0; result < MC_ANSWER_RESULT_COUNT; result++) {
        uint64_t count = 0;
        for (int i = 0; i < STRIPES; i++)
            count += atomic_load_explicit(&table->counts[i][tileset].results[result], memory_order_relaxed);
        if (count > 0)
            MC_TRY(mc_metrics_write_sample(
                out, "answers_total", apr_psprintf(pool, "tileset=\"%s\",result=\"%s\"", name, result_names[result]),
                count, pool));
    }
    return MC_OK;
}

static mc_error *
write_tileset_times(const answer_table *table, int tileset, mc_buf *out, apr_pool_t *pool)
{
    mc_histogram sum = { 0 };
    for (int i = 0; i < STRIPES; i++)
        mc_histogram_add_all(&sum, &table->counts[i][tileset].times);
    bool empty = true;
    for (int i = 0; i < MC_HISTOGRAM_BUCKETS; i++)
        empty = empty && sum.buckets[i] == 0;
    const char *labels =
        apr_psprintf(pool, "tileset=\"%s\"", mc_metrics_escape_label(tileset_at(table, tileset), pool));
    return empty ? MC_OK : mc_histogram_write(out, "response_seconds", labels, &sum, pool);
}

static const struct {
    const char *name, *type, *unit, *help;
    mc_error *(*write)(const answer_table *table, int tileset, mc_buf *out, apr_pool_t *pool);
} families[] = {
    { "responses_total", "counter", NULL, "Responses by service, tileset and status.", write_tileset_responses },
    { "answers_total", "counter", NULL, "Responses by tileset and by what they were made of.", write_tileset_results },
    { "response_seconds", "histogram", "seconds", "Time from a request to its response, by tileset.",
      write_tileset_times },
};

mc_error *
mc_answers_write(mc_metrics *metrics, mc_metrics_format format, mc_buf *out, apr_pool_t *pool)
{
    const answer_table *table = mc_metrics_annex(metrics);
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    for (size_t f = 0; table != NULL && f < sizeof(families) / sizeof(families[0]); f++) {
        MC_TRY(mc_metrics_write_head(out, format, families[f].name, families[f].type, families[f].unit,
                                     families[f].help, pool));
        for (int place = 0; place < PLACES; place++) {
            apr_pool_clear(scratch);
            mc_error *error = tileset_at(table, place) == NULL ? MC_OK : families[f].write(table, place, out, scratch);
            if (error != MC_OK)
                return mc_error_copy(error, pool);
        }
    }
    apr_pool_destroy(scratch);
    return MC_OK;
}
