/* What is particular to tiff caches: which tile stands where, files of others, and what is none. */
#include "cache_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/files.h"
#include "cache/archive/tiff_index.h"
#include "cache/blocks/tiff_cache.h"

static mc_cache *
tiff(const char *inner)
{
    cache_text_before = "\xff\xd8\xff\xe0";
    return cache_of(apr_psprintf(pool,
                                 "<cache name='c' type='tiff'><template>%s/{tileset}/{grid}/{z}-{div_x}-{div_y}.tif"
                                 "</template>%s</cache>",
                                 cache_folder, inner));
}

static bool
exists_in_folder(const char *name)
{
    struct stat info;
    return stat(apr_pstrcat(pool, cache_folder, "/", name, NULL), &info) == 0;
}

START_TEST(tiff_conforms)
{
    static const char *const counts[] = { "", "<xcount>1</xcount><ycount>1</ycount>",
                                          "<xcount>3</xcount><ycount>2</ycount>", "<memory>false</memory>" };
    for (int i = 0; i < 4; i++) {
        conform_cache(tiff(counts[i]));
        run_shell("test -z \"$(find %s -name '*.tmp')\"");
        restart_cache_test();
    }
}
END_TEST

START_TEST(tiles_stand_where_mapcache_has_them)
{
    mc_cache *cache = tiff("<xcount>4</xcount><ycount>2</ycount>");
    mc_tile_key key = key_at(4, 6, 9); /* of a level of 16 x 16 */
    put_text(cache, &key, "here");
    ck_assert(exists_in_folder("ts/G/4-1-4.tif"));
    mc_tiff_block block = mc_tiff_block_of((tiff_cache *)cache, &key);
    ck_assert(block.columns == 4 && block.rows == 2 && block.x == 4 && block.y == 8);
    ck_assert_uint_eq(block.number, (2 - 1 - 1) * 4 + 2);
    mc_ranged_file file;
    mc_tiff_index index;
    mc_buf *data;
    mc_ranges_look(&file, apr_pstrcat(pool, cache_folder, "/ts/G/4-1-4.tif", NULL));
    ck_ok(mc_tiff_read_index(&index, &file, pool));
    ck_assert(index.width == 1024 && index.height == 512 && index.columns == 4 && index.rows == 2);
    for (uint64_t i = 0; i < 8; i++) {
        ck_ok(mc_tiff_read_tile(&data, &index, &file, i, pool));
        ck_assert_int_eq(data != NULL, i == 2);
    }
    mc_ranges_close(&file);
    key = key_at(1, 1, 0); /* a level with fewer tiles than a file */
    block = mc_tiff_block_of((tiff_cache *)cache, &key);
    ck_assert(block.columns == 2 && block.rows == 2 && block.number == 3);
}
END_TEST

START_TEST(other_tiles_are_refused)
{
    mc_cache *cache = tiff("");
    mc_tile_key key = key_at(2, 1, 1);
    mc_tile_write png = { .key = key, .data = mc_buf_attach(mc_buf_copy("\x89PNG\r\n\x1a\n", 8), pool) };
    ck_fails(CONFIG, mc_cache_put(cache, &png, 1, &ctx));
    ck_assert(!exists_in_folder("ts"));
}
END_TEST

START_TEST(the_last_tile_takes_the_file_along)
{
    mc_cache *cache = tiff("");
    mc_tile_key key = key_at(2, 1, 1), other = key_at(2, 2, 1);
    put_text(cache, &key, "one");
    put_text(cache, &other, "two");
    ck_ok(mc_cache_remove(cache, &key, &ctx));
    expect_text(cache, &other, "two");
    ck_ok(mc_cache_remove(cache, &other, &ctx));
    ck_assert(!exists_in_folder("ts/G/2-0-0.tif"));
    ck_ok(mc_cache_remove(cache, &other, &ctx));
}
END_TEST

START_TEST(files_of_another_layout_are_not_written_to)
{
    mc_tile *tile;
    mc_tile_key key = key_at(3, 1, 1);
    put_text(tiff("<xcount>4</xcount><ycount>4</ycount>"), &key, "one");
    mc_cache *cache = tiff("<xcount>5</xcount><ycount>4</ycount>");
    ck_fails(CORRUPT, mc_cache_get(&tile, cache, &key, &ctx, pool));
    mc_tile_write put = { .key = key, .data = mc_buf_attach(mc_buf_copy("\xff\xd8\xff\xe0", 4), pool) };
    ck_fails(CORRUPT, mc_cache_put(cache, &put, 1, &ctx));
    expect_text(tiff("<xcount>4</xcount><ycount>4</ycount>"), &key, "one");
}
END_TEST

/* Every prefix of a file, and files whose bytes are turned over one by one: a tile, an error, or nothing; never more.
 */
START_TEST(damaged_files_are_refused)
{
    mc_cache *cache = tiff("<xcount>2</xcount><ycount>2</ycount><memory>false</memory>");
    const mc_tile_key key = key_at(2, 1, 1);
    const char *path = apr_pstrcat(pool, cache_folder, "/ts/G/2-0-0.tif", NULL);
    uint8_t bytes[4096];
    mc_tile *tile;
    put_text(cache, &key, "tile");
    int file = open(path, O_RDWR);
    size_t size = mc_files_read_at(file, 0, bytes, sizeof(bytes));
    ck_assert_uint_gt(size, 300);
    for (size_t i = 0; i < size; i++) {
        uint8_t turned = (uint8_t)~bytes[i];
        ck_assert(mc_files_write_at(file, i, &turned, 1));
        mc_error *error = mc_cache_get(&tile, cache, &key, &ctx, pool);
        ck_assert(error == MC_OK || error->kind == MC_ERR_CORRUPT || error->kind == MC_ERR_LIMIT);
        ck_assert(mc_files_write_at(file, i, &bytes[i], 1));
    }
    for (size_t left = size - 1; left > 0; left--) {
        ck_assert_int_eq(ftruncate(file, (off_t)left), 0);
        ck_fails(CORRUPT, mc_cache_get(&tile, cache, &key, &ctx, pool));
    }
    close(file);
}
END_TEST

static uint8_t *
put_big_entry(uint8_t *at, unsigned tag, unsigned type, uint64_t count, uint64_t value)
{
    at = mc_store_little32(at, tag | type << 16);
    return mc_store_little64(mc_store_little64(at, count), value);
}

/* With the tables of a JPEG its first two bytes are passed over: the sum must not lead to the beginning of the file. */
START_TEST(a_tile_beyond_all_numbers_is_refused)
{
    uint8_t bytes[256] = "II\x2b\0\x08\0\0\0\x10";
    const char *path = apr_pstrcat(pool, cache_folder, "/big.tif", NULL);
    uint8_t *at = put_big_entry(mc_store_little64(bytes + 16, 8), 256, 4, 1, 256);
    at = put_big_entry(put_big_entry(at, 257, 4, 1, 256), 259, 3, 1, MC_TIFF_JPEG);
    at = put_big_entry(put_big_entry(at, 322, 4, 1, 256), 323, 4, 1, 256);
    at = put_big_entry(put_big_entry(at, 324, 16, 1, UINT64_MAX), 325, 16, 1, 100);
    put_big_entry(at, 347, 7, 4, 0xd9ffd8ff);
    int file = open(path, O_RDWR | O_CREAT, 0600);
    ck_assert(mc_files_write_at(file, 0, bytes, sizeof(bytes)));
    close(file);
    mc_ranged_file ranged;
    mc_tiff_index index;
    mc_buf *data;
    mc_ranges_look(&ranged, path);
    ck_ok(mc_tiff_read_index(&index, &ranged, pool));
    ck_assert(index.columns == 1 && index.rows == 1 && index.tables_size == 4);
    ck_fails(CORRUPT, mc_tiff_read_tile(&data, &index, &ranged, 0, pool));
    mc_ranges_close(&ranged);
}
END_TEST

START_TEST(configurations_are_checked)
{
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='tiff'/>"), MC_REFUSED);
    ck_assert_int_eq(
        cache_complaint_of("<cache name='c' type='tiff'><template>/x</template><xcount>0</xcount></cache>"),
        MC_REFUSED);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='tiff'><template>/x</template><xcount>5000</xcount>"
                                        "<ycount>5000</ycount></cache>"),
                     MC_REFUSED);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='tiff'><template x_fmt='%s'>/x</template></cache>"),
                     MC_REFUSED);
    static const char *const storages[] = {
        "<template>/x</template><storage type='rest'/>",
        "<template>http://h</template><storage type='rest'/>",
        "<template>http://h{z}/x</template><storage type='rest'/>",
        "<template>http://h/x?a=b</template><storage type='rest'/>",
        "<template>http://h/x</template><storage/>",
        "<template>http://h/x</template><storage type='s3'/>",
        "<template>http://h/x</template><storage type='google'><access>a</access><secret>b</secret></storage>",
        "<template>/vsigs/x/y.tif</template><storage type='google'><access>a</access></storage>",
    };
    for (size_t i = 0; i < sizeof(storages) / sizeof(*storages); i++)
        ck_assert_int_eq(
            cache_complaint_of(apr_pstrcat(pool, "<cache name='c' type='tiff'>", storages[i], "</cache>", NULL)),
            MC_REFUSED);
}
END_TEST

CACHE_MAIN("tiff", tiff_conforms, tiles_stand_where_mapcache_has_them, other_tiles_are_refused,
           the_last_tile_takes_the_file_along, files_of_another_layout_are_not_written_to, damaged_files_are_refused,
           a_tile_beyond_all_numbers_is_refused, configurations_are_checked)
