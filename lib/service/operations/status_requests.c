/* The last errors and the slowest requests, as the status page shows them. */
#include <apr_strings.h>
#include <inttypes.h>

#include "service/operations/status.h"
#include "telemetry/slow_requests.h"

static const char *const level_names[] = { "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug" };

/* Milliseconds since 1970, as scripts of browsers count. */
static void
write_moment(mc_json_writer *json, const char *key, apr_time_t time)
{
    mc_json_integer(json, key, time / 1000);
}

/* What was asked for, as far as it is known. */
static void
write_asked(mc_json_writer *json, const mc_incident *request)
{
    if (request->status != 0)
        mc_json_integer(json, "status", request->status);
    const struct {
        const char *key, *text;
    } members[] = { { "service", request->service },
                    { "tileset", request->tileset },
                    { "tile", request->tile },
                    { "url", request->url },
                    { "position", request->position } };
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (*members[i].text != '\0')
            mc_json_string(json, members[i].key, members[i].text);
}

void
mc_status_write_errors(mc_json_writer *json, mc_metrics *metrics, apr_pool_t *pool)
{
    mc_incident *incidents = apr_palloc(pool, sizeof(*incidents) * MC_INCIDENTS_MAX);
    const int count = mc_incidents_copy(incidents, mc_monitor_of(metrics));
    mc_json_open_array(json, "errors");
    for (int i = 0; i < count; i++) {
        const mc_incident *incident = &incidents[i];
        mc_json_open_object(json, NULL);
        write_moment(json, "time", incident->last);
        write_moment(json, "first", incident->first);
        mc_json_integer(json, "count", (int64_t)incident->count);
        mc_json_string(json, "level",
                       incident->level >= 0 && incident->level <= MC_LOG_DEBUG ? level_names[incident->level] : "");
        mc_json_string(json, "text", incident->text);
        write_asked(json, incident);
        mc_json_close(json);
    }
    mc_json_close(json);
}

static void
write_slow_head(mc_json_writer *json, const mc_slow_request *slow)
{
    mc_json_integer(json, "number", (int64_t)slow->number);
    write_moment(json, "time", slow->time);
    mc_json_decimals(json, "ms", (double)slow->duration / 1000, 3);
    mc_json_string(json, "result", slow->result);
    write_asked(json, &slow->request);
    if (*slow->trace != '\0')
        mc_json_string(json, "trace", slow->trace);
    mc_json_integer(json, "spans_beyond", slow->spans_beyond);
}

void
mc_status_write_slow(mc_json_writer *json, mc_metrics *metrics, apr_pool_t *pool)
{
    mc_slow_request *slow = apr_palloc(pool, sizeof(*slow) * MC_SLOW_REQUESTS_MAX);
    const int count = mc_slow_requests_copy(slow, mc_monitor_of(metrics));
    mc_json_open_array(json, "slow");
    for (int i = 0; i < count; i++) {
        mc_json_open_object(json, NULL);
        write_slow_head(json, &slow[i]);
        mc_json_close(json);
    }
    mc_json_close(json);
}

static void
write_slow_spans(mc_json_writer *json, const mc_slow_request *slow)
{
    mc_json_open_array(json, "spans");
    for (int i = 0; i < slow->span_count; i++) {
        const mc_slow_span *span = &slow->spans[i];
        mc_json_open_object(json, NULL);
        mc_json_integer(json, "number", span->number);
        mc_json_integer(json, "parent", span->parent);
        mc_json_string(json, "name", span->name);
        if (*span->about != '\0')
            mc_json_string(json, "about", span->about);
        if (*span->note != '\0')
            mc_json_string(json, "note", span->note);
        mc_json_integer(json, "begin_us", span->begin);
        mc_json_integer(json, "us", span->duration);
        mc_json_close(json);
    }
    mc_json_close(json);
}

bool
mc_status_write_slow_request(mc_json_writer *json, int64_t number, mc_metrics *metrics, apr_pool_t *pool)
{
    mc_slow_request *slow = apr_palloc(pool, sizeof(*slow) * MC_SLOW_REQUESTS_MAX);
    const int count = mc_slow_requests_copy(slow, mc_monitor_of(metrics));
    for (int i = 0; i < count; i++)
        if ((int64_t)slow[i].number == number) {
            mc_json_open_object(json, "request");
            write_slow_head(json, &slow[i]);
            write_slow_spans(json, &slow[i]);
            mc_json_close(json);
            return true;
        }
    return false;
}
