/* A LABEL of a map file as a TextSymbolizer (MapServer's documentation, "LABEL"), in a font of FONTSET: styles here
 * name the family of its file (OpenType, "name" table). See mapfile_parts.h. */
#include <apr_strings.h>
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "adopt/mapfile_parts.h"
#include "text/text.h"

enum { FAMILY = 1, SUBFAMILY = 2, TABLES_MAX = 200, NAMES_MAX = 2000, FAMILY_BYTES = 100 };

/* The font of MapServer itself, for a LABEL without FONT. */
static const char builtin_family[] = "DejaVu Sans Condensed, DejaVu Sans";

void
mc_mapfile_read_fonts(mc_mapfile_reader *reader, mc_branch *map)
{
    const mc_branch *named = mc_branch_get(map, "FONTSET");
    char *bytes;
    size_t size;
    if (named == NULL || named->text == NULL)
        return;
    const char *path = mc_draft_path(reader->folder, named->text, reader->pool);
    const char *folder = mc_draft_folder(path, reader->pool);
    mc_error *error = mc_draft_read_file(&bytes, &size, path, reader->adopt);
    if (error != MC_OK) {
        mc_draft_note_at(reader->adopt, named, "FONTSET is not read: %s",
                         mc_message_text(error->message, 300, reader->pool));
        return;
    }
    for (char *line = strsep(&bytes, "\n"); line != NULL; line = strsep(&bytes, "\n")) {
        line[strcspn(line, "#\r")] = '\0';
        char *name = line + strspn(line, " \t"), *end = name + strcspn(name, " \t");
        char *file = end + strspn(end, " \t");
        for (size_t length = strlen(file); length > 0 && isspace((unsigned char)file[length - 1]); length--)
            file[length - 1] = '\0';
        if (*file == '\0')
            continue;
        *end = '\0';
        apr_hash_set(reader->fonts, name, APR_HASH_KEY_STRING, mc_draft_path(folder, file, reader->pool));
    }
}

static uint32_t
big_endian(const unsigned char *bytes, int count)
{
    uint32_t number = 0;
    for (int i = 0; i < count; i++)
        number = number << 8 | bytes[i];
    return number;
}

/* The first letters of a name in UTF-16 that is ASCII; NULL: it is not. */
static const char *
ascii_name(const unsigned char *bytes, size_t size, apr_pool_t *pool)
{
    char *text = apr_palloc(pool, size / 2 + 1);
    if (size < 2 || size > FAMILY_BYTES * 2)
        return NULL;
    for (size_t i = 0; i + 1 < size; i += 2) {
        if (bytes[i] != 0 || bytes[i + 1] < ' ' || bytes[i + 1] > '~')
            return NULL;
        text[i / 2] = (char)bytes[i + 1];
    }
    text[size / 2] = '\0';
    return text;
}

/* Where the table "name" of a font file begins and how many bytes it has; NULL: it is no font. */
static const unsigned char *
find_name_table(size_t *table_size, const unsigned char *font, size_t size)
{
    uint32_t tables = size < 12 ? 0 : big_endian(font + 4, 2);
    for (uint32_t i = 0; i < tables && i < TABLES_MAX && 12 + 16 * (size_t)(i + 1) <= size; i++) {
        const unsigned char *entry = font + 12 + 16 * (size_t)i;
        size_t begin = big_endian(entry + 8, 4), length = big_endian(entry + 12, 4);
        if (memcmp(entry, "name", 4) != 0)
            continue;
        if (begin > size || length > size - begin || length < 6)
            return NULL;
        *table_size = length;
        return font + begin;
    }
    return NULL;
}

/* Windows' English names of a font; false: it has none. */
static bool
read_font_names(const char *names[3], const unsigned char *font, size_t size, apr_pool_t *pool)
{
    size_t length = 0;
    const unsigned char *table = find_name_table(&length, font, size);
    names[FAMILY] = names[SUBFAMILY] = NULL;
    if (table == NULL)
        return false;
    uint32_t count = big_endian(table + 2, 2);
    size_t texts = big_endian(table + 4, 2);
    for (uint32_t i = 0; i < count && i < NAMES_MAX && 6 + 12 * (size_t)(i + 1) <= length; i++) {
        const unsigned char *entry = table + 6 + 12 * (size_t)i;
        uint32_t number = big_endian(entry + 6, 2);
        size_t bytes = big_endian(entry + 8, 2), begin = texts + big_endian(entry + 10, 2);
        bool english = big_endian(entry, 2) == 3 && big_endian(entry + 4, 2) == 0x409;
        if (english && (number == FAMILY || number == SUBFAMILY) && begin <= length && bytes <= length - begin)
            names[number] = ascii_name(table + begin, bytes, pool);
    }
    return names[FAMILY] != NULL;
}

static bool
has_word(const char *text, const char *word)
{
    size_t size = strlen(word);
    for (; text != NULL && *text != '\0'; text++)
        if (strncasecmp(text, word, size) == 0)
            return true;
    return false;
}

const char *
mc_mapfile_font(mc_mapfile_reader *reader, const mc_branch *at, const char *name)
{
    const char *names[3] = { NULL, builtin_family, NULL };
    char *bytes;
    size_t size;
    const char *known = name == NULL ? NULL : apr_hash_get(reader->families, name, APR_HASH_KEY_STRING);
    if (known != NULL)
        return known;
    if (name != NULL) {
        const char *first = apr_pstrmemdup(reader->pool, name, strcspn(name, ","));
        const char *file = apr_hash_get(reader->fonts, first, APR_HASH_KEY_STRING);
        mc_error *error = file == NULL ? MC_OK : mc_draft_read_file(&bytes, &size, file, reader->adopt);
        if (file == NULL || error != MC_OK ||
            !read_font_names(names, (const unsigned char *)bytes, size, reader->pool)) {
            (void)mc_mapfile_refuse(reader, at, "FONT %s, whose file is not in FONTSET, or has no name",
                                    mc_message_text(first, 60, reader->pool));
            return NULL;
        }
    }
    const char *made =
        apr_pstrcat(reader->pool, "<CssParameter name=\"font-family\">", mc_xml_escape(names[FAMILY], reader->pool),
                    "</CssParameter>",
                    has_word(names[SUBFAMILY], "Bold") ? "<CssParameter name=\"font-weight\">bold</CssParameter>" : "",
                    has_word(names[SUBFAMILY], "Italic") || has_word(names[SUBFAMILY], "Oblique")
                        ? "<CssParameter name=\"font-style\">italic</CssParameter>"
                        : "",
                    NULL);
    if (name != NULL)
        apr_hash_set(reader->families, name, APR_HASH_KEY_STRING, made);
    return made;
}

/* ---- labels ---- */

/* Sizes of words, and how many pixels of the em a point of SIZE is. */
#define PIXELS_OF_SIZE (96.0 / 72.0)

/* Where a label stands. */
typedef struct label_place {
    const char *word;
    double x, y; /* AnchorPoint */
} label_place;

static const label_place places[] = { { "CC", 0.5, 0.5 }, { "UL", 1, 0 },    { "UC", 0.5, 0 }, { "UR", 0, 0 },
                                      { "CL", 1, 0.5 },   { "CR", 0, 0.5 },  { "LL", 1, 1 },   { "LC", 0.5, 1 },
                                      { "LR", 0, 1 },     { "AUTO", 0.5, 0 } };

static const label_place *
find_mapfile_position(mc_mapfile_reader *reader, mc_branch *label)
{
    const mc_branch *found = mc_branch_get(label, "POSITION");
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if (found == NULL || (found->text != NULL && strcasecmp(found->text, places[i].word) == 0))
            return &places[i];
    (void)mc_mapfile_refuse(reader, found, "POSITION of its LABEL");
    return NULL;
}

static bool
put_label_text(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *class, mc_branch *label)
{
    const mc_branch *own = mc_branch_get(label, "TEXT"), *shared = mc_branch_get(class, "TEXT");
    const char *item = mc_branch_text(reader->layer, "LABELITEM", NULL), *text;
    if (own == NULL)
        own = shared;
    if (own == NULL && item == NULL)
        return mc_mapfile_refuse(reader, label, "LABEL without a TEXT or LABELITEM");
    text = own != NULL ? mc_mapfile_text(reader, own) : mc_mapfile_attribute(item, NULL, reader->pool);
    if (text != NULL)
        mc_mapfile_put(out, "<Label>%s</Label>", text);
    return text != NULL;
}

static bool
put_label_font(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *label)
{
    static const struct {
        const char *word;
        double size;
    } words[] = { { "TINY", 5 }, { "SMALL", 7 }, { "MEDIUM", 10 }, { "LARGE", 13 }, { "GIANT", 16 } };
    const mc_branch *size = mc_branch_get(label, "SIZE"), *font = mc_branch_get(label, "FONT");
    const char *family = mc_mapfile_font(reader, font == NULL ? label : font, font == NULL ? NULL : font->text);
    double number = 10;
    bool known = size == NULL || (size->text != NULL && mc_parse_double(&number, size->text));
    for (size_t i = 0; !known && i < sizeof(words) / sizeof(*words); i++)
        if (size->text != NULL && strcasecmp(size->text, words[i].word) == 0) {
            number = words[i].size;
            known = true;
        }
    if (family == NULL)
        return false;
    if (!known || number <= 0)
        return mc_mapfile_refuse(reader, size, "SIZE of its LABEL");
    mc_mapfile_put(out, "<Font>%s<CssParameter name=\"font-size\">%s</CssParameter></Font>", family,
                   mc_mapfile_digits(floor(number * PIXELS_OF_SIZE + 0.5), reader->pool));
    return true;
}

/* Half of the largest symbol of a class of points, which its labels keep beside. */
static double
half_of_symbols(const mc_mapfile_reader *reader, mc_branch *class)
{
    double most = 0, size;
    for (mc_branch *child = class->children; child != NULL && reader->type == MC_MAPFILE_POINT; child = child->next)
        if (strcmp(child->key, "STYLE") == 0 && mc_parse_double(&size, mc_branch_text(child, "SIZE", "0")))
            most = fmax(most, size);
    return most / 2;
}

/* Upright, turned, or along a line. `*along`: the latter. */
static bool
put_label_placement(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *class, mc_branch *label, bool *along)
{
    double shift[2] = { 0, 0 }, angle = 0;
    const mc_branch *turned = mc_branch_get(label, "ANGLE");
    mc_branch *offset = mc_branch_get(label, "OFFSET");
    const label_place *place = find_mapfile_position(reader, label);
    const char *word = turned == NULL || turned->text == NULL ? "0" : turned->text;
    *along = reader->type == MC_MAPFILE_LINE &&
             (strcasecmp(word, "AUTO") == 0 || strcasecmp(word, "FOLLOW") == 0 || strcasecmp(word, "AUTO2") == 0);
    if (place == NULL)
        return false;
    if (offset != NULL && mc_branch_numbers(shift, 2, offset) != 2)
        return mc_mapfile_refuse(reader, offset, "OFFSET of its LABEL, which is not two numbers");
    if (!*along && !mc_parse_double(&angle, word))
        return mc_mapfile_refuse(reader, turned, "ANGLE %s of its LABEL", mc_message_text(word, 60, reader->pool));
    if (*along) {
        if (offset != NULL && shift[0] != 0)
            return mc_mapfile_refuse(reader, offset, "OFFSET of its LABEL along a line");
        mc_mapfile_put(out, "<LabelPlacement><LinePlacement/></LabelPlacement>");
        return true;
    }
    double half = half_of_symbols(reader, class);
    double right = (0.5 - place->x) * 2, up = (0.5 - place->y) * 2; /* -1, 0 or 1: on which side it stands */
    double x = right == 0 ? shift[0] : right * (half + shift[0]), y = up == 0 ? -shift[1] : up * (half + shift[1]);
    mc_mapfile_put(out,
                   "<LabelPlacement><PointPlacement><AnchorPoint><AnchorPointX>%s</AnchorPointX><AnchorPointY>%s"
                   "</AnchorPointY></AnchorPoint><Displacement><DisplacementX>%s</DisplacementX><DisplacementY>%s"
                   "</DisplacementY></Displacement>",
                   mc_mapfile_digits(place->x, reader->pool), mc_mapfile_digits(place->y, reader->pool),
                   mc_mapfile_digits(x, reader->pool), mc_mapfile_digits(y, reader->pool));
    if (angle != 0)
        mc_mapfile_put(out, "<Rotation>%s</Rotation>", mc_mapfile_digits(-angle, reader->pool));
    mc_mapfile_put(out, "</PointPlacement></LabelPlacement>");
    return true;
}

static bool
put_label_colors(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *label)
{
    const char *fill, *halo;
    double opacity = 1, halo_opacity = 1, width;
    if (!mc_mapfile_color(&fill, &opacity, reader, label, "COLOR") ||
        !mc_mapfile_color(&halo, &halo_opacity, reader, label, "OUTLINECOLOR") ||
        !mc_mapfile_number(&width, reader, label, "OUTLINEWIDTH", 1))
        return false;
    if (halo != NULL && width > 0)
        mc_mapfile_put(out,
                       "<Halo><Radius>%s</Radius><Fill><CssParameter name=\"fill\">%s</CssParameter><CssParameter "
                       "name=\"fill-opacity\">%s</CssParameter></Fill></Halo>",
                       mc_mapfile_digits((width + 1) / 2, reader->pool), halo,
                       mc_mapfile_digits(halo_opacity, reader->pool));
    mc_mapfile_put(out,
                   "<Fill><CssParameter name=\"fill\">%s</CssParameter><CssParameter name=\"fill-opacity\">%s"
                   "</CssParameter></Fill>",
                   fill == NULL ? "#000000" : fill, mc_mapfile_digits(opacity, reader->pool));
    return true;
}

static void
put_label_option(apr_array_header_t *out, const char *name, const char *value)
{
    mc_mapfile_put(out, "<VendorOption name=\"%s\">%s</VendorOption>", name, value);
}

/* Distances, priorities, and what is drawn whatever is there. */
static bool
put_label_options(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *label, bool along)
{
    double priority, buffer, repeat, apart;
    const mc_branch *distance = mc_branch_get(label, "MINDISTANCE");
    if (!mc_mapfile_number(&priority, reader, label, "PRIORITY", 1) ||
        !mc_mapfile_number(&buffer, reader, label, "BUFFER", 0) ||
        !mc_mapfile_number(&repeat, reader, label, "REPEATDISTANCE", 0) ||
        !mc_mapfile_number(&apart, reader, label, "MINDISTANCE", -1))
        return false;
    if (apart > 0 && !along)
        return mc_mapfile_refuse(reader, distance, "MINDISTANCE of its LABEL, which is not along a line");
    mc_mapfile_put(out, "<Priority>%s</Priority>", mc_mapfile_digits(priority, reader->pool));
    if (buffer > 0)
        put_label_option(out, "spaceAround", mc_mapfile_digits(buffer, reader->pool));
    if (along && apart > 0)
        put_label_option(out, "group", "true");
    if (along && (repeat > 0 || apart > 0))
        put_label_option(out, "repeat", mc_mapfile_digits(fmax(repeat, apart), reader->pool));
    if (mc_branch_is_true(label, "FORCE", false))
        put_label_option(out, "conflictResolution", "false");
    if (mc_branch_is_true(label, "PARTIALS", false))
        put_label_option(out, "partials", "true");
    return true;
}

bool
mc_mapfile_label(apr_array_header_t *out, mc_mapfile_reader *reader, mc_branch *class, mc_branch *label)
{
    /* TYPE: all fonts are outlines since MapServer 7; sizes change with SYMBOLSCALEDENOM alone, which is refused */
    static const char *const passed[] = { "TYPE",          "ANTIALIAS",     "MINSIZE", "MAXSIZE",        "ENCODING",
                                          "MINSCALEDENOM", "MAXSCALEDENOM", "ALIGN",   "REPEATDISTANCE", NULL };
    bool along;
    mc_mapfile_pass(label, passed);
    mc_mapfile_put(out, "          <TextSymbolizer>");
    if (!put_label_text(out, reader, class, label) || !put_label_font(out, reader, label) ||
        !put_label_placement(out, reader, class, label, &along) || !put_label_colors(out, reader, label) ||
        !put_label_options(out, reader, label, along))
        return false;
    mc_mapfile_put(out, "</TextSymbolizer>\n");
    return mc_mapfile_is_read(reader, label);
}
