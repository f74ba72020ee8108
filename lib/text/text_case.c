/* See text_case.h. */
#include "text/text_case.h"
#include "text/utf8.h"

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
            to = mc_utf8_encode(to, 'S');
        to = mc_utf8_encode(to,
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
