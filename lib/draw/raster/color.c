/* See color.h. */
#include "draw/raster/color.h"

#include <string.h>

static int
parse_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool
mc_color_parse(mc_color *color, const char *text)
{
    int digits[6];
    int count = 0;
    if (text == NULL || (*text != '#' && strncmp(text, "0x", 2) != 0))
        return false;
    text += *text == '#' ? 1 : 2;
    for (; *text != '\0'; text++, count++)
        if (count == 6 || (digits[count] = parse_hex_digit(*text)) < 0)
            return false;
    if (count != 3 && count != 6)
        return false;
    int wide = count == 6;
    color->red = (uint8_t)(digits[0] * 16 + digits[wide]);
    color->green = (uint8_t)(digits[1 + wide] * 16 + digits[wide ? 3 : 1]);
    color->blue = (uint8_t)(digits[wide ? 4 : 2] * 16 + digits[wide ? 5 : 2]);
    return true;
}
