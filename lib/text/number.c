/*
 * Numbers from text, whatever the process's locale says, rounded correctly. Short numbers, which filters compare for
 * each feature and rule, take an exact way of their own: 10.5 ns for a number of a style and 13 ns for an attribute,
 * where the same check of the form followed by strtod_l takes 30 ns and 30 to 36 ns; numbers of a WMS BBOX take 46 and
 * 52 ns (docs/internals/base.md).
 */
#include <apr_strings.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/text.h"

static bool
is_number_text_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool
mc_parse_int64(int64_t *out, const char *text, int64_t min, int64_t max)
{
    if (text == NULL)
        return false;
    bool negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    if (!is_number_text_digit(*text))
        return false;
    int64_t value = 0; /* negative: there the range is wider */
    for (; is_number_text_digit(*text); text++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, *text - '0', &value))
            return false;
    if (*text != '\0' || (!negative && value == INT64_MIN))
        return false;
    value = negative ? value : -value;
    if (value < min || value > max)
        return false;
    *out = value;
    return true;
}

const char *
mc_write_whole(mc_whole_text *into, int64_t number)
{
    char *at = into->text + sizeof(into->text) - 1;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    *at = '\0';
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0)
        *--at = '-';
    return at;
}

bool
mc_parse_int(int *out, const char *text, int min, int max)
{
    int64_t value;
    if (!mc_parse_int64(&value, text, min, max))
        return false;
    *out = (int)value;
    return true;
}

bool
mc_parse_config_int(int *out, const char *text, int min, int max)
{
    if (text == NULL)
        return false;
    return mc_parse_int(out, text + strspn(text, " \t\n\v\f\r"), min, max);
}

bool
mc_parse_size(int64_t *out, const char *text)
{
    if (text == NULL || !is_number_text_digit(*text))
        return false;
    int64_t value = 0;
    for (; is_number_text_digit(*text); text++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *text - '0', &value))
            return false;
    static const char units[] = "kmgt";
    const char *unit = *text == '\0' ? NULL : strchr(units, *text | 0x20);
    int64_t factor = 1;
    if (unit != NULL) {
        factor = INT64_C(1) << (10 * (unit - units + 1));
        text++;
        text += strcmp(text, "B") == 0 ? 1 : strcmp(text, "iB") == 0 ? 2 : 0;
    }
    if (*text != '\0' || __builtin_mul_overflow(value, factor, &value))
        return false;
    *out = value;
    return true;
}

static locale_t c_locale; /* get_c_locale() */

static void
create_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    MC_ASSERT(c_locale != (locale_t)0);
}

static locale_t
get_c_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_c_locale);
    return c_locale;
}

enum { LONGEST_NUMBER = 1100 /* no double needs more digits to be written exactly */ };

/* The slow way, for what the exact way of parse_double cannot do. `text` has a number's form already. */
static double
convert_in_c_locale(const char *text, size_t size)
{
    char copy[LONGEST_NUMBER + 1];
    memcpy(copy, text, size);
    copy[size] = '\0';
    return strtod_l(copy, NULL, get_c_locale());
}

/* What has been read of a number: its first 19 significant digits as an integer, to be scaled by a power of ten. */
typedef struct decimal {
    uint64_t digits;
    int count; /* significant ones */
    int scale;
    bool any;
} decimal;

static size_t
read_digits(decimal *number, const char *text, size_t at, size_t size, bool fraction)
{
    for (; at < size && is_number_text_digit(text[at]); at++) {
        number->any = true;
        if (number->count < 19) {
            number->digits = number->digits * 10 + (uint64_t)(text[at] - '0');
            number->count += number->digits > 0;
            number->scale -= fraction;
        } else {
            number->count++; /* too long for the exact way */
        }
    }
    return at;
}

/* At `at` stands 'e' or 'E'. False if no exponent follows. */
static bool
read_exponent(decimal *number, const char *text, size_t *at, size_t size)
{
    size_t i = *at + 1;
    bool negative = i < size && text[i] == '-';
    if (i < size && (text[i] == '-' || text[i] == '+'))
        i++;
    if (i >= size || !is_number_text_digit(text[i]))
        return false;
    int exponent = 0;
    for (; i < size && is_number_text_digit(text[i]); i++)
        if (exponent < 100000)
            exponent = exponent * 10 + (text[i] - '0');
    number->scale += negative ? -exponent : exponent;
    *at = i;
    return true;
}

static bool
parse_double(double *out, const char *text, size_t size)
{
    /* Products and quotients of integers below 2^53 and of powers of ten up to 10^22, both exact, round once. */
    static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    if (size == 0 || size > LONGEST_NUMBER)
        return false;
    bool negative = text[0] == '-';
    size_t at = negative || text[0] == '+';
    decimal number = { 0 };
    at = read_digits(&number, text, at, size, false);
    if (at < size && text[at] == '.')
        at = read_digits(&number, text, at + 1, size, true);
    if (!number.any)
        return false;
    if (at < size && (text[at] == 'e' || text[at] == 'E') && !read_exponent(&number, text, &at, size))
        return false;
    if (at != size)
        return false;
    double value;
    if (number.count <= 19 && number.digits < (UINT64_C(1) << 53) && number.scale >= -22 && number.scale <= 22) {
        value = (double)number.digits;
        value = number.scale < 0 ? value / powers[-number.scale] : value * powers[number.scale];
        value = negative ? -value : value;
    } else {
        value = convert_in_c_locale(text, size);
    }
    if (!isfinite(value))
        return false;
    *out = value;
    return true;
}

bool
mc_parse_double(double *out, const char *text)
{
    return text != NULL && parse_double(out, text, strnlen(text, LONGEST_NUMBER + 1));
}

bool
mc_parse_doubles(double *out, int count, int *found, const char *text, const char *separators)
{
    if (text == NULL)
        return false;
    bool runs = strchr(separators, ' ') != NULL;
    int number = 0;
    for (;;) {
        if (runs)
            text += strspn(text, separators);
        if (runs && *text == '\0')
            break;
        size_t size = strcspn(text, separators);
        if (number >= count || !parse_double(&out[number], text, size))
            return false;
        number++;
        text += size;
        if (*text == '\0')
            break;
        text++;
    }
    if (found == NULL)
        return number == count;
    *found = number;
    return true;
}

size_t
mc_format_double(char *out, size_t size, char form, int digits, double value)
{
    locale_t before = uselocale(get_c_locale());
    int written = snprintf(out, size, form == 'f' ? "%.*f" : form == 'e' ? "%.*e" : "%.*g", digits, value);
    uselocale(before);
    MC_ASSERT(written > 0 && (size_t)written < size);
    return (size_t)written;
}

const char *
mc_double_text(char form, int digits, double value, apr_pool_t *pool)
{
    char text[MC_DOUBLE_BYTES];
    size_t size = mc_format_double(text, sizeof(text), form, digits, value);
    return apr_pstrmemdup(pool, text, size);
}
