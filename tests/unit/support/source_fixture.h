/* A source from configuration text, and a map to ask it for. */
#ifndef MC_UNIT_SOURCE_FIXTURE_H
#define MC_UNIT_SOURCE_FIXTURE_H

#include <apr_strings.h>
#include <string.h>

#include "config_text.h"
#include "mapcache/source.h"

extern mc_build source_build;

void source_fixture_reset(void);

/* Builds every <source> of the text, in order; returns the last, NULL if it was refused. */
mc_source *source_from_text(const char *xml);

/* Whether the text is refused with a complaint that holds `words`. */
void source_refused(const char *xml, const char *words);
extern const mc_grid fixture_mercator;

extern const mc_grid fixture_wgs84;

mc_render fixture_map(const mc_grid *grid, double minx, double miny, double maxx, double maxy, int width, int height);

#endif
