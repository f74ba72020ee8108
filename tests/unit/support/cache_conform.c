/* The cases that every back end passes, of whatever kind: a new one inherits them by the line conform_cache(...), or by
 * the sample in its table of functions. */
#include "cache_fixture.h"

/* Of the 16 tiles of columns and rows 0 to 3 of level 3, and none of another level. */
static void
conform_list(mc_cache *cache)
{
    mc_tile_key level = key_at(3, 0, 0), other = key_at(2, 0, 0);
    const mc_tile_range part = { 1, 0, 3, 3 }, all = { 0, 0, 8, 8 };
    seen_tiles met = { .most = 7 };
    put_text(cache, &other, "other");
    ck_ok(mc_cache_list(cache, &level, &part, see_tile, &met, &ctx));
    ck_assert_int_eq(met.count, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(met.places[i / 2][1 + i % 2], 1);
    met = (seen_tiles){ .most = 7 };
    ck_ok(mc_cache_list(cache, &level, &all, see_tile, &met, &ctx));
    ck_assert_int_eq(met.count, 7); /* it said that it is enough */
}

/* A series of puts shows at its end, and what is asked for before. */
static void
conform_writes(mc_cache *cache)
{
    mc_tile_key one = key_at(2, 1, 1), two = key_at(2, 2, 1), three = key_at(2, 3, 1), four = key_at(3, 3, 1);
    ctx.writes = mc_cache_writes_create(pool);
    put_text(cache, &one, "one");
    put_text(cache, &two, "two");
    ck_assert_int_eq(mc_cache_writes_count(ctx.writes), 2);
    expect_text(cache, &three, NULL);
    expect_text(cache, &two, "two");
    put_text(cache, &three, "three");
    ck_ok(mc_cache_remove(cache, &three, &ctx));
    expect_text(cache, &three, NULL);
    put_text(cache, &three, "three again");
    put_text(cache, &four, "four");
    ck_ok(mc_cache_remove(cache, &four, &ctx));
    ck_ok(mc_cache_remove(cache, &three, &ctx));
    put_text(cache, &one, "one again");
    put_text(cache, &one, "and again");
    ck_ok(mc_cache_writes_flush(&ctx));
    ctx.writes = NULL;
    expect_text(cache, &one, "and again");
    expect_text(cache, &two, "two");
    expect_text(cache, &three, NULL);
    expect_text(cache, &four, NULL);
}

enum { LARGE_TILE = 3 << 20, TOGETHER = 64 };

/* A tile of all bytes, larger than some stores take: what is read is that tile, or, where the store has refused it with
 * the cache's name, the tile before it or none. */
static void
conform_large(mc_cache *cache)
{
    mc_tile_key key = key_at(3, 7, 5);
    size_t begin = strlen(cache_text_before);
    uint8_t *bytes = apr_palloc(pool, LARGE_TILE);
    uint32_t state = 1;
    for (size_t i = 0; i < LARGE_TILE; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(state >> 24);
    }
    memcpy(bytes, cache_text_before, begin);
    put_text(cache, &key, "small");
    mc_tile_write tile = { .key = key, .data = mc_buf_attach(mc_buf_copy(bytes, LARGE_TILE), pool) };
    mc_error *error = mc_cache_put(cache, &tile, 1, &ctx);
    if (error != NULL)
        ck_assert_msg(strstr(mc_error_chain(error, pool), cache->name) != NULL, "%s", mc_error_chain(error, pool));
    mc_tile *read;
    ck_ok(mc_cache_get(&read, cache, &key, &ctx, pool));
    if (error == NULL) {
        ck_assert_ptr_nonnull(read);
        ck_assert(read->data->size == LARGE_TILE && memcmp(read->data->data, bytes, LARGE_TILE) == 0);
    } else if (read != NULL) {
        expect_text(cache, &key, "small");
    }
    put_text(cache, &key, "small again");
    expect_text(cache, &key, "small again");
    ck_ok(mc_cache_remove(cache, &key, &ctx));
}

/* The tiles of a map, every other one of which is stored, asked for as a map does; and the time that they tell. */
static void
conform_together(mc_cache *cache)
{
    mc_tile_key keys[TOGETHER];
    mc_tile_write puts[TOGETHER / 2];
    mc_tile *tiles[TOGETHER] = { NULL };
    bool exists[TOGETHER];
    for (int i = 0; i < TOGETHER; i++)
        keys[i] = key_at(3, i % 8, i / 8);
    ck_ok(mc_cache_remove_all(cache, keys, TOGETHER, &ctx));
    for (int i = 0; i < TOGETHER; i += 2)
        puts[i / 2] = (mc_tile_write){ .key = keys[i], .data = buf_of_text(apr_psprintf(pool, "map %d", i)) };
    apr_time_t before = apr_time_now();
    ck_ok(mc_cache_put(cache, puts, TOGETHER / 2, &ctx));
    mc_cache_reads_begin(&ctx);
    if (mc_cache_gets_all(cache))
        ck_ok(mc_cache_get_all(tiles, cache, keys, TOGETHER, &ctx, pool));
    else
        for (int i = 0; i < TOGETHER; i++)
            ck_ok(mc_cache_get(&tiles[i], cache, &keys[i], &ctx, pool));
    mc_cache_reads_end(&ctx);
    for (int i = 0; i < TOGETHER; i++)
        exists[i] = i % 2 != 0;
    ck_ok(mc_cache_exist_all(exists, cache, keys, TOGETHER, &ctx));
    for (int i = 0; i < TOGETHER; i++) {
        ck_assert_msg(exists[i] == (i % 2 == 0), "%s: tile %d is looked for", cache->ops->type, i);
        ck_assert_msg((tiles[i] != NULL) == (i % 2 == 0), "%s: tile %d of a map", cache->ops->type, i);
        if (tiles[i] == NULL)
            continue;
        const char *text = apr_psprintf(pool, "%smap %d", cache_text_before, i);
        ck_assert_uint_eq(tiles[i]->data->size, strlen(text));
        ck_assert_int_eq(memcmp(tiles[i]->data->data, text, strlen(text)), 0);
        ck_assert_msg(tiles[i]->mtime == 0 || (tiles[i]->mtime >= before - 2 * APR_USEC_PER_SEC &&
                                               tiles[i]->mtime <= apr_time_now() + 2 * APR_USEC_PER_SEC),
                      "%s tells a time of %" APR_TIME_T_FMT, cache->ops->type, tiles[i]->mtime - before);
    }
    ck_ok(mc_cache_remove_all(cache, keys, TOGETHER, &ctx));
}

/* Whether who uses the cache so is told that it cannot tell their tiles apart. */
static bool
complains_of_uses(mc_cache *cache, const mc_tile_key *one, const mc_tile_key *other)
{
    mc_build build = config_build();
    const mc_tile_key *keys[] = { one, other };
    for (int i = 0; i < 2; i++) {
        mc_cache_use use = { .tileset = keys[i]->tileset,
                             .grid = keys[i]->grid,
                             .dimensions = keys[i]->dimension_count > 0,
                             .extension = keys[i]->extension };
        mc_cache_used_by(cache, &use, config_elements("<tileset name='t'/>"), &build);
    }
    return build.diagnostics->complaints->nelts > 0;
}

static void
expect_apart(mc_cache *cache, const mc_tile_key *one, const mc_tile_key *other)
{
    put_text(cache, one, "one");
    put_text(cache, other, "other");
    bool apart = !complains_of_uses(cache, one, other);
    if (apart) {
        mc_tile *tile;
        ck_ok(mc_cache_get(&tile, cache, one, &ctx, pool));
        ck_assert_msg(tile != NULL && tile->data->size == strlen(cache_text_before) + 3,
                      "%s takes tilesets \"%s\" and \"%s\", values \"%s\" and \"%s\" for the same", cache->ops->type,
                      one->tileset, other->tileset, one->dimension_count > 0 ? one->dimensions[0].value : "",
                      one->dimension_count > 0 ? other->dimensions[0].value : "");
        expect_text(cache, one, "one");
        expect_text(cache, other, "other");
        ck_ok(mc_cache_remove(cache, other, &ctx));
        expect_text(cache, one, "one");
        expect_text(cache, other, NULL);
    }
    ck_ok(mc_cache_remove(cache, one, &ctx));
    ck_ok(mc_cache_remove(cache, other, &ctx));
}

/* Names and values that a key made in a hurry takes for one. */
static void
conform_keys(mc_cache *cache)
{
    static const char *const tilesets[][2] = { { "a/b", "a_b" },       { "a/b", "a%2Fb" }, { "a b", "a+b" },
                                               { "a b", "a_b" },       { "A", "a" },       { "a", "a/G" },
                                               { "a\001b", "a\002b" }, { "a", "%61" },     { "\xc3\xa9", "e" } };
    static const char *const values[][2] = { { "x/y", "x_y" }, { "x/y", "x%2Fy" }, { "x", "%78" },  { "..", "__" },
                                             { "x y", "x_y" }, { "X", "x" },       { "x", "x\001" } };
    mc_tile_key one = key_at(2, 1, 2), other = one;
    for (size_t i = 0; i < sizeof(tilesets) / sizeof(*tilesets); i++) {
        one.tileset = tilesets[i][0];
        other.tileset = tilesets[i][1];
        expect_apart(cache, &one, &other);
    }
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        mc_dimension_value first = { "d", values[i][0], true }, second = { "d", values[i][1], true };
        one = key_at(2, 1, 2);
        one.tileset = apr_psprintf(pool, "values%d", (int)i); /* caches complain of each tileset once */
        other = one;
        one.dimensions = &first;
        other.dimensions = &second;
        one.dimension_count = other.dimension_count = 1;
        expect_apart(cache, &one, &other);
    }
}

void
conform_cache(mc_cache *cache)
{
    mc_tile_key key = key_at(3, 5, 6);
    bool exists = true;
    expect_text(cache, &key, NULL);
    ck_ok(mc_cache_exists(&exists, cache, &key, &ctx));
    ck_assert(!exists);
    put_text(cache, &key, "first");
    expect_text(cache, &key, "first");
    ck_ok(mc_cache_exists(&exists, cache, &key, &ctx));
    ck_assert(exists);
    usleep(60000); /* so that it is remembered */
    expect_text(cache, &key, "first");
    expect_text(cache, &key, "first");
    put_text(cache, &key, "second");
    expect_text(cache, &key, "second");
    mc_tile_write block[16];
    for (int i = 0; i < 16; i++) {
        char text[16];
        snprintf(text, sizeof(text), "tile%d", i);
        block[i] = (mc_tile_write){ .key = key_at(3, i % 4, i / 4), .data = buf_of_text(text) };
    }
    ck_ok(mc_cache_put(cache, block, 16, &ctx));
    for (int i = 0; i < 16; i++) {
        char text[16];
        snprintf(text, sizeof(text), "tile%d", i);
        expect_text(cache, &block[i].key, text);
    }
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    expect_text(cache, &key, NULL);
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    mc_tile_write empty = { .key = key, .data = mc_buf_attach(mc_buf_copy("", 0), pool) };
    ck_fails(IO, mc_cache_put(cache, &empty, 1, &ctx));
    if (mc_cache_lists(cache, &key))
        conform_list(cache);
    mc_tile_key keys[4] = { block[0].key, block[5].key, block[15].key, key };
    ck_ok(mc_cache_remove_all(cache, keys, 4, &ctx));
    for (int i = 0; i < 16; i++)
        expect_text(cache, &block[i].key, i == 0 || i == 5 || i == 15 ? NULL : apr_psprintf(pool, "tile%d", i));
    conform_writes(cache);
    conform_large(cache);
    conform_together(cache);
    conform_keys(cache);
}
