/*
 * Functions of dates: text in the form of ISO 8601 ("2026-11-22", "2026-11-22T08:30:00"), so that dates compare as
 * text.
 */
#include <apr_strings.h>
#include <string.h>

#include "draw/style/functions.h"
#include "draw/style/moment.h"
#include "text/calendar.h"

static const char *const months[] = { "January", "February", "March",     "April",   "May",      "June",
                                      "July",    "August",   "September", "October", "November", "December" };

/* One field of a pattern: `count` times the same letter. */
static const char *
format_date_field(char letter, int count, const mc_moment *m, apr_pool_t *pool)
{
    switch (letter) {
    case 'y':
    case 'Y':
        return count == 2 ? apr_psprintf(pool, "%02d", m->year % 100) : apr_psprintf(pool, "%04d", m->year);
    case 'M':
        if (count >= 3)
            return count == 3 ? apr_pstrndup(pool, months[m->month - 1], 3) : months[m->month - 1];
        return apr_psprintf(pool, count == 2 ? "%02d" : "%d", m->month);
    case 'd':
    case 'D':
        return apr_psprintf(pool, count == 2 ? "%02d" : "%d", m->day);
    case 'H':
    case 'h':
        return apr_psprintf(pool, count == 2 ? "%02d" : "%d", m->hour);
    case 'm':
        return apr_psprintf(pool, count == 2 ? "%02d" : "%d", m->minute);
    case 's':
    case 'S':
        return apr_psprintf(pool, count == 2 ? "%02d" : "%d", m->second);
    default:
        return NULL;
    }
}

static const char *
format_moment(const mc_moment *m, const char *pattern, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 16, sizeof(const char *));
    while (*pattern != '\0' && parts->nelts < 64) {
        int count = 1;
        while (pattern[count] == *pattern)
            count++;
        if (*pattern == '\'') { /* text between quotes is as it stands */
            size_t size = strcspn(pattern + 1, "'");
            APR_ARRAY_PUSH(parts, const char *) = apr_pstrmemdup(pool, pattern + 1, size);
            pattern += 1 + size + (pattern[1 + size] == '\'');
            continue;
        }
        const char *part = format_date_field(*pattern, count, m, pool);
        APR_ARRAY_PUSH(parts, const char *) = part != NULL ? part : apr_pstrmemdup(pool, pattern, (size_t)count);
        pattern += count;
    }
    return apr_array_pstrcat(pool, parts, '\0');
}

/* date, pattern (<FormatDate>). */
static const char *
eval_format_date(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    mc_moment m;
    const char *pattern = mc_argument_text(args, 1, feature, pool);
    return pattern != NULL && mc_moment_parse(&m, mc_argument_text(args, 0, feature, pool))
               ? format_moment(&m, pattern, pool)
               : NULL;
}

/* GeoServer's: pattern first. */
static const char *
date_format(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const mc_expression *const turned[2] = { args[1], args[0] };
    return eval_format_date(turned, count, feature, pool);
}

/* Pattern, text: to ISO 8601. */
static const char *
parse_date(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    mc_moment m = { .month = 1, .day = 1 };
    (void)count;
    const char *pattern = mc_argument_text(args, 0, feature, pool), *text = mc_argument_text(args, 1, feature, pool);
    if (pattern == NULL || text == NULL)
        return NULL;
    while (*pattern != '\0') {
        int length = 1;
        while (pattern[length] == *pattern)
            length++;
        int *const fields[] = { &m.year, &m.month, &m.day, &m.hour, &m.minute, &m.second };
        const char *known = strchr("yMdHms", *pattern);
        if (known != NULL) {
            *fields[known - "yMdHms"] = mc_moment_number(&text, *pattern == 'y' ? 4 : 2);
            m.has_time |= strchr("Hms", *pattern) != NULL;
        } else if (*pattern != '\'' && *text != '\0') {
            text += strlen(text) < (size_t)length ? (size_t)strlen(text) : (size_t)length;
        }
        pattern += length;
    }
    if (!mc_moment_is_valid(&m))
        return NULL;
    return format_moment(&m, m.has_time ? "yyyy-MM-dd'T'HH:mm:ss" : "yyyy-MM-dd", pool);
}

/* Two dates, and the unit: s, m, h or d. */
static const char *
date_difference(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    mc_moment a, b;
    const char *unit = count > 2 ? mc_argument_text(args, 2, feature, pool) : "s";
    if (!mc_moment_parse(&a, mc_argument_text(args, 0, feature, pool)) ||
        !mc_moment_parse(&b, mc_argument_text(args, 1, feature, pool)) || unit == NULL)
        return NULL;
    double size = *unit == 'd' ? 86400 : *unit == 'h' ? 3600 : *unit == 'm' ? 60 : 1;
    return mc_expression_format((mc_moment_seconds(&a) - mc_moment_seconds(&b)) / size, pool);
}

/* QGIS': a field of a date. */
#define FIELDS(X)                                                                                                      \
    X(year, year_of)                                                                                                   \
    X(month, month_of)                                                                                                 \
    X(day, day_of)                                                                                                     \
    X(hour, hour_of)

#define X(field, function)                                                                                             \
    static const char *function(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)             \
    {                                                                                                                  \
        mc_moment m;                                                                                                   \
        (void)count;                                                                                                   \
        bool read = mc_moment_parse(&m, mc_argument_text(args, 0, feature, pool));                                     \
        return read ? mc_expression_format(m.field, pool) : NULL;                                                      \
    }
FIELDS(X)
#undef X

#define X(field, function) { #field, 1, 1, function, false },
const mc_function mc_functions_of_dates[] = {
    { "FormatDate", 2, 2, eval_format_date, false },
    { "dateFormat", 2, 2, date_format, false },
    { "dateParse", 2, 2, parse_date, false },
    { "dateDifference", 2, 3, date_difference, false },
    FIELDS(X) MC_FUNCTIONS_END,
};
#undef X
