/* Text from and for the outside: escapes, query strings, file names, replacements. Numbers are in number.c. */
#include "text/text.h"
#include "base/controls.h"
#include "text/calendar.h"
#include "text/utf8.h"

#include <apr_date.h>
#include <apr_strings.h>
#include <apr_time.h>
#include <stdlib.h>
#include <string.h>

static const char hex_lower[] = "0123456789abcdef";
static const char hex_upper[] = "0123456789ABCDEF";

static bool
is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static char *
put_percent(char *to, unsigned char byte, const char *digits)
{
    *to++ = '%';
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 15];
    return to;
}

char *
mc_url_decode(const char *text, size_t size, bool plus_is_space, apr_pool_t *pool)
{
    char *value = apr_palloc(pool, size + 1);
    char *to = value;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '+' && plus_is_space) {
            c = ' ';
        } else if (c == '%' && size - i > 2) {
            int high = hex_value(text[i + 1]);
            int low = hex_value(text[i + 2]);
            if (high >= 0 && low >= 0) {
                c = (char)(high << 4 | low);
                i += 2;
            }
        }
        if (c == '\0')
            break;
        *to++ = c;
    }
    *to = '\0';
    return value;
}

static bool
is_control(int byte)
{
    return (byte >= 0 && byte < ' ') || byte == 0x7f;
}

bool
mc_text_has_controls(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (is_control((unsigned char)*c))
            return true;
    return false;
}

bool
mc_query_has_controls(const char **name, const char *query, const char *allowed, apr_pool_t *pool)
{
    const char *pair = query;
    for (const char *c = query; *c != '\0'; c++) {
        int byte = (unsigned char)*c;
        if (byte == '&')
            pair = c + 1;
        if (byte == '%' && hex_value(c[1]) >= 0 && hex_value(c[2]) >= 0)
            byte = hex_value(c[1]) << 4 | hex_value(c[2]);
        if (is_control(byte) && (byte == 0 || strchr(allowed, byte) == NULL)) {
            *name = apr_pstrmemdup(pool, pair, strcspn(pair, "=&"));
            return true;
        }
    }
    return false;
}

bool
mc_is_version(const char *text)
{
    for (int part = 0; part < 3; part++) {
        size_t digits = strspn(text, "0123456789");
        if (digits < 1 || digits > 3 || text[digits] != (part < 2 ? '.' : '\0'))
            return false;
        text += digits + 1;
    }
    return true;
}

apr_table_t *
mc_query_parse(const char *query, int max, apr_pool_t *pool)
{
    apr_table_t *pairs = apr_table_make(pool, 16);
    int count = 0;
    while (query != NULL && *query != '\0' && count < max) {
        size_t size = strcspn(query, "&");
        const char *equals = memchr(query, '=', size);
        size_t key_size = equals == NULL ? size : (size_t)(equals - query);
        if (key_size > 0) {
            char *key = mc_url_decode(query, key_size, true, pool);
            size_t value_size = equals == NULL ? 0 : size - key_size - 1;
            if (apr_table_get(pairs, key) == NULL)
                apr_table_setn(pairs, key, mc_url_decode(query + size - value_size, value_size, true, pool));
            count++;
        }
        query += size;
        if (*query == '&')
            query++;
    }
    return pairs;
}

char *
mc_url_encode(const char *text, const char *keep, bool upper_case, bool plus_for_space, apr_pool_t *pool)
{
    char *value = apr_palloc(pool, 3 * strlen(text) + 1);
    char *to = value;
    for (const char *c = text; *c != '\0'; c++) {
        if (is_alphanumeric(*c) || strchr("-_.~", *c) != NULL || (keep != NULL && strchr(keep, *c) != NULL))
            *to++ = *c;
        else if (*c == ' ' && plus_for_space)
            *to++ = '+';
        else
            to = put_percent(to, (unsigned char)*c, upper_case ? hex_upper : hex_lower);
    }
    *to = '\0';
    return value;
}

/* The number of bytes of the well-formed character at `text` if XML 1.0 allows it (U+FFFE and U+FFFF it does not), or
 * 0. */
static size_t
xml_character_size(const char *text)
{
    return strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0 ? 0 : mc_utf8_size(text);
}

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* What stands for one ASCII character, or NULL for itself. `scratch` holds at least 7 bytes. */
typedef const char *ascii_escape(char c, char *scratch);

static const char *
escape_utf8_text(const char *text, ascii_escape *escape_ascii, apr_pool_t *pool)
{
    char scratch[8];
    size_t length = strlen(text);
    char *value = NULL; /* until something has to change, there is no copy */
    char *to = NULL;
    for (size_t i = 0; i < length;) {
        const char *with = NULL;
        size_t size = 1;
        if ((unsigned char)text[i] < 0x80) {
            with = escape_ascii(text[i], scratch);
        } else {
            size = xml_character_size(text + i);
            if (size == 0) {
                with = replacement;
                size = 1;
            }
        }
        if (with != NULL && value == NULL) {
            value = apr_palloc(pool, i + 6 * (length - i) + 1);
            memcpy(value, text, i);
            to = value + i;
        }
        if (value != NULL) {
            size_t put = with == NULL ? size : strlen(with);
            memcpy(to, with == NULL ? text + i : with, put);
            to += put;
        }
        i += size;
    }
    if (value == NULL)
        return text;
    *to = '\0';
    return value;
}

static const char *
xml_ascii(char c, char *scratch)
{
    (void)scratch;
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\t':
    case '\n':
    case '\r':
        return NULL;
    default:
        return c < ' ' ? replacement : NULL;
    }
}

const char *
mc_xml_escape(const char *text, apr_pool_t *pool)
{
    return escape_utf8_text(text, xml_ascii, pool);
}

static const char *
json_ascii(char c, char *scratch)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        if (c >= ' ' && c != 0x7f)
            return NULL;
        memcpy(scratch, "\\u00", 4);
        scratch[4] = hex_lower[c >> 4];
        scratch[5] = hex_lower[c & 15];
        scratch[6] = '\0';
        return scratch;
    }
}

const char *
mc_json_escape(const char *text, apr_pool_t *pool)
{
    return escape_utf8_text(text, json_ascii, pool);
}

static const char *
message_ascii(char c, char *scratch)
{
    (void)scratch;
    return c < ' ' || c == 0x7f ? " " : NULL;
}

/* U+0080 to U+009F: terminals take U+009B for the beginning of a command. */
static const char *
blank_high_controls(const char *text, apr_pool_t *pool)
{
    const char *at = text;
    while ((at = strchr(at, '\xc2')) != NULL && (unsigned char)at[1] >= 0xa0)
        at++;
    if (at == NULL)
        return text;
    char *copy = apr_palloc(pool, strlen(text) + 1), *to = copy;
    for (const char *from = text; *from != '\0';) {
        bool control = *from == '\xc2' && (unsigned char)from[1] < 0xa0;
        *to++ = control ? ' ' : *from;
        from += control ? 2 : 1;
    }
    *to = '\0';
    return copy;
}

const char *
mc_message_text(const char *text, size_t most, apr_pool_t *pool)
{
    size_t size = strnlen(text, most + 1);
    if (size > most)
        text = apr_pstrcat(pool, apr_pstrndup(pool, text, mc_utf8_cut(text, most)), "...", NULL);
    text = escape_utf8_text(text, message_ascii, pool);
    return blank_high_controls(text, pool);
}

const char *
mc_header_value(const char *text, apr_pool_t *pool)
{
    return mc_controls_blank(apr_pstrdup(pool, text));
}

const char *
mc_replace_all(const char *text, const char *token, const char *value, apr_pool_t *pool)
{
    size_t token_size = strlen(token);
    size_t value_size = strlen(value);
    size_t count = 0;
    if (token_size > 0)
        for (const char *at = text; (at = strstr(at, token)) != NULL; at += token_size)
            count++;
    if (count == 0)
        return text;
    char *result = apr_palloc(pool, strlen(text) - count * token_size + count * value_size + 1);
    char *to = result;
    for (; count > 0; count--) {
        const char *at = strstr(text, token);
        memcpy(to, text, (size_t)(at - text));
        to += at - text;
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the end of the text is copied below */
        memcpy(to, value, value_size);
        to += value_size;
        text = at + token_size;
    }
    apr_cpystrn(to, text, strlen(text) + 1);
    return result;
}

const char *
mc_shell_word(const char *text, apr_pool_t *pool)
{
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%";
    if (*text != '\0' && *text != '-' && text[strspn(text, plain)] == '\0')
        return text;
    return apr_pstrcat(pool, "'", mc_replace_all(text, "'", "'\\''", pool), "'", NULL);
}

const char *
mc_sql_name(const char *name, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "\"", mc_replace_all(name, "\"", "\"\"", pool), "\"", NULL);
}

const char *
mc_sql_table(const char *table, apr_pool_t *pool)
{
    const char *dot = strchr(table, '.');
    if (dot == NULL)
        return mc_sql_name(table, pool);
    return apr_pstrcat(pool, mc_sql_name(apr_pstrmemdup(pool, table, (size_t)(dot - table)), pool), ".",
                       mc_sql_name(dot + 1, pool), NULL);
}

static int
least_cost(int a, int b)
{
    return a < b ? a : b;
}

int
mc_text_distance(const char *a, const char *b)
{
    enum { LONGEST = 255 }; /* names beyond that are compared by their beginnings and lengths */
    size_t a_size = strlen(a);
    size_t b_size = strlen(b);
    int beyond = a_size > LONGEST || b_size > LONGEST ? abs((int)(a_size & INT32_MAX) - (int)(b_size & INT32_MAX)) : 0;
    int rows = a_size > LONGEST ? LONGEST : (int)a_size;
    int columns = b_size > LONGEST ? LONGEST : (int)b_size;
    int room[3][LONGEST + 1]; /* of turning a's first `row` characters into b's first `column` ones; the last rows */
    int *costs = room[0], *before = room[1], *swapped = room[2];
    for (int column = 0; column <= columns; column++)
        costs[column] = column;
    for (int row = 1; row <= rows; row++) {
        int *oldest = swapped;
        swapped = before;
        before = costs;
        costs = oldest;
        costs[0] = row;
        for (int column = 1; column <= columns; column++) {
            int least = before[column - 1] + (a[row - 1] == b[column - 1] ? 0 : 1);
            least = least_cost(least, least_cost(costs[column - 1], before[column]) + 1);
            if (row > 1 && column > 1 && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1])
                least = least_cost(least, swapped[column - 2] + 1);
            costs[column] = least;
        }
    }
    return costs[columns] > beyond ? costs[columns] : beyond;
}

/* Two digits at `to`. */
static void
put_digits(char *to, int number)
{
    to[0] = (char)('0' + number / 10);
    to[1] = (char)('0' + number % 10);
}

/*
 * IMF-fixdate of RFC 9110 5.6.7, "Sun, 06 Nov 1994 08:49:37 GMT". Written here because every response has two, and the
 * C library's way goes through its time zones.
 */
static const char *
format_rfc1123_date(int64_t unix_seconds, apr_pool_t *pool)
{
    int64_t days = unix_seconds / 86400;
    int second = (int)(unix_seconds % 86400);
    mc_calendar_date at = mc_calendar_date_of(days);
    char *date = apr_pstrmemdup(pool, "Sun, 00 Jan 0000 00:00:00 GMT", 29);
    memcpy(date, apr_day_snames[(days + 4) % 7], 3);
    put_digits(date + 5, at.day);
    memcpy(date + 8, apr_month_snames[at.month - 1], 3);
    put_digits(date + 12, at.year / 100);
    put_digits(date + 14, at.year % 100);
    put_digits(date + 17, second / 3600);
    put_digits(date + 20, second / 60 % 60);
    put_digits(date + 23, second % 60);
    return date;
}

const char *
mc_http_date(int64_t unix_seconds, apr_pool_t *pool)
{
    const int64_t last = 253402300799; /* 9999-12-31: the format has four digits for the year */
    if (unix_seconds < 0)
        unix_seconds = 0;
    if (unix_seconds > last)
        unix_seconds = last;
    return format_rfc1123_date(unix_seconds, pool);
}

int64_t
mc_http_date_parse(const char *text)
{
    if (text == NULL)
        return 0;
    apr_time_t time = apr_date_parse_http(text);
    return time > 0 ? apr_time_sec(time) : 0;
}
