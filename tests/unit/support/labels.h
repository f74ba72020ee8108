/* Labels on a small map, for tests. */
#ifndef LABELS_H
#define LABELS_H

#include "random_numbers.h"
#include "unit.h"

#include "draw/label/label_private.h"
#include "draw/style/expression.h"

enum { SIDE = 200 };

extern const char *const label_fonts[];
extern const mc_expression label_rank;

mc_text_symbol label_symbol(void);

/* A feature with its own copy of geometry. */
typedef struct labelled {
    const char *values[2];
    mc_shape_kind kind;
    float points[40];
    int count;
    int64_t id;
} labelled;

mc_pixels *draw_labels_in(const mc_text_symbol *texts, int text_count, const labelled *things, int count, mc_ctx *own,
                          apr_pool_t *memory);
mc_pixels *draw_labels(const mc_text_symbol *texts, int text_count, const labelled *things, int count);
int alpha_at(const mc_pixels *pixels, int x, int y);

typedef struct label_seen {
    int left, top, right, bottom; /* of what is not transparent */
    int64_t sum;
} label_seen;

label_seen look_at_labels(const mc_pixels *pixels);
labelled label_at_point(const char *text, float x, float y);

#endif
