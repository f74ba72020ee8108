/*
 * From a label's text to glyphs in pixels. Lines that have been shaped are remembered for the process: the same names
 * are drawn on map after map. The table has locks of its own (memory/clock_cache.h).
 */
#include <apr_strings.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "draw/label/label_private.h"
#include "memory/clock_cache.h"
#include "text/utf8.h"

enum { SHAPED_BYTES = 8 << 20, LINES_MAX = 64 };

static struct {
    pthread_once_t once;
    mc_clock_cache *table; /* of mc_text_line, by font and text */
} shaped = { .once = PTHREAD_ONCE_INIT };

static void
create_shaped_table(void)
{
    shaped.table = mc_clock_cache_create(SHAPED_BYTES);
}

/* Takes back blanks at the end of what has been written, down to `begin`. */
static size_t
trim_trailing_blanks(const char *text, size_t begin, size_t end)
{
    while (end > begin && text[end - 1] == ' ')
        end--;
    return end;
}

const char *
mc_label_clean(const char *text, apr_pool_t *pool)
{
    size_t size = strnlen(text, MC_TEXT_BYTES_MAX + 1);
    if (size > MC_TEXT_BYTES_MAX)
        return NULL;
    char *clean = apr_palloc(pool, size * 3 + 1); /* a byte that is no character becomes three */
    size_t out = 0, line = 0;
    for (size_t i = 0; i < size;) {
        size_t length = mc_utf8_size(text + i);
        unsigned char c = (unsigned char)text[i];
        bool c1 = length == 2 && c == 0xC2 && (unsigned char)text[i + 1] < 0xA0; /* U+0080..U+009F */
        if (c == '\n' || c == '\r') {
            out = trim_trailing_blanks(clean, line, out);
            if (out > line) /* empty lines are left out */
                clean[out++] = '\n';
            line = out;
        } else if (length == 0) {
            memcpy(clean + out, "\xEF\xBF\xBD", 3);
            out += 3;
        } else if (c < 0x20 || c == 0x7F || c1) {
            if (c == '\t' && out > line)
                clean[out++] = ' ';
        } else if (c != ' ' || out > line) {
            memcpy(clean + out, text + i, length);
            out += length;
        }
        i += length == 0 ? 1 : length;
    }
    out = trim_trailing_blanks(clean, line, out);
    while (out > 0 && clean[out - 1] == '\n')
        out--;
    clean[out] = '\0';
    return out == 0 || out > MC_TEXT_BYTES_MAX ? NULL : clean;
}

/* A line of text, shaped; from the table where it has it. *entry is to be released after use. */
static mc_error *
shape_text_line(const mc_text_line **line, mc_clock_cache_entry **entry, const mc_font *font, const char *text,
                size_t size, apr_pool_t *pool)
{
    char key[sizeof(font) + MC_TEXT_BYTES_MAX];
    pthread_once(&shaped.once, create_shaped_table);
    memcpy(key, &font, sizeof(font));
    memcpy(key + sizeof(font), text, size);
    *line = mc_clock_cache_get(shaped.table, entry, key, sizeof(font) + size);
    if (*line != NULL)
        return MC_OK;
    mc_text_line *made = apr_palloc(pool, sizeof(*made));
    MC_TRY(mc_text_shape(made, font, text, size, pool));
    *line = made;
    *entry = NULL;
    size_t bytes = sizeof(mc_text_line) + sizeof(mc_glyph) * (size_t)made->count;
    mc_text_line *kept = malloc(bytes);
    if (kept == NULL)
        return MC_OK;
    *kept = (mc_text_line){ (mc_glyph *)(kept + 1), made->count, made->width };
    memcpy(kept->glyphs, made->glyphs, sizeof(mc_glyph) * (size_t)made->count);
    mc_clock_cache_put(shaped.table, key, sizeof(font) + size, kept, bytes, free);
    return MC_OK;
}

static mc_error *
measure_text_width(float *width, const mc_font *font, const char *text, size_t size, apr_pool_t *pool)
{
    const mc_text_line *line;
    mc_clock_cache_entry *entry;
    MC_TRY(shape_text_line(&line, &entry, font, text, size, pool));
    *width = line->width;
    mc_clock_cache_release(entry);
    return MC_OK;
}

typedef struct label_text_piece {
    const char *text;
    size_t size;
} label_text_piece;

/* Where the first line of `text` ends: before the word that would make it wider than `most` ems. */
static mc_error *
break_line(size_t *end, const mc_font *font, const char *text, size_t size, float most, apr_pool_t *pool)
{
    float width;
    *end = size;
    MC_TRY(measure_text_width(&width, font, text, size, pool));
    if (width <= most)
        return MC_OK;
    size_t best = 0;
    for (size_t i = 1; i <= size; i++) {
        if (i < size && text[i] != ' ')
            continue;
        MC_TRY(measure_text_width(&width, font, text, i, pool));
        if (width > most && best > 0)
            break;
        best = i;
        if (width > most)
            break;
    }
    *end = best;
    return MC_OK;
}

static mc_error *
find_lines(label_text_piece *lines, int *count, const mc_font *font, const char *text, float wrap, apr_pool_t *pool)
{
    *count = 0;
    while (*text != '\0' && *count < LINES_MAX) {
        size_t size = strcspn(text, "\n"), end = size;
        if (wrap > 0)
            MC_TRY(break_line(&end, font, text, size, wrap, pool));
        lines[(*count)++] = (label_text_piece){ text, end };
        text += end;
        text += strspn(text, " \n");
    }
    return MC_OK;
}

static void
add_text_line(mc_label_layout *layout, const mc_text_line *line, float x, float y)
{
    float size = layout->size;
    float begin = 0;
    for (int i = 0; i < line->count; i++) {
        const mc_glyph *g = &line->glyphs[i];
        mc_label_glyph *made = &layout->glyphs[layout->count++];
        *made = (mc_label_glyph){ .face = g->face,
                                  .index = g->index,
                                  .from = g->from,
                                  .x = x + g->x * size,
                                  .y = y - g->y * size,
                                  .begin = begin,
                                  .advance = g->advance * size,
                                  .left = g->left * size,
                                  .top = -g->top * size,
                                  .right = g->right * size,
                                  .bottom = -g->bottom * size };
        begin += made->advance;
    }
}

mc_error *
mc_label_lay_out(mc_label_layout *layout, const mc_font *font, const char *text, float size, float wrap, float align,
                 apr_pool_t *pool)
{
    label_text_piece lines[LINES_MAX];
    const mc_text_line *found[LINES_MAX];
    mc_clock_cache_entry *entries[LINES_MAX];
    int count, shaped_lines = 0, glyphs = 0;
    float height = (font->ascent + font->descent) * size;
    MC_TRY(find_lines(lines, &count, font, text, wrap / size, pool));
    *layout = (mc_label_layout){ .lines = count, .size = size };
    layout->line_begins = apr_pcalloc(pool, sizeof(float) * 2 * LINES_MAX);
    layout->line_widths = layout->line_begins + LINES_MAX;
    mc_error *error = MC_OK;
    for (; shaped_lines < count && error == MC_OK; shaped_lines++) {
        const label_text_piece *p = &lines[shaped_lines];
        error = shape_text_line(&found[shaped_lines], &entries[shaped_lines], font, p->text, p->size, pool);
        if (error != MC_OK)
            break;
        glyphs += found[shaped_lines]->count;
        layout->width = fmaxf(layout->width, found[shaped_lines]->width * size);
    }
    layout->ascent = font->ascent * size;
    layout->middle = font->x_height * size / 2;
    layout->height = height * (float)count;
    layout->glyphs = apr_palloc(pool, sizeof(mc_label_glyph) * (size_t)(glyphs + 1));
    for (int i = 0; i < shaped_lines; i++) {
        layout->line_widths[i] = found[i]->width * size;
        layout->line_begins[i] = (layout->width - layout->line_widths[i]) * align;
        if (error == MC_OK)
            add_text_line(layout, found[i], layout->line_begins[i], layout->ascent + height * (float)i);
        mc_clock_cache_release(entries[i]);
    }
    return error;
}
