/* What the parts of the reader of GeoWebCache's files share. */
#ifndef MC_ADOPT_GEOWEBCACHE_H
#define MC_ADOPT_GEOWEBCACHE_H

#include "adopt/draft.h"

enum { MC_GWC_LEVELS = 256 };

typedef struct mc_gwc_reader {
    mc_adopt *adopt;
    apr_pool_t *pool;
    const char *folder; /* of the file */
    mc_branch *root;
    apr_hash_t *grids; /* name there -> name here, "" where there is none */
    bool geoserver;
} mc_gwc_reader;

/* Numbers of the children of an element in their order, whatever these are called: how many of at most `most` there
 * are; 0 where one is none. */
int mc_gwc_numbers(double *numbers, int most, mc_branch *list);

/* The <grid> of a grid set, written at first use; NULL after a note. `at`: where the name stands. */
const char *mc_gwc_find_grid(mc_gwc_reader *gwc, const char *name, const mc_branch *at);

#endif
