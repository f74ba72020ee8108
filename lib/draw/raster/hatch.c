/* Hatches: see hatch.h. */
#include "draw/raster/hatch.h"

#include <math.h>

void
mc_hatch_make(mc_hatch *hatch, unsigned directions, double pitch, double width, double turn, double shift_x,
              double shift_y)
{
    static const struct {
        unsigned direction;
        double angle; /* of the lines, clockwise from level */
        double share; /* of the pitch: how far apart they are */
    } kinds[MC_HATCH_FAMILIES] = { { MC_HATCH_ACROSS, 0, 1 },
                                   { MC_HATCH_UP, 90, 1 },
                                   { MC_HATCH_SLASH, -45, M_SQRT1_2 },
                                   { MC_HATCH_BACKSLASH, 45, M_SQRT1_2 } };
    hatch->count = 0;
    for (int i = 0; i < MC_HATCH_FAMILIES; i++) {
        if ((directions & kinds[i].direction) == 0)
            continue;
        double degrees = fmod(kinds[i].angle + turn + 90, 180), angle = degrees * M_PI / 180;
        double nx = fmod(degrees, 90) == 0 ? rint(cos(angle)) : cos(angle);
        double ny = fmod(degrees, 90) == 0 ? rint(sin(angle)) : sin(angle);
        double apart = fmax(pitch * kinds[i].share, 0.25);
        hatch->families[hatch->count].nx = nx;
        hatch->families[hatch->count].ny = ny;
        hatch->families[hatch->count].pitch = apart;
        hatch->families[hatch->count].width = fmin(fmax(width, 0), apart);
        hatch->families[hatch->count++].offset = shift_x * nx + shift_y * ny;
    }
}

/* What the stripes [0, width) of every pitch cover of the line from 0 to t. */
static inline double
covered_up_to(double t, double pitch, double width)
{
    double whole = floor(t / pitch), rest = t - whole * pitch;
    return whole * width + (rest < width ? rest : width);
}

void
mc_hatch_row(const mc_hatch *hatch, int64_t x, int64_t y, uint8_t *mask, int count)
{
    for (int i = 0; i < count; i++) {
        double left = 1; /* of the pixel, between the lines */
        if (mask[i] == 0)
            continue;
        for (int f = 0; f < hatch->count; f++) {
            double pitch = hatch->families[f].pitch, width = hatch->families[f].width;
            double at = ((double)(x + i) + 0.5) * hatch->families[f].nx + ((double)y + 0.5) * hatch->families[f].ny -
                        hatch->families[f].offset;
            at -= floor(at / pitch) * pitch; /* small numbers from here on */
            double share = covered_up_to(at + 0.5, pitch, width) - covered_up_to(at - 0.5, pitch, width);
            left *= 1 - fmin(1, fmax(0, share));
        }
        mask[i] = (uint8_t)lrint(mask[i] * (1 - left));
    }
}

/* Rounded down, also below 0. */
static int64_t
divide_down(int64_t number, int by)
{
    return number / by - (number % by < 0 ? 1 : 0);
}

void
mc_hatch_dots(int dots, int side, int64_t x, int64_t y, uint8_t *mask, int count)
{
    unsigned row = (unsigned)(divide_down(y, side) & 7);
    for (int i = 0; i < count; i++) {
        /* Bayer's order of 8x8 dots: the bits of x ^ y and of y, the lowest first. */
        unsigned column = (unsigned)(divide_down(x + i, side) & 7), both = column ^ row, rank = 0;
        for (int bit = 0; bit < 3; bit++)
            rank |= ((both >> bit & 1) << (5 - 2 * bit)) | ((row >> bit & 1) << (4 - 2 * bit));
        if ((int)rank >= dots)
            mask[i] = 0;
    }
}
