/* Colours as styles name them. */
#ifndef MC_DRAW_RASTER_COLOR_H
#define MC_DRAW_RASTER_COLOR_H

#include <stdbool.h>
#include <stdint.h>

/* Not premultiplied. */
typedef struct mc_color {
    uint8_t red, green, blue, alpha;
} mc_color;

/* "#RRGGBB" or "#RGB", as styles write it (OGC 05-077r4, 11.1.3), or with GeoServer's "0x"; the alpha stays. False, and
 * nothing changed, for anything else, NULL included. */
bool mc_color_parse(mc_color *color, const char *text);

#endif
