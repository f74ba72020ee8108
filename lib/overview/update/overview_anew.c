/* Updates that are more than patches: building levels anew within bounds, and what is told of an update. */
#include <apr_strings.h>
#include <math.h>

#include "overview/overview_table.h"
#include "text/text.h"

void
mc_overview_note_update(const mc_overview_table *table, int64_t boxes, int64_t rows)
{
    mc_overview_outcome *outcome = table->job.options->outcome;
    if (outcome == NULL)
        return;
    outcome->updates++;
    outcome->boxes += boxes;
    outcome->rows += rows;
}

/* Seconds that the last build of the levels took, and for which building them anew has to wait; below 0: that is not
 * known, or for too long. */
static mc_error *
ask_build_time(double *seconds, double *wait, const mc_overview_table *table)
{
    const mc_overview_bounds *bounds = table->job.options->bounds;
    apr_pool_t *pool = table->job.pool;
    const char **values;
    double age;
    MC_TRY(mc_overview_ask(
        &values, 2, table,
        apr_psprintf(pool,
                     "SELECT max(l.build_seconds)::text, extract(epoch FROM clock_timestamp() - max(l.built))::text "
                     "FROM " MC_LEVELS_SCHEMA
                     ".levels l WHERE (l.relation = %s OR l.source = %s) AND l.geometry = %s AND l.style = "
                     "'%" APR_INT64_T_FMT "'::int8",
                     table->relation, mc_overview_quote(mc_sql_table(table->config.table, pool), pool),
                     mc_overview_quote(table->column.name, pool), (apr_int64_t)table->job.digest)));
    bool known = values != NULL && values[0] != NULL && values[1] != NULL && mc_parse_double(seconds, values[0]) &&
                 mc_parse_double(&age, values[1]);
    if (!known)
        *seconds = -1;
    *wait = !known || *seconds > bounds->longest ? -1 : fmax(0, *seconds / bounds->share - age);
    return MC_OK;
}

static void
note_anew(const mc_overview_table *table, const char *reason, double seconds, double wait)
{
    mc_overview_outcome *outcome = table->job.options->outcome;
    if (outcome == NULL)
        return;
    outcome->updates += wait == 0;
    if (outcome->wait != 0 && (wait <= 0 || (outcome->wait > 0 && outcome->wait < wait)))
        return; /* of several layers that wait the first one to be due counts */
    outcome->anew = reason;
    outcome->seconds = seconds;
    outcome->wait = wait;
}

mc_error *
mc_overview_update_anew(mc_overview_table *table, const char *reason)
{
    double seconds = 0, wait = 0;
    if (table->job.options->bounds != NULL)
        MC_TRY(ask_build_time(&seconds, &wait, table));
    if (wait != 0) {
        mc_overview_tell(&table->job, false, "the overviews have to be built anew: %s", reason);
        note_anew(table, reason, seconds, wait);
        return MC_OK;
    }
    mc_overview_tell(&table->job, false, "the overviews are built anew: %s", reason);
    MC_TRY(mc_overview_build_anew(table));
    note_anew(table, reason, seconds, 0);
    return MC_OK;
}
