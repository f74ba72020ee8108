/* What is particular to PMTiles stores: drafts become archives, archives are replaced, and many are not what they say.
 */
#include "cache_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/files.h"
#include "cache/pmtiles/archive.h"
#include "cache/pmtiles/pmtiles_base.h"
#include "cache/pmtiles/writer.h"
#include "grid/tile_id.h"
#include "mapcache/upkeep.h"

static mc_cache *
pmtiles(const char *file)
{
    return cache_of(
        apr_psprintf(pool, "<cache name='c' type='pmtiles'><file>%s/%s</file></cache>", cache_folder, file));
}

static const char *
path_of(const char *file)
{
    return apr_pstrcat(pool, cache_folder, "/", file, NULL);
}

static int64_t
size_at(const char *file)
{
    struct stat info;
    return stat(path_of(file), &info) == 0 ? info.st_size : -1;
}

static void
open_archive(mc_pmtiles_archive *archive, const char *file)
{
    mc_ranges_look(&archive->file, path_of(file));
    ck_ok(mc_pmtiles_open(archive, &ctx, pool));
}

START_TEST(a_draft_becomes_an_archive)
{
    mc_cache *cache = pmtiles("a.pmtiles");
    mc_tile_key keys[3] = { key_at(0, 0, 0), key_at(3, 5, 6), key_at(5, 31, 0) };
    for (int i = 0; i < 3; i++)
        put_text(cache, &keys[i], i == 2 ? "sea" : "land");
    ck_assert_int_eq(size_at("a.pmtiles"), -1);
    ck_assert_int_gt(size_at("a.pmtiles.draft"), 0);
    ck_ok(mc_cache_finish(cache, &ctx));
    mc_pmtiles_archive archive;
    open_archive(&archive, "a.pmtiles");
    ck_assert_uint_eq(archive.header.addressed, 3);
    ck_assert_uint_eq(archive.header.contents, 2);
    ck_assert(archive.header.minzoom == 0 && archive.header.maxzoom == 5);
    ck_assert_double_eq_tol(archive.header.east, 180, 1e-6); /* of the tile at the deepest level, lower right corner */
    ck_assert_double_eq_tol(archive.header.west, 180 - 11.25, 1e-6);
    ck_assert_double_eq_tol(archive.header.south, -85.0511287, 1e-6);
    mc_pmtiles_close(&archive);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            expect_text(cache, &keys[i], i == 2 ? "sea" : "land");
        usleep(60000); /* so that it is remembered */
    }
    mc_tile_key absent = key_at(5, 30, 0);
    expect_text(cache, &absent, NULL);
    expect_text(cache, &absent, NULL);
}
END_TEST

START_TEST(what_changes_hides_the_archive_and_is_merged)
{
    mc_cache *cache = pmtiles("a.pmtiles");
    for (int round = 0; round < 3; round++) { /* in the end nothing but the archive is asked */
        conform_cache(cache);
        ck_ok(mc_cache_finish(cache, &ctx));
        mc_tile_key key = key_at(2, 1, 1), gone = key_at(2, 3, 1);
        bool exists = true;
        expect_text(cache, &key, "and again");
        expect_text(cache, &gone, NULL);
        ck_ok(mc_cache_exists(&exists, cache, &gone, &ctx));
        ck_assert(!exists);
        for (int i = 0; i < 16; i++) {
            mc_tile_key tile = key_at(3, i % 4, i / 4);
            ck_ok(mc_cache_remove(cache, &tile, &ctx));
            expect_text(cache, &tile, NULL);
        }
        ck_ok(mc_cache_remove(cache, &key, &ctx));
        key = key_at(2, 2, 1);
        ck_ok(mc_cache_remove(cache, &key, &ctx));
        key = key_at(2, 0, 0);
        ck_ok(mc_cache_remove(cache, &key, &ctx));
        ck_ok(mc_cache_finish(cache, &ctx));
        expect_text(cache, &key, NULL);
        ck_assert_int_eq(size_at("a.pmtiles"), -1); /* nothing is left */
    }
}
END_TEST

static mc_tile_write
tile_of_number(int number)
{
    char text[32];
    /* Half of them are the same, with neighbours and without. */
    int content = number % 8 < 4 ? 7 : number % 11 == 0 ? 9 : number;
    snprintf(text, sizeof(text), "content %d", content);
    return (mc_tile_write){ .key = key_at(5, number % 32, number / 32),
                            .data = mc_buf_attach(mc_buf_copy(text, strlen(text)), pool) };
}

START_TEST(an_archive_with_its_draft_is_read_as_one)
{
    mc_cache *cache = pmtiles("a.pmtiles");
    mc_tile_write tiles[1024];
    for (int i = 0; i < 1024; i++)
        tiles[i] = tile_of_number(i);
    ck_ok(mc_cache_put(cache, tiles, 1024, &ctx));
    ck_ok(mc_cache_finish(cache, &ctx));
    ck_assert_int_le(size_at("a.pmtiles.draft"), 32768);
    for (int i = 0; i < 1024; i += 3)
        ck_ok(mc_cache_remove(cache, &tiles[i].key, &ctx));
    for (int i = 0; i < 1024; i += 5)
        put_text(cache, &tiles[i].key, "again");
    for (int round = 0; round < 2; round++) { /* before and after the merge */
        for (int i = 0; i < 1024; i++) {
            const char *was = apr_pstrmemdup(pool, (char *)tiles[i].data->data, tiles[i].data->size);
            expect_text(cache, &tiles[i].key, i % 5 == 0 ? "again" : i % 3 == 0 ? NULL : was);
        }
        seen_tiles met = { .most = 2000 };
        const mc_tile_range part = { 3, 4, 20, 31 };
        ck_ok(mc_cache_list(cache, &tiles[0].key, &part, see_tile, &met, &ctx));
        for (int i = 0; i < 1024; i++) {
            int x = i % 32, y = i / 32;
            bool there = i % 5 == 0 || i % 3 != 0, inside = x >= 3 && x < 20 && y >= 4 && y < 31;
            ck_assert_int_eq(met.places[y][x], there && inside);
        }
        if (round == 0)
            ck_ok(mc_cache_finish(cache, &ctx));
    }
}
END_TEST

/* A process that was killed while it emptied a draft has left rows that are in the archive. */
START_TEST(rows_of_an_interrupted_merge_do_no_harm)
{
    mc_cache *cache = pmtiles("a.pmtiles");
    mc_tile_key one = key_at(0, 0, 0), two = key_at(1, 0, 1);
    put_text(cache, &one, "one");
    put_text(cache, &two, "two");
    ck_ok(mc_cache_finish(cache, &ctx));
    run_shell("sqlite3 %s/a.pmtiles.draft \"INSERT INTO tiles VALUES(0, 0, CAST('one' AS BLOB))\"");
    put_text(cache, &two, "two again");
    expect_text(cache, &one, "one");
    ck_ok(mc_cache_finish(cache, &ctx));
    run_shell("test $(sqlite3 %s/a.pmtiles.draft 'SELECT count(*) FROM tiles') = 0");
    run_shell("test $(sqlite3 %s/a.pmtiles.draft \"SELECT value FROM metadata WHERE name='generation'\") = 2");
    expect_text(cache, &one, "one");
    expect_text(cache, &two, "two again");
    ck_ok(mc_cache_finish(cache, &ctx));
    run_shell("test $(sqlite3 %s/a.pmtiles.draft \"SELECT value FROM metadata WHERE name='generation'\") = 2");
}
END_TEST

/* Drafts are files beside the archive: what others have made of one is merged or refused, and ends no process. */
START_TEST(hostile_drafts_are_merged_or_refused)
{
    static const char *const twice[] = { "INSERT INTO tiles VALUES(3, 0, x'01'), (3, 0, x'02')",
                                         "INSERT INTO tiles VALUES(1.5, 0, x'01'), (1.25, 0, x'02')" };
    mc_cache *cache = pmtiles("a.pmtiles");
    mc_tile_key key = key_at(0, 0, 0);
    for (size_t i = 0; i < sizeof(twice) / sizeof(*twice); i++) {
        put_text(cache, &key, "tile");
        run_shell(apr_psprintf(pool,
                               "sqlite3 %%s/a.pmtiles.draft \"DROP TABLE tiles; CREATE TABLE tiles(tile_id, generation,"
                               " data); %s\"",
                               twice[i]));
        ck_fails(CORRUPT, mc_cache_finish(cache, &ctx));
        run_shell("rm %s/a.pmtiles.draft");
        mc_handles_destroy(process.handles);
        process.handles = mc_handles_create(16);
    }
    put_text(cache, &key, "tile");
    run_shell("sqlite3 %s/a.pmtiles.draft \"INSERT INTO metadata VALUES('json', '{\\\"vector_layers\\\":')\"");
    ck_ok(mc_cache_finish(cache, &ctx));
    expect_text(cache, &key, "tile");
}
END_TEST

/* The archive alone has older tiles, and some that were removed. */
START_TEST(a_draft_that_cannot_be_looked_at_is_an_error)
{
    mc_cache *cache = pmtiles("a.pmtiles");
    const mc_tile_key key = key_at(3, 5, 6);
    mc_tile *tile;
    put_text(cache, &key, "old");
    ck_ok(mc_cache_finish(cache, &ctx));
    run_shell("rm -f %s/a.pmtiles.draft; ln -s a.pmtiles.draft %s/a.pmtiles.draft"); /* ELOOP, also for root */
    ck_fails(IO, mc_cache_get(&tile, cache, &key, &ctx, pool));
    run_shell("rm %s/a.pmtiles.draft");
    expect_text(cache, &key, "old");
}
END_TEST

/* Of an archive whose tiles stand without gzip: packed they are something. */
START_TEST(a_tile_of_nothing_is_no_tile)
{
    static const char nothing[] = "\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
    mc_cache *cache = pmtiles("a.pmtiles");
    mc_tile_key key = key_at(0, 0, 0);
    mc_tile_write write = { .key = key_at(1, 1, 1),
                            .data = mc_buf_attach(mc_buf_copy(nothing, sizeof(nothing) - 1), pool) };
    put_text(cache, &key, "tile");
    ck_ok(mc_cache_finish(cache, &ctx));
    ck_ok(mc_cache_put(cache, &write, 1, &ctx));
    ck_ok(mc_cache_finish(cache, &ctx));
    expect_text(cache, &key, "tile");
    expect_text(cache, &write.key, NULL);
}
END_TEST

/* ---- the writer */

/* Tile number `i` has content `i` modulo `different`, of some hundred bytes. */
static size_t
content_of(uint8_t *bytes, uint64_t i, uint64_t different)
{
    uint64_t number = i % different;
    size_t size = 8 + (size_t)(number * 37 % 300);
    memset(bytes, (int)(number % 251), size);
    memcpy(bytes, &number, sizeof(number));
    return size;
}

static void
write_many(const char *file, uint64_t first, uint64_t count, uint64_t step, uint64_t different)
{
    static const mc_pmtiles_description description = {
        .type = MC_PMTILES_OTHER, .coding = MC_PMTILES_NONE, .metadata = "{\"name\":\"many\"}", .metadata_size = 15
    };
    uint8_t bytes[512];
    mc_pmtiles_writer *writer;
    ck_ok(mc_pmtiles_writer_create(&writer, path_of(file), &description, pool));
    for (uint64_t i = 0; i < count; i++) {
        size_t size = content_of(bytes, i, different);
        ck_ok(mc_pmtiles_writer_add(writer, first + i * step, 1, bytes, size, pool));
    }
    ck_ok(mc_pmtiles_writer_finish(writer, pool));
    mc_pmtiles_writer_destroy(writer);
}

typedef struct walked {
    uint64_t tiles, entries, contents, end;
} walked;

static mc_error *
count_walked(void *baton, const mc_pmtiles_entry *entry)
{
    walked *all = baton;
    all->entries++;
    all->tiles += entry->run;
    if (entry->offset == all->end) { /* clustered: behind all before, or one of them */
        all->contents++;
        all->end += entry->length;
    } else {
        ck_assert_uint_lt(entry->offset, all->end);
    }
    return MC_OK;
}

static void
expect_many(const char *file, uint64_t first, uint64_t count, uint64_t step, uint64_t different)
{
    mc_pmtiles_archive archive;
    mc_pmtiles_entry entry;
    mc_buf *data, *json;
    uint8_t bytes[512];
    open_archive(&archive, file);
    const mc_pmtiles_header *header = &archive.header;
    for (uint64_t i = 0; i<count; i += count> 5000 ? 977 : 1) {
        apr_pool_t *own;
        apr_pool_create(&own, pool);
        size_t size = content_of(bytes, i, different);
        ck_ok(mc_pmtiles_seek(&entry, &archive, first + i * step, own));
        ck_ok(mc_pmtiles_read(&data, &archive, &entry, own));
        ck_assert(data->size == size && memcmp(data->data, bytes, size) == 0);
        if (step > 1) {
            ck_ok(mc_pmtiles_seek(&entry, &archive, first + i * step + 1, own));
            ck_assert_uint_eq(entry.length, 0);
        }
        apr_pool_destroy(own);
    }
    walked all = { 0 };
    ck_ok(mc_pmtiles_walk(&archive, 0, UINT64_MAX, count_walked, &all, pool));
    ck_assert_uint_eq(all.tiles, count);
    ck_assert_uint_eq(header->addressed, count);
    ck_assert_uint_eq(header->entries, all.entries);
    ck_assert_uint_eq(header->contents, all.contents);
    ck_assert_uint_eq(all.contents, different < count ? different : count);
    ck_assert(header->clustered);
    /* Without gaps. */
    ck_assert_uint_eq(header->root.offset, MC_PMTILES_HEADER);
    ck_assert_uint_eq(header->metadata.offset, header->root.offset + header->root.size);
    ck_assert_uint_eq(header->tiles.offset, header->metadata.offset + header->metadata.size);
    ck_assert_uint_eq(header->leaves.offset, header->tiles.offset + header->tiles.size);
    ck_assert_int_eq(size_at(file), (int64_t)(header->leaves.offset + header->leaves.size));
    ck_ok(mc_pmtiles_read_metadata(&json, &archive, pool));
    ck_assert(json->size >= 15 && memcmp(json->data, "{\"name\":\"many\"}", 15) == 0);
    mc_pmtiles_close(&archive);
}

START_TEST(archives_of_all_sizes_are_written)
{
    static const struct {
        uint64_t count, step, different;
    } sizes[] = { { 1, 1, 1 },         { 2, 1, 2 },      { 3000, 1, 3000 },   { 3000, 2, 7 },
                  { 16384, 3, 16384 }, { 16385, 2, 99 }, { 300000, 2, 50000 } };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint64_t first = mc_tile_first_id(14) + 12345;
        write_many("m.pmtiles", first, sizes[i].count, sizes[i].step, sizes[i].different);
        expect_many("m.pmtiles", first, sizes[i].count, sizes[i].step, sizes[i].different);
    }
    run_shell("test $(ls %s | wc -l) = 1"); /* nothing is left beside it */
}
END_TEST

START_TEST(a_level_of_one_content_is_one_entry)
{
    static const mc_pmtiles_description description = { .coding = MC_PMTILES_NONE,
                                                        .metadata = "{}",
                                                        .metadata_size = 2 };
    mc_pmtiles_writer *writer;
    mc_pmtiles_archive archive;
    ck_ok(mc_pmtiles_writer_create(&writer, path_of("m.pmtiles"), &description, pool));
    ck_ok(mc_pmtiles_writer_add(writer, mc_tile_first_id(3), 64, "sea", 3, pool));
    ck_ok(mc_pmtiles_writer_add(writer, mc_tile_first_id(14), 1 << 28, "sea", 3, pool));
    ck_ok(mc_pmtiles_writer_finish(writer, pool));
    mc_pmtiles_writer_destroy(writer);
    open_archive(&archive, "m.pmtiles");
    const mc_pmtiles_header *header = &archive.header;
    ck_assert(header->addressed == 64 + (1 << 28) && header->entries == 2 && header->contents == 1);
    ck_assert_double_eq_tol(header->west, -180, 1e-6);
    ck_assert_double_eq_tol(header->east, 180, 1e-6);
    ck_assert_double_eq_tol(header->north, 85.0511287, 1e-6);
    mc_pmtiles_close(&archive);
}
END_TEST

START_TEST(what_is_not_finished_leaves_nothing)
{
    static const mc_pmtiles_description description = { .coding = MC_PMTILES_NONE,
                                                        .metadata = "{}",
                                                        .metadata_size = 2 };
    mc_pmtiles_writer *writer;
    ck_ok(mc_pmtiles_writer_create(&writer, path_of("m.pmtiles"), &description, pool));
    ck_ok(mc_pmtiles_writer_add(writer, 0, 1, "sea", 3, pool));
    mc_pmtiles_writer_destroy(writer);
    run_shell("test $(ls %s | wc -l) = 0");
    ck_fails(IO, mc_pmtiles_writer_create(&writer, path_of("no/m.pmtiles"), &description, pool));
    mc_pmtiles_writer_destroy(writer);
}
END_TEST

/* ---- archives of others */

/* A file of these sections, directories uncompressed. */
static void
write_archive(const char *file, const mc_pmtiles_entry *root, size_t roots, const mc_pmtiles_entry *leaf, size_t leaves,
              const char *tiles)
{
    uint8_t head[MC_PMTILES_HEADER];
    mc_buf *out = mc_buf_attach(mc_buf_create(1024, 1 << 20), pool);
    mc_pmtiles_header header = { .internal = MC_PMTILES_NONE, .coding = MC_PMTILES_NONE };
    ck_ok(mc_buf_append(out, head, sizeof(head), pool));
    ck_ok(mc_pmtiles_encode_directory(out, root, roots, pool));
    header.root = (mc_pmtiles_section){ sizeof(head), out->size - sizeof(head) };
    header.leaves.offset = out->size;
    if (leaves > 0)
        ck_ok(mc_pmtiles_encode_directory(out, leaf, leaves, pool));
    header.leaves.size = out->size - header.leaves.offset;
    header.tiles = (mc_pmtiles_section){ out->size, strlen(tiles) };
    header.metadata = (mc_pmtiles_section){ out->size, 0 };
    ck_ok(mc_buf_append(out, tiles, strlen(tiles), pool));
    mc_pmtiles_format_header(out->data, &header);
    int made = open(path_of(file), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ck_assert(made >= 0 && mc_files_write(made, out->data, out->size));
    close(made);
}

START_TEST(hostile_archives_are_refused)
{
    static const mc_pmtiles_entry good = { 0, 0, 4, 1 };
    static const mc_pmtiles_entry into_itself[] = { { 0, 0, 5, 0 } };
    static const mc_pmtiles_entry bad_leaf[] = { { 0, 6, 5, 0 } }, far_leaf[] = { { 0, 1ull << 60, 5, 0 } };
    static const mc_pmtiles_entry far_tile[] = { { 0, 5, 4, 1 } }, long_tile[] = { { 0, 0, UINT32_MAX, 1 } };
    mc_cache *cache = pmtiles("h.pmtiles");
    const mc_tile_key key = key_at(0, 0, 0), other = key_at(1, 0, 0);
    const mc_tile_range all = { 0, 0, 1, 1 };
    seen_tiles met = { .most = 10 };
    mc_tile *tile;
    write_archive("h.pmtiles", &good, 1, NULL, 0, "tile");
    expect_text(cache, &key, "tile");
    write_archive("h.pmtiles", into_itself, 1, &good, 1, "tile");
    expect_text(cache, &key, "tile");
    static const struct {
        const mc_pmtiles_entry *root, *leaf;
        bool listed; /* that is no read of tiles */
    } bad[] = { { into_itself, into_itself, false },
                { bad_leaf, &good, false },
                { far_leaf, &good, false },
                { far_tile, NULL, true },
                { long_tile, NULL, true } };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        write_archive("h.pmtiles", bad[i].root, 1, bad[i].leaf, bad[i].leaf != NULL, "tile");
        ck_fails(CORRUPT, mc_cache_get(&tile, cache, &key, &ctx, pool));
        if (!bad[i].listed)
            ck_fails(CORRUPT, mc_cache_list(cache, &key, &all, see_tile, &met, &ctx));
        put_text(cache, &other, "new"); /* what cannot be read is not merged either, and nothing is lost */
        ck_fails(CORRUPT, mc_cache_finish(cache, &ctx));
        expect_text(cache, &other, "new");
        run_shell("rm %s/h.pmtiles.draft");
    }
}
END_TEST

START_TEST(a_walk_goes_forward_only)
{
    static const mc_pmtiles_entry leaf[] = { { 5, 0, 4, 1 } };
    static const mc_pmtiles_entry twice[] = { { 5, 0, 5, 0 }, { 6, 0, 5, 0 } }; /* to the same leaf */
    static const mc_pmtiles_entry over[] = { { 5, 0, 4, 3 }, { 6, 0, 4, 1 } };
    mc_pmtiles_archive archive;
    walked all = { .end = 0 };
    write_archive("h.pmtiles", twice, 2, leaf, 1, "tile");
    open_archive(&archive, "h.pmtiles");
    ck_fails(CORRUPT, mc_pmtiles_walk(&archive, 0, UINT64_MAX, count_walked, &all, pool));
    mc_pmtiles_close(&archive);
    static const mc_pmtiles_entry long_leaf[] = { { 5, 0, 4, 3 } }, before[] = { { 5, 0, 5, 0 }, { 6, 0, 4, 1 } };
    write_archive("h.pmtiles", before, 2, long_leaf, 1, "tile");
    open_archive(&archive, "h.pmtiles");
    ck_fails(CORRUPT, mc_pmtiles_walk(&archive, 0, UINT64_MAX, count_walked, &all, pool));
    mc_pmtiles_close(&archive);
    write_archive("h.pmtiles", over, 2, NULL, 0, "tile");
    open_archive(&archive, "h.pmtiles");
    ck_fails(CORRUPT, mc_pmtiles_walk(&archive, 0, UINT64_MAX, count_walked, &all, pool));
    mc_pmtiles_close(&archive);
}
END_TEST

START_TEST(a_cut_off_archive_gives_no_half_tile)
{
    mc_cache *cache = pmtiles("m.pmtiles");
    write_many("m.pmtiles", 0, 20, 1, 20);
    int64_t size = size_at("m.pmtiles");
    const mc_tile_key key = key_at(2, 1, 1);
    mc_tile *tile;
    for (int64_t left = size - 1; left >= 0; left -= left > 17000 ? 100 : 997) {
        ck_assert_int_eq(truncate(path_of("m.pmtiles"), left), 0);
        ck_fails(CORRUPT, mc_cache_get(&tile, cache, &key, &ctx, pool));
    }
}
END_TEST

START_TEST(a_replaced_archive_shows_at_once)
{
    mc_cache *cache = pmtiles("a.pmtiles"), *next = pmtiles("b.pmtiles");
    mc_tile_key key = key_at(3, 5, 6);
    for (int i = 0; i < 20; i++) {
        const char *text = apr_psprintf(pool, "%03d", i);
        put_text(next, &key, text);
        for (int other = 0; other <= i; other++) { /* so that it stands elsewhere each time */
            mc_tile_key before = key_at(2, other % 4, other / 4 % 4);
            put_text(next, &before, apr_psprintf(pool, "%d", other));
        }
        ck_ok(mc_cache_finish(next, &ctx));
        run_shell(i % 2 == 0 ? "cp %s/b.pmtiles %s/a.pmtiles" : "cp %s/b.pmtiles %s/n && mv %s/n %s/a.pmtiles");
        expect_text(cache, &key, text);
        if (i % 5 == 0)
            usleep(60000); /* settled now: it is remembered */
        expect_text(cache, &key, text);
        expect_text(cache, &key, text);
    }
}
END_TEST

START_TEST(an_archive_must_be_there_where_nothing_is_rendered)
{
    mc_cache *cache = pmtiles("no.pmtiles"), *many = pmtiles("{tileset}.pmtiles");
    mc_tile_key key = key_at(2, 1, 1);
    mc_tile *tile;
    expect_text(cache, &key, NULL);
    key.renderable = false;
    ck_fails(IO, mc_cache_get(&tile, cache, &key, &ctx, pool));
    expect_text(many, &key, NULL);
    run_shell("mkdir %s/no.pmtiles");
    ck_fails(IO, mc_cache_get(&tile, cache, &key, &ctx, pool));
    run_shell("rmdir %s/no.pmtiles && mkfifo %s/no.pmtiles");
    ck_fails(IO, mc_cache_get(&tile, cache, &key, &ctx, pool));
}
END_TEST

static int complaints;

static void
tell_store(void *baton, const mc_store *before, const mc_store *after, const mc_error *error)
{
    (void)baton;
    ck_assert_ptr_null(error);
    ck_assert_int_gt(before->free_bytes, 0);
    complaints += after != NULL;
}

START_TEST(compacting_merges_each_draft)
{
    mc_cache *cache = pmtiles("{tileset}-{grid}.pmtiles");
    mc_tile_key key = key_at(2, 1, 1), other = key_at(2, 1, 1);
    other.tileset = "other";
    put_text(cache, &key, "one");
    put_text(cache, &other, "two");
    const mc_upkeep task = { .compact = true, .report = tell_store };
    complaints = 0;
    ck_ok(mc_cache_upkeep(cache, &task, &ctx));
    ck_assert_int_eq(complaints, 2);
    ck_assert_int_gt(size_at("ts-G.pmtiles"), 0);
    ck_assert_int_gt(size_at("other-G.pmtiles"), 0);
    expect_text(cache, &key, "one");
    expect_text(cache, &other, "two");
    int64_t bytes, tiles;
    ck_ok(cache->ops->measure(&bytes, &tiles, cache, &key, &ctx));
    ck_assert_int_eq(tiles, 1);
    ck_assert_int_eq(bytes, size_at("ts-G.pmtiles") + size_at("ts-G.pmtiles.draft"));
}
END_TEST

START_TEST(configurations_that_cannot_be_are_refused)
{
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='pmtiles'/>"), MC_REFUSED);
    ck_assert_int_eq(cache_complaint_of("<cache name='c' type='pmtiles'><file>/x/{z}.pmtiles</file></cache>"),
                     MC_REFUSED);
    static const char *const wrong[] = { "<file>/x</file><url>http://h/x</url>", "<url>ftp://h/x</url>",
                                         "<url>http://h/{z}</url>", "<url>http://h/{dim}</url>" };
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            cache_complaint_of(apr_pstrcat(pool, "<cache name='c' type='pmtiles'>", wrong[i], "</cache>", NULL)),
            MC_REFUSED);
    mc_cache *far = cache_of("<cache name='c' type='pmtiles'><url>http://h/{tileset}.pmtiles</url></cache>");
    mc_tile_write tile_of_it = { .key = key_at(1, 0, 0), .data = mc_buf_attach(mc_buf_copy("x", 1), pool) };
    ck_fails(CONFIG, mc_cache_put(far, &tile_of_it, 1, &ctx));
    ck_fails(CONFIG, mc_cache_remove(far, &tile_of_it.key, &ctx));
    ck_ok(mc_cache_finish(far, &ctx));
    mc_cache *cache = pmtiles("a.pmtiles");
    apr_hash_t *grids = apr_hash_make(pool);
    mc_grid_builtins(grids, pool);
    const char *const names[] = { "GoogleMapsCompatible", "g", "WGS84" };
    for (int i = 0; i < 3; i++) {
        const mc_cache_use use = { "ts", apr_hash_get(grids, names[i], APR_HASH_KEY_STRING), false, "png", false };
        mc_build each = config_build();
        mc_cache *own = i < 2 ? pmtiles(names[i]) : cache;
        mc_cache_used_by(own, &use, config_elements("<cache/>"), &each);
        ck_assert_int_eq(each.diagnostics->refused, i == 2);
        ck_assert_int_eq(each.diagnostics->complaints->nelts, i == 2);
    }
    mc_level odd[] = { { 1000, 2, 1 } };
    mc_grid grid = cache_grid;
    mc_tile_key key = key_at(0, 0, 0);
    mc_tile *tile;
    grid.levels = odd;
    key.grid = &grid;
    ck_fails(CONFIG, mc_cache_get(&tile, cache, &key, &ctx, pool));
}
END_TEST

CACHE_MAIN("pmtiles", a_draft_becomes_an_archive, what_changes_hides_the_archive_and_is_merged,
           an_archive_with_its_draft_is_read_as_one, rows_of_an_interrupted_merge_do_no_harm,
           hostile_drafts_are_merged_or_refused, a_tile_of_nothing_is_no_tile, archives_of_all_sizes_are_written,
           a_level_of_one_content_is_one_entry, what_is_not_finished_leaves_nothing, hostile_archives_are_refused,
           a_walk_goes_forward_only, a_cut_off_archive_gives_no_half_tile, a_replaced_archive_shows_at_once,
           a_draft_that_cannot_be_looked_at_is_an_error, an_archive_must_be_there_where_nothing_is_rendered,
           compacting_merges_each_draft, configurations_that_cannot_be_are_refused)
