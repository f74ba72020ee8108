/* Functions of colours, as GeoServer has them from LESS: hue, saturation and lightness (CSS Color 4, 7), mixtures. */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "draw/style/functions.h"

/* Degrees, and shares from 0 to 1. */
typedef struct hsl {
    double hue, saturation, lightness;
} hsl;

static hsl
hsl_of(mc_color color)
{
    double red = color.red / 255.0, green = color.green / 255.0, blue = color.blue / 255.0;
    double most = fmax(red, fmax(green, blue)), least = fmin(red, fmin(green, blue)), range = most - least;
    hsl made = { 0, 0, (most + least) / 2 };
    if (range == 0)
        return made;
    made.saturation = range / (1 - fabs(2 * made.lightness - 1));
    made.hue = most == red     ? 60 * (green - blue) / range
               : most == green ? 60 * (blue - red) / range + 120
                               : 60 * (red - green) / range + 240;
    return made;
}

static double
share_of(double value)
{
    return fmin(1, fmax(0, value));
}

static uint8_t
channel_of(const hsl *from, double offset)
{
    double k = fmod(offset + from->hue / 30, 12), a = from->saturation * fmin(from->lightness, 1 - from->lightness);
    k += k < 0 ? 12 : 0;
    return (uint8_t)lrint(255 * share_of(from->lightness - a * fmax(-1, fmin(fmin(k - 3, 9 - k), 1))));
}

static const char *
color_text(mc_color color, apr_pool_t *pool)
{
    return apr_psprintf(pool, "#%02x%02x%02x", color.red, color.green, color.blue);
}

static const char *
hsl_text(hsl from, apr_pool_t *pool)
{
    from.saturation = share_of(from.saturation);
    from.lightness = share_of(from.lightness);
    return color_text((mc_color){ channel_of(&from, 0), channel_of(&from, 8), channel_of(&from, 4), 255 }, pool);
}

static bool
color_argument(mc_color *color, mc_arguments args, int i, const mc_feature *feature, apr_pool_t *pool)
{
    *color = (mc_color){ 0, 0, 0, 255 };
    return mc_color_parse(color, mc_argument_text(args, i, feature, pool));
}

/* "10%", or 0.1. NAN: neither. */
static double
share_argument(mc_arguments args, int i, const mc_feature *feature, apr_pool_t *pool)
{
    const char *text = mc_argument_text(args, i, feature, pool);
    char *end;
    double value = text == NULL ? NAN : strtod(text, &end);
    if (text == NULL || end == text)
        return NAN;
    end += strspn(end, " ");
    return *end == '%' ? value / 100 : *end == '\0' ? value : NAN;
}

/* What is added to a share: `amount`, or where the third argument says relative, that part of the share. */
static const char *
change_color(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool, double sign, bool light)
{
    mc_color color;
    double amount = share_argument(args, 1, feature, pool);
    const char *method = count > 2 ? mc_argument_text(args, 2, feature, pool) : NULL;
    if (!color_argument(&color, args, 0, feature, pool) || !isfinite(amount))
        return NULL;
    hsl made = hsl_of(color);
    double *share = light ? &made.lightness : &made.saturation;
    *share += sign * amount * (method != NULL && strcasecmp(method, "relative") == 0 ? *share : 1);
    return hsl_text(made, pool);
}

#define CHANGE(name, sign, light)                                                                                      \
    static const char *name(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)                 \
    {                                                                                                                  \
        return change_color(args, count, feature, pool, sign, light);                                                  \
    }
CHANGE(lighten_color, 1, true)
CHANGE(darken_color, -1, true)
CHANGE(saturate_color, 1, false)
CHANGE(desaturate_color, -1, false)

static const char *
spin_color(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    mc_color color;
    double degrees = mc_argument_number(args, 1, feature, pool);
    if (!color_argument(&color, args, 0, feature, pool) || isnan(degrees))
        return NULL;
    hsl made = hsl_of(color);
    made.hue = fmod(made.hue + degrees, 360);
    return hsl_text(made, pool);
}

static const char *
gray_color(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    mc_color color;
    if (!color_argument(&color, args, 0, feature, pool))
        return NULL;
    hsl made = hsl_of(color);
    made.saturation = 0;
    return hsl_text(made, pool);
}

static const char *
mixture_text(mc_color a, mc_color b, double share, apr_pool_t *pool)
{
    double rest = 1 - share_of(share);
    share = share_of(share);
    return color_text((mc_color){ (uint8_t)lrint(a.red * share + b.red * rest),
                                  (uint8_t)lrint(a.green * share + b.green * rest),
                                  (uint8_t)lrint(a.blue * share + b.blue * rest), 255 },
                      pool);
}

/* The share is that of the first colour. */
static const char *
mix_colors(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    mc_color a, b;
    double share = count > 2 ? share_argument(args, 2, feature, pool) : 0.5;
    if (!color_argument(&a, args, 0, feature, pool) || !color_argument(&b, args, 1, feature, pool) || !isfinite(share))
        return NULL;
    return mixture_text(a, b, share, pool);
}

static const char *
mix_with(mc_color with, mc_arguments args, const mc_feature *feature, apr_pool_t *pool)
{
    mc_color color;
    double share = share_argument(args, 1, feature, pool);
    if (!color_argument(&color, args, 0, feature, pool) || !isfinite(share))
        return NULL;
    return mixture_text(with, color, share, pool);
}

static const char *
tint_color(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return mix_with((mc_color){ 255, 255, 255, 255 }, args, feature, pool);
}

static const char *
shade_color(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return mix_with((mc_color){ 0, 0, 0, 255 }, args, feature, pool);
}

/* How bright a colour is seen (ITU-R BT.709), from 0 to 1. */
static double
luma_of(mc_color color)
{
    return (0.2126 * color.red + 0.7152 * color.green + 0.0722 * color.blue) / 255;
}

/* Of two colours, the darker one for a reference that is brighter than the threshold, else the brighter one. */
static const char *
contrast_color(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    mc_color reference, a = { 0, 0, 0, 255 }, b = { 255, 255, 255, 255 };
    double threshold = count > 3 ? share_argument(args, 3, feature, pool) : 0.43;
    if (!color_argument(&reference, args, 0, feature, pool) ||
        (count > 1 && !color_argument(&a, args, 1, feature, pool)) ||
        (count > 2 && !color_argument(&b, args, 2, feature, pool)) || !isfinite(threshold))
        return NULL;
    bool first = (luma_of(reference) > threshold) == (luma_of(a) < luma_of(b));
    return color_text(first ? a : b, pool);
}

static const char *
hsl_color(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    hsl made = { mc_argument_number(args, 0, feature, pool), share_argument(args, 1, feature, pool),
                 share_argument(args, 2, feature, pool) };
    if (!isfinite(made.hue) || !isfinite(made.saturation) || !isfinite(made.lightness))
        return NULL;
    made.hue = fmod(made.hue, 360);
    return hsl_text(made, pool);
}

const mc_function mc_functions_of_colors[] = {
    { "lighten", 2, 3, lighten_color, false },
    { "darken", 2, 3, darken_color, false },
    { "saturate", 2, 3, saturate_color, false },
    { "desaturate", 2, 3, desaturate_color, false },
    { "spin", 2, 2, spin_color, false },
    { "grayscale", 1, 1, gray_color, false },
    { "mix", 2, 3, mix_colors, false },
    { "tint", 2, 2, tint_color, false },
    { "shade", 2, 2, shade_color, false },
    { "contrast", 1, 4, contrast_color, false },
    { "constrast", 1, 4, contrast_color, false }, /* as GeoServer spells it */
    { "hsl", 3, 3, hsl_color, false },
    { NULL, 0, 0, NULL, false },
};

bool
mc_function_is_of_colors(const mc_function *function)
{
    return function >= mc_functions_of_colors &&
           function < mc_functions_of_colors + sizeof(mc_functions_of_colors) / sizeof(mc_functions_of_colors[0]);
}
