/* Functions of styles: those of Symbology Encoding (OGC 05-077r4, 11.6) and those that QGIS and GeoServer export. */
#include <apr_lib.h>
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "feature/expression.h"

typedef const mc_expression *const *arguments;

static const char *
text_of(arguments args, int i, const mc_feature *feature, apr_pool_t *pool)
{
    return mc_expression_text(args[i], feature, pool);
}

static double
number_of(arguments args, int i, const mc_feature *feature, apr_pool_t *pool)
{
    return mc_expression_number(args[i], feature, NAN, pool);
}

static const char *
changed_case(const char *text, bool upper, apr_pool_t *pool)
{
    if (text == NULL)
        return NULL;
    char *changed = apr_pstrdup(pool, text);
    for (char *c = changed; *c != '\0'; c++)
        *c = (char)(upper ? apr_toupper(*c) : apr_tolower(*c));
    return changed;
}

static const char *
to_upper(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return changed_case(text_of(args, 0, feature, pool), true, pool);
}

static const char *
to_lower(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return changed_case(text_of(args, 0, feature, pool), false, pool);
}

static const char *
trim(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    const char *text = text_of(args, 0, feature, pool);
    if (text == NULL)
        return NULL;
    while (apr_isspace(*text))
        text++;
    size_t length = strlen(text);
    while (length > 0 && apr_isspace(text[length - 1]))
        length--;
    return apr_pstrmemdup(pool, text, length);
}

static const char *
join(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const char *joined = "";
    for (int i = 0; i < count; i++) {
        const char *part = text_of(args, i, feature, pool);
        joined = part == NULL ? joined : apr_pstrcat(pool, joined, part, NULL);
    }
    return joined;
}

static const char *
length(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    const char *text = text_of(args, 0, feature, pool);
    double characters = 0;
    for (; text != NULL && *text != '\0'; text++)
        characters += (*text & 0xC0) != 0x80;
    return text == NULL ? NULL : mc_expression_format(characters, pool);
}

static const char *
if_then_else(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    const char *condition = text_of(args, 0, feature, pool);
    bool holds = condition != NULL && (strcasecmp(condition, "true") == 0 || strcmp(condition, "1") == 0);
    return text_of(args, holds ? 1 : 2, feature, pool);
}

static const char *
first_not_null(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    for (int i = 0; i < count; i++) {
        const char *text = text_of(args, i, feature, pool);
        if (text != NULL)
            return text;
    }
    return NULL;
}

/* Functions of one number. */
#define OF_ONE(name, expression)                                                                                       \
    static const char *name(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)                    \
    {                                                                                                                  \
        (void)count;                                                                                                   \
        double x = number_of(args, 0, feature, pool);                                                                  \
        return mc_expression_format(expression, pool);                                                                 \
    }

OF_ONE(absolute, fabs(x))
OF_ONE(round_half_up, floor(x + 0.5))
OF_ONE(round_down, floor(x))
OF_ONE(round_up, ceil(x))
OF_ONE(square_root, sqrt(x))
OF_ONE(logarithm, log(x))
OF_ONE(number_itself, x)

static const char *
power(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return mc_expression_format(pow(number_of(args, 0, feature, pool), number_of(args, 1, feature, pool)), pool);
}

static const char *
extreme(arguments args, int count, const mc_feature *feature, apr_pool_t *pool, bool largest)
{
    double best = NAN;
    for (int i = 0; i < count; i++) {
        double value = number_of(args, i, feature, pool);
        best = isnan(best) || (largest ? value > best : value < best) ? value : best;
    }
    return mc_expression_format(best, pool);
}

static const char *
minimum(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    return extreme(args, count, feature, pool, false);
}

static const char *
maximum(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    return extreme(args, count, feature, pool, true);
}

/* value, first result, then threshold and result in turn: a value at the threshold belongs to what follows. */
static const char *
categorize(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    double value = number_of(args, 0, feature, pool);
    int chosen = 1;
    for (int i = 2; i + 1 < count && value >= number_of(args, i, feature, pool); i += 2)
        chosen = i + 1;
    return isnan(value) ? NULL : text_of(args, chosen, feature, pool);
}

/* value, then what it may be and what it becomes in turn. */
static const char *
recode(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const char *value = text_of(args, 0, feature, pool);
    for (int i = 1; value != NULL && i + 1 < count; i += 2) {
        const char *from = text_of(args, i, feature, pool);
        if (from != NULL && strcmp(from, value) == 0)
            return text_of(args, i + 1, feature, pool);
    }
    return NULL;
}

static const char *
mix(const char *low, const char *high, double part, apr_pool_t *pool)
{
    mc_color a = { 0, 0, 0, 255 }, b = a;
    if (mc_color_parse(&a, low) && mc_color_parse(&b, high))
        return apr_psprintf(pool, "#%02x%02x%02x", (int)lrint(a.red + part * (b.red - a.red)),
                            (int)lrint(a.green + part * (b.green - a.green)),
                            (int)lrint(a.blue + part * (b.blue - a.blue)));
    double x = low == NULL ? NAN : strtod(low, NULL), y = high == NULL ? NAN : strtod(high, NULL);
    return mc_expression_format(x + part * (y - x), pool);
}

/* value, then data and result of each support point in turn; colours and numbers. */
static const char *
interpolate(arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    double value = number_of(args, 0, feature, pool);
    if (isnan(value))
        return NULL;
    double before = number_of(args, 1, feature, pool);
    if (value <= before)
        return text_of(args, 2, feature, pool);
    for (int i = 3; i + 1 < count; i += 2) {
        double at = number_of(args, i, feature, pool);
        if (value < at)
            return mix(text_of(args, i - 1, feature, pool), text_of(args, i + 1, feature, pool),
                       (value - before) / (at - before), pool);
        before = at;
    }
    return text_of(args, count - 1 - (count - 1) % 2, feature, pool);
}

static const mc_function functions[] = {
    { "strToUpperCase", 1, 1, to_upper },
    { "strToLowerCase", 1, 1, to_lower },
    { "strTrim", 1, 1, trim },
    { "strConcat", 1, MC_ARGUMENTS_MAX, join },
    { "Concatenate", 1, MC_ARGUMENTS_MAX, join },
    { "strLength", 1, 1, length },
    { "if_then_else", 3, 3, if_then_else },
    { "Coalesce", 1, MC_ARGUMENTS_MAX, first_not_null },
    { "abs", 1, 1, absolute },
    { "round", 1, 1, round_half_up },
    { "floor", 1, 1, round_down },
    { "ceil", 1, 1, round_up },
    { "sqrt", 1, 1, square_root },
    { "log", 1, 1, logarithm },
    { "parseDouble", 1, 1, number_itself },
    { "pow", 2, 2, power },
    { "min", 1, MC_ARGUMENTS_MAX, minimum },
    { "max", 1, MC_ARGUMENTS_MAX, maximum },
    { "Categorize", 2, MC_ARGUMENTS_MAX, categorize },
    { "Recode", 3, MC_ARGUMENTS_MAX, recode },
    { "Interpolate", 3, MC_ARGUMENTS_MAX, interpolate },
};

const mc_function *
mc_function_find(const char *name)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (strcasecmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}
