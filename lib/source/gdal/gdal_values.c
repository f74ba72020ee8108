/* See gdal_values.h. */
#include "source/gdal/gdal_values.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/raster/color.h"
#include "text/text.h"

enum { BAND_MAX = 65535 };

static bool
refuse_value(const char *key, const mc_node *node, mc_build *build, const char *why)
{
    mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, key), "<%s>: %s", key, why);
    return false;
}

static bool
read_bands(mc_gdal_raster *raster, const mc_number_list *list, const mc_node *node, mc_build *build)
{
    for (int i = 0; i < list->count; i++) {
        double number = list->values[i];
        if (!(number >= 1 && number <= BAND_MAX) || number != floor(number))
            return refuse_value("bands", node, build, "numbers of bands are whole, and count from 1");
        raster->bands[i] = (int)number;
    }
    raster->band_count = list->count;
    return true;
}

static bool
read_scale(mc_gdal_raster *raster, const mc_number_list *list, const mc_node *node, mc_build *build)
{
    raster->scaled = list->count > 0;
    if (list->count != 0 && list->count != 2 && list->count != 6)
        return refuse_value("scale", node, build, "two numbers are needed, or two for each of three bands");
    for (int i = 0; list->count > 0 && i < MC_GDAL_COLORS; i++) {
        const double *pair = list->values + (list->count == 6 ? 2 * i : 0);
        if (pair[0] == pair[1])
            return refuse_value("scale", node, build, "black and white cannot be the same value");
        raster->scale[i][0] = pair[0];
        raster->scale[i][1] = pair[1];
    }
    return true;
}

static bool
read_no_data_value(mc_gdal_raster *raster, const char *text, const mc_node *node, mc_build *build)
{
    if (text == NULL)
        return true;
    raster->no_data_kind = MC_GDAL_NO_DATA_IS;
    if (strcasecmp(text, "none") == 0)
        raster->no_data_kind = MC_GDAL_ALL_DATA;
    else if (strcasecmp(text, "nan") == 0)
        raster->no_data = NAN;
    else if (!mc_parse_double(&raster->no_data, text))
        return refuse_value("nodata", node, build, "a number, nan or none is expected");
    return true;
}

static const char *
skip_ramp_blanks(const char *text)
{
    return text + strspn(text, " \t\r\n");
}

/* #RRGGBB or #RRGGBBAA, as B, G, R, A. */
static bool
parse_ramp_color(uint8_t bgra[4], const char *text)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    char plain[8] = "";
    mc_color color;
    int alpha = 255;
    size_t size = strlen(text);
    if (size != 7 && size != 9)
        return false;
    memcpy(plain, text, 7);
    if (size == 9) {
        const char *high = memchr(digits, text[7], sizeof(digits) - 1);
        const char *low = memchr(digits, text[8], sizeof(digits) - 1);
        if (high == NULL || low == NULL)
            return false;
        alpha = (int)((high - digits) % 16 * 16 + (low - digits) % 16);
    }
    if (!mc_color_parse(&color, plain))
        return false;
    bgra[0] = color.blue;
    bgra[1] = color.green;
    bgra[2] = color.red;
    bgra[3] = (uint8_t)alpha;
    return true;
}

/* "VALUE #RRGGBB": cut into its two words in place. */
static bool
parse_ramp_stop(mc_gdal_stop *stop, char *item)
{
    char *number = item + strspn(item, " \t\r\n");
    char *end = number + strcspn(number, " \t\r\n");
    if (*end == '\0')
        return false;
    *end = '\0';
    char *color = end + 1 + strspn(end + 1, " \t\r\n");
    char *rest = color + strcspn(color, " \t\r\n");
    if (*skip_ramp_blanks(rest) != '\0')
        return false;
    *rest = '\0';
    return mc_parse_double(&stop->value, number) && parse_ramp_color(stop->bgra, color);
}

static bool
read_ramp(mc_gdal_raster *raster, const char *text, const mc_node *node, mc_build *build)
{
    if (text == NULL)
        return true;
    mc_gdal_stop *stops = apr_pcalloc(build->pool, sizeof(*stops) * MC_GDAL_STOPS);
    char *rest = apr_pstrdup(build->pool, text);
    int count = 0;
    for (char *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ",")) {
        const char *said = mc_config_quote(skip_ramp_blanks(item), build->pool);
        if (count == MC_GDAL_STOPS)
            return refuse_value("ramp", node, build, "it has more than 256 colours");
        if (!parse_ramp_stop(&stops[count], item))
            return refuse_value("ramp", node, build,
                                apr_pstrcat(build->pool, said, " is no value and colour, as 500 #f7f7f7", NULL));
        if (count > 0 && !(stops[count].value > stops[count - 1].value))
            return refuse_value("ramp", node, build,
                                apr_pstrcat(build->pool, said, " has to be above the value before it", NULL));
        count++;
    }
    raster->ramp = stops;
    raster->ramp_count = count;
    return true;
}

bool
mc_gdal_values_read(mc_gdal_raster *raster, const mc_gdal_values *values, const mc_node *node, mc_build *build)
{
    if (!read_bands(raster, &values->bands, node, build) || !read_scale(raster, &values->scale, node, build) ||
        !read_no_data_value(raster, values->no_data, node, build) || !read_ramp(raster, values->ramp, node, build))
        return false;
    if (raster->ramp_count > 0 && raster->band_count > 1)
        return refuse_value("ramp", node, build, "it is of one band: <bands> names more");
    if (raster->ramp_count > 0 && raster->scaled)
        return refuse_value("scale", node, build, "the values of a <ramp> are those of the raster: leave <scale> out");
    return true;
}
