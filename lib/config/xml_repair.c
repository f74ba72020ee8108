/* See xml_repair.h. One pass over the text. Where nothing is wrong, bytes are copied. */
#include "config/xml_repair.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <string.h>

#include "config/xml_encoding.h"
#include "text/utf8.h"

enum { WARNINGS_MAX = 20, ATTRIBUTES_MAX = 100, ENTITY_BYTES = 5 /* "&amp;" */ };

typedef struct xml_repairer {
    const char *file;
    const char *at, *end; /* what is still to be read */
    char *to;
    int line, column; /* of `at` */
    int made_column;  /* of `to` */
    int depth;        /* elements that are open */
    bool begun;       /* the root has been met */
    int repairs;
    apr_hash_t *entities; /* that the file declares */
    apr_array_header_t *insertions;
    mc_diagnostics *diagnostics;
    apr_pool_t *pool;
} xml_repairer;

/* Counts a repair at the place that is read; says the first ones. */
static void
note_repair(xml_repairer *repairer, const char *what)
{
    if (++repairer->repairs <= WARNINGS_MAX)
        mc_complain_at(repairer->diagnostics, MC_WARNING, repairer->file, repairer->line, repairer->column, "%s", what);
}

static bool
stands_at(const xml_repairer *repairer, const char *text)
{
    size_t size = strlen(text);
    return (size_t)(repairer->end - repairer->at) >= size && memcmp(repairer->at, text, size) == 0;
}

/* Goes on by one character, which is copied, or becomes a blank. */
static void
take_one_character(xml_repairer *repairer, bool blank)
{
    size_t size = mc_utf8_size(repairer->at);
    if (size == 0)
        size = 1; /* iconv makes more of UCS-4 than UTF-8 has: expat says so */
    char first = *repairer->at;
    bool space = apr_isspace(first);
    if (blank && !space) {
        *repairer->to++ = ' ';
    } else {
        memcpy(repairer->to, repairer->at, size);
        repairer->to += size;
    }
    repairer->at += size;
    repairer->line += first == '\n';
    repairer->column = first == '\n' ? 1 : repairer->column + 1;
    repairer->made_column = first == '\n' ? 1 : repairer->made_column + 1;
}

static void
take_text_until(xml_repairer *repairer, const char *place, bool blank)
{
    while (repairer->at < place)
        take_one_character(repairer, blank);
}

/* The place behind the next `text`; the end where there is none. */
static const char *
find_behind(const xml_repairer *repairer, const char *text)
{
    size_t size = strlen(text);
    const char *found = memmem(repairer->at, (size_t)(repairer->end - repairer->at), text, size);
    return found == NULL ? repairer->end : found + size;
}

/* Whether the '&' begins a reference that means something: "&#38;", "&#x26;", "&amp;" or an entity of this file. */
static bool
is_reference(const xml_repairer *repairer)
{
    static const char *const predefined[] = { "amp", "lt", "gt", "quot", "apos" };
    const char *name = repairer->at + 1;
    if (*name == '#') {
        bool hexadecimal = name[1] == 'x';
        const char *digits = name + 1 + hexadecimal;
        size_t count = strspn(digits, hexadecimal ? "0123456789abcdefABCDEF" : "0123456789");
        return count > 0 && digits[count] == ';';
    }
    size_t size = strcspn(name, ";&<>\"' \t\r\n");
    if (size == 0 || name[size] != ';')
        return false;
    for (size_t i = 0; i < sizeof(predefined) / sizeof(*predefined); i++)
        if (strlen(predefined[i]) == size && memcmp(predefined[i], name, size) == 0)
            return true;
    return apr_hash_get(repairer->entities, name, (apr_ssize_t)size) != NULL;
}

static void
take_ampersand(xml_repairer *repairer)
{
    if (is_reference(repairer)) {
        take_one_character(repairer, false);
        return;
    }
    note_repair(repairer, "this & begins no reference and is read as it stands: write &amp;");
    mc_xml_insertion *insertion = apr_array_push(repairer->insertions);
    *insertion = (mc_xml_insertion){ repairer->line, repairer->made_column };
    take_one_character(repairer, false);
    memcpy(repairer->to, "amp;", ENTITY_BYTES - 1);
    repairer->to += ENTITY_BYTES - 1;
    repairer->made_column += ENTITY_BYTES - 1;
}

/* The rest of a value, its second quote included. */
static void
take_value(xml_repairer *repairer, char quote)
{
    while (repairer->at < repairer->end && *repairer->at != quote) {
        if (*repairer->at == '&')
            take_ampersand(repairer);
        else
            take_one_character(repairer, false);
    }
    if (repairer->at < repairer->end)
        take_one_character(repairer, false);
}

/* name = "value". The place behind the first quote; NULL: it is no such thing, which expat is to say. */
static const char *
find_value(const char *name, size_t size)
{
    const char *at = name + size + strspn(name + size, " \t\r\n");
    if (size == 0 || *at != '=')
        return NULL;
    at += 1 + strspn(at + 1, " \t\r\n");
    return *at == '"' || *at == '\'' ? at + 1 : NULL;
}

typedef struct seen_attribute {
    const char *name;
    size_t size;
} seen_attribute;

static bool
is_seen(seen_attribute *seen, int *count, const char *name, size_t size)
{
    for (int i = 0; i < *count; i++)
        if (seen[i].size == size && memcmp(seen[i].name, name, size) == 0)
            return true;
    if (*count < ATTRIBUTES_MAX)
        seen[(*count)++] = (seen_attribute){ name, size };
    return false;
}

/* One attribute; false where there is none. Of attributes of one name the first counts. */
static bool
take_attribute(xml_repairer *repairer, seen_attribute *seen, int *count)
{
    take_text_until(repairer, repairer->at + strspn(repairer->at, " \t\r\n"), false);
    const char *name = repairer->at;
    size_t size = strcspn(name, " \t\r\n=/>\"'<&");
    const char *value = find_value(name, size);
    if (value == NULL || value >= repairer->end)
        return false;
    if (!is_seen(seen, count, name, size)) {
        take_text_until(repairer, value, false);
        take_value(repairer, value[-1]);
        return true;
    }
    note_repair(repairer, "this attribute stands here twice: the first one counts; remove this one");
    const char *last = memchr(value, value[-1], (size_t)(repairer->end - value));
    take_text_until(repairer, last == NULL ? repairer->end : last + 1, true);
    return true;
}

/* <name ...>, from its first character to its last. */
static void
take_start_tag(xml_repairer *repairer)
{
    seen_attribute seen[ATTRIBUTES_MAX];
    int count = 0;
    take_text_until(repairer, repairer->at + 1 + strcspn(repairer->at + 1, " \t\r\n/>"), false);
    while (take_attribute(repairer, seen, &count))
        ;
    const char *close = find_behind(repairer, ">");
    bool empty = close[-1] == '>' && close[-2] == '/';
    take_text_until(repairer, close, false);
    repairer->begun = true;
    repairer->depth += !empty;
}

/* Remembers the names of <!ENTITY name ...>. */
static void
remember_entities(xml_repairer *repairer, const char *close)
{
    static const char word[] = "<!ENTITY";
    const char *at = repairer->at;
    while ((at = memmem(at, (size_t)(close - at), word, sizeof(word) - 1)) != NULL) {
        at += sizeof(word) - 1;
        at += strspn(at, " \t\r\n");
        size_t size = strcspn(at, " \t\r\n>\"'");
        if (size > 0 && *at != '%')
            apr_hash_set(repairer->entities, apr_pstrmemdup(repairer->pool, at, size), (apr_ssize_t)size, "");
    }
}

/* <!DOCTYPE ...>, with what stands in brackets. */
static void
take_document_type(xml_repairer *repairer)
{
    const char *close = find_behind(repairer, ">");
    const char *bracket = memchr(repairer->at, '[', (size_t)(close - repairer->at));
    if (bracket != NULL) {
        const char *subset = memmem(bracket, (size_t)(repairer->end - bracket), "]>", 2);
        close = subset == NULL ? repairer->end : subset + 2;
    }
    remember_entities(repairer, close);
    take_text_until(repairer, close, false);
}

/* What begins with '<'. */
static void
take_markup(xml_repairer *repairer, const char *start)
{
    if (stands_at(repairer, "<!--")) {
        take_text_until(repairer, find_behind(repairer, "-->"), false);
    } else if (stands_at(repairer, "<![CDATA[")) {
        take_text_until(repairer, find_behind(repairer, "]]>"), false);
    } else if (stands_at(repairer, "<!DOCTYPE")) {
        take_document_type(repairer);
    } else if (stands_at(repairer, "<?xml") && apr_isspace(repairer->at[5])) {
        if (repairer->at != start)
            note_repair(repairer, "the XML declaration must stand first in the file: remove what stands before it");
        take_text_until(repairer, find_behind(repairer, "?>"), true); /* the text is UTF-8 now, whatever it says */
    } else if (stands_at(repairer, "<?")) {
        take_text_until(repairer, find_behind(repairer, "?>"), false);
    } else if (stands_at(repairer, "</")) {
        take_text_until(repairer, find_behind(repairer, ">"), false);
        repairer->depth -= repairer->depth > 0;
    } else {
        take_start_tag(repairer);
    }
}

/* Text outside of the root. */
static void
take_outside_text(xml_repairer *repairer)
{
    const char *close = memchr(repairer->at, '<', (size_t)(repairer->end - repairer->at));
    while (repairer->at < repairer->end && apr_isspace(*repairer->at))
        take_one_character(repairer, false);
    if (repairer->at == repairer->end || *repairer->at == '<')
        return;
    note_repair(repairer, repairer->begun ? "text after the end of <mapcache> is not read: remove it"
                                          : "text before the first element is not read: remove it");
    take_text_until(repairer, close == NULL ? repairer->end : close, true);
}

static void
repair_text(xml_repairer *repairer)
{
    static const char mark[] = "\xEF\xBB\xBF";
    if (stands_at(repairer, mark))
        repairer->at += sizeof(mark) - 1;
    const char *start = repairer->at;
    while (repairer->at < repairer->end) {
        if (*repairer->at == '<')
            take_markup(repairer, start);
        else if (repairer->depth == 0)
            take_outside_text(repairer);
        else if (*repairer->at == '&')
            take_ampersand(repairer);
        else
            take_one_character(repairer, false);
    }
}

static void
note_stray_bytes(xml_repairer *repairer, const mc_xml_stray *stray)
{
    if (stray->unknown_encoding != NULL) {
        note_repair(repairer, apr_psprintf(repairer->pool, "the encoding %s is not known: the file is read as UTF-8",
                                           mc_config_quote(stray->unknown_encoding, repairer->pool)));
    }
    if (stray->count == 0)
        return;
    repairer->repairs += stray->count;
    mc_complain_at(repairer->diagnostics, MC_WARNING, repairer->file, stray->line, stray->column,
                   "here the file is not UTF-8 (bytes of this kind: %d): they are read as Windows-1252, and go out as "
                   "UTF-8, also in names of files; save the file as UTF-8",
                   stray->count);
}

/* Room for the text if each '&' became an entity. */
static size_t
measure_repaired(const char *text, size_t size)
{
    size_t room = size + 1;
    for (const char *end = text + size; (text = memchr(text, '&', (size_t)(end - text))) != NULL; text++)
        room += ENTITY_BYTES - 1;
    return room;
}

bool
mc_xml_repair(mc_xml_repaired *repaired, const char *file, const char *text, size_t size, mc_diagnostics *diagnostics,
              apr_pool_t *pool)
{
    mc_xml_stray stray;
    xml_repairer repairer = { .file = file,
                              .line = 1,
                              .column = 1,
                              .made_column = 1,
                              .entities = apr_hash_make(pool),
                              .insertions = apr_array_make(pool, 16, sizeof(mc_xml_insertion)),
                              .diagnostics = diagnostics,
                              .pool = pool };
    repairer.at = mc_xml_to_utf8(&size, &stray, text, size, pool);
    repairer.end = repairer.at + size;
    char *made = repairer.to = apr_palloc(pool, measure_repaired(repairer.at, size));
    bool converted = stray.count == 0 && stray.unknown_encoding == NULL && strcmp(repairer.at, text) != 0;
    note_stray_bytes(&repairer, &stray);
    repair_text(&repairer);
    *repairer.to = '\0';
    *repaired = (mc_xml_repaired){ made, (size_t)(repairer.to - made), repairer.insertions };
    if (repairer.repairs > WARNINGS_MAX)
        mc_complain_at(diagnostics, MC_WARNING, file, repairer.line, repairer.column,
                       "%d more places of this file are not well-formed XML and were repaired",
                       repairer.repairs - WARNINGS_MAX);
    return repairer.repairs > 0 || converted;
}

/* The first insertion that does not stand before a place. */
static int
find_insertion(const apr_array_header_t *insertions, int line, int column)
{
    int low = 0, high = insertions->nelts;
    while (low < high) {
        int middle = low + (high - low) / 2;
        const mc_xml_insertion *insertion = &APR_ARRAY_IDX(insertions, middle, const mc_xml_insertion);
        if (insertion->line < line || (insertion->line == line && insertion->column < column))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int
mc_xml_repaired_column(const mc_xml_repaired *repaired, int line, int column)
{
    int before = find_insertion(repaired->insertions, line, column) - find_insertion(repaired->insertions, line, 0);
    return column - before * (ENTITY_BYTES - 1);
}
