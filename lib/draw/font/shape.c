/*
 * From text to glyphs. The text is cut into runs of one direction, script and face; HarfBuzz shapes each; the runs are
 * put side by side as they are seen (Unicode Standard Annex 9, rule L2).
 */
#include <apr_strings.h>
#include <fribidi.h>
#include <hb.h>
#include <pthread.h>
#include <string.h>

#include "draw/font/fonts.h"
#include "text/utf8.h"

enum { EMBOLDEN = 24 }; /* FT_GlyphSlot_Embolden's share of the em */

typedef struct text_shape_run {
    int begin, end; /* characters */
    FriBidiLevel level;
    hb_script_t script;
    mc_face *face;
} text_shape_run;

typedef struct paragraph {
    uint32_t *characters;
    uint32_t *bytes; /* where each of them begins */
    FriBidiLevel *levels;
    int count;
    text_shape_run *runs;
    int run_count;
} paragraph;

/* The text is valid UTF-8. */
static void
decode_paragraph(paragraph *p, const char *text, size_t size)
{
    for (size_t i = 0; i < size; p->count++) {
        size_t bytes = mc_utf8_decode(&p->characters[p->count], text + i);
        p->bytes[p->count] = (uint32_t)i;
        i += bytes == 0 ? 1 : bytes;
    }
}

/* Whether any character may run from right to left, or says so: the blocks from Hebrew on, and the marks. */
static bool
needs_directions(const paragraph *p)
{
    for (int i = 0; i < p->count; i++) {
        uint32_t c = p->characters[i];
        if ((c >= 0x590 && c < 0x900) || (c >= 0x200E && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ||
            (c >= 0xFB1D && c < 0xFF00) || (c >= 0x10800 && c < 0x11000) || (c >= 0x1E800 && c < 0x1F000))
            return true;
    }
    return false;
}

static void
find_levels(paragraph *p, apr_pool_t *pool)
{
    memset(p->levels, 0, sizeof(*p->levels) * (size_t)p->count);
    if (!needs_directions(p))
        return;
    FriBidiCharType *types = apr_palloc(pool, sizeof(*types) * (size_t)p->count);
    FriBidiBracketType *brackets = apr_palloc(pool, sizeof(*brackets) * (size_t)p->count);
    FriBidiParType direction = FRIBIDI_PAR_ON;
    fribidi_get_bidi_types(p->characters, p->count, types);
    fribidi_get_bracket_types(p->characters, p->count, types, brackets);
    if (fribidi_get_par_embedding_levels_ex(types, brackets, p->count, &direction, p->levels) == 0)
        memset(p->levels, 0, sizeof(*p->levels) * (size_t)p->count);
}

/* Characters that go with the one before them: marks, joiners, variation selectors. */
static bool
is_attached(hb_unicode_funcs_t *unicode, uint32_t c)
{
    hb_unicode_general_category_t category = hb_unicode_general_category(unicode, c);
    return category == HB_UNICODE_GENERAL_CATEGORY_NON_SPACING_MARK ||
           category == HB_UNICODE_GENERAL_CATEGORY_ENCLOSING_MARK ||
           category == HB_UNICODE_GENERAL_CATEGORY_SPACING_MARK || category == HB_UNICODE_GENERAL_CATEGORY_FORMAT;
}

static bool
is_own_script(hb_script_t script)
{
    return script != HB_SCRIPT_COMMON && script != HB_SCRIPT_INHERITED && script != HB_SCRIPT_UNKNOWN;
}

/* The script of the first character that has one: what comes before it goes along. */
static hb_script_t
first_script(const paragraph *p, hb_unicode_funcs_t *unicode)
{
    for (int i = 0; i < p->count; i++) {
        hb_script_t script = hb_unicode_script(unicode, p->characters[i]);
        if (is_own_script(script))
            return script;
    }
    return HB_SCRIPT_LATIN;
}

static mc_error *
find_runs(paragraph *p, const mc_font *font, apr_pool_t *pool)
{
    hb_unicode_funcs_t *unicode = hb_unicode_funcs_get_default();
    hb_script_t script = first_script(p, unicode);
    mc_face *face = NULL;
    for (int i = 0; i < p->count; i++) {
        uint32_t c = p->characters[i];
        hb_script_t own = hb_unicode_script(unicode, c);
        script = is_own_script(own) ? own : script;
        if (face == NULL || (c != ' ' && !is_attached(unicode, c)))
            face = mc_font_face_of(font, c);
        if (face == NULL)
            return mc_error_create(pool, MC_ERR_UNAVAILABLE, "no font file can be opened");
        text_shape_run *last = p->run_count == 0 ? NULL : &p->runs[p->run_count - 1];
        if (last != NULL && last->level == p->levels[i] && last->script == script && last->face == face)
            last->end = i + 1;
        else
            p->runs[p->run_count++] = (text_shape_run){ i, i + 1, p->levels[i], script, face };
    }
    return MC_OK;
}

/* From the highest level down to the lowest odd one, each stretch of at least that level is turned round. */
static void
order_as_seen(text_shape_run *runs, int count)
{
    int highest = 0;
    for (int i = 0; i < count; i++)
        highest = runs[i].level > highest ? runs[i].level : highest;
    for (int level = highest; level > 0; level--)
        for (int begin = 0; begin < count; begin++) {
            int end = begin;
            while (end < count && runs[end].level >= level)
                end++;
            for (int a = begin, b = end - 1; a < b; a++, b--) {
                text_shape_run swap = runs[a];
                runs[a] = runs[b];
                runs[b] = swap;
            }
            begin = end > begin ? end : begin;
        }
}

static void
add_shaped_glyph(mc_text_line *line, const mc_face *face, const hb_glyph_info_t *info,
                 const hb_glyph_position_t *position, uint32_t from)
{
    hb_glyph_extents_t ink = { 0, 0, 0, 0 };
    float unit = face->per_unit;
    float bolder = face->embolden ? 1.0F / EMBOLDEN : 0;
    mc_glyph *glyph = &line->glyphs[line->count++];
    *glyph = (mc_glyph){ .face = face->number,
                         .index = info->codepoint,
                         .from = from,
                         .x = line->width + (float)position->x_offset * unit,
                         .y = (float)position->y_offset * unit,
                         .advance = (float)position->x_advance * unit };
    line->width += glyph->advance;
    if (hb_font_get_glyph_extents(face->shaper, info->codepoint, &ink) == 0 || ink.width == 0 || ink.height == 0)
        return;
    float bottom = (float)(ink.y_bearing + ink.height) * unit - bolder, top = (float)ink.y_bearing * unit + bolder;
    glyph->bottom = bottom;
    glyph->top = top;
    glyph->left = (float)ink.x_bearing * unit - bolder + (float)face->slant * (bottom < 0 ? bottom : 0);
    glyph->right = (float)(ink.x_bearing + ink.width) * unit + bolder + (float)face->slant * (top > 0 ? top : 0);
}

static hb_language_t language;

static void
find_language(void)
{
    language = hb_language_get_default();
}

/* That of the process's locale, found once: the library's own first look-up is not made for threads to share. */
static hb_language_t
default_language(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_language);
    return language;
}

/* The glyphs of a run; a text cannot grow without limit by being shaped. */
static mc_error *
shape_run(mc_text_line *line, int *room, hb_buffer_t *buffer, const paragraph *p, const text_shape_run *r,
          apr_pool_t *pool)
{
    unsigned count;
    hb_buffer_clear_contents(buffer);
    hb_buffer_add_codepoints(buffer, p->characters, p->count, (unsigned)r->begin, r->end - r->begin);
    hb_buffer_set_direction(buffer, r->level % 2 == 1 ? HB_DIRECTION_RTL : HB_DIRECTION_LTR);
    hb_buffer_set_script(buffer, r->script);
    hb_buffer_set_language(buffer, default_language());
    hb_shape(r->face->shaper, buffer, NULL, 0);
    const hb_glyph_info_t *infos = hb_buffer_get_glyph_infos(buffer, &count);
    const hb_glyph_position_t *positions = hb_buffer_get_glyph_positions(buffer, &count);
    if (count > 8 * MC_TEXT_BYTES_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "a text makes %u glyphs", count);
    if (line->count + (int)count > *room) {
        *room = (line->count + (int)count) * 2;
        mc_glyph *glyphs = apr_palloc(pool, sizeof(*glyphs) * (size_t)*room);
        memcpy(glyphs, line->glyphs, sizeof(*glyphs) * (size_t)line->count);
        line->glyphs = glyphs;
    }
    for (unsigned i = 0; i < count; i++)
        add_shaped_glyph(line, r->face, &infos[i], &positions[i], p->bytes[infos[i].cluster]);
    return MC_OK;
}

mc_error *
mc_shape_text(mc_text_line *line, const mc_font *font, const char *text, size_t size, apr_pool_t *pool)
{
    MC_ASSERT(size <= MC_TEXT_BYTES_MAX);
    paragraph p = { .count = 0 };
    p.characters = apr_palloc(pool, sizeof(*p.characters) * (size + 1));
    p.bytes = apr_palloc(pool, sizeof(*p.bytes) * (size + 1));
    p.levels = apr_palloc(pool, sizeof(*p.levels) * (size + 1));
    p.runs = apr_palloc(pool, sizeof(*p.runs) * (size + 1));
    decode_paragraph(&p, text, size);
    find_levels(&p, pool);
    MC_TRY(find_runs(&p, font, pool));
    order_as_seen(p.runs, p.run_count);
    int room = p.count + 1;
    *line = (mc_text_line){ .glyphs = apr_palloc(pool, sizeof(mc_glyph) * (size_t)room) };
    hb_buffer_t *buffer = hb_buffer_create();
    hb_buffer_set_cluster_level(buffer, HB_BUFFER_CLUSTER_LEVEL_MONOTONE_GRAPHEMES);
    mc_error *error = MC_OK;
    for (int i = 0; i < p.run_count && error == MC_OK; i++)
        error = shape_run(line, &room, buffer, &p, &p.runs[i], pool);
    hb_buffer_destroy(buffer);
    return error;
}
