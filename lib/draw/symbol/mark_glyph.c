/*
 * Marks that are characters of fonts. A start has no time for fontconfig, so that the outline is made when the mark is
 * drawn for the first time; it lives as long as the style.
 */
#include <apr_strings.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "draw/font/text.h"
#include "draw/symbol/mark.h"
#include "text/text.h"

#define SCHEME "ttf://"

enum { CODE_MAX = 0x10FFFF };

struct mc_mark_glyph {
    const char *family;
    uint32_t character;
    bool em;                       /* its size is that of the em, else of its ink */
    _Atomic(const mc_mark *) made; /* with its outline, in one block of memory; NULL: not yet */
};

static const mc_mark nothing = { .name = "nothing" };

static apr_status_t
free_made(void *data)
{
    mc_mark_glyph *glyph = data;
    const mc_mark *made = atomic_load(&glyph->made);
    if (made != &nothing)
        free((void *)(uintptr_t)made);
    return APR_SUCCESS;
}

/* "0x41", "U+41", "\\u0041", "65". */
static bool
read_code(uint32_t *code, const char *text)
{
    static const char *const prefixes[] = { "0x", "0X", "U+", "u+", "\\u", "#" };
    int base = 10;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]) && base == 10; i++)
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0) {
            text += strlen(prefixes[i]);
            base = 16;
        }
    size_t digits = strspn(text, base == 16 ? "0123456789abcdefABCDEF" : "0123456789");
    if (digits == 0 || digits > 7 || text[digits] != '\0')
        return false;
    *code = (uint32_t)strtoul(text, NULL, base);
    return *code > 0 && *code <= CODE_MAX;
}

static const mc_mark *
create_glyph_mark(const char *family, size_t size, const char *code, bool em, apr_pool_t *pool)
{
    mc_mark *made = apr_pcalloc(pool, sizeof(*made));
    mc_mark_glyph *glyph = apr_pcalloc(pool, sizeof(*glyph));
    glyph->family = mc_url_decode(family, size, false, pool);
    glyph->em = em;
    if (*glyph->family == '\0' || strchr(glyph->family, '/') != NULL || !read_code(&glyph->character, code))
        return NULL;
    *made = (mc_mark){ .name = family, .glyph = glyph, .by_direction = true };
    apr_pool_cleanup_register(pool, glyph, free_made, apr_pool_cleanup_null);
    return made;
}

const mc_mark *
mc_mark_of_font(const char *name, apr_pool_t *pool)
{
    const char *hash = strchr(name, '#');
    if (strncasecmp(name, SCHEME, strlen(SCHEME)) != 0 || hash == NULL)
        return NULL;
    name += strlen(SCHEME);
    return create_glyph_mark(name, (size_t)(hash - name), hash + 1, false, pool);
}

const mc_mark *
mc_mark_of_character(const char *name, const char *code, apr_pool_t *pool)
{
    if (strncasecmp(name, SCHEME, strlen(SCHEME)) != 0)
        return NULL;
    name += strlen(SCHEME);
    return create_glyph_mark(name, strlen(name), code, true, pool);
}

/* The middle of a glyph and what is its size, in the pixels of its outline. */
static void
frame_mark_glyph(double middle[2], double *size, const mc_text_symbol_glyph *shape, bool em)
{
    const mc_glyph_outline *outline = &shape->outline;
    double least[2] = { INFINITY, INFINITY }, most[2] = { -INFINITY, -INFINITY };
    for (int i = 0; i < 2 * outline->point_count; i++) {
        least[i % 2] = fmin(least[i % 2], outline->points[i]);
        most[i % 2] = fmax(most[i % 2], outline->points[i]);
    }
    *size = em ? MC_FONT_SIZE_MAX : fmax(most[0] - least[0], most[1] - least[1]);
    middle[0] = em ? shape->advance / 2 : (least[0] + most[0]) / 2;
    middle[1] = em ? -shape->ascent / 2 : (least[1] + most[1]) / 2;
}

/* NULL where the glyph has no ink, or there is no memory. */
static const mc_mark *
make_outline(const mc_mark *mark, const mc_text_symbol_glyph *shape)
{
    const mc_glyph_outline *outline = &shape->outline;
    double middle[2], size;
    size_t points = 2 * (size_t)outline->point_count, rings = (size_t)outline->ring_count;
    frame_mark_glyph(middle, &size, shape, mark->glyph->em);
    mc_mark *made =
        size > 0 && rings > 0 ? malloc(sizeof(*made) + points * sizeof(double) + rings * sizeof(int)) : NULL;
    if (made == NULL)
        return NULL;
    double *to = (double *)(void *)(made + 1);
    int *ends = (int *)(void *)(to + points);
    for (size_t i = 0; i < points; i++)
        to[i] = (outline->points[i] - middle[i % 2]) / size;
    memcpy(ends, outline->ends, rings * sizeof(int));
    *made = *mark;
    made->glyph = NULL;
    made->points = to;
    made->ends = ends;
    made->part_count = outline->ring_count;
    return made;
}

mc_error *
mc_mark_outline(const mc_mark **outline, const mc_mark *mark, apr_pool_t *pool)
{
    mc_text_symbol_glyph shape = { .advance = 0 };
    mc_mark_glyph *glyph = mark->glyph;
    *outline = glyph == NULL ? mark : atomic_load_explicit(&glyph->made, memory_order_acquire);
    if (*outline != NULL)
        return MC_OK;
    mc_error *error = mc_text_character(&shape, glyph->family, glyph->character, pool);
    const mc_mark *own = error == MC_OK ? make_outline(mark, &shape) : NULL, *none = NULL;
    *outline = own != NULL ? own : &nothing;
    if (!atomic_compare_exchange_strong(&glyph->made, &none, *outline)) { /* another thread was quicker */
        free((void *)(uintptr_t)own);
        *outline = none;
    }
    return error;
}
