/* FONTSET of map files: names of fonts, and the families of their files, which are what styles here name (OpenType,
 * "name" table). See mapfile_parts.h. */
#include <apr_strings.h>
#include <ctype.h>
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
