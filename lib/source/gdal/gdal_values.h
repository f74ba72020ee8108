/* Keys of the source "gdal" that say how values of a raster become colours. */
#ifndef MC_SOURCE_GDAL_GDAL_VALUES_H
#define MC_SOURCE_GDAL_GDAL_VALUES_H

#include "mapcache/config.h"
#include "source/gdal/gdal_warp.h"

/* As configured. */
typedef struct mc_gdal_values {
    mc_number_list bands, scale;
    const char *no_data, *ramp; /* or NULL */
} mc_gdal_values;

#define MC_GDAL_VALUE_KEYS(type_, member_)                                                                             \
    MC_KEY_NUMBERS("bands", offsetof(type_, member_.bands),                                                            \
                   "Which bands make the picture, counted from 1: one (grey), two (grey, alpha), three (red, green, "  \
                   "blue) or four (and alpha). By default all of a raster of one to four bands.",                      \
                   .flags = MC_KEY_OURS, .min = 1, .max = MC_GDAL_BANDS),                                              \
        MC_KEY_NUMBERS("scale", offsetof(type_, member_.scale),                                                        \
                       "The values that become black and white: two numbers, or two for each of three bands. By "      \
                       "default 0 255 of 8-bit bands, and of all others the least and the greatest value by the "      \
                       "band's statistics.",                                                                           \
                       .flags = MC_KEY_OURS, .min = 2, .max = 6),                                                      \
        MC_KEY_TEXT("nodata", offsetof(type_, member_.no_data),                                                        \
                    "The value that means no data, in place of the one that the raster names; nan, or none: all "      \
                    "values are data.",                                                                                \
                    .flags = MC_KEY_OURS),                                                                             \
        MC_KEY_TEXT("ramp", offsetof(type_, member_.ramp),                                                             \
                    "Colours of the values of one band, rising, with commas between them: 0 #2166ac, 500 #f7f7f7, "    \
                    "2500 #b2182bc0. Between two of them colours are mixed; below the first and above the last one "   \
                    "they stay.",                                                                                      \
                    .flags = MC_KEY_OURS)

/* Checks the values and puts them into `raster`. False after a complaint. */
bool mc_gdal_values_read(mc_gdal_raster *raster, const mc_gdal_values *values, const mc_node *node, mc_build *build);

#endif
