/* Functions of styles: those of Symbology Encoding (OGC 05-077r4, 11.6) and those that QGIS and GeoServer export. */
#include <apr_lib.h>
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "draw/style/functions.h"
#include "text/text.h"

static bool
is_true_text(const char *text)
{
    return text != NULL && (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0);
}

static const char *
truth_text(bool truth)
{
    return truth ? "true" : "false";
}

static const char *
if_then_else(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return mc_argument_text(args, is_true_text(mc_argument_text(args, 0, feature, pool)) ? 1 : 2, feature, pool);
}

static const char *
first_not_null(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    for (int i = 0; i < count; i++) {
        const char *text = mc_argument_text(args, i, feature, pool);
        if (text != NULL)
            return text;
    }
    return NULL;
}

/* value, first result, then threshold and result in turn: a value at the threshold belongs to what follows. */
static const char *
eval_categorize(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    double value = mc_argument_number(args, 0, feature, pool);
    int chosen = 1;
    for (int i = 2; i + 1 < count && value >= mc_argument_number(args, i, feature, pool); i += 2)
        chosen = i + 1;
    return isnan(value) ? NULL : mc_argument_text(args, chosen, feature, pool);
}

static bool
values_compare(const mc_expression *a, const mc_expression *b, mc_filter_kind kind, const mc_feature *feature,
               apr_pool_t *pool)
{
    const mc_filter filter = { .kind = kind, .operands = { a, b } };
    return mc_filter_matches(&filter, feature, pool);
}

/* A value that is compared with several, computed once. False for null. */
static bool
evaluate_once(mc_expression *value, const mc_expression *argument, const mc_feature *feature, apr_pool_t *pool)
{
    *value = (mc_expression){ .kind = MC_LITERAL, .number = 0 };
    value->literal = mc_expression_text(argument, feature, pool);
    return value->literal != NULL;
}

/* value, then what it may be and what it becomes in turn. */
static const char *
eval_recode(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    mc_expression value;
    bool any = evaluate_once(&value, args[0], feature, pool);
    for (int i = 1; any && i + 1 < count; i += 2)
        if (values_compare(&value, args[i], MC_FILTER_EQUAL, feature, pool))
            return mc_argument_text(args, i + 1, feature, pool);
    return NULL;
}

static const char *
interpolate_values(const char *low, const char *high, double part, apr_pool_t *pool)
{
    mc_color a = { 0, 0, 0, 255 }, b = a;
    if (mc_color_parse(&a, low) && mc_color_parse(&b, high))
        return apr_psprintf(pool, "#%02x%02x%02x", (int)lrint(a.red + part * (b.red - a.red)),
                            (int)lrint(a.green + part * (b.green - a.green)),
                            (int)lrint(a.blue + part * (b.blue - a.blue)));
    double x, y;
    if (!mc_parse_double(&x, low) || !mc_parse_double(&y, high))
        return NULL;
    return mc_expression_format(x + part * (y - x), pool);
}

/* value, then data and result of each support point in turn; colours and numbers. */
static const char *
eval_interpolate(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    double value = mc_argument_number(args, 0, feature, pool);
    if (isnan(value))
        return NULL;
    double before = mc_argument_number(args, 1, feature, pool);
    if (value <= before)
        return mc_argument_text(args, 2, feature, pool);
    for (int i = 3; i + 1 < count; i += 2) {
        double at = mc_argument_number(args, i, feature, pool);
        if (value < at)
            return interpolate_values(mc_argument_text(args, i - 1, feature, pool),
                                      mc_argument_text(args, i + 1, feature, pool), (value - before) / (at - before),
                                      pool);
        before = at;
    }
    return mc_argument_text(args, count - 1 - (count - 1) % 2, feature, pool);
}

static const char *
eval_is_in(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    mc_expression value;
    bool any = evaluate_once(&value, args[0], feature, pool), found = false;
    for (int i = 1; i < count && any && !found; i++)
        found = values_compare(&value, args[i], MC_FILTER_EQUAL, feature, pool);
    return truth_text(found);
}

static const char *
eval_between(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    mc_expression value;
    return truth_text(evaluate_once(&value, args[0], feature, pool) &&
                      values_compare(&value, args[1], MC_FILTER_GREATER_OR_EQUAL, feature, pool) &&
                      values_compare(&value, args[2], MC_FILTER_LESS_OR_EQUAL, feature, pool));
}

static const char *
is_null(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return truth_text(mc_argument_text(args, 0, feature, pool) == NULL);
}

static const char *
is_not(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return truth_text(!is_true_text(mc_argument_text(args, 0, feature, pool)));
}

/* Comparisons: function, name, most arguments, kind of filter. */
#define COMPARISONS(X)                                                                                                 \
    X(equal_to, "equalTo", 3, MC_FILTER_EQUAL)                                                                         \
    X(not_equal, "notEqual", 3, MC_FILTER_NOT_EQUAL)                                                                   \
    X(greater, "greaterThan", 2, MC_FILTER_GREATER)                                                                    \
    X(greater_or_equal, "greaterEqualThan", 2, MC_FILTER_GREATER_OR_EQUAL)                                             \
    X(less, "lessThan", 2, MC_FILTER_LESS)                                                                             \
    X(less_or_equal, "lessEqualThan", 2, MC_FILTER_LESS_OR_EQUAL)

#define X(function, name, most, filter_kind)                                                                           \
    static const char *function(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)             \
    {                                                                                                                  \
        (void)count;                                                                                                   \
        return truth_text(values_compare(args[0], args[1], filter_kind, feature, pool));                               \
    }
COMPARISONS(X)
#undef X

/* What GeoServer tells styles of the request: the scale and the CRS; anything else is its default. */
static const char *
eval_environment(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const char *name = mc_argument_text(args, 0, feature, pool);
    if (feature != NULL && feature->query != NULL && name != NULL) {
        if (strcasecmp(name, "wms_scale_denominator") == 0)
            return mc_expression_format(feature->query->scale, pool);
        if (strcasecmp(name, "wms_srs") == 0 || strcasecmp(name, "wms_crs") == 0)
            return feature->query->srs;
    }
    return count > 1 ? mc_argument_text(args, 1, feature, pool) : NULL;
}

static const char *
feature_id(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)args;
    (void)count;
    return feature == NULL ? NULL : apr_psprintf(pool, "%" APR_INT64_T_FMT, (apr_int64_t)feature->id);
}

/* What is drawn are features. */
static const char *
no_coverage(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)args;
    (void)count;
    (void)feature;
    (void)pool;
    return truth_text(false);
}

#define X(function, name, most, filter_kind) { name, 2, most, function, false },
const mc_function mc_functions_of_conditions[] = {
    { "if_then_else", 3, 3, if_then_else, false },
    { "Coalesce", 1, MC_ARGUMENTS_MAX, first_not_null, false },
    { "Categorize", 2, MC_ARGUMENTS_MAX, eval_categorize, false },
    { "Recode", 3, MC_ARGUMENTS_MAX, eval_recode, false },
    { "Interpolate", 3, MC_ARGUMENTS_MAX, eval_interpolate, false },
    { "in", 2, MC_ARGUMENTS_MAX, eval_is_in, false },
    { "between", 3, 3, eval_between, false },
    { "isNull", 1, 1, is_null, false },
    { "not", 1, 1, is_not, false },
    { "env", 1, 2, eval_environment, false },
    { "id", 0, 0, feature_id, false },
    { "isCoverage", 0, 0, no_coverage, false },
    COMPARISONS(X) MC_FUNCTIONS_END,
};
#undef X

const mc_function *
mc_function_find(const char *name)
{
    static const mc_function *const lists[] = { mc_functions_of_conditions, mc_functions_of_text,
                                                mc_functions_of_numbers,    mc_functions_of_dates,
                                                mc_functions_of_geometry,   mc_functions_of_colors };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        for (const mc_function *function = lists[i]; function->name != NULL; function++)
            if (strcasecmp(function->name, name) == 0)
                return function;
    char *end;
    /* in2, in3, ...; max_2, ...: one for each number of arguments and kind of number, in GeoServer */
    if (strncasecmp(name, "in", 2) == 0 && strtol(name + 2, &end, 10) >= 2 && *end == '\0' && apr_isdigit(name[2]))
        return mc_function_find("in");
    static const char *const kinds[] = { "max", "min", "abs", "round" };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t size = strlen(kinds[i]);
        if (strncasecmp(name, kinds[i], size) == 0 && name[size] == '_' && strspn(name + size + 1, "234") == 1 &&
            name[size + 2] == '\0')
            return mc_function_find(kinds[i]);
    }
    return NULL;
}
