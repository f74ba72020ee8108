/* Colours by the names that CSS Color Module Level 4, 6.1 has for them. */
#ifndef MC_TEXT_COLOR_NAME_H
#define MC_TEXT_COLOR_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* Red, green and blue of a colour that is named in any case, such as "Navy". False: there is no such name. */
bool mc_color_find_name(uint8_t rgb[3], const char *name);

#endif
