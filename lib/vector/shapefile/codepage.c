/* See codepage.h. The numbers are those of dBASE and FoxPro and of ESRI's .cpg files. */
#include "vector/shapefile/codepage.h"

#include <apr_strings.h>
#include <ctype.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text/text.h"

enum { LONGEST_NAME = 40 };

static const struct {
    uint8_t driver;
    const char *name;
} drivers[] = {
    { 0x01, "CP437" },     { 0x02, "CP850" },        { 0x03, "CP1252" },
    { 0x04, "MACINTOSH" }, { 0x08, "CP865" },        { 0x09, "CP437" },
    { 0x0A, "CP850" },     { 0x0B, "CP437" },        { 0x0D, "CP437" },
    { 0x0E, "CP850" },     { 0x0F, "CP437" },        { 0x10, "CP850" },
    { 0x11, "CP437" },     { 0x12, "CP850" },        { 0x13, "CP932" },
    { 0x14, "CP850" },     { 0x15, "CP437" },        { 0x16, "CP850" },
    { 0x17, "CP865" },     { 0x18, "CP437" },        { 0x19, "CP437" },
    { 0x1A, "CP850" },     { 0x1B, "CP437" },        { 0x1C, "CP863" },
    { 0x1D, "CP850" },     { 0x1F, "CP852" },        { 0x22, "CP852" },
    { 0x23, "CP852" },     { 0x24, "CP860" },        { 0x25, "CP850" },
    { 0x26, "CP866" },     { 0x37, "CP850" },        { 0x40, "CP852" },
    { 0x4D, "CP936" },     { 0x4E, "CP949" },        { 0x4F, "CP950" },
    { 0x50, "CP874" },     { 0x57, "CP1252" },       { 0x58, "CP1252" },
    { 0x59, "CP1252" },    { 0x64, "CP852" },        { 0x65, "CP866" },
    { 0x66, "CP865" },     { 0x67, "CP861" },        { 0x6A, "CP737" },
    { 0x6B, "CP857" },     { 0x6C, "CP863" },        { 0x78, "CP950" },
    { 0x79, "CP949" },     { 0x7A, "CP936" },        { 0x7B, "CP932" },
    { 0x7C, "CP874" },     { 0x86, "CP737" },        { 0x87, "CP852" },
    { 0x88, "CP857" },     { 0x96, "MAC-CYRILLIC" }, { 0x97, "MAC-CENTRALEUROPE" },
    { 0xC8, "CP1250" },    { 0xC9, "CP1251" },       { 0xCA, "CP1254" },
    { 0xCB, "CP1253" },    { 0xCC, "CP1257" },
};

const char *
mc_codepage_of_driver(uint8_t driver)
{
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
        if (drivers[i].driver == driver)
            return drivers[i].name;
    return NULL;
}

/* "88591" and "885915" are parts of ISO 8859, 65001 is UTF-8, 10000 is the Macintosh's; others are code pages. */
static const char *
of_number(int number, apr_pool_t *pool)
{
    if (number == 65001)
        return "UTF-8";
    if (number == 10000)
        return "MACINTOSH";
    if (number >= 28591 && number <= 28606)
        return apr_psprintf(pool, "ISO-8859-%d", number - 28590);
    if (number >= 88591 && number <= 88599)
        return apr_psprintf(pool, "ISO-8859-%d", number - 88590);
    if (number >= 885910 && number <= 885916)
        return apr_psprintf(pool, "ISO-8859-%d", number - 885900);
    return apr_psprintf(pool, "CP%d", number);
}

static bool
is_codepage_known(const char *name)
{
    iconv_t state = iconv_open("UTF-8", name);
    if (state == (iconv_t)-1)
        return false;
    iconv_close(state);
    return true;
}

const char *
mc_codepage_name(const char *text, apr_pool_t *pool)
{
    static const char *const prefixes[] = { "ANSI ", "OEM ",      "LDID/",     "CP ",     "WINDOWS-",
                                            "8859-", "ISO 8859-", "ISO_8859-", "ISO8859", "8859_" };
    int number;
    while (isspace((unsigned char)*text))
        text++;
    size_t size = 0;
    while (size < LONGEST_NAME && (isalnum((unsigned char)text[size]) || strchr(" -_.:/", text[size]) != NULL) &&
           text[size] != '\0')
        size++;
    while (size > 0 && text[size - 1] == ' ')
        size--;
    const char *name = apr_pstrmemdup(pool, text, size);
    const char *rest = name;
    for (size_t i = 0; rest == name && i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncasecmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            rest = name + strlen(prefixes[i]);
    if (mc_parse_int(&number, rest, 0, 999999)) {
        if (strncasecmp(name, "LDID/", 5) == 0)
            return number > 255 ? NULL : mc_codepage_of_driver((uint8_t)number);
        name = strstr(name, "8859") != NULL && number <= 16 ? apr_psprintf(pool, "ISO-8859-%d", number)
                                                            : of_number(number, pool);
    }
    return *name != '\0' && strstr(name, "//") == NULL && is_codepage_known(name) ? name : NULL;
}

static bool
is_ascii(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((bytes[i] & 0x80) != 0)
            return false;
    return true;
}

/* Whether iconv takes it as UTF-8: no bytes out of place, nothing overlong, no surrogates. */
static bool
is_utf8(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size;) {
        uint8_t c = (uint8_t)bytes[i++];
        int more = c < 0x80                ? 0
                   : c >= 0xC2 && c < 0xE0 ? 1
                   : c >= 0xE0 && c < 0xF0 ? 2
                   : c >= 0xF0 && c < 0xF5 ? 3
                                           : -1;
        if (more < 0 || (size_t)more > size - i)
            return false;
        uint8_t first = more > 0 ? (uint8_t)bytes[i] : 0;
        if ((c == 0xE0 && first < 0xA0) || (c == 0xED && first > 0x9F) || (c == 0xF0 && first < 0x90) ||
            (c == 0xF4 && first > 0x8F))
            return false;
        for (; more > 0; more--, i++)
            if ((bytes[i] & 0xC0) != 0x80)
                return false;
    }
    return true;
}

static const char *
convert_to_utf8(iconv_t state, const char *bytes, size_t size, apr_pool_t *pool)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t room = size * 4 + 4, left = room;
    char *text = apr_palloc(pool, room + 1), *out = text, *in = (char *)(uintptr_t)bytes;
    iconv(state, NULL, NULL, NULL, NULL);
    while (size > 0 && iconv(state, &in, &size, &out, &left) == (size_t)-1 && size > 0) {
        if (left < sizeof(replacement))
            break;
        memcpy(out, replacement, sizeof(replacement) - 1);
        out += sizeof(replacement) - 1;
        left -= sizeof(replacement) - 1;
        in++;
        size--;
        iconv(state, NULL, NULL, NULL, NULL);
    }
    *out = '\0';
    return text;
}

const char *
mc_codepage_text(mc_codepage *page, const char *bytes, size_t size, apr_pool_t *pool)
{
    if (is_ascii(bytes, size) || ((page->name == NULL || strcasecmp(page->name, "UTF-8") == 0) && is_utf8(bytes, size)))
        return apr_pstrmemdup(pool, bytes, size);
    if (page->state == NULL)
        page->state = iconv_open("UTF-8", page->name == NULL ? "CP1252" : page->name);
    if (page->state == (iconv_t)-1)
        return apr_pstrmemdup(pool, "?", 1);
    return convert_to_utf8(page->state, bytes, size, pool);
}

void
mc_codepage_close(mc_codepage *page)
{
    if (page->state != NULL && page->state != (iconv_t)-1)
        iconv_close(page->state);
    page->state = NULL;
}
