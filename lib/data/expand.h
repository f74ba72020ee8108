/* Short forms of a configuration, <tileset><data>THING</data></tileset>, become the elements that they stand for. */
#ifndef MC_DATA_EXPAND_H
#define MC_DATA_EXPAND_H

#include "data/data.h"
#include "mapcache/config.h"

/* A short form whose data are not there. */
typedef struct mc_data_pending {
    const char *thing;
    const char *source; /* the name of the source that its tileset names, and that there is not */
} mc_data_pending;

/*
 * Replaces each short form among the children of `root`, and adds services where the configuration has short forms and
 * no services. Looks at the data for at most `seconds` (0: 10 seconds each, and 30 seconds for all of them). What is
 * not there is a warning; its tileset then names a source that is not declared, which *pending (of mc_data_pending)
 * tells. What a short form says itself wins over what its data say.
 */
void mc_data_expand(mc_node *root, apr_array_header_t **pending, double seconds, mc_diagnostics *diagnostics,
                    apr_pool_t *pool);

/* Whether another look is worth while: a file is there now. Addresses and databases always are worth one. */
bool mc_data_is_back(const apr_array_header_t *pending, apr_pool_t *pool);

#endif
