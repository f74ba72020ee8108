/*
 * Features that are painted when the last feature of the layer has come: those of passes that are sorted (GeoServer's
 * sortBy), and those of passes for which there are no pixels of their own. A feature is copied once for all passes.
 */
#ifndef MC_DRAW_PAINT_KEPT_H
#define MC_DRAW_PAINT_KEPT_H

#include <apr_tables.h>

#include "draw/style/style.h"

/* Bytes of the features of a layer that are kept. */
#define MC_KEPT_BYTES_MAX ((size_t)256 << 20)

typedef struct mc_kept mc_kept;
typedef struct mc_kept_feature mc_kept_feature;

/* The features of one pass or of several passes that are sorted together, in the order in which they came. */
typedef struct mc_kept_group {
    mc_kept *kept;
    const mc_style_pass *sorting; /* the pass whose order counts */
    apr_array_header_t *uses;     /* of mc_kept_use */
} mc_kept_group;

typedef struct mc_kept_key {
    const char *text; /* NULL: null */
    double number;    /* NAN: the text is no number */
} mc_kept_key;

/* A feature with the rules of one pass that draw the feature. */
typedef struct mc_kept_use {
    const mc_kept_feature *feature;
    const mc_kept_key *keys; /* for each row of the order; NULL: it is not sorted */
    const uint64_t *rules;   /* a bit for each rule */
    int pass;                /* the number that the painter gives its passes */
    int number;              /* the place of the use before the sorting */
} mc_kept_use;

mc_kept *mc_kept_create(apr_pool_t *pool);
mc_kept_group *mc_kept_group_create(mc_kept *kept, const mc_style_pass *sorting);

/* Copies a feature, with all values of its query. MC_ERR_LIMIT beyond MC_KEPT_BYTES_MAX,
 * MC_ERR_UNAVAILABLE beyond the budget of the process. */
mc_error *mc_kept_add(const mc_kept_feature **copy, mc_kept *kept, const mc_feature *feature) MC_CHECKED;

/* Adds a use of a feature to a group; `words`: of the bits in `rules`. Errors as of mc_kept_add. */
mc_error *mc_kept_use_add(mc_kept_group *group, const mc_kept_feature *copy, int pass, const uint64_t *rules, int words,
                          const mc_feature *feature, apr_pool_t *scratch) MC_CHECKED;

/* Puts the uses of a group into the order in which they are painted: by their keys, then pass by pass, then as they
 * came. */
void mc_kept_sort(mc_kept_group *group);

/* The feature again, in `geometry`, which does not own its points. */
mc_feature mc_kept_restore(mc_geometry *geometry, const mc_kept_feature *copy);

#endif
