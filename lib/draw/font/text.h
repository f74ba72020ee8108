/*
 * Text made ready for drawing: fonts found (fontconfig), text shaped (HarfBuzz, FriBidi), glyphs as outlines
 * (FreeType). The code lives in a module that is loaded at the first use (mapcache-text.so): a process that draws no
 * labels never loads the module. All functions may be called from any thread.
 */
#ifndef MC_DRAW_FONT_TEXT_H
#define MC_DRAW_FONT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapcache/error.h"

enum {
    MC_TEXT_BYTES_MAX = 1024, /* of a text that is shaped */
    MC_FONT_SIZE_MAX = 256,   /* pixels */
};

/* A font as a style names it. */
typedef struct mc_font_spec {
    const char *const *families; /* the best first; none: the system's sans-serif */
    int family_count;
    bool italic;
    int weight; /* as CSS counts: 400 normal, 700 bold */
} mc_font_spec;

/* A font, with fonts that stand in for characters that the font lacks. Made once, and never freed. */
typedef struct mc_font {
    float ascent, descent; /* ems above and below the baseline, both positive; of the first face */
    float x_height;        /* ems */
} mc_font;

/* A glyph in its line. Lengths in ems, y upwards. */
typedef struct mc_glyph {
    uint32_t face;  /* number of a face in this process */
    uint32_t index; /* of the glyph in the face; 0 for a character that no font has */
    uint32_t from;  /* first byte of the text that it belongs to */
    float x, y;     /* its origin, from the beginning of the line at the baseline */
    float advance;
    float left, bottom, right, top; /* of its ink, from its origin; all 0 for a blank */
} mc_glyph;

/* Glyphs from left to right, as they are seen. */
typedef struct mc_text_line {
    mc_glyph *glyphs;
    int count;
    float width; /* sum of the advances */
} mc_text_line;

/* Closed rings of points in pixels, y downwards, curves already cut into short lines; to be filled by MC_NON_ZERO. */
typedef struct mc_glyph_outline {
    float *points; /* x, y in turn */
    int *ends;     /* for each ring the index after its last point */
    int point_count, ring_count;
} mc_glyph_outline;

/* The font for a specification. MC_ERR_UNAVAILABLE: the module is not installed, or there is no font at all. */
mc_error *mc_text_font(const mc_font **font, const mc_font_spec *spec, apr_pool_t *pool) MC_CHECKED;

/* Shapes one line of valid UTF-8 without control characters, at most MC_TEXT_BYTES_MAX bytes: handles scripts,
 * directions and missing glyphs. */
mc_error *mc_text_shape(mc_text_line *line, const mc_font *font, const char *text, size_t size,
                        apr_pool_t *pool) MC_CHECKED;

/* The outline of a glyph for a font size in pixels (up to MC_FONT_SIZE_MAX). hinted: its horizontal edges lie on the
 * pixel grid when its baseline does. */
mc_error *mc_text_outline(mc_glyph_outline *outline, uint32_t face, uint32_t glyph, float size, bool hinted,
                          apr_pool_t *pool) MC_CHECKED;

/* A character that is drawn as a symbol. Lengths in pixels. */
typedef struct mc_text_symbol_glyph {
    mc_glyph_outline outline; /* from its origin at the baseline, for an em of MC_FONT_SIZE_MAX */
    float advance, ascent;    /* of the glyph; of its font above the baseline */
} mc_text_symbol_glyph;

/* A character of exactly that family. Fonts of symbols may have it in the private use area, from U+F000 on.
 * MC_ERR_NOT_FOUND: there is no such family, or it lacks the character. */
mc_error *mc_text_character(mc_text_symbol_glyph *glyph, const char *family, uint32_t character,
                            apr_pool_t *pool) MC_CHECKED;

/* NULL where there is a font of that family, else the name of the font that is taken instead. */
mc_error *mc_text_substitute(const char **name, const char *family, apr_pool_t *pool) MC_CHECKED;

/* The functions of the module. */
typedef struct mc_text_ops {
    mc_error *(*font)(const mc_font **font, const mc_font_spec *spec, apr_pool_t *pool);
    mc_error *(*shape)(mc_text_line *line, const mc_font *font, const char *text, size_t size, apr_pool_t *pool);
    mc_error *(*outline)(mc_glyph_outline *outline, uint32_t face, uint32_t glyph, float size, bool hinted,
                         apr_pool_t *pool);
    mc_error *(*character)(mc_text_symbol_glyph *glyph, const char *family, uint32_t character, apr_pool_t *pool);
    mc_error *(*substitute)(const char **name, const char *family, apr_pool_t *pool);
} mc_text_ops;

#define MC_TEXT_SYMBOL "mc_text_harfbuzz_ops"
extern const mc_text_ops mc_text_harfbuzz_ops;

#endif
