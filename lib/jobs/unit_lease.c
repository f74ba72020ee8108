/* See unit_lease.h. */
#include "jobs/unit_lease.h"

#include <apr_strings.h>
#include <string.h>

#include "text/text.h"

/* Outcomes. PASSED: of an earlier lease. */
enum { OWED, PASSED, MET, FAILED };

/* The places that are to be visited: what an earlier lease left over, then what none has come to. */
static void
list_places(jobs_unit_lease *held, const mc_job *job, const mc_seed_area *area)
{
    const mc_job_unit *unit = &held->unit;
    int *places = apr_palloc(held->pool, sizeof(int) * (size_t)(unit->again_count + held->size - unit->position + 1));
    for (int i = 0; i < unit->again_count; i++) {
        held->outcomes[unit->again[i]] = OWED;
        places[held->todo++] = unit->again[i];
    }
    for (int place = unit->position; place < held->size; place++) {
        int x, y;
        jobs_unit_lease_tile(&x, &y, held, place, job);
        if (area->region == NULL || mc_seed_wanted(area, held->block.z, x, y))
            places[held->todo++] = place;
        else
            held->outcomes[place] = PASSED;
    }
    held->places = places;
}

bool
jobs_unit_lease_create(jobs_unit_lease **created, const mc_job_unit *unit, const mc_job *job, const mc_seed_area *area,
                       apr_pool_t *pool)
{
    if (unit->unit < 0 || unit->unit >= job->units)
        return false;
    mc_job_block block = mc_job_block_of(job, unit->unit);
    int size = block.columns * block.rows;
    if (unit->position < 0 || unit->position > size)
        return false;
    for (int i = 0; i < unit->again_count; i++)
        if (unit->again[i] < 0 || unit->again[i] >= unit->position)
            return false;
    apr_pool_t *own;
    apr_pool_create(&own, pool);
    jobs_unit_lease *held = apr_pcalloc(own, sizeof(*held));
    *held = (jobs_unit_lease){ .pool = own,
                               .unit = *unit,
                               .block = block,
                               .size = size,
                               .outcomes = apr_pcalloc(own, (size_t)size),
                               .counts = unit->counts };
    held->unit.again = apr_pmemdup(own, unit->again, sizeof(int) * (size_t)unit->again_count);
    apr_cpystrn(held->message, unit->message == NULL ? "" : unit->message, sizeof(held->message));
    memset(held->outcomes, PASSED, (size_t)unit->position);
    list_places(held, job, area);
    *created = held;
    return true;
}

void
jobs_unit_lease_tile(int *x, int *y, const jobs_unit_lease *held, int place, const mc_job *job)
{
    *x = (held->block.column + place % held->block.columns) * job->columns;
    *y = (held->block.row + place / held->block.columns) * job->rows;
}

void
jobs_unit_lease_take(jobs_unit_lease *held, int n, const mc_seed_result *result, int tiles)
{
    int place = held->places[n];
    held->met++;
    held->outcomes[place] = result->outcome == MC_SEED_FAILED ? FAILED : MET;
    if (result->outcome == MC_SEED_DONE) {
        held->counts.done++;
        held->counts.tiles += tiles;
    } else if (result->outcome == MC_SEED_SKIPPED) {
        held->counts.skipped++;
    } else {
        held->failed++;
        apr_snprintf(held->message, sizeof(held->message), "z%d x%d y%d: %s", result->z, result->x, result->y,
                     result->message);
    }
}

mc_job_unit
jobs_unit_lease_state(const jobs_unit_lease *held, apr_pool_t *pool)
{
    mc_job_unit state = held->unit;
    int end = held->size, owed = 0;
    while (held->met < held->todo && end > held->unit.position &&
           (held->outcomes[end - 1] == OWED || held->outcomes[end - 1] == PASSED))
        end--;
    for (int i = 0; i < end; i++)
        owed += held->outcomes[i] == OWED || held->outcomes[i] == FAILED;
    int *again = apr_palloc(pool, sizeof(int) * (size_t)(owed + 1));
    state.again_count = 0;
    for (int i = 0; i < end; i++)
        if (held->outcomes[i] == OWED || held->outcomes[i] == FAILED)
            again[state.again_count++] = i;
    state.again = again;
    state.position = end;
    state.counts = held->counts;
    state.message =
        mc_message_text(held->message, sizeof(held->message), pool); /* valid UTF-8: it goes to a database */
    return state;
}
