/*
 * Any template of a cache's path with any values of dimensions. Input: flags, then lines: template, number format, then
 * the values. A value may change nothing of the path above its own place.
 */
#include <apr_strings.h>
#include <string.h>

#include "cache/cache_base.h"
#include "fuzz_support.h"

static const char *
next_line(const uint8_t **data, const uint8_t *end, apr_pool_t *pool)
{
    const uint8_t *line = *data;
    const uint8_t *stop = memchr(line, '\n', (size_t)(end - line));
    if (stop == NULL)
        stop = end;
    *data = stop < end ? stop + 1 : end;
    return apr_pstrndup(pool, (const char *)line, (size_t)(stop - line));
}

static int
count_of(const char *text, char wanted)
{
    int count = 0;
    for (; *text != '\0'; text++)
        count += *text == wanted;
    return count;
}

static void
expand(uint8_t flags, const char *text, const char *format, const mc_tile_key *key, apr_pool_t *pool)
{
    const char *formats[MC_FORMAT_COUNT];
    char out[MC_PATH_MAX], plain[MC_PATH_MAX];
    for (int i = 0; i < MC_FORMAT_COUNT; i++)
        formats[i] = (flags & 16) != 0 && mc_number_format_valid(format) ? format : NULL;
    mc_template_rules rules = { .sqlite = (flags & 1) != 0,
                                .allow_paths = (flags & 2) != 0,
                                .columns = 1 + (flags & 4),
                                .rows = 1 + (flags & 8),
                                .top = -1,
                                .formats = formats };
    mc_template *template = mc_template_compile(text, &rules, pool);
    (void)mc_template_constant(template);
    mc_error *error = mc_template_expand(out, template, key, pool);
    const mc_dimension_value harmless[2] = { { .name = "a", .value = "v" }, { .name = "b", .value = "v" } };
    mc_tile_key other = *key;
    other.dimensions = harmless;
    mc_error *again = mc_template_expand(plain, template, &other, pool);
    if (error != MC_OK || again != MC_OK || rules.allow_paths)
        return;
    MC_ASSERT(strlen(out) < MC_PATH_MAX);
    MC_ASSERT(count_of(out, '/') == count_of(plain, '/') && count_of(out, '.') == count_of(plain, '.'));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mc_level levels[] = { { 4, 1, 1 }, { 2, 2, 2 }, { 1, 4, 4 } };
    static const mc_grid grid = {
        .name = "g", .tile_width = 256, .tile_height = 256, .level_count = 3, .levels = levels
    };
    if (size == 0)
        return 0;
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    const uint8_t *end = data + size;
    uint8_t flags = *data++;
    const char *text = next_line(&data, end, pool);
    const char *format = next_line(&data, end, pool);
    mc_dimension_value values[2] = { { .name = "a", .value = next_line(&data, end, pool) },
                                     { .name = "b", .value = next_line(&data, end, pool) } };
    mc_tile_key key = { .tileset = "t",
                        .grid = &grid,
                        .x = 3,
                        .y = 2,
                        .z = 2,
                        .extension = "png",
                        .dimension_count = 2,
                        .dimensions = values };
    expand(flags, text, format, &key, pool);
    apr_pool_destroy(pool);
    return 0;
}
