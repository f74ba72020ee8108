/* What the files of the sieve share. */
#ifndef MC_DRAW_PAINT_SIEVE_PRIVATE_H
#define MC_DRAW_PAINT_SIEVE_PRIVATE_H

#include "draw/paint/sieve.h"
#include "draw/style/rules.h"

enum {
    MC_SIEVE_LATTICES = 4,  /* at most */
    MC_SIEVE_SCRATCH = 256, /* side of the canvas on which one feature is painted */
    MC_SIEVE_BLOCK = 16,    /* pixels of a row that are looked at together */
};

struct mc_sieve {
    int width, height;
    size_t stride; /* pixels of a row, and of what may be looked at behind its end */
    bool hides, crowded, budgeted;
    bool closed;  /* only what is seen in boxes that were opened is kept */
    bool merged;  /* all features make one area: coverage does not add up */
    int lattices; /* of MC_SIEVE_LATTICES */
    uint16_t hidden;
    uint8_t faint;
    mc_rules **rules;
    int rule_count;
    int **margins;   /* for each pass and rule: pixels by which its symbols reach over their geometry */
    int **reaches;   /* the same of lines without sharp bends */
    double **halves; /* mc_sieve_rule_half */
    int margin;      /* the largest of them */
    mc_feature_query query;
    mc_painter *painter;
    mc_pixels *pixels;
    uint16_t *shines[MC_SIEVE_LATTICES]; /* for each pixel how much shines through, of 65,535 */
    uint8_t *open;                     /* for each pixel of the plane: whether anything shines through in any lattice */
    uint8_t *alpha[MC_SIEVE_LATTICES]; /* of the feature that was painted, in its box, blocks row by row */
    /* Of a sieve that was uncovered (sieve_open.c). */
    uint16_t *before[MC_SIEVE_LATTICES]; /* how much shone through before features were gone */
    uint8_t *shows;                      /* for each pixel, bits: whether something shows, and whether it ever did */
    apr_pool_t *pool, *scratch;
    size_t counted; /* bytes of planes, in the budget until the pool's end */
};

/* Counts bytes of a further plane, if those of planes are counted. */
void mc_sieve_charge(mc_sieve *sieve, size_t bytes);

/* Pixels of a row of the box, in whole blocks: what is behind the box has no alpha. */
int mc_sieve_row_length(const mc_sieve_box *box);

/* Where a row of the box begins in the plane of a lattice. */
uint16_t *mc_sieve_shines_row(const mc_sieve *sieve, int lattice, const mc_sieve_box *box, int y);

/* Whether nothing shines through in any pixel of the box. */
bool mc_sieve_hides_box(const mc_sieve *sieve, const mc_sieve_box *box);

/*
 * Paints a feature on all lattices: sieve->alpha has what it covers in the box, block after block and row after row.
 * *box is empty where no rule draws the feature, where it is large, and where it lies beside the plane or is hidden.
 */
mc_error *mc_sieve_paint(mc_sieve_box *box, mc_sieve *sieve, const mc_feature *feature, mc_ctx *ctx) MC_CHECKED;

/* Lays what was painted over planes of a lattice: sieve->shines, sieve->before. */
void mc_sieve_lay_painted(const mc_sieve *sieve, uint16_t *const *planes, int lattice, const mc_sieve_box *box);

/* Notes where something still shines through any lattice. */
void mc_sieve_note_open(const mc_sieve *sieve, const mc_sieve_box *box);

/* As the margin of a rule, for lines that bend mildly. */
double mc_sieve_rule_reach(const mc_rule_style *rule, double scale);

/* Half the width of the widest stroke of a rule, to the corners of its ends; INFINITY: it has other symbols. */
double mc_sieve_rule_half(const mc_rule_style *rule, double scale);

/* By how many halves of a stroke's width mitres reach at most (as in draw/raster). */
#define MC_SIEVE_MITRE 4.0

/* By how many halves of their width strokes reach over the bends of a geometry, however it is straightened: 1 for a
 * straight line, up to M_SQRT2 where no bend is sharper than a right angle, else (and for areas) MC_SIEVE_MITRE. */
double mc_sieve_mitre(const mc_geometry *geometry);

/* Clips a box to the plane; whether anything of it lies beside the plane. */
bool mc_sieve_clip_box(mc_sieve_box *box, const mc_sieve *sieve);

/* Whether nothing shines through in any pixel that may be painted of a geometry with these bounds, whose symbols reach
 * over it by so many pixels. The box in which a feature is painted has more of them. */
bool mc_sieve_hides_painted(const mc_sieve *sieve, const mc_geometry *geometry, const int32_t bounds[4], double exact);

#endif
