/*
 * Encodings of configurations. MapCache's parser takes every byte as it stands. Here text is UTF-8: of a file that
 * declares another encoding all bytes are converted, and bytes that are no UTF-8 in a file that should be UTF-8 are
 * taken for Windows-1252, which has the characters of Latin-1.
 */
#include <apr_lib.h>
#include <apr_strings.h>
#include <errno.h>
#include <iconv.h>
#include <string.h>

#include "config/xml_encoding.h"
#include "text/utf8.h"

enum { PROLOG_MAX = 4096, ENCODING_MAX = 40, GROWTH = 4 /* bytes that one byte can become */ };

/* What the declaration says, in `name`; "" where it says nothing. It may stand behind white space or a comment. */
static void
find_declared_encoding(char *name, const char *text, size_t size)
{
    const char *end = text + (size < PROLOG_MAX ? size : PROLOG_MAX);
    *name = '\0';
    const char *declaration = memmem(text, (size_t)(end - text), "<?xml", 5);
    if (declaration == NULL)
        return;
    const char *close = memmem(declaration, (size_t)(end - declaration), "?>", 2);
    if (close == NULL)
        return;
    const char *at = memmem(declaration, (size_t)(close - declaration), "encoding", 8);
    if (at == NULL)
        return;
    at += 8 + strspn(at + 8, " \t\r\n=");
    if (at >= close || (*at != '"' && *at != '\''))
        return;
    const char *last = memchr(at + 1, *at, (size_t)(close - at - 1));
    if (last != NULL && last - at - 1 < ENCODING_MAX)
        apr_cpystrn(name, at + 1, (apr_size_t)(last - at));
}

/* Converts all; what has no meaning in the encoding becomes U+FFFD. */
static const char *
convert_all(size_t *converted_size, iconv_t converter, const char *text, size_t size, apr_pool_t *pool)
{
    char *converted = apr_palloc(pool, size * GROWTH + GROWTH + 1), *to = converted;
    size_t room = size * GROWTH + GROWTH;
    char *from = (char *)(uintptr_t)text; /* iconv does not write to it */
    while (size > 0) {
        if (iconv(converter, &from, &size, &to, &room) != (size_t)-1 || errno == E2BIG)
            break;
        from++, size--;
        char *next = mc_utf8_encode(to, 0xFFFD);
        room -= (size_t)(next - to);
        to = next;
    }
    *to = '\0';
    *converted_size = (size_t)(to - converted);
    return converted;
}

/* A byte that is no UTF-8 as the character of Windows-1252. */
static uint32_t
decode_windows_1252(unsigned char byte)
{
    static const uint16_t upper[32] = { 0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                        0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0xFFFD, 0x017D, 0xFFFD,
                                        0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                        0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178 };
    return byte >= 0x80 && byte < 0xA0 ? upper[byte - 0x80] : byte;
}

static const char *
convert_stray_bytes(size_t *converted_size, mc_xml_stray *stray, const char *text, size_t size, apr_pool_t *pool)
{
    char *converted = apr_palloc(pool, size * GROWTH + 1), *to = converted;
    *stray = (mc_xml_stray){ .line = 1, .column = 1 };
    int line = 1, column = 1;
    for (const char *at = text, *end = text + size; at < end;) {
        size_t bytes = mc_utf8_size(at);
        if (bytes == 0) {
            if (stray->count++ == 0)
                stray->line = line, stray->column = column;
            to = mc_utf8_encode(to, decode_windows_1252((unsigned char)*at));
            bytes = 1;
        } else {
            memcpy(to, at, bytes);
            to += bytes;
        }
        column = *at == '\n' ? 1 : column + 1;
        line += *at == '\n';
        at += bytes;
    }
    *to = '\0';
    *converted_size = (size_t)(to - converted);
    return converted;
}

const char *
mc_xml_to_utf8(size_t *converted_size, mc_xml_stray *stray, const char *text, size_t size, apr_pool_t *pool)
{
    char name[ENCODING_MAX];
    *stray = (mc_xml_stray){ 0 };
    find_declared_encoding(name, text, size);
    if (*name != '\0' && strcasecmp(name, "UTF-8") != 0 && strcasecmp(name, "UTF8") != 0) {
        iconv_t converter = iconv_open("UTF-8", name);
        if (converter != (iconv_t)-1) {
            const char *converted = convert_all(converted_size, converter, text, size, pool);
            iconv_close(converter);
            return converted;
        }
        stray->unknown_encoding = apr_pstrdup(pool, name);
    }
    const char *unknown = stray->unknown_encoding;
    const char *converted = convert_stray_bytes(converted_size, stray, text, size, pool);
    stray->unknown_encoding = unknown;
    return converted;
}
