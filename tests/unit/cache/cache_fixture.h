/* What the tests of caches share: a folder of their own, a grid, and caches from a line of configuration. */
#ifndef MC_CACHE_FIXTURE_H
#define MC_CACHE_FIXTURE_H

#include "unit.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cache/cache_base.h"

static char folder[64];
static mc_level levels[] = {
    { 1000, 1, 1 }, { 500, 2, 2 }, { 250, 4, 4 }, { 125, 8, 8 }, { 60, 16, 16 }, { 30, 32, 32 }
};
static mc_grid grid = { .name = "G", .tile_width = 256, .tile_height = 256, .level_count = 6, .levels = levels };

static mc_build
builder(void)
{
    return (mc_build){ .pool = pool, .diagnostics = mc_diagnostics_create(pool), .caches = apr_hash_make(pool) };
}

__attribute__((unused)) static mc_cache *
cache_of(const char *xml)
{
    mc_node *root;
    mc_build build = builder();
    const char *text = apr_pstrcat(pool, "<mapcache>", xml, "</mapcache>", NULL);
    ck_ok(mc_config_parse_text(&root, "test.xml", text, strlen(text), pool));
    mc_cache *cache = mc_cache_from_config(root->children, &build);
    ck_ok(mc_diagnostics_error(build.diagnostics, pool));
    ck_assert_ptr_nonnull(cache);
    return cache;
}

__attribute__((unused)) static mc_severity
complaint_of(const char *xml)
{
    mc_node *root;
    mc_build build = builder();
    const char *text = apr_pstrcat(pool, "<mapcache>", xml, "</mapcache>", NULL);
    ck_ok(mc_config_parse_text(&root, "test.xml", text, strlen(text), pool));
    ck_assert_ptr_null(mc_cache_from_config(root->children, &build));
    ck_assert_int_gt(build.diagnostics->complaints->nelts, 0);
    return APR_ARRAY_IDX(build.diagnostics->complaints, 0, mc_complaint).severity;
}

__attribute__((unused)) static void
start(void)
{
    strcpy(folder, "/tmp/mc-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    process.handles = mc_handles_create(16);
    process.memory = mc_memory_create(1 << 20);
}

__attribute__((unused)) static void
finish(void)
{
    mc_memory_destroy(process.memory);
    mc_handles_destroy(process.handles);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

__attribute__((unused)) static mc_tile_key
key_at(int z, int x, int y)
{
    return (
        mc_tile_key){ .tileset = "ts", .grid = &grid, .z = z, .x = x, .y = y, .extension = "png", .renderable = true };
}

__attribute__((unused)) static void
put(mc_cache *cache, const mc_tile_key *key, const char *text)
{
    mc_put tile = { .key = *key, .data = mc_buf_attach(mc_buf_copy(text, strlen(text)), pool) };
    ck_ok(mc_cache_put(cache, &tile, 1, &ctx));
}

__attribute__((unused)) static void
expect(mc_cache *cache, const mc_tile_key *key, const char *text)
{
    mc_tile *tile;
    ck_ok(mc_cache_get(&tile, cache, key, &ctx, pool));
    if (text == NULL) {
        ck_assert_ptr_null(tile);
        return;
    }
    ck_assert_ptr_nonnull(tile);
    ck_assert_uint_eq(tile->data->size, strlen(text));
    ck_assert_int_eq(memcmp(tile->data->data, text, strlen(text)), 0);
}

__attribute__((unused)) static int
count_open(void)
{
    return mc_handles_open(process.handles);
}

__attribute__((unused)) static void
shell(const char *format)
{
    ck_assert_int_eq(system(mc_replace_all(format, "%s", folder, pool)), 0);
}

/* What every back end does. */
__attribute__((unused)) static void
conform(mc_cache *cache)
{
    mc_tile_key key = key_at(3, 5, 6);
    bool exists = true;
    expect(cache, &key, NULL);
    ck_ok(mc_cache_exists(&exists, cache, &key, &ctx));
    ck_assert(!exists);
    put(cache, &key, "first");
    expect(cache, &key, "first");
    ck_ok(mc_cache_exists(&exists, cache, &key, &ctx));
    ck_assert(exists);
    usleep(60000); /* so that it is remembered */
    expect(cache, &key, "first");
    expect(cache, &key, "first");
    put(cache, &key, "second");
    expect(cache, &key, "second");
    mc_put block[16];
    for (int i = 0; i < 16; i++) {
        char text[16];
        snprintf(text, sizeof(text), "tile%d", i);
        block[i] =
            (mc_put){ .key = key_at(3, i % 4, i / 4), .data = mc_buf_attach(mc_buf_copy(text, strlen(text)), pool) };
    }
    ck_ok(mc_cache_put(cache, block, 16, &ctx));
    for (int i = 0; i < 16; i++) {
        char text[16];
        snprintf(text, sizeof(text), "tile%d", i);
        expect(cache, &block[i].key, text);
    }
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    expect(cache, &key, NULL);
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    mc_put empty = { .key = key, .data = mc_buf_attach(mc_buf_copy("", 0), pool) };
    ck_fails(IO, mc_cache_put(cache, &empty, 1, &ctx));
}

#endif
