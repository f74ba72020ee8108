/*
 * Any file as a store of tiles: SQLite of the schemas of sqlite3, MBTiles and GeoPackage. The first byte says which
 * kinds look at the file, whether a -wal stands beside it and how much of the input is that; the rest is the file.
 */
#include <apr_strings.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cache/memory.h"
#include "db/sqlite/handles.h"
#include "fuzz_support.h"
#include "mapcache/server.h"
#include "mapcache/survey.h"
#include "mapcache/upkeep.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { DEADLINE_US = 300000, LEVELS = 3, MOST_TILES = 1 << 20 };

static char folder[] = "/tmp/fuzz-store-XXXXXX";
static apr_pool_t *lasting;
static mc_config *config;

static const char *
path_of(const char *name)
{
    static char path[64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void
put(const char *name, const void *bytes, size_t size)
{
    int file = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || write(file, bytes, size) != (ssize_t)size || close(file) != 0)
        abort();
}

static void
remove_files(void)
{
    static const char *const names[] = { "a.db", "a.db-wal", "a.db-shm", "a.db-journal", "mapcache.xml" };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(path_of(names[i]));
    rmdir(folder);
}

static void
write_nothing(void *baton, mc_log_level level, const char *message)
{
    (void)baton;
    (void)level;
    (void)message;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char *const kinds[] = { "sqlite3", "mbtiles", "geopackage" };
    char text[4096] = "<mapcache>";
    size_t length = strlen(text);
    (void)argc;
    (void)argv;
    if (mkdtemp(folder) == NULL || atexit(remove_files) != 0)
        return 1;
    apr_pool_create(&lasting, NULL);
    for (int i = 0; i < 3; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length,
                                   "<cache name=\"%s\" type=\"%s\"><dbfile>%s</dbfile><detect_blank/></cache>"
                                   "<tileset name=\"t%d\"><cache>%s</cache><grid>GoogleMapsCompatible</grid></tileset>",
                                   kinds[i], kinds[i], path_of("a.db"), i, kinds[i]);
    snprintf(text + length, sizeof(text) - length, "</mapcache>");
    put("mapcache.xml", text, strlen(text));
    mc_error *error = mc_config_load(&config, path_of("mapcache.xml"), mc_diagnostics_create(lasting), lasting);
    if (error != MC_OK)
        fprintf(stderr, "%s\n", mc_error_chain(error, lasting));
    return error == MC_OK ? 0 : 1;
}

static bool
count_tile(void *baton, int x, int y)
{
    int *seen = baton;
    MC_ASSERT(x >= 0 && y >= 0);
    return ++*seen < MOST_TILES;
}

static bool
look_at_file(void *baton, const mc_survey_file *file)
{
    (void)baton;
    MC_ASSERT(file->path != NULL && file->wanted.minx <= file->wanted.maxx);
    return true;
}

static bool
know_all(void *baton, const mc_store_group *group)
{
    (void)baton;
    (void)group;
    return true;
}

/* What a server, a seeder and upkeep do with a store that they only read. */
static void
read_store(mc_cache *cache, const mc_tileset *tileset, mc_ctx *ctx)
{
    mc_tile_key key = { .tileset = tileset->name, .grid = tileset->links[0]->grid, .extension = "png" };
    int seen = 0;
    for (key.z = 0; key.z < LEVELS; key.z++) {
        mc_cache_reads_begin(ctx);
        for (int at = 0; at < 4; at++) {
            mc_tile *tile = NULL;
            bool exists;
            key.x = at & 1;
            key.y = at >> 1;
            if (key.x >= 1 << key.z || key.y >= 1 << key.z)
                continue;
            mc_error_ignore(mc_cache_get(&tile, cache, &key, ctx, ctx->pool));
            MC_ASSERT(tile == NULL || tile->data != NULL || tile->blank || tile->no_data);
            mc_error_ignore(mc_cache_exists(&exists, cache, &key, ctx));
        }
        mc_cache_reads_end(ctx);
        const mc_tile_range all = { 0, 0, (1 << key.z) - 1, (1 << key.z) - 1 };
        const mc_survey_task survey = { .area = all, .visit = look_at_file };
        if (mc_cache_lists(cache, &key))
            mc_error_ignore(mc_cache_list(cache, &key, &all, count_tile, &seen, ctx));
        mc_error_ignore(mc_survey(cache, &key, &survey, ctx));
    }
    const mc_upkeep upkeep = { .count = true, .known = know_all };
    mc_error_ignore(mc_cache_upkeep(cache, &upkeep, ctx));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mc_log log = { .level = MC_LOG_EMERG, .write = write_nothing };
    apr_pool_t *pool;
    if (size < 2)
        return 0;
    unsigned how = *data;
    size_t wal = (how & 8) != 0 ? (size - 1) / (2 + (how >> 4)) : 0;
    put("a.db", data + 1, size - 1 - wal);
    unlink(path_of("a.db-wal"));
    if (wal > 0)
        put("a.db-wal", data + size - wal, wal);
    apr_pool_create(&pool, NULL);
    mc_process process = { .handles = mc_handles_create(4), .memory = mc_memory_create(1 << 20) };
    mc_ctx ctx = { .pool = pool, .process = &process, .log = &log, .deadline = mc_clock_now() + DEADLINE_US };
    for (int i = 0; i < 3; i++)
        if ((how >> i & 1) != 0)
            read_store(APR_ARRAY_IDX(config->caches, i, mc_cache *), APR_ARRAY_IDX(config->tilesets, i, mc_tileset *),
                       &ctx);
    mc_memory_destroy(process.memory);
    mc_handles_destroy(process.handles);
    apr_pool_destroy(pool);
    return 0;
}
