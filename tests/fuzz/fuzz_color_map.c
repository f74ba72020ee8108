/* Colour maps: no text breaks the reader; no tile breaks the exchange of its palette, and what comes out is as large as
 * it may be, has the same image data, and can be read again with the same colours for equal entries. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_support.h"
#include "mapcache/color_map.h"

static apr_pool_t *pool;

int LLVMFuzzerInitialize(int *count, char ***values);
int
LLVMFuzzerInitialize(int *count, char ***values)
{
    (void)count;
    (void)values;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : 1;
}

static void
check_map(const mc_color_map *map)
{
    MC_ASSERT(map->count >= 1 && map->count <= MC_COLOR_MAP_ENTRIES && map->tag != 0);
    MC_ASSERT(map->listed[map->count - 1]);
    for (int i = 0; i < MC_COLOR_MAP_ENTRIES; i++)
        MC_ASSERT(map->known[i] || !map->listed[i]);
}

/* The first byte says what follows: a table, or a tile behind the length of a table. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mc_color_map map = { .name = "m", .title = "m" }, stored = { .name = "default", .title = "d" };
    mc_color_map_problem problem;
    size_t split = size > 0 ? data[0] : 0;
    if (size < 1 || split > size - 1)
        return 0;
    bool read = mc_color_map_read_text(&map, apr_pstrmemdup(pool, (const char *)data + 1, split), &problem, pool);
    MC_ASSERT(read == (problem.text == NULL) && problem.line >= 1);
    if (read)
        check_map(&map);
    else
        (void)mc_color_map_read_text(&map, "default 1 2 3 4\n0 255 0 0", &problem, pool);
    (void)mc_color_map_read_text(&stored, "0 0 0 0 0\n1 255 0 0\n2 0 255 0\n3 0 0 255", &problem, pool);
    mc_buf *tile = mc_buf_attach(mc_buf_copy(data + 1 + split, size - 1 - split), pool), *made, *again;
    for (int i = 0; i < 2; i++) {
        mc_error *error = mc_color_map_apply(&made, tile, &map, i == 0 ? NULL : &stored, pool);
        MC_ASSERT(error == MC_OK || error->kind == MC_ERR_CORRUPT);
        if (error != MC_OK)
            continue;
        MC_ASSERT(made->size <= tile->size + 256 * 4 + 24);
        MC_ASSERT(mc_color_map_apply(&again, made, &map, NULL, pool) == MC_OK || i == 1);
        if (i == 0)
            MC_ASSERT(again->size == made->size && memcmp(again->data, made->data, made->size) == 0);
    }
    apr_pool_clear(pool);
    return 0;
}
