/* A STYLE of a map file as symbolizers (MapServer's documentation, "STYLE"). See mapfile_parts.h. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "adopt/mapfile_parts.h"
#include "text/text.h"

enum { DASHES_MAX = 10 }; /* of PATTERN, as of MapServer */

static int
color_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* "#rrggbb" or "#rrggbbaa". */
static bool
read_hex_color(int channels[4], const char *text)
{
    size_t size = strlen(text);
    channels[3] = 255;
    if (*text != '#' || (size != 7 && size != 9))
        return false;
    for (size_t i = 0; i < size / 2; i++) {
        int high = color_digit(text[1 + 2 * i]), low = color_digit(text[2 + 2 * i]);
        if (high < 0 || low < 0)
            return false;
        channels[i] = high * 16 + low;
    }
    return true;
}

bool
mc_mapfile_color(const char **color, double *opacity, mc_mapfile_reader *reader, mc_branch *block, const char *key)
{
    int channels[4] = { 0, 0, 0, 255 }, count = 0;
    double numbers[3];
    const mc_branch *found = mc_branch_get(block, key);
    *color = NULL;
    if (found == NULL)
        return true;
    if (found->text == NULL || !read_hex_color(channels, found->text)) {
        if (found->text == NULL || !mc_parse_doubles(numbers, 3, &count, found->text, " ") || count != 3)
            return mc_mapfile_refuse(reader, found, "%s of its %s, which is neither three numbers nor \"#rrggbb\"", key,
                                     block->key);
        for (int i = 0; i < 3; i++) {
            if (numbers[i] < 0)
                return true; /* -1 -1 -1: none */
            channels[i] = numbers[i] > 255 ? 255 : (int)numbers[i];
        }
    }
    if (*opacity >= 1) /* OPACITY wins */
        *opacity = channels[3] / 255.0;
    *color = apr_psprintf(reader->pool, "#%02x%02x%02x", (unsigned)channels[0] & 255, (unsigned)channels[1] & 255,
                          (unsigned)channels[2] & 255);
    return true;
}

bool
mc_mapfile_size(const char **size, mc_mapfile_reader *reader, mc_branch *style, const char *key, double otherwise,
                double factor, double plus)
{
    const mc_branch *found = mc_branch_get(style, key);
    double number = otherwise, least, most;
    bool width = strcmp(key, "WIDTH") == 0;
    size_t length = found == NULL || found->text == NULL ? 0 : strlen(found->text);
    if (!mc_mapfile_number(&least, reader, style, width ? "MINWIDTH" : "MINSIZE", 0) ||
        !mc_mapfile_number(&most, reader, style, width ? "MAXWIDTH" : "MAXSIZE", width ? 32 : 500))
        return false;
    if (length > 2 && found->text[0] == '[' && found->text[length - 1] == ']') {
        const char *name = apr_pstrmemdup(reader->pool, found->text + 1, length - 2);
        *size = mc_mapfile_attribute(name, "1", reader->pool);
        if (factor != 1)
            *size = apr_psprintf(reader->pool, "<ogc:Mul>%s<ogc:Literal>%s</ogc:Literal></ogc:Mul>", *size,
                                 mc_mapfile_digits(factor, reader->pool));
        if (plus != 0)
            *size = apr_psprintf(reader->pool, "<ogc:Add>%s<ogc:Literal>%s</ogc:Literal></ogc:Add>", *size,
                                 mc_mapfile_digits(plus, reader->pool));
        return true;
    }
    if (!mc_mapfile_number(&number, reader, style, key, otherwise))
        return false;
    if (width || strcmp(key, "SIZE") == 0)
        number = number < least ? least : number > most ? most : number;
    *size = mc_mapfile_digits(number * factor + plus, reader->pool);
    return true;
}

/* PATTERN as dashes and gaps; NULL: none. */
static bool
read_mapfile_dashes(const char **dashes, mc_mapfile_reader *reader, mc_branch *style)
{
    double numbers[DASHES_MAX];
    mc_branch *found = mc_branch_get(style, "PATTERN");
    *dashes = NULL;
    if (found == NULL)
        return true;
    int count = mc_branch_numbers(numbers, DASHES_MAX, found);
    *dashes = "";
    for (int i = 0; i < count; i++) {
        if (numbers[i] < 0)
            count = 0;
        *dashes =
            apr_pstrcat(reader->pool, *dashes, i > 0 ? " " : "", mc_mapfile_digits(numbers[i], reader->pool), NULL);
    }
    return (count >= 2 && count % 2 == 0) ||
           mc_mapfile_refuse(reader, found, "PATTERN of its STYLE, which is not pairs of at most %d lengths",
                             DASHES_MAX);
}

/* A word of a short list; the first one where there is none. */
static bool
read_word(const char **word, mc_mapfile_reader *reader, mc_branch *style, const char *key, const char *const *words)
{
    const mc_branch *found = mc_branch_get(style, key);
    *word = *words;
    for (const char *const *at = words; found != NULL && *at != NULL; at++)
        if (found->text != NULL && strcasecmp(found->text, *at) == 0) {
            *word = *at;
            return true;
        }
    return found == NULL ||
           mc_mapfile_refuse(reader, found, "%s %s of its STYLE", key,
                             mc_message_text(found->text == NULL ? "" : found->text, 60, reader->pool));
}

typedef struct mapfile_stroke {
    const char *color, *width, *dashes, *cap, *join;
    double opacity;
} mapfile_stroke;

static void
put_stroke(apr_array_header_t *out, const mapfile_stroke *stroke)
{
    mc_mapfile_put(out,
                   "<Stroke><CssParameter name=\"stroke\">%s</CssParameter><CssParameter name=\"stroke-width\">%s"
                   "</CssParameter>",
                   stroke->color, stroke->width);
    if (stroke->opacity < 1)
        mc_mapfile_put(out, "<CssParameter name=\"stroke-opacity\">%s</CssParameter>",
                       mc_mapfile_digits(stroke->opacity, out->pool));
    mc_mapfile_put(out,
                   "<CssParameter name=\"stroke-linecap\">%s</CssParameter><CssParameter name=\"stroke-linejoin\">%s"
                   "</CssParameter>",
                   stroke->cap, stroke->join);
    if (stroke->dashes != NULL)
        mc_mapfile_put(out, "<CssParameter name=\"stroke-dasharray\">%s</CssParameter>", stroke->dashes);
    mc_mapfile_put(out, "</Stroke>");
}

/* What lines and outlines have but their colour and width. */
static bool
read_stroke(mapfile_stroke *stroke, mc_mapfile_reader *reader, mc_branch *style)
{
    static const char *const caps[] = { "round", "butt", "square", NULL };
    static const char *const joins[] = { "round", "miter", "bevel", NULL };
    return read_word(&stroke->cap, reader, style, "LINECAP", caps) &&
           read_word(&stroke->join, reader, style, "LINEJOIN", joins) &&
           read_mapfile_dashes(&stroke->dashes, reader, style);
}

bool
mc_mapfile_has_outline(mc_branch *style)
{
    double number;
    return mc_parse_double(&number, mc_branch_text(style, "OUTLINEWIDTH", "0")) && number > 0;
}

/* A line of COLOR, or else of OUTLINECOLOR; where there is an OUTLINEWIDTH, each is a line of its own. */
static bool
put_line(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *style, double opacity, bool outline)
{
    mapfile_stroke stroke = { .opacity = opacity };
    double below, other_opacity = opacity;
    const char *color, *other;
    if (!mc_mapfile_color(&color, &stroke.opacity, reader, style, "COLOR") ||
        !mc_mapfile_color(&other, &other_opacity, reader, style, "OUTLINECOLOR") ||
        !mc_mapfile_number(&below, reader, style, "OUTLINEWIDTH", 0) ||
        !mc_mapfile_size(&stroke.width, reader, style, "WIDTH", 1, 1, outline ? 2 * below : 0) ||
        !read_stroke(&stroke, reader, style))
        return false;
    bool below_it = outline || (color == NULL && below <= 0);
    stroke.color = below_it ? other : color;
    stroke.opacity = below_it ? other_opacity : stroke.opacity;
    if (stroke.color == NULL)
        return true;
    mc_mapfile_put(out, "          <LineSymbolizer>");
    put_stroke(out, &stroke);
    mc_mapfile_put(out, "</LineSymbolizer>\n");
    return true;
}

static bool
put_area(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *style, double opacity)
{
    mapfile_stroke stroke = { .opacity = opacity };
    const char *fill;
    double fill_opacity = opacity;
    if (!mc_mapfile_color(&fill, &fill_opacity, reader, style, "COLOR") ||
        !mc_mapfile_color(&stroke.color, &stroke.opacity, reader, style, "OUTLINECOLOR") ||
        !mc_mapfile_size(&stroke.width, reader, style, "WIDTH", 1, 1, 0) || !read_stroke(&stroke, reader, style))
        return false;
    if (fill == NULL && stroke.color == NULL)
        return true;
    mc_mapfile_put(out, "          <PolygonSymbolizer>");
    if (fill != NULL)
        mc_mapfile_put(out,
                       "<Fill><CssParameter name=\"fill\">%s</CssParameter><CssParameter name=\"fill-opacity\">%s"
                       "</CssParameter></Fill>",
                       fill, mc_mapfile_digits(fill_opacity, out->pool));
    if (fill != NULL) { /* the outline of an area that is filled is a plain line */
        stroke.dashes = NULL;
        stroke.cap = stroke.join = "round";
    }
    if (stroke.color != NULL)
        put_stroke(out, &stroke);
    mc_mapfile_put(out, "</PolygonSymbolizer>\n");
    return true;
}

/* Lines and areas are drawn plain, without symbols. */
static bool
is_plain_style(mc_mapfile_reader *reader, mc_branch *style)
{
    const mc_branch *symbol = mc_branch_get(style, "SYMBOL");
    return symbol == NULL || (symbol->text != NULL && strcmp(symbol->text, "0") == 0) ||
           mc_mapfile_refuse(reader, symbol, "SYMBOL %s along a line or in an area",
                             mc_message_text(symbol->text == NULL ? "" : symbol->text, 60, reader->pool));
}

bool
mc_mapfile_symbolizers(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *style, bool outline)
{
    static const char *const passed[] = { "ANTIALIAS", "MINWIDTH", "MAXWIDTH", NULL };
    double percent;
    bool put = mc_mapfile_number(&percent, reader, style, "OPACITY", 100);
    percent = percent < 0 ? 0 : percent > 100 ? 100 : percent;
    mc_mapfile_pass(style, passed);
    if (!put)
        return false;
    if (!is_plain_style(reader, style))
        put = false;
    else if (reader->type == MC_MAPFILE_LINE)
        put = put_line(out, reader, style, percent / 100, outline);
    else
        put = put_area(out, reader, style, percent / 100);
    return put && mc_mapfile_is_read(reader, style);
}
