/* From gathered labels to labels on the map. */
#ifndef MC_DRAW_LABEL_LABEL_PLACE_H
#define MC_DRAW_LABEL_LABEL_PLACE_H

#include "draw/label/label_shield.h"

/* A gathered label, before a place is found for the label. Lengths are pixels, y downwards. */
typedef struct mc_label_candidate {
    const mc_text_symbol *symbol;
    double priority;
    int64_t id;
    int layer; /* of the source */
    mc_label_look look;
    float unit; /* pixels for a length of the symbol */
    float anchor[2], moved[2], offset, angle;
    mc_shape_kind kind;   /* of the geometry */
    bool along;           /* along its lines */
    bool standing;        /* upright, again and again on its lines */
    double at[2], extent; /* the label's place; length or area of the visible part */
    float *points;        /* of the lines, x, y in turn */
    int *ends;            /* for each line the index after its last point */
    int point_count, end_count;
    int longest_begin, longest_end; /* points of the longest line */
    const char *text;               /* clean */
    mc_label_shield *shield;        /* behind the text, a reference; NULL: none */
} mc_label_candidate;

/* A copy of a candidate with lines (NULL: none) and a text. mc_label_candidate_free frees the copy. NULL: no memory. */
mc_label_candidate *mc_label_candidate_copy(const mc_label_candidate *from, const mc_label_pieces *pieces,
                                            const char *text);

void mc_label_candidate_free(mc_label_candidate *candidate);

/* Below 0 where a is put before b: by priority, upper layers, id; then by text and place. */
int mc_label_rank(const mc_label_candidate *a, const mc_label_candidate *b);

/* Joins labels of the same text and symbol to one label where the symbol asks for that. Returns the number of labels
 * that are left. */
int mc_label_join_groups(mc_label_candidate **list, int count, apr_pool_t *pool);

/* The map that labels are placed on. */
typedef struct mc_label_map {
    mc_canvas *target;
    mc_label_shields *shields;
    mc_label_obstacles *obstacles;
    bool whole; /* no tiles are cut of it: labels that allow it may reach over its edge */
} mc_label_map;

/* Places and draws labels in the order of the list. */
mc_error *mc_labels_place(mc_label_candidate *const *list, int count, const mc_label_map *map, mc_ctx *ctx,
                          apr_pool_t *pool) MC_CHECKED;

#endif
