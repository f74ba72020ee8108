/* Functions of numbers: GeoServer's and QGIS', and FormatNumber (OGC 05-077r4, 11.6.1). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/style/functions.h"
#include "text/text.h"

/* Functions of one number, the x of their values. */
#define FUNCTIONS_OF_ONE(X)                                                                                            \
    X(absolute, "abs", fabs(x))                                                                                        \
    X(to_nearest_even, "rint", rint(x))                                                                                \
    X(round_down, "floor", floor(x))                                                                                   \
    X(round_up, "ceil", ceil(x))                                                                                       \
    X(whole_part, "parseInt", trunc(x))                                                                                \
    X(square_root, "sqrt", sqrt(x))                                                                                    \
    X(exponential, "exp", exp(x))                                                                                      \
    X(logarithm, "log", log(x))                                                                                        \
    X(logarithm10, "log10", log10(x))                                                                                  \
    X(sine, "sin", sin(x))                                                                                             \
    X(cosine, "cos", cos(x))                                                                                           \
    X(tangent, "tan", tan(x))                                                                                          \
    X(arc_sine, "asin", asin(x))                                                                                       \
    X(arc_cosine, "acos", acos(x))                                                                                     \
    X(arc_tangent, "atan", atan(x))                                                                                    \
    X(to_degrees, "toDegrees", x * 180 / M_PI)                                                                         \
    X(to_radians, "toRadians", x *M_PI / 180)                                                                          \
    X(number_itself, "parseDouble", x)

#define X(function, name, value)                                                                                       \
    static const char *function(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)             \
    {                                                                                                                  \
        (void)count;                                                                                                   \
        double x = mc_argument_number(args, 0, feature, pool);                                                         \
        return mc_expression_format(value, pool);                                                                      \
    }
FUNCTIONS_OF_ONE(X)
#undef X

static const char *
eval_power(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return mc_expression_format(
        pow(mc_argument_number(args, 0, feature, pool), mc_argument_number(args, 1, feature, pool)), pool);
}

static const char *
eval_extreme(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool, bool largest)
{
    double best = NAN;
    for (int i = 0; i < count; i++) {
        double value = mc_argument_number(args, i, feature, pool);
        best = isnan(best) || (largest ? value > best : value < best) ? value : best;
    }
    return mc_expression_format(best, pool);
}

static const char *
eval_minimum(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    return eval_extreme(args, count, feature, pool, false);
}

static const char *
eval_maximum(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    return eval_extreme(args, count, feature, pool, true);
}

/* Functions of two numbers. */
#define OF_TWO(name, expression)                                                                                       \
    static const char *name(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)                 \
    {                                                                                                                  \
        (void)count;                                                                                                   \
        double x = mc_argument_number(args, 0, feature, pool), y = mc_argument_number(args, 1, feature, pool);         \
        return mc_expression_format(expression, pool);                                                                 \
    }

OF_TWO(arc_tangent2, atan2(x, y))
OF_TWO(modulo, y == 0 ? NAN : fmod(x, y))
OF_TWO(ieee_remainder, y == 0 ? NAN : remainder(x, y))

static const char *
round_to(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    double x = mc_argument_number(args, 0, feature, pool);
    double digits = count > 1 ? mc_argument_number(args, 1, feature, pool) : 0;
    double unit = pow(10, fmin(15, fmax(-15, rint(digits))));
    return mc_expression_format(digits == 0 ? floor(x + 0.5) : floor(x * unit + 0.5) / unit, pool);
}

static const char *
eval_pi(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)args;
    (void)count;
    (void)feature;
    return mc_expression_format(M_PI, pool);
}

/* A pattern of digits: 0 is a digit that is always written, # one that may be left out, a comma groups thousands. */
typedef struct digits {
    const char *before, *behind; /* text around the number */
    int least, fraction_least, fraction_most;
    bool grouped, percent;
} digits;

static digits
parse_number_pattern(const char *pattern, apr_pool_t *pool)
{
    digits read = { 0 };
    const char *at = pattern + strcspn(pattern, "0#.,");
    read.before = apr_pstrmemdup(pool, pattern, (size_t)(at - pattern));
    for (; *at == '0' || *at == '#' || *at == ','; at++) {
        read.least += *at == '0';
        read.grouped |= *at == ',';
    }
    if (*at == '.')
        for (at++; *at == '0' || *at == '#'; at++) {
            read.fraction_least += *at == '0';
            read.fraction_most++;
        }
    read.behind = at;
    read.percent = strchr(at, '%') != NULL;
    read.fraction_most = read.fraction_most > 15 ? 15 : read.fraction_most;
    read.least = read.least > 32 ? 32 : read.least;
    return read;
}

static const char *
format_number_pattern(double value, const char *pattern, const char *point, const char *group, apr_pool_t *pool)
{
    char plain[512];
    digits wanted = parse_number_pattern(pattern, pool);
    mc_format_double(plain, sizeof(plain), 'f', wanted.fraction_most, fabs(value) * (wanted.percent ? 100 : 1));
    char *fraction = strchr(plain, '.');
    size_t whole = fraction == NULL ? strlen(plain) : (size_t)(fraction - plain);
    size_t tail = fraction == NULL ? 0 : strlen(fraction + 1);
    while (tail > (size_t)wanted.fraction_least && fraction[tail] == '0')
        fraction[tail--] = '\0';
    apr_array_header_t *parts = apr_array_make(pool, 32, sizeof(const char *));
    APR_ARRAY_PUSH(parts, const char *) = wanted.before;
    size_t all = whole < (size_t)wanted.least ? (size_t)wanted.least : whole;
    bool left_out = wanted.least == 0 && tail > 0 && strncmp(plain, "0", whole) == 0;
    for (size_t i = 0; i < all && !left_out; i++) {
        bool comes = i + whole >= all;
        APR_ARRAY_PUSH(parts, const char *) = comes ? apr_pstrmemdup(pool, plain + i + whole - all, 1) : "0";
        if (wanted.grouped && (all - i - 1) % 3 == 0 && i + 1 < all)
            APR_ARRAY_PUSH(parts, const char *) = group;
    }
    if (tail > 0) {
        APR_ARRAY_PUSH(parts, const char *) = point;
        APR_ARRAY_PUSH(parts, const char *) = apr_pstrdup(pool, fraction + 1);
    }
    APR_ARRAY_PUSH(parts, const char *) = wanted.behind;
    return apr_array_pstrcat(pool, parts, '\0');
}

/* value, pattern; then a pattern for what is below 0, the decimal point, what groups thousands. Empty: as usual. */
static const char *
format_number(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const char *options[3] = { "", "", "" };
    double value = mc_argument_number(args, 0, feature, pool);
    const char *pattern = mc_argument_text(args, 1, feature, pool);
    for (int i = 0; i + 2 < count && i < 3; i++) {
        const char *given = mc_argument_text(args, i + 2, feature, pool);
        options[i] = given == NULL ? "" : given;
    }
    if (pattern == NULL || isnan(value) || fabs(value) >= 1e100)
        return NULL;
    const char *semicolon = strchr(pattern, ';');
    const char *negative = *options[0] != '\0' ? options[0] : semicolon == NULL ? NULL : semicolon + 1;
    if (semicolon != NULL)
        pattern = apr_pstrmemdup(pool, pattern, (size_t)(semicolon - pattern));
    const char *point = *options[1] == '\0' ? "." : options[1], *group = *options[2] == '\0' ? "," : options[2];
    if (!(value < 0))
        return format_number_pattern(value, pattern, point, group, pool);
    if (negative != NULL)
        return format_number_pattern(value, negative, point, group, pool);
    return apr_pstrcat(pool, "-", format_number_pattern(value, pattern, point, group, pool), NULL);
}

/* GeoServer's: pattern first. */
static const char *
number_format(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    const mc_expression *const turned[2] = { args[1], args[0] };
    return format_number(turned, 2, feature, pool);
}

#define X(function, name, value) { name, 1, 1, function, false },
const mc_function mc_functions_of_numbers[] = {
    { "round", 1, 2, round_to, false },
    { "ln", 1, 1, logarithm, false },
    { "atan2", 2, 2, arc_tangent2, false },
    { "degrees", 1, 1, to_degrees, false },
    { "radians", 1, 1, to_radians, false },
    { "modulo", 2, 2, modulo, false },
    { "IEEERemainder", 2, 2, ieee_remainder, false },
    { "pi", 0, 0, eval_pi, false },
    { "to_real", 1, 1, number_itself, false },
    { "parseLong", 1, 1, whole_part, false },
    { "to_int", 1, 1, whole_part, false },
    { "pow", 2, 2, eval_power, false },
    { "min", 1, MC_ARGUMENTS_MAX, eval_minimum, false },
    { "max", 1, MC_ARGUMENTS_MAX, eval_maximum, false },
    { "FormatNumber", 2, 5, format_number, false },
    { "numberFormat", 2, 2, number_format, false },
    FUNCTIONS_OF_ONE(X) MC_FUNCTIONS_END,
};
#undef X
