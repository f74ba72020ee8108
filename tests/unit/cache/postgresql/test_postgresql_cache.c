/* Tiles in PostgreSQL, on a real server. */
#include "cache_fixture.h"

#include <pthread.h>

#include "db/postgres/postgres.h"
#include "postgres.h"

static void
set_up_tables(void)
{
    postgres_set_up(8);
    start_cache_test();
    database_do(&postgres_server, "sql DROP TABLE IF EXISTS mapcache_tiles, remembered, public.\"ti'l\"\"es; --\"");
}

static void
tear_down_tables(void)
{
    end_cache_test();
    postgres_tear_down();
}

static mc_cache *
store(const char *inner)
{
    return cache_of(apr_psprintf(pool, "<cache name='c' type='postgresql'><connection>%s</connection>%s</cache>",
                                 database_connection(&postgres_server), inner));
}

static const char *
ask(const char *sql)
{
    return database_do(&postgres_server, apr_pstrcat(pool, "sql ", sql, NULL));
}

START_TEST(it_conforms)
{
    conform_cache(store(""));
    conform_cache(store("<table>public.ti'l\"es; --</table>"));
    conform_cache(store("<table>remembered</table><memory>60</memory>"));
    ck_assert_str_eq(ask("SELECT attstorage FROM pg_attribute WHERE attrelid = 'mapcache_tiles'::regclass"
                         " AND attname = 'data'"),
                     "e");
}
END_TEST

START_TEST(keys_are_told_apart)
{
    mc_cache *cache = store("");
    mc_dimension_value dimensions[] = { { "a", "1' OR '1'='1", false }, { "b", "2", false } };
    mc_tile_key plain = key_at(3, 5, 6), with = plain, other = plain;
    with.dimensions = dimensions;
    with.dimension_count = 2;
    other.tileset = "ts'; DROP TABLE mapcache_tiles; --";
    put_text(cache, &plain, "plain");
    put_text(cache, &with, "with");
    put_text(cache, &other, "other");
    expect_text(cache, &plain, "plain");
    expect_text(cache, &with, "with");
    expect_text(cache, &other, "other");
    ck_assert_str_eq(ask("SELECT dim FROM mapcache_tiles WHERE dim <> ''"), "2#1' OR '1'='1");
    ck_ok(mc_cache_remove(cache, &with, &ctx));
    expect_text(cache, &with, NULL);
    expect_text(cache, &plain, "plain");
}
END_TEST

START_TEST(all_tiles_of_a_map_come_together)
{
    mc_cache *cache = store("");
    mc_tile_key keys[64];
    mc_tile *tiles[64];
    for (int i = 0; i < 64; i++)
        keys[i] = key_at(3, i % 8, i / 8);
    ck_assert(mc_cache_gets_all(cache));
    ck_ok(mc_cache_get_all(tiles, cache, keys, 64, &ctx, pool)); /* there is no table yet */
    for (int i = 0; i < 64; i++)
        ck_assert_ptr_null(tiles[i]);
    mc_tile_write puts[70];
    for (int i = 0; i < 70; i++) {
        const char *text = apr_psprintf(pool, "tile %d", i);
        puts[i] = (mc_tile_write){ .key = key_at(3, i % 8 / 2 * 2, i % 64 / 8),
                                   .data = mc_buf_attach(mc_buf_copy(text, strlen(text)), pool) };
    }
    ck_ok(mc_cache_put(cache, puts, 70, &ctx)); /* several times the same tile: the last one counts */
    ck_ok(mc_cache_get_all(tiles, cache, keys, 64, &ctx, pool));
    for (int i = 0; i < 64; i++) {
        if (i % 2 == 1) {
            ck_assert_ptr_null(tiles[i]);
            continue;
        }
        const char *text = apr_psprintf(pool, "tile %d", i < 6 ? i + 65 : i + 1);
        ck_assert_ptr_nonnull(tiles[i]);
        ck_assert_uint_eq(tiles[i]->data->size, strlen(text));
        ck_assert_int_eq(memcmp(tiles[i]->data->data, text, strlen(text)), 0);
        ck_assert(tiles[i]->mtime > apr_time_now() - 600 * APR_USEC_PER_SEC && tiles[i]->mtime <= apr_time_now());
    }
}
END_TEST

START_TEST(tiles_of_one_colour_are_five_bytes)
{
    static const uint8_t colour[4] = { 0x11, 0x22, 0x33, 0x80 };
    mc_cache *cache = store("<detect_blank/>");
    mc_tile_key key = key_at(3, 5, 6);
    put_colour(cache, &key, colour);
    ck_assert_str_eq(ask("SELECT encode(data, 'hex') FROM mapcache_tiles"), "2311223380");
    mc_tile *read;
    ck_ok(mc_cache_get(&read, cache, &key, &ctx, pool));
    ck_assert(read->blank && memcmp(read->bgra, colour, 4) == 0);
}
END_TEST

START_TEST(a_database_that_is_away_is_an_error_and_comes_back)
{
    mc_cache *cache = store("");
    mc_tile_key key = key_at(3, 5, 6);
    mc_tile *tile;
    put_text(cache, &key, "kept");
    ck_assert_str_eq(database_do(&postgres_server, "stop"), "done");
    ck_fails(UNAVAILABLE, mc_cache_get(&tile, cache, &key, &ctx, pool));
    mc_tile_write late = { .key = key, .data = mc_buf_attach(mc_buf_copy("late", 4), pool) };
    ck_fails(UNAVAILABLE, mc_cache_put(cache, &late, 1, &ctx));
    ck_assert_str_eq(database_do(&postgres_server, "start"), "done");
    usleep(1100000); /* a server that was away is asked again after a second */
    expect_text(cache, &key, "kept");
    ask("DROP TABLE mapcache_tiles");
    expect_text(cache, &key, NULL);
    put_text(cache, &key, "made again");
    expect_text(cache, &key, "made again");
}
END_TEST

enum { MOST = 64 };

typedef struct writer {
    pthread_t thread;
    mc_cache *cache;
    int number, failures;
    int tiles; /* at once: 16 as a metatile, 64 as a seeder's commit */
} writer;

static mc_error *
write_once(const writer *me, const mc_tile_write *puts, mc_ctx *mine)
{
    if (me->tiles < MOST)
        return mc_cache_put(me->cache, puts, me->tiles, mine);
    mine->writes = mc_cache_writes_create(mine->pool);
    mc_error *error = mc_cache_put(me->cache, puts, me->tiles, mine);
    if (error == MC_OK)
        error = mc_cache_writes_flush(mine);
    mine->writes = NULL;
    return error;
}

static void *
write_tiles(void *baton)
{
    writer *me = baton;
    apr_allocator_t *allocator;
    apr_pool_t *own;
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    MC_ASSERT(apr_pool_create_unmanaged_ex(&own, NULL, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, own);
    mc_ctx mine = ctx;
    mine.pool = own;
    mc_tile_write puts[MOST];
    for (int i = 0; i < me->tiles; i++) {
        const char *text = apr_psprintf(own, "by %d", me->number);
        int at = me->number % 2 == 0 ? i : me->tiles - 1 - i; /* in another order: no two may wait for each other */
        puts[i] = (mc_tile_write){ .key = key_at(3, at % 8, at / 8),
                                   .data = mc_buf_attach(mc_buf_copy(text, strlen(text)), own) };
    }
    for (int i = 0; i < 20; i++) {
        mc_error *error = write_once(me, puts, &mine);
        if (error != MC_OK)
            fprintf(stderr, "%s\n", mc_error_chain(error, own));
        me->failures += error != MC_OK;
    }
    apr_pool_destroy(own);
    return NULL;
}

/* From the moment when there is no table: one of them makes it, and no metatile is mixed. */
START_TEST(many_may_write_at_once)
{
    for (int tiles = 16; tiles <= MOST; tiles += MOST - 16) {
        writer writers[6];
        for (int i = 0; i < 6; i++) {
            writers[i] = (writer){ .cache = store(""), .number = i, .tiles = tiles };
            ck_assert_int_eq(pthread_create(&writers[i].thread, NULL, write_tiles, &writers[i]), 0);
        }
        for (int i = 0; i < 6; i++) {
            pthread_join(writers[i].thread, NULL);
            ck_assert_int_eq(writers[i].failures, 0);
        }
        ck_assert_str_eq(ask("SELECT count(*) || ' ' || count(DISTINCT data) FROM mapcache_tiles"),
                         apr_psprintf(pool, "%d 1", tiles));
        ask("DROP TABLE mapcache_tiles");
    }
}
END_TEST

static int complaints;

static void
count_complaints(void *baton, mc_log_level level, const char *message)
{
    (void)baton, (void)level;
    complaints += strstr(message, "could not be copied") != NULL;
}

/* A commit of 400 tiles of all sizes, some of them several times. */
static void
load(mc_cache *cache, int round)
{
    ctx.writes = mc_cache_writes_create(pool);
    for (int i = 0; i < 500; i++) {
        int at = i % 400, size = at * 37 % 70000 + 8 + (at == 7 ? 300000 : 0);
        mc_tile_write tile = { .key = key_at(5, at % 32, at / 32), .data = mc_buf_create((size_t)size, (size_t)size) };
        memset(tile.data->data, 'a' + (at + round + i / 400) % 26, (size_t)size);
        tile.data->size = (size_t)size;
        mc_buf_attach(tile.data, pool);
        ck_ok(mc_cache_put(cache, &tile, 1, &ctx));
    }
    ck_ok(mc_cache_writes_flush(&ctx));
    ctx.writes = NULL;
    for (int at = 0; at < 400; at++) {
        mc_tile_key key = key_at(5, at % 32, at / 32);
        mc_tile *tile;
        ck_ok(mc_cache_get(&tile, cache, &key, &ctx, pool));
        ck_assert_ptr_nonnull(tile);
        ck_assert_uint_eq(tile->data->size, at * 37 % 70000 + 8 + (at == 7 ? 300000 : 0));
        size_t same = 0;
        while (same < tile->data->size && tile->data->data[same] == 'a' + (at + round + (at < 100)) % 26)
            same++;
        ck_assert_uint_eq(same, tile->data->size);
        ck_assert(tile->mtime > apr_time_now() - 600 * APR_USEC_PER_SEC && tile->mtime <= apr_time_now());
    }
}

START_TEST(a_series_is_copied_in)
{
    static const mc_log counting = { .level = MC_LOG_DEBUG, .write = count_complaints };
    ctx.log = &counting;
    mc_cache *cache = store("");
    load(cache, 0);
    ck_assert_int_eq(complaints, 1); /* there was no table */
    load(cache, 1);
    load(cache, 2);
    ck_assert_int_eq(complaints, 1);
    ck_assert_str_eq(ask("SELECT count(*) FROM mapcache_tiles"), "400");
    ck_assert_str_eq(database_do(&postgres_server, "restart"), "done");
    load(cache, 3); /* over connections that have ended meanwhile */
    ask("ALTER TABLE mapcache_tiles ALTER COLUMN ctime DROP DEFAULT");
    load(cache, 4); /* what cannot be copied goes the other way */
    ck_assert_str_eq(ask("SELECT count(*) FROM mapcache_tiles"), "400");
}
END_TEST

START_TEST(configurations_are_checked)
{
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='postgresql'/>"), MC_REFUSED);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='postgresql'><connection>dbname=x</connection>"
                                        "<memory>true</memory></cache>"),
                     MC_REFUSED);
}
END_TEST

POSTGRES_MAIN_BETWEEN("postgresql_cache", set_up_tables, tear_down_tables, it_conforms, keys_are_told_apart,
                      all_tiles_of_a_map_come_together, tiles_of_one_colour_are_five_bytes,
                      a_database_that_is_away_is_an_error_and_comes_back, many_may_write_at_once, a_series_is_copied_in,
                      configurations_are_checked)
