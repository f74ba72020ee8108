/* See image_inputs.h. */
#include "image_inputs.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LINE_SIZE = 8192, YEAR = 0, MONTH, DAY, HOUR, MINUTE, SECOND, DAY_OF_YEAR, FIELDS };

/* --- times -------------------------------------------------------------------------------------------------------- */

static const struct {
    char letter;
    int digits, least, most;
} fields[FIELDS] = {
    { 'Y', 4, 1, 9999 }, { 'm', 2, 1, 12 }, { 'd', 2, 1, 31 },  { 'H', 2, 0, 23 },
    { 'M', 2, 0, 59 },   { 'S', 2, 0, 59 }, { 'j', 3, 1, 366 },
};

static int
find_time_field(char letter)
{
    for (int i = 0; i < FIELDS; i++)
        if (fields[i].letter == letter)
            return i;
    return -1;
}

/* Whether the text begins as the pattern says; what is not in the pattern stays -1. */
static bool
match_time_pattern(int values[FIELDS], const char *text, const char *pattern)
{
    for (int i = 0; i < FIELDS; i++)
        values[i] = -1;
    for (; *pattern != '\0'; pattern++) {
        int field = *pattern == '%' ? find_time_field(pattern[1]) : -1;
        if (field < 0) {
            pattern += pattern[0] == '%' && pattern[1] == '%';
            if (*text++ != *pattern)
                return false;
            continue;
        }
        int value = 0;
        pattern++;
        for (int i = 0; i < fields[field].digits; i++, text++) {
            if (!isdigit((unsigned char)*text))
                return false;
            value = value * 10 + (*text - '0');
        }
        if (value < fields[field].least || value > fields[field].most)
            return false;
        values[field] = value;
    }
    return values[YEAR] > 0;
}

/* A pattern is a year and what is finer, without gaps; and nothing that is taken for another letter than it is. */
static mc_error *
check_pattern(const char *pattern, apr_pool_t *pool)
{
    static const int coarser[FIELDS] = { YEAR, YEAR, MONTH, DAY, HOUR, MINUTE, YEAR };
    bool has[FIELDS] = { false };
    for (const char *at = strchr(pattern, '%'); at != NULL; at = strchr(at + 2, '%')) {
        int field = find_time_field(at[1]);
        if (field < 0 && at[1] != '%')
            return mc_error_create(pool, MC_ERR_CONFIG,
                                   "--time \"%s\": behind %% stands one of YmdHMSj, or %% for itself", pattern);
        if (field >= 0)
            has[field] = true;
    }
    if (!has[YEAR])
        return mc_error_create(pool, MC_ERR_CONFIG, "--time \"%s\" has no year: %%Y", pattern);
    has[DAY] = has[DAY] || has[DAY_OF_YEAR];
    for (int i = 0; i < FIELDS; i++)
        if (has[i] && !has[coarser[i]] && !(i == DAY && has[DAY_OF_YEAR]))
            return mc_error_create(pool, MC_ERR_CONFIG, "--time \"%s\" has %%%c without %%%c", pattern,
                                   fields[i].letter, fields[coarser[i]].letter);
    return MC_OK;
}

/* Month and day of a day of a year; false for days that a month has not. */
static bool
settle_day(int values[FIELDS])
{
    static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int year = values[YEAR], day = values[DAY_OF_YEAR];
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (day > 0) {
        for (int month = 0; month < 12; month++) {
            int length = lengths[month] + (month == 1 && leap);
            if (day <= length) {
                values[MONTH] = month + 1;
                values[DAY] = day;
                return true;
            }
            day -= length;
        }
        return false;
    }
    return values[MONTH] < 0 || values[DAY] <= lengths[values[MONTH] - 1] + (values[MONTH] == 2 && leap);
}

/*
 * The first time in the name of a file, its folders left out, that a pattern describes: %Y %m %d %H %M %S %j and
 * literal characters. As ISO 8601, to the precision of the pattern: "2024", "2024-05", "2024-05-01",
 * "2024-05-01T10:30Z", "2024-05-01T10:30:00Z". NULL where there is none that exists.
 */
static const char *
find_time_in_filename(const char *path, const char *pattern, apr_pool_t *pool)
{
    const char *slash = strrchr(path, '/');
    int v[FIELDS];
    for (const char *at = slash != NULL ? slash + 1 : path; *at != '\0'; at++) {
        if (!match_time_pattern(v, at, pattern) || !settle_day(v))
            continue;
        const char *text = apr_psprintf(pool, "%04d", v[YEAR]);
        if (v[MONTH] > 0)
            text = apr_psprintf(pool, "%s-%02d", text, v[MONTH]);
        if (v[MONTH] > 0 && v[DAY] > 0)
            text = apr_psprintf(pool, "%s-%02d", text, v[DAY]);
        if (v[HOUR] >= 0)
            text = apr_psprintf(pool, "%sT%02d:%02d", text, v[HOUR], v[MINUTE] < 0 ? 0 : v[MINUTE]);
        if (v[SECOND] >= 0)
            text = apr_psprintf(pool, "%s:%02d", text, v[SECOND]);
        return v[HOUR] >= 0 ? apr_pstrcat(pool, text, "Z", NULL) : text;
    }
    return NULL;
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

typedef struct grouping {
    apr_array_header_t *groups;
    apr_hash_t *known; /* index + 1 of the group, by value */
    const char *pattern;
    apr_pool_t *pool;
} grouping;

/* False where the image has no time although there is a pattern. */
static bool
add_image_to_group(grouping *all, const char *path, const char *value)
{
    if (value == NULL && all->pattern != NULL && (value = find_time_in_filename(path, all->pattern, all->pool)) == NULL)
        return false;
    const char *key = value == NULL ? "" : value;
    int index = (int)(intptr_t)apr_hash_get(all->known, key, APR_HASH_KEY_STRING);
    if (index == 0) {
        mc_ingest_group group = { value, apr_array_make(all->pool, 16, sizeof(const char *)) };
        APR_ARRAY_PUSH(all->groups, mc_ingest_group) = group;
        index = all->groups->nelts;
        apr_hash_set(all->known, key, APR_HASH_KEY_STRING, (void *)(intptr_t)index);
    }
    APR_ARRAY_PUSH(APR_ARRAY_IDX(all->groups, index - 1, mc_ingest_group).paths, const char *) = path;
    return true;
}

static mc_error *
read_image_list(grouping *all, FILE *list, const char *name)
{
    char line[LINE_SIZE];
    for (int number = 1; fgets(line, sizeof(line), list) != NULL; number++) {
        size_t length = strlen(line);
        if (length == sizeof(line) - 1 && line[length - 1] != '\n')
            return mc_error_create(all->pool, MC_ERR_CORRUPT, "%s:%d: the line is too long", name, number);
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        if (length == 0)
            continue;
        char *tab = strchr(line, '\t');
        if (tab != NULL)
            *tab = '\0';
        const char *value = tab == NULL || tab[1] == '\0' ? NULL : apr_pstrdup(all->pool, tab + 1);
        if (!add_image_to_group(all, apr_pstrdup(all->pool, line), value))
            return mc_error_create(all->pool, MC_ERR_CORRUPT, "%s:%d: no time as in \"%s\" stands in %s", name, number,
                                   all->pattern, line);
    }
    return ferror(list) ? mc_error_create(all->pool, MC_ERR_IO, "%s cannot be read", name) : MC_OK;
}

mc_error *
mc_ingest_inputs(apr_array_header_t **groups, const apr_array_header_t *paths, const char *list, const char *pattern,
                 apr_pool_t *pool)
{
    grouping all = { apr_array_make(pool, 16, sizeof(mc_ingest_group)), apr_hash_make(pool), pattern, pool };
    *groups = all.groups;
    if (pattern != NULL)
        MC_TRY(check_pattern(pattern, pool));
    for (int i = 0; i < paths->nelts; i++)
        if (!add_image_to_group(&all, APR_ARRAY_IDX(paths, i, const char *), NULL))
            return mc_error_create(pool, MC_ERR_CORRUPT, "no time as in \"%s\" stands in the name of %s", pattern,
                                   APR_ARRAY_IDX(paths, i, const char *));
    if (list == NULL)
        return MC_OK;
    if (strcmp(list, "-") == 0)
        return read_image_list(&all, stdin, "standard input");
    FILE *file = fopen(list, "re");
    if (file == NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "%s: %s", list, strerror(errno));
    mc_error *error = read_image_list(&all, file, list);
    fclose(file);
    return error;
}
