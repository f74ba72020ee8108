/* Symbols of map files as marks (MapServer's documentation, "SYMBOL"): ellipses, and vectors as geometries. See
 * mapfile_parts.h. */
#include <apr_strings.h>
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "adopt/mapfile_parts.h"
#include "adopt/mapfile_words.h"
#include "text/text.h"

enum { POINTS_MAX = 200 }; /* of a vector */

/* Names of symbols are told apart whatever their case is. */
static const char *
symbol_key(const char *name, apr_pool_t *pool)
{
    char *key = apr_pstrdup(pool, name);
    for (char *c = key; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    return key;
}

static void
keep_symbols(mc_mapfile_reader *reader, mc_branch *parent)
{
    for (mc_branch *child = parent->children; child != NULL; child = child->next) {
        if (child->kind != MC_BRANCH_MAP || strcmp(child->key, "SYMBOL") != 0)
            continue;
        child->taken = true;
        const char *name = mc_branch_text(child, "NAME", NULL);
        if (name != NULL)
            apr_hash_set(reader->symbols, symbol_key(name, reader->pool), APR_HASH_KEY_STRING, child);
    }
}

void
mc_mapfile_read_symbols(mc_mapfile_reader *reader, mc_branch *map)
{
    const mc_branch *named = mc_branch_get(map, "SYMBOLSET");
    char *bytes;
    size_t size;
    mc_branch *root;
    int room = MC_BRANCHES_MAX;
    if (named != NULL && named->text != NULL) {
        const char *path = mc_draft_path(reader->folder, named->text, reader->pool);
        mc_error *error = mc_draft_read_file(&bytes, &size, path, reader->adopt);
        if (error == MC_OK)
            error = mc_mapfile_parse(&root, path, bytes, &room, reader->pool);
        if (error != MC_OK)
            mc_draft_note_at(reader->adopt, named, "SYMBOLSET is not read: %s",
                             mc_message_text(error->message, 300, reader->pool));
        else if (mc_branch_get(root, "SYMBOLSET") != NULL)
            keep_symbols(reader, mc_branch_get(root, "SYMBOLSET"));
    }
    keep_symbols(reader, map);
}

/* How a symbol is drawn. */
typedef struct mapfile_symbol {
    const char *mark; /* a WellKnownName */
    double height;    /* of the symbol in its own units: the default of SIZE */
    double part;      /* of that, the height of what is drawn */
    bool filled;
} mapfile_symbol;

/* Pairs of numbers; how many numbers there are, 0: too many, or one is none. */
static int
read_symbol_points(double numbers[2 * POINTS_MAX], mc_mapfile_reader *reader, mc_branch *symbol)
{
    mc_branch *points = mc_branch_get(symbol, "POINTS");
    int count = points == NULL ? 0 : mc_branch_numbers(numbers, 2 * POINTS_MAX, points);
    bool usable = count >= 2 && count % 2 == 0;
    for (int i = 0; i < count; i++)
        usable = usable && fabs(numbers[i]) <= 10000;
    if (!usable)
        (void)mc_mapfile_refuse(reader, points == NULL ? symbol : points,
                                "POINTS of its SYMBOL, which are not 1 to %d pairs", POINTS_MAX);
    return usable ? count : 0;
}

/* Where the pen is lifted: both numbers are -99. */
static bool
is_pen_up(const double *point)
{
    return point[0] == -99 && point[1] == -99;
}

/* The points of one stroke of the pen, y upwards and from the middle; `*at` is behind its last one. */
static void
put_stroke_points(apr_array_header_t *out, const double *numbers, int count, int *at, bool closed,
                  const double middle[2])
{
    int first = *at;
    for (; *at < count && !is_pen_up(numbers + *at); *at += 2)
        mc_mapfile_put(out, "%s%s %s", *at == first ? "" : ", ", mc_mapfile_digits(numbers[*at] - middle[0], out->pool),
                       mc_mapfile_digits(middle[1] - numbers[*at + 1], out->pool));
    const double *begin = numbers + first, *end = numbers + *at - 2;
    if (closed && (begin[0] != end[0] || begin[1] != end[1]))
        mc_mapfile_put(out, ", %s %s", mc_mapfile_digits(begin[0] - middle[0], out->pool),
                       mc_mapfile_digits(middle[1] - begin[1], out->pool));
}

static bool
read_vector_symbol(mapfile_symbol *made, mc_mapfile_reader *reader, mc_branch *symbol)
{
    double numbers[2 * POINTS_MAX], most[2] = { -HUGE_VAL, -HUGE_VAL }, least[2] = { HUGE_VAL, HUGE_VAL };
    int count = read_symbol_points(numbers, reader, symbol), strokes = 0;
    if (count == 0)
        return false;
    for (int at = 0; at < count; at += 2)
        for (int axis = 0; axis < 2 && !is_pen_up(numbers + at); axis++) {
            most[axis] = fmax(most[axis], numbers[at + axis]);
            least[axis] = fmin(least[axis], numbers[at + axis]);
        }
    made->height = most[1]; /* MapServer takes the largest number for the height, and its half for the middle */
    made->part = (most[1] > least[1] ? most[1] - least[1] : most[0] - least[0]) / most[1];
    const double middle[2] = { most[0] / 2, most[1] / 2 };
    if (!(most[1] > 0) || !(made->part > 0))
        return mc_mapfile_refuse(reader, symbol, "a SYMBOL without a height");
    apr_array_header_t *out = apr_array_make(reader->pool, 32, sizeof(const char *));
    mc_mapfile_put(out, made->filled ? "wkt://POLYGON(" : "wkt://MULTILINESTRING(");
    for (int at = 0; at < count; at += 2) {
        int first = at;
        if (is_pen_up(numbers + at))
            continue;
        mc_mapfile_put(out, strokes++ > 0 ? ",(" : "(");
        put_stroke_points(out, numbers, count, &at, made->filled, middle);
        mc_mapfile_put(out, ")");
        if (at - first < (made->filled ? 6 : 4))
            return mc_mapfile_refuse(reader, symbol, "a SYMBOL with too few POINTS");
    }
    mc_mapfile_put(out, ")");
    made->mark = apr_array_pstrcat(reader->pool, out, '\0');
    return strokes == 1 || !made->filled ||
           mc_mapfile_refuse(reader, symbol, "a SYMBOL that is filled and has several parts");
}

static bool
read_ellipse_symbol(mapfile_symbol *made, mc_mapfile_reader *reader, mc_branch *symbol)
{
    double numbers[2 * POINTS_MAX];
    int count = read_symbol_points(numbers, reader, symbol);
    if (count == 0)
        return false;
    if (numbers[0] != numbers[1] || numbers[0] <= 0)
        return mc_mapfile_refuse(reader, symbol, "a SYMBOL that is an ellipse, and no circle");
    made->mark = "circle";
    made->height = numbers[1];
    made->part = 1;
    return true;
}

static bool
read_mapfile_symbol(mapfile_symbol *made, mc_mapfile_reader *reader, mc_branch *style)
{
    const mc_branch *named = mc_branch_get(style, "SYMBOL");
    const char *name = named == NULL || named->text == NULL ? NULL : named->text;
    mc_branch *symbol =
        name == NULL ? NULL : apr_hash_get(reader->symbols, symbol_key(name, reader->pool), APR_HASH_KEY_STRING);
    if (symbol == NULL)
        return mc_mapfile_refuse(reader, named == NULL ? style : named,
                                 "SYMBOL %s, which has no name in the map file or its SYMBOLSET",
                                 name == NULL ? "0" : mc_message_text(name, 60, reader->pool));
    const char *kind = mc_branch_text(symbol, "TYPE", "");
    made->filled = mc_branch_is_true(symbol, "FILLED", false);
    bool read = strcasecmp(kind, "ELLIPSE") == 0  ? read_ellipse_symbol(made, reader, symbol)
                : strcasecmp(kind, "VECTOR") == 0 ? read_vector_symbol(made, reader, symbol)
                                                  : mc_mapfile_refuse(reader, named, "SYMBOL %s, which is of TYPE %s",
                                                                      name, mc_message_text(kind, 60, reader->pool));
    return read && mc_mapfile_is_read(reader, symbol);
}

/* ANGLE, counterclockwise there and clockwise here; NULL: none. */
static bool
read_symbol_rotation(const char **rotation, mc_mapfile_reader *reader, mc_branch *style)
{
    *rotation = NULL;
    return mc_branch_get(style, "ANGLE") == NULL || mc_mapfile_size(rotation, reader, style, "ANGLE", 0, -1, 0);
}

static bool
put_symbol_shift(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *style)
{
    double shift[2];
    mc_branch *offset = mc_branch_get(style, "OFFSET");
    if (offset == NULL)
        return true;
    if (mc_branch_numbers(shift, 2, offset) != 2 || shift[1] == -99)
        return mc_mapfile_refuse(reader, offset, "OFFSET of its STYLE, which is not two numbers");
    mc_mapfile_put(out,
                   "<Displacement><DisplacementX>%s</DisplacementX><DisplacementY>%s</DisplacementY></Displacement>",
                   mc_mapfile_digits(shift[0], reader->pool), mc_mapfile_digits(-shift[1], reader->pool));
    return true;
}

static bool
put_point_symbolizer(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *style)
{
    static const char *const without[] = { "COLOR",  "OUTLINECOLOR", "WIDTH",   "SIZE",    "ANGLE",
                                           "OFFSET", "MINSIZE",      "MAXSIZE", "OPACITY", NULL };
    mapfile_symbol symbol = { 0 };
    const mc_branch *named = mc_branch_get(style, "SYMBOL");
    if (named == NULL || (named->text != NULL && strcmp(named->text, "0") == 0)) {
        mc_mapfile_pass(style, without); /* MapServer draws nothing, either */
        return true;
    }
    const char *fill, *stroke, *width, *size, *rotation;
    double opacity, fill_opacity, stroke_opacity;
    if (!read_mapfile_symbol(&symbol, reader, style) || !mc_mapfile_number(&opacity, reader, style, "OPACITY", 100))
        return false;
    fill_opacity = stroke_opacity = fmin(fmax(opacity, 0), 100) / 100;
    if (!mc_mapfile_color(&fill, &fill_opacity, reader, style, "COLOR") ||
        !mc_mapfile_color(&stroke, &stroke_opacity, reader, style, "OUTLINECOLOR") ||
        !mc_mapfile_size(&width, reader, style, "WIDTH", 1, 1, 0) ||
        !mc_mapfile_size(&size, reader, style, "SIZE", symbol.height, symbol.part, 0) ||
        !read_symbol_rotation(&rotation, reader, style))
        return false;
    if (!symbol.filled && fill != NULL) { /* what is not filled has the colour as its line */
        stroke = fill;
        stroke_opacity = fill_opacity;
    }
    if (!symbol.filled)
        fill = NULL;
    if (fill == NULL && stroke == NULL)
        return true;
    mc_mapfile_put(out, "          <PointSymbolizer><Graphic><Mark><WellKnownName>%s</WellKnownName>", symbol.mark);
    if (fill != NULL)
        mc_mapfile_put(out,
                       "<Fill><CssParameter name=\"fill\">%s</CssParameter><CssParameter name=\"fill-opacity\">%s"
                       "</CssParameter></Fill>",
                       fill, mc_mapfile_digits(fill_opacity, out->pool));
    if (stroke != NULL)
        mc_mapfile_put(out,
                       "<Stroke><CssParameter name=\"stroke\">%s</CssParameter><CssParameter name=\"stroke-opacity\">%s"
                       "</CssParameter><CssParameter name=\"stroke-width\">%s</CssParameter></Stroke>",
                       stroke, mc_mapfile_digits(stroke_opacity, out->pool), width);
    mc_mapfile_put(out, "</Mark><Size>%s</Size>", size);
    if (rotation != NULL)
        mc_mapfile_put(out, "<Rotation>%s</Rotation>", rotation);
    if (!put_symbol_shift(out, reader, style))
        return false;
    mc_mapfile_put(out, "</Graphic></PointSymbolizer>\n");
    return true;
}

bool
mc_mapfile_graphic(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *style)
{
    static const char *const passed[] = { "ANTIALIAS", "MINWIDTH", "MAXWIDTH", "MINSIZE", "MAXSIZE", NULL };
    mc_mapfile_pass(style, passed);
    return put_point_symbolizer(out, reader, style) && mc_mapfile_is_read(reader, style);
}
