/* Configuration from text, as a test writes it down. */
#ifndef MC_UNIT_CONFIG_TEXT_H
#define MC_UNIT_CONFIG_TEXT_H

#include "mapcache/config.h"
#include "unit.h"

/* <mapcache> with these elements in it. */
mc_node *config_root(const char *elements);

/* The first of these elements; the others follow it. */
mc_node *config_elements(const char *elements);

/* What a part is built with: nothing is known yet, and nothing complained of. */
mc_build config_build(void);

#endif
