/* See text_case.h. */
#include "text/text_case.h"

#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <wctype.h>

#define SHARP_S 0xDF

static locale_t unicode; /* 0: the C library has no such locale, and ASCII alone is changed */

static void
find_unicode(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static uint32_t
change_code_point_case(uint32_t letter, bool upper)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_unicode);
    if (letter < 0x80)
        return upper ? (letter >= 'a' && letter <= 'z' ? letter - 32 : letter)
                     : (letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
    if (unicode == (locale_t)0)
        return letter;
    return (uint32_t)(upper ? towupper_l((wint_t)letter, unicode) : towlower_l((wint_t)letter, unicode));
}

size_t
mc_utf8_decode(uint32_t *letter, const char *text)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const uint8_t *at = (const uint8_t *)text;
    size_t size = at[0] < 0x80 ? 1 : at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : at[0] < 0xF5 ? 4 : 0;
    *letter = size == 1 ? at[0] : at[0] & (0x7FU >> size);
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        *letter = *letter << 6 | (at[i] & 0x3FU);
    }
    return size > 0 && *letter >= least[size] ? size : 0;
}

static char *
put_code_point(char *to, uint32_t letter)
{
    int more = letter < 0x80 ? 0 : letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
    *to++ = (char)(more == 0 ? letter : (0xFF00U >> (more + 1) & 0xFFU) | letter >> 6 * more);
    while (more-- > 0)
        *to++ = (char)(0x80U | (letter >> 6 * more & 0x3FU));
    return to;
}

/* Letters below `from` stay. */
static const char *
rewrite_text_case(const char *text, mc_text_case wanted, uint32_t from, apr_pool_t *pool)
{
    char *made = apr_palloc(pool, strlen(text) * 2 + 1), *to = made; /* two bytes may become three */
    for (const char *at = text; *at != '\0';) {
        bool begins = at == text || strchr(" \t\r\n", at[-1]) != NULL;
        bool upper = wanted == MC_UPPER_CASE || (wanted == MC_TITLE_CASE && begins);
        uint32_t letter;
        size_t size = mc_utf8_decode(&letter, at);
        if (size == 0 || letter < from) {
            *to++ = *at++;
            continue;
        }
        at += size;
        if (letter == SHARP_S && wanted == MC_UPPER_CASE)
            to = put_code_point(to, 'S');
        to = put_code_point(to,
                            letter == SHARP_S && wanted == MC_UPPER_CASE ? 'S' : change_code_point_case(letter, upper));
    }
    *to = '\0';
    return made;
}

const char *
mc_text_case_change(const char *text, mc_text_case wanted, apr_pool_t *pool)
{
    return rewrite_text_case(text, wanted, 0, pool);
}

const char *
mc_text_case_fold(const char *text, apr_pool_t *pool)
{
    for (const char *at = text; *at != '\0'; at++)
        if ((*at & 0x80) != 0)
            return rewrite_text_case(text, MC_LOWER_CASE, 0x80, pool);
    return text;
}
