/* See subset.h. */
#include "service/ogcapi/subset.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "text/time.h"

enum { POINT_BYTES_MAX = 2048 };

/* Reads a point at *at, which is moved behind it; *point is NULL for an asterisk. */
static const char *
read_point(const char **point, const char **at, apr_pool_t *pool)
{
    const char *text = *at;
    size_t size;
    if (*text == '"') {
        size = strcspn(text + 1, "\"");
        if (text[size + 1] != '"')
            return "a text has no second quote";
        *point = apr_pstrmemdup(pool, text + 1, size);
        *at = text + size + 2;
    } else {
        size = strcspn(text, ":,()\"");
        *point = size == 1 && *text == '*' ? NULL : apr_pstrmemdup(pool, text, size);
        *at = text + size;
    }
    if (size == 0)
        return "there is no value";
    return size > POINT_BYTES_MAX ? "a value is too long" : NULL;
}

static const char *
read_axis(mc_subset *subset, const char **at, apr_pool_t *pool)
{
    size_t size = strcspn(*at, "(),:\"");
    if (size == 0 || (*at)[size] != '(')
        return "an axis is written NAME(VALUE) or NAME(LOW:HIGH)";
    *subset = (mc_subset){ .axis = apr_pstrmemdup(pool, *at, size) };
    *at += size + 1;
    const char *wrong = read_point(&subset->low, at, pool);
    if (wrong != NULL)
        return wrong;
    if (**at == ':') {
        (*at)++;
        subset->interval = true;
        wrong = read_point(&subset->high, at, pool);
        if (wrong != NULL)
            return wrong;
    }
    if (**at != ')')
        return "a value ends with a parenthesis; a text with colons stands in double quotes";
    (*at)++;
    return NULL;
}

const char *
mc_subset_parse(mc_subset list[MC_SUBSET_AXES_MAX], int *count, const char *text, apr_pool_t *pool)
{
    while (*text != '\0') {
        if (*count == MC_SUBSET_AXES_MAX)
            return "too many axes";
        const char *wrong = read_axis(&list[*count], &text, pool);
        if (wrong != NULL)
            return wrong;
        ++*count;
        if (*text == ',' && text[1] != '\0')
            text++;
        else if (*text != '\0')
            return "axes have a comma between them";
    }
    return NULL;
}

bool
mc_subset_time(int64_t *start_us, int64_t *end_us, const char *text)
{
    mc_time_span span;
    if (strpbrk(text, "/Pp,") != NULL || strstr(text, "--") != NULL || *text < '0' || *text > '9' ||
        mc_time_parse(&span, text, strlen(text), 0) != NULL || span.end_us < span.start_us)
        return false;
    *start_us = span.start_us;
    *end_us = span.end_us;
    return true;
}

/* One end of an interval; "" and ".." are open. */
static bool
read_time_end(const char **end, const char *text, size_t size, apr_pool_t *pool)
{
    int64_t from, until;
    *end = NULL;
    if (size == 0 || (size == 2 && strncmp(text, "..", 2) == 0))
        return true;
    *end = apr_pstrmemdup(pool, text, size);
    return mc_subset_time(&from, &until, *end);
}

const char *
mc_subset_datetime(mc_subset *found, const char *text, apr_pool_t *pool)
{
    int64_t low_us = 0, high_us = 0, until;
    size_t size = strcspn(text, "/");
    found->interval = text[size] == '/';
    if (!read_time_end(&found->low, text, size, pool) || (!found->interval && found->low == NULL))
        return "this is no time such as 2024-05-01T12:00:00Z";
    if (!found->interval)
        return NULL;
    if (!read_time_end(&found->high, text + size + 1, strlen(text + size + 1), pool))
        return "the end of the interval is no time such as 2024-05-01T12:00:00Z";
    if (found->low != NULL && found->high != NULL && mc_subset_time(&low_us, &until, found->low) &&
        mc_subset_time(&high_us, &until, found->high) && low_us > high_us)
        return "the interval ends before it begins";
    return NULL;
}

bool
mc_subset_is_place(int *which, const char *axis, bool degrees)
{
    static const char *const names[2][2][3] = {
        { { "x", "e", "easting" }, { "y", "n", "northing" } },
        { { "lon", "long", "longitude" }, { "lat", "latitude", "lat" } },
    };
    for (*which = 0; *which < 2; ++*which)
        for (int i = 0; i < 3; i++)
            if (strcasecmp(axis, names[degrees][*which][i]) == 0)
                return true;
    return false;
}
