/* Fonts of the process, as the files of the module mapcache-text.so see them. */
#ifndef MC_DRAW_FONT_FONTS_H
#define MC_DRAW_FONT_FONTS_H

#include <ft2build.h>
#include FT_FREETYPE_H
#include <hb.h>
#include <pthread.h>

#include "draw/font/text.h"

/* A face of a font file. Never freed: there are as many as the styles of the process use. */
typedef struct mc_face {
    uint32_t number;
    hb_font_t *shaper;    /* immutable; in units of the em */
    float per_unit;       /* ems for such a unit */
    pthread_mutex_t lock; /* of the rest: FreeType's faces are of one thread at a time */
    FT_Face outlines;
    bool embolden; /* there is no bold face: its outlines are made bolder */
    double slant;  /* the same for italics: x moves by this for each y */
} mc_face;

/* The opened face of that number. */
mc_face *mc_fonts_face(uint32_t number);

/* Of all faces that fontconfig has, the first one in the order of preference that has a character; the first face of
 * all where no face has the character. Opens the face if need be. The face of a character is remembered. */
mc_face *mc_font_face_of(const mc_font *font, uint32_t character);

/* The face that is preferred to all others; NULL where the face cannot be opened. */
mc_face *mc_font_first_face(const mc_font *font);

mc_error *mc_fonts_find(const mc_font **font, const mc_font_spec *spec, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_fonts_substitute(const char **name, const char *family, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_shape_text(mc_text_line *line, const mc_font *font, const char *text, size_t size,
                        apr_pool_t *pool) MC_CHECKED;
mc_error *mc_outline_glyph(mc_glyph_outline *outline, uint32_t face, uint32_t glyph, float size, bool hinted,
                           apr_pool_t *pool) MC_CHECKED;

#endif
