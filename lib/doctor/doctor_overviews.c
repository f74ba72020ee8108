/* Whether maps of large tables and shapefiles are read from overviews. */
#include <apr_strings.h>
#include <string.h>

#include "doctor/doctor_private.h"
#include "overview/overview.h"
#include "text/text.h"

/* A map of so many rows takes some tenths of a second. */
#define MANY_ROWS 100000.0

typedef struct overviews_visit {
    mc_doctor *doctor;
    const mc_doctor_check *check;
    const mc_tileset *tileset;
} overviews_visit;

/* A level of the tileset's maps, or word that there is none. All levels of a source have the same fault, if any. */
static void
judge_found_level(void *baton, const mc_overview_found *found)
{
    const overviews_visit *visit = baton;
    apr_pool_t *pool = visit->doctor->pool;
    const bool first = found->levels == 0 || (found->levels == 1 && found->number == 1);
    if (!first || found->refused || found->fault == NULL || found->rows < MANY_ROWS)
        return;
    const char *what = apr_psprintf(pool, "%s %s has about %.0f rows", found->kind, found->name, found->rows);
    mc_doctor_find(
        visit->doctor,
        &(mc_finding){ .check = visit->check,
                       .subject = apr_psprintf(pool, "layer %s of tileset %s", found->layer, visit->tileset->name),
                       .found = apr_psprintf(pool, "%s; %s", what, found->fault),
                       .why = "a map of all of it reads each row, most of which cannot be seen where "
                              "features lie over each other (areas that lie side by side gain little)",
                       .todo = apr_psprintf(pool, "mapcache overviews build -c %s -t %s",
                                            mc_shell_word(visit->doctor->config->file, pool),
                                            mc_shell_word(visit->tileset->name, pool)),
                       .factor = 1 });
}

void
mc_doctor_check_overviews(mc_doctor *doctor, const mc_doctor_check *check)
{
    const apr_array_header_t *tilesets = doctor->config->tilesets;
    for (int i = 0; i < tilesets->nelts; i++) {
        overviews_visit visit = { doctor, check, APR_ARRAY_IDX(tilesets, i, const mc_tileset *) };
        const mc_overview_options options = { .list = judge_found_level, .baton = &visit };
        if (!mc_overview_may_have(visit.tileset))
            continue;
        mc_error *error = mc_overview_list(visit.tileset, &options, doctor->ctx, doctor->pool);
        if (error != MC_OK)
            mc_doctor_miss(doctor, check, "tileset %s: %s", visit.tileset->name, mc_error_chain(error, doctor->pool));
    }
}
