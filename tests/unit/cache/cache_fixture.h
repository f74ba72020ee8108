/* What the tests of caches share: a folder of their own, a grid, and caches from a line of configuration. */
#ifndef MC_CACHE_FIXTURE_H
#define MC_CACHE_FIXTURE_H

#include "unit.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cache/cache_base.h"
#include "text/text.h"

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
    mc_tile_write tile = { .key = *key, .data = mc_buf_attach(mc_buf_copy(text, strlen(text)), pool) };
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

/* What a list has told: how often each tile of 128 x 128. It is enough at `most`. */
typedef struct seen {
    int count, most;
    unsigned char places[128][128];
} seen;

__attribute__((unused)) static bool
see(void *baton, int x, int y)
{
    seen *met = baton;
    ck_assert(x >= 0 && x < 128 && y >= 0 && y < 128);
    met->places[y][x]++;
    return ++met->count < met->most;
}

/* Of the 16 tiles of columns and rows 0 to 3 of level 3, and none of another level. */
__attribute__((unused)) static void
conform_list(mc_cache *cache)
{
    mc_tile_key level = key_at(3, 0, 0), other = key_at(2, 0, 0);
    const mc_tile_range part = { 1, 0, 3, 3 }, all = { 0, 0, 8, 8 };
    seen met = { .most = 7 };
    put(cache, &other, "other");
    ck_ok(mc_cache_list(cache, &level, &part, see, &met, &ctx));
    ck_assert_int_eq(met.count, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(met.places[i / 2][1 + i % 2], 1);
    met = (seen){ .most = 7 };
    ck_ok(mc_cache_list(cache, &level, &all, see, &met, &ctx));
    ck_assert_int_eq(met.count, 7); /* it said that it is enough */
}

/* A series of puts shows at its end, and what is asked for before. */
__attribute__((unused)) static void
conform_writes(mc_cache *cache)
{
    mc_tile_key one = key_at(2, 1, 1), two = key_at(2, 2, 1), three = key_at(2, 3, 1), four = key_at(3, 3, 1);
    ctx.writes = mc_cache_writes_create(pool);
    put(cache, &one, "one");
    put(cache, &two, "two");
    ck_assert_int_eq(mc_cache_writes_count(ctx.writes), 2);
    expect(cache, &three, NULL);
    expect(cache, &two, "two");
    put(cache, &three, "three");
    ck_ok(mc_cache_remove(cache, &three, &ctx));
    expect(cache, &three, NULL);
    put(cache, &three, "three again");
    put(cache, &four, "four");
    ck_ok(mc_cache_remove(cache, &four, &ctx));
    ck_ok(mc_cache_remove(cache, &three, &ctx));
    put(cache, &one, "one again");
    put(cache, &one, "and again");
    ck_ok(mc_cache_writes_flush(&ctx));
    ctx.writes = NULL;
    expect(cache, &one, "and again");
    expect(cache, &two, "two");
    expect(cache, &three, NULL);
    expect(cache, &four, NULL);
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
    mc_tile_write block[16];
    for (int i = 0; i < 16; i++) {
        char text[16];
        snprintf(text, sizeof(text), "tile%d", i);
        block[i] = (mc_tile_write){ .key = key_at(3, i % 4, i / 4),
                                    .data = mc_buf_attach(mc_buf_copy(text, strlen(text)), pool) };
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
    mc_tile_write empty = { .key = key, .data = mc_buf_attach(mc_buf_copy("", 0), pool) };
    ck_fails(IO, mc_cache_put(cache, &empty, 1, &ctx));
    if (mc_cache_lists(cache, &key))
        conform_list(cache);
    mc_tile_key keys[4] = { block[0].key, block[5].key, block[15].key, key };
    ck_ok(mc_cache_remove_all(cache, keys, 4, &ctx));
    for (int i = 0; i < 16; i++)
        expect(cache, &block[i].key, i == 0 || i == 5 || i == 15 ? NULL : apr_psprintf(pool, "tile%d", i));
    conform_writes(cache);
}

#endif
