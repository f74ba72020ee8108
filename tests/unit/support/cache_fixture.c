#include "cache_fixture.h"

#include <sys/statvfs.h>
#include <unistd.h>

char cache_folder[64];
mc_level cache_levels[] = {
    { 1000, 1, 1 }, { 500, 2, 2 }, { 250, 4, 4 }, { 125, 8, 8 }, { 60, 16, 16 }, { 30, 32, 32 }
};
mc_grid cache_grid = { .name = "G", .tile_width = 256, .tile_height = 256, .level_count = 6, .levels = cache_levels };

mc_cache *
cache_of(const char *xml)
{
    mc_build build = config_build();
    mc_cache *cache = mc_cache_from_config(config_elements(xml), &build);
    ck_ok(mc_diagnostics_error(build.diagnostics, pool));
    ck_assert_ptr_nonnull(cache);
    return cache;
}

static apr_hash_t *children;

mc_cache *
cache_of_two(const char *xml)
{
    mc_node *root;
    mc_build build = config_build();
    const char *text = apr_pstrcat(pool, "<mapcache>",
                                   "<cache name='a' type='sqlite3'><dbfile>%s/la.db</dbfile></cache>"
                                   "<cache name='b' type='disk'><base>%s/lb</base></cache>",
                                   xml, "</mapcache>", NULL);
    text = mc_replace_all(text, "%s", cache_folder, pool);
    ck_ok(mc_config_parse_text(&root, "test.xml", text, strlen(text), NULL, pool));
    mc_cache *cache = NULL;
    for (mc_node *node = root->children; node != NULL; node = node->next) {
        cache = mc_cache_from_config(node, &build);
        ck_ok(mc_diagnostics_error(build.diagnostics, pool));
        ck_assert_ptr_nonnull(cache);
        apr_hash_set(build.caches, cache->name, APR_HASH_KEY_STRING, cache);
    }
    children = build.caches;
    return cache;
}

mc_cache *
child_named(const char *name)
{
    return apr_hash_get(children, name, APR_HASH_KEY_STRING);
}

mc_severity
cache_complaint_of(const char *xml)
{
    mc_build build = config_build();
    ck_assert_ptr_null(mc_cache_from_config(config_elements(xml), &build));
    ck_assert_int_gt(build.diagnostics->complaints->nelts, 0);
    return APR_ARRAY_IDX(build.diagnostics->complaints, 0, mc_complaint).severity;
}

/* In memory where there is room for it: stores sync what they write, which takes minutes where a disk is busy. */
static const char *
roomy_folder(void)
{
    struct statvfs room;
    const uint64_t wanted = UINT64_C(1) << 30;
    bool usable = statvfs("/dev/shm", &room) == 0 && (uint64_t)room.f_bavail * room.f_frsize > wanted;
    return usable && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

void
start_cache_test(void)
{
    snprintf(cache_folder, sizeof(cache_folder), "%s/mc-cache-XXXXXX", roomy_folder());
    ck_assert_ptr_nonnull(mkdtemp(cache_folder));
    process.handles = mc_handles_create(16);
    process.memory = mc_memory_create(1 << 20);
}

void
end_cache_test(void)
{
    mc_memory_destroy(process.memory);
    mc_handles_destroy(process.handles);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", cache_folder);
    ck_assert_int_eq(system(command), 0);
}

void
restart_cache_test(void)
{
    end_cache_test();
    start_cache_test();
}

static void
cache_set_up(void)
{
    unit_setup();
    start_cache_test();
    process.metrics = mc_metrics_create();
}

static void
cache_tear_down(void)
{
    mc_metrics_destroy(process.metrics);
    end_cache_test();
    unit_teardown();
}

int
cache_run(const char *name, const TTest *const *tests, int count)
{
    return unit_run_between(name, tests, count, cache_set_up, cache_tear_down);
}

mc_tile_key
key_at(int z, int x, int y)
{
    return (mc_tile_key){
        .tileset = "ts", .grid = &cache_grid, .z = z, .x = x, .y = y, .extension = "png", .renderable = true
    };
}

const char *cache_text_before = "";

mc_buf *
buf_of_text(const char *text)
{
    const char *whole = apr_pstrcat(pool, cache_text_before, text, NULL);
    return mc_buf_attach(mc_buf_copy(whole, strlen(whole)), pool);
}

void
put_text(mc_cache *cache, const mc_tile_key *key, const char *text)
{
    mc_tile_write tile = { .key = *key, .data = buf_of_text(text) };
    ck_ok(mc_cache_put(cache, &tile, 1, &ctx));
}

void
put_colour(mc_cache *cache, const mc_tile_key *key, const uint8_t bgra[4])
{
    mc_tile_write tile = { .key = *key, .data = mc_buf_attach(mc_buf_copy("picture", 7), pool) };
    tile.uniform = true;
    memcpy(tile.bgra, bgra, sizeof(tile.bgra));
    ck_ok(mc_cache_put(cache, &tile, 1, &ctx));
}

void
expect_text(mc_cache *cache, const mc_tile_key *key, const char *text)
{
    mc_tile *tile;
    ck_ok(mc_cache_get(&tile, cache, key, &ctx, pool));
    if (text == NULL) {
        ck_assert_ptr_null(tile);
        return;
    }
    ck_assert_ptr_nonnull(tile);
    text = apr_pstrcat(pool, cache_text_before, text, NULL);
    ck_assert_uint_eq(tile->data->size, strlen(text));
    ck_assert_int_eq(memcmp(tile->data->data, text, strlen(text)), 0);
}

int
count_open_files(void)
{
    return mc_handles_open(process.handles);
}

void
run_shell(const char *format)
{
    ck_assert_int_eq(system(mc_replace_all(format, "%s", cache_folder, pool)), 0);
}

bool
see_tile(void *baton, int x, int y)
{
    seen_tiles *met = baton;
    ck_assert(x >= 0 && x < 128 && y >= 0 && y < 128);
    met->places[y][x]++;
    return ++met->count < met->most;
}
