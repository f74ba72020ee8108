/*
 * Any file that is read page by page, without SQLite's machine. The first byte says which get statement asks; the rest
 * is the file. What is found is read again through the same tree and must be the same.
 */
#include <apr_strings.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/sqlite/bare_tiles.h"
#include "fuzz_support.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

static char path[] = "/tmp/fuzz-bare-XXXXXX";
static int file = -1;

static void
remove_file(void)
{
    unlink(path);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    file = mkstemp(path);
    return file < 0 || atexit(remove_file) != 0 ? 1 : 0;
}

static void
get_tiles(mc_bare_tiles *bare, mc_tile_key key, apr_pool_t *pool)
{
    for (key.z = 0; key.z < 4; key.z++)
        for (key.x = 0; key.x < 4; key.x++)
            for (key.y = 0; key.y < 4; key.y++) {
                mc_tile *tile, *again;
                if (!mc_bare_tiles_get(&tile, bare, &key, pool))
                    continue;
                MC_ASSERT(mc_bare_tiles_get(&again, bare, &key, pool));
                MC_ASSERT((tile == NULL) == (again == NULL));
                if (tile != NULL)
                    MC_ASSERT(tile->data->size == again->data->size &&
                              memcmp(tile->data->data, again->data->data, tile->data->size) == 0);
            }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const gets[] = {
        "SELECT data FROM tiles WHERE x=:x AND y=:y AND z=:z",
        "SELECT data, strftime('%s', ctime) FROM tiles WHERE tileset=:tileset AND grid=:grid AND x=:x AND y=:y AND z=:z"
        " AND dim=:dim",
    };
    static apr_pool_t *root;
    if (root == NULL)
        apr_pool_create(&root, NULL);
    if (size < 2 || size > 1 << 20 || ftruncate(file, 0) != 0 ||
        pwrite(file, data + 1, size - 1, 0) != (ssize_t)size - 1)
        return 0;
    apr_pool_t *pool;
    apr_pool_create(&pool, root);
    static mc_grid grid = { .name = "g" };
    mc_tile_key key = { .tileset = "t", .grid = &grid };
    mc_plain_get get;
    MC_ASSERT(mc_plain_get_read(&get, gets[data[0] & 1]));
    mc_bare_tiles *bare = mc_bare_tiles_open(path, &get, &key, pool);
    if (bare != NULL) {
        get_tiles(bare, key, pool);
        free(mc_bare_tiles_coverage(bare));
        mc_bare_tiles_close(bare);
    }
    apr_pool_destroy(pool);
    return 0;
}
