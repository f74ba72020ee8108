/* See values.h. */
#include "values.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mapcache/ingest.h"
#include "mapcache/server.h"
#include "text/text.h"

/* Without the blanks before numbers, which extents have in the documents that they are copied from. */
static const char *
remove_extent_blanks(const char *text, apr_pool_t *pool)
{
    char *plain = apr_palloc(pool, strlen(text) + 1), *end = plain;
    for (const char *at = text; *at != '\0'; at++)
        if (*at != ' ' || (end > plain && end[-1] != ','))
            *end++ = *at;
    *end = '\0';
    return plain;
}

bool
mc_cli_parse_pair(int *first, int *second, const char *text, int min, int max, apr_pool_t *pool)
{
    const char *plain = remove_extent_blanks(text, pool), *comma = strchr(plain, ',');
    return comma != NULL && mc_parse_int(first, apr_pstrmemdup(pool, plain, (size_t)(comma - plain)), min, max) &&
           mc_parse_int(second, comma + 1, min, max);
}

bool
mc_cli_parse_zooms(int *first, int *last, const char *text, apr_pool_t *pool)
{
    if (strchr(text, ',') == NULL) {
        bool one = mc_parse_int(first, text, 0, 1000);
        *last = *first;
        return one;
    }
    return mc_cli_parse_pair(first, last, text, 0, 1000, pool) && *first <= *last;
}

bool
mc_cli_parse_corners(double numbers[4], const char *text, apr_pool_t *pool)
{
    int found;
    return mc_parse_doubles(numbers, 4, &found, remove_extent_blanks(text, pool), ",") && found == 4;
}

bool
mc_cli_parse_extent(mc_extent *extent, const char *text, apr_pool_t *pool)
{
    double numbers[4];
    if (!mc_cli_parse_corners(numbers, text, pool))
        return false;
    *extent = (mc_extent){ numbers[0], numbers[1], numbers[2], numbers[3] };
    return mc_extent_valid(extent);
}

/* "30m": that long ago. */
static bool
parse_ago(apr_time_t *older, const char *text, apr_pool_t *pool)
{
    static const struct {
        char letter;
        int seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    size_t size = strlen(text);
    int64_t count;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && size > 1; i++)
        if (text[size - 1] == units[i].letter &&
            mc_parse_int64(&count, apr_pstrmemdup(pool, text, size - 1), 0, 1000000000 / units[i].seconds)) {
            *older = apr_time_now() - apr_time_from_sec(count * units[i].seconds);
            return true;
        }
    return false;
}

bool
mc_cli_parse_age(apr_time_t *older, const char *text, apr_pool_t *pool)
{
    if (parse_ago(older, text, pool))
        return true;
    if (strcmp(text, "now") == 0) {
        *older = apr_time_now();
        return true;
    }
    struct tm local = { .tm_isdst = -1 };
    const char *rest = strptime(text, "%Y/%m/%d %H:%M", &local);
    if (rest == NULL || *rest != '\0')
        return false;
    time_t seconds = mktime(&local);
    *older = apr_time_from_sec(seconds);
    return seconds > 0;
}

bool
mc_cli_parse_assignment(apr_table_t *table, const char *text, apr_pool_t *pool)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return false;
    apr_table_set(table, apr_pstrmemdup(pool, text, (size_t)(equals - text)), equals + 1);
    return true;
}

bool
mc_cli_parse_color(unsigned char rgb[3], const char *text)
{
    double numbers[3];
    int found = 0;
    if (!mc_parse_doubles(numbers, 3, &found, text, ",") || found == 2)
        return false;
    for (int i = 0; i < 3; i++) {
        double value = numbers[found == 1 ? 0 : i];
        if (!(value >= 0 && value <= 255) || value != (double)(int)value)
            return false;
        rgb[i] = (unsigned char)value;
    }
    return true;
}

bool
mc_cli_parse_no_data(void *raster, const char *text, apr_pool_t *pool)
{
    mc_raster_options *options = raster;
    (void)pool;
    options->has_no_data = true;
    return mc_cli_parse_color(options->no_data, text);
}

const char *
mc_cli_dimension_values(const char ***values, const mc_tileset *tileset, const apr_table_t *given, bool forgiving,
                        apr_pool_t *pool)
{
    apr_table_t *kept = apr_table_copy(pool, given);
    const apr_array_header_t *pairs = apr_table_elts(given);
    for (int i = 0; i < pairs->nelts && forgiving; i++) {
        const char *name = APR_ARRAY_IDX(pairs, i, apr_table_entry_t).key;
        if (mc_tileset_dimension(tileset, name, true) >= 0)
            continue;
        fprintf(stderr, "%s: it is passed over\n", mc_tileset_lacks_dimension(tileset, name, pool));
        apr_table_unset(kept, name);
    }
    mc_error *error = mc_tileset_values(values, tileset, kept, pool);
    return error == MC_OK ? NULL : mc_error_chain(error, pool);
}
