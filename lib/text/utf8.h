/* UTF-8 (RFC 3629). Texts end with a zero byte unless their size is given. */
#ifndef MC_TEXT_UTF8_H
#define MC_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a byte is inside of a character: not its first. */
static inline bool
mc_utf8_continues(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* The number of bytes of the well-formed character at `text`; 0: there is none. Reads nothing after a zero byte. */
static inline size_t
mc_utf8_size(const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    uint8_t c = at[0];
    if (c < 0x80)
        return 1;
    size_t size = c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    bool short_form = (c == 0xE0 && at[1] < 0xA0) || (c == 0xF0 && at[1] < 0x90);
    bool beyond = (c == 0xED && at[1] > 0x9F) || (c == 0xF4 && at[1] > 0x8F); /* surrogates; above U+10FFFF */
    return short_form || beyond ? 0 : size;
}

/* The character at `text`; the number of its bytes, 0: there is none. */
static inline size_t
mc_utf8_decode(uint32_t *character, const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    size_t size = mc_utf8_size(text);
    *character = size <= 1 ? at[0] : at[0] & (0x7FU >> size);
    for (size_t i = 1; i < size; i++)
        *character = *character << 6 | (at[i] & 0x3FU);
    return size;
}

/* Writes a character up to U+10FFFF, at most 4 bytes. The address after it. */
char *mc_utf8_encode(char *to, uint32_t character);

/* Where the next character begins. The text is not at its end. */
static inline const char *
mc_utf8_next(const char *text)
{
    do
        text++;
    while (mc_utf8_continues(*text));
    return text;
}

/* The number of characters before `end`. */
size_t mc_utf8_length(const char *text, const char *end);

/* How much of a text goes into `most` bytes without a character that is cut. The text has more bytes than that. */
size_t mc_utf8_cut(const char *text, size_t most);

#endif
