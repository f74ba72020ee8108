/* See utf8.h. */
#include "text/utf8.h"

char *
mc_utf8_encode(char *to, uint32_t character)
{
    int more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    *to++ = (char)(more == 0 ? character : (0xFF00U >> (more + 1) & 0xFFU) | character >> 6 * more);
    while (more-- > 0)
        *to++ = (char)(0x80U | (character >> 6 * more & 0x3FU));
    return to;
}

size_t
mc_utf8_length(const char *text, const char *end)
{
    size_t count = 0;
    for (; text < end; text++)
        count += !mc_utf8_continues(*text);
    return count;
}

size_t
mc_utf8_cut(const char *text, size_t most)
{
    while (most > 0 && mc_utf8_continues(text[most]))
        most--;
    return most;
}
