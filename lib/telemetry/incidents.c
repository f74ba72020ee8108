/* See incidents.h. */
#include "telemetry/incidents.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "telemetry/monitor_tables.h"
#include "text/secret.h"

/* The words of a message one by one: an address ends at a blank, and what follows is to be read. */
static const char *
hide_keys_in_words(const char *text, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 16, sizeof(const char *));
    while (*text != '\0') {
        const size_t word = strcspn(text, " "), blanks = strspn(text + word, " ");
        APR_ARRAY_PUSH(parts, const char *) = mc_hide_query_keys(apr_pstrmemdup(pool, text, word), pool);
        APR_ARRAY_PUSH(parts, const char *) = apr_pstrmemdup(pool, text + word, blanks);
        text += word + blanks;
    }
    return apr_array_pstrcat(pool, parts, '\0');
}

typedef struct incident_filling {
    mc_incident *incident;
    apr_pool_t *pool;
} incident_filling;

static void
fill_incident_field(void *baton, const char *key, const char *value)
{
    incident_filling *filling = baton;
    mc_incident *incident = filling->incident;
    if (strcmp(key, "url") == 0)
        mc_monitor_copy_text(incident->url, sizeof(incident->url),
                             mc_hide_passwords(mc_hide_query_keys(value, filling->pool), NULL, filling->pool));
    else if (strcmp(key, "service") == 0)
        mc_monitor_copy_text(incident->service, sizeof(incident->service), value);
    else if (strcmp(key, "tileset") == 0)
        mc_monitor_copy_text(incident->tileset, sizeof(incident->tileset), value);
    else if (strcmp(key, "tile") == 0)
        mc_monitor_copy_text(incident->tile, sizeof(incident->tile), value);
}

void
mc_incident_describe(mc_incident *incident, mc_log_level level, const char *message, const mc_account *account,
                     const char *position, apr_pool_t *pool)
{
    incident_filling filling = { incident, pool };
    memset(incident, 0, sizeof(*incident));
    incident->level = (int)level;
    message = mc_hide_passwords(hide_keys_in_words(message, pool), NULL, pool);
    mc_monitor_copy_text(incident->text, sizeof(incident->text), message);
    mc_monitor_copy_path(incident->position, sizeof(incident->position), position);
    if (account == NULL)
        return;
    incident->status = account->status;
    mc_account_visit(account, fill_incident_field, &filling, pool);
}

static bool
is_same_incident(const mc_incident *one, const mc_incident *other)
{
    return one->level == other->level && one->status == other->status &&
           strncmp(one->text, other->text, sizeof(one->text)) == 0 &&
           strncmp(one->tileset, other->tileset, sizeof(one->tileset)) == 0;
}

/* Where the incident is, or a free place, or that of the oldest. */
static mc_incident *
find_incident_place(mc_incident *incidents, const mc_incident *incident)
{
    mc_incident *place = &incidents[0];
    for (int i = 0; i < MC_INCIDENTS_MAX; i++) {
        if (incidents[i].count > 0 && is_same_incident(&incidents[i], incident))
            return &incidents[i];
        if (incidents[i].count == 0 || (place->count > 0 && incidents[i].number < place->number))
            place = place->count == 0 ? place : &incidents[i];
    }
    return place;
}

void
mc_incidents_add(mc_monitor *monitor, const mc_incident *incident)
{
    if (monitor == NULL || !mc_monitor_turn_take(&monitor->incidents.turn, MC_MONITOR_WRITER_PATIENCE))
        return;
    mc_incident *place = find_incident_place(monitor->incidents.incidents, incident);
    const bool again = place->count > 0 && is_same_incident(place, incident);
    const uint64_t count = again ? place->count : 0;
    const apr_time_t now = apr_time_now(), first = again ? place->first : now;
    *place = *incident;
    place->first = first;
    place->last = now;
    place->number = ++monitor->incidents.last;
    place->count = count + 1;
    mc_monitor_turn_give(&monitor->incidents.turn);
}

static int
compare_incidents(const void *a, const void *b)
{
    const mc_incident *one = a, *other = b;
    return one->number == other->number ? 0 : one->number > other->number ? -1 : 1;
}

void
mc_incident_end_texts(mc_incident *incident)
{
    incident->text[sizeof(incident->text) - 1] = incident->tileset[sizeof(incident->tileset) - 1] = '\0';
    incident->service[sizeof(incident->service) - 1] = incident->tile[sizeof(incident->tile) - 1] = '\0';
    incident->url[sizeof(incident->url) - 1] = incident->position[sizeof(incident->position) - 1] = '\0';
}

int
mc_incidents_copy(mc_incident *to, mc_monitor *monitor)
{
    int count = 0;
    if (monitor == NULL || !mc_monitor_turn_take(&monitor->incidents.turn, MC_MONITOR_READER_PATIENCE))
        return 0;
    for (int i = 0; i < MC_INCIDENTS_MAX; i++)
        if (monitor->incidents.incidents[i].count > 0)
            to[count++] = monitor->incidents.incidents[i];
    mc_monitor_turn_give(&monitor->incidents.turn);
    for (int i = 0; i < count; i++)
        mc_incident_end_texts(&to[i]);
    qsort(to, (size_t)count, sizeof(*to), compare_incidents);
    return count;
}
