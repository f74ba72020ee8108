/* Letters for EXCEPTIONS=INIMAGE: small capitals of 3 x 5 dots, so that no font library is needed for a rare case. */
#include <ctype.h>
#include <string.h>

#include "service/wms/wms.h"

#define COLUMNS 3
#define ROWS 5
#define DOT 2 /* pixels */
#define ADVANCE ((COLUMNS + 1) * DOT)
#define LINE ((ROWS + 2) * DOT)

/* Five rows of three dots as octal digits, top row first; bit 2 is the left dot. */
static unsigned
letter_dots(char letter)
{
    static const unsigned short letters[26] = {
        025755, 065656, 034443, 065556, 074647, 074644, 034553, 055755, 072227, 011152, 055655, 044447, 057755,
        065555, 025552, 065644, 025563, 065655, 034216, 072222, 055557, 055552, 055775, 055255, 055222, 071247,
    };
    static const unsigned short digits[10] = { 075557, 026227, 071747, 071717, 055711,
                                               074717, 074757, 071122, 075757, 075717 };
    static const struct {
        char letter;
        unsigned short dots;
    } others[] = {
        { '.', 000002 }, { ',', 000024 }, { ':', 002020 }, { '-', 000700 }, { '"', 055000 }, { '\'', 022000 },
        { '(', 012221 }, { ')', 042224 }, { '/', 011244 }, { '_', 000007 }, { '=', 007070 }, { '@', 025743 },
        { '?', 071202 }, { '[', 064446 }, { ']', 031113 }, { '<', 012421 }, { '>', 042124 },
    };
    if (letter >= 'A' && letter <= 'Z')
        return letters[letter - 'A'];
    if (letter >= '0' && letter <= '9')
        return digits[letter - '0'];
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (others[i].letter == letter)
            return others[i].dots;
    return 0;
}

static void
draw_dot(mc_pixels *pixels, int x, int y)
{
    static const uint8_t black[4] = { 0, 0, 0, 255 };
    for (int row = y; row < y + DOT && row < pixels->height; row++)
        for (int column = x; column < x + DOT && column < pixels->width; column++)
            memcpy(pixels->data + (size_t)row * pixels->stride + (size_t)column * 4, black, 4);
}

static void
draw_letter(mc_pixels *pixels, int x, int y, char letter)
{
    unsigned dots = letter_dots((char)toupper((unsigned char)letter));
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            if (dots >> ((ROWS - 1 - row) * COLUMNS + COLUMNS - 1 - column) & 1)
                draw_dot(pixels, x + column * DOT, y + row * DOT);
}

void
mc_wms_write_message(mc_pixels *pixels, const char *message)
{
    int x = DOT;
    int y = DOT;
    for (; *message != '\0' && y < pixels->height; message++) {
        if (x + ADVANCE > pixels->width && x > DOT) {
            x = DOT;
            y += LINE;
        }
        draw_letter(pixels, x, y, *message);
        x += ADVANCE;
    }
    pixels->opacity = MC_OPACITY_UNKNOWN;
}
