/* The table of the module mapcache-text.so, and characters that are drawn as symbols. */
#include "draw/font/fonts.h"

static mc_error *
harfbuzz_character(mc_text_symbol_glyph *glyph, const char *family, uint32_t character, apr_pool_t *pool)
{
    enum { PRIVATE_USE = 0xF000 };
    const mc_font_spec spec = { .families = &family, .family_count = 1, .weight = 400 };
    const float em = MC_FONT_SIZE_MAX;
    const mc_font *shown;
    const char *instead;
    hb_codepoint_t index;
    MC_TRY(mc_fonts_substitute(&instead, family, pool));
    if (instead != NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "no font of the family \"%s\" can be found", family);
    MC_TRY(mc_fonts_find(&shown, &spec, pool));
    mc_face *face = mc_font_first_face(shown);
    if (face == NULL || (hb_font_get_nominal_glyph(face->shaper, character, &index) == 0 &&
                         hb_font_get_nominal_glyph(face->shaper, PRIVATE_USE | character, &index) == 0))
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "the font \"%s\" has no character U+%04X", family, character);
    glyph->advance = (float)hb_font_get_glyph_h_advance(face->shaper, index) * face->per_unit * em;
    glyph->ascent = shown->ascent * em;
    return mc_outline_glyph(&glyph->outline, face->number, index, em, false, pool);
}

const mc_text_ops mc_text_harfbuzz_ops = { mc_fonts_find, mc_shape_text, mc_outline_glyph, harfbuzz_character,
                                           mc_fonts_substitute };
