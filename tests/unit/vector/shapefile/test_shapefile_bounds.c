/* What reading a hostile shapefile may take: no record escapes the deadline or the memory budget, no tree is read
 * without end. */
#include "vector/shapefile/shp.h"

#include <apr_strings.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "unit.h"

enum { HEAD = 100, RECORDS = 200, LARGE = 2 << 20, NODE = 44, POLYGON = 5 };

static char folder[] = "/tmp/mapcache-shp-bounds-XXXXXX";
static const mc_extent beside = { 50, 50, 60, 60 }, over = { 0, 0, 2, 2 };

static void
store_big(uint8_t *at, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(word >> (24 - 8 * i));
}

static void
write_bytes(const char *name, const uint8_t *bytes, size_t size, size_t whole)
{
    const char *path = apr_pstrcat(pool, folder, name, NULL);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    ck_assert_int_eq(ftruncate(fd, (off_t)whole), 0);
    close(fd);
}

/* The box is that of the only record, or is said to be larger. */
static void
store_head(uint8_t *head, double side)
{
    store_big(head, 9994);
    (void)mc_store_little32(head + 32, POLYGON);
    (void)mc_store_little_double(mc_store_little_double(head + 36, 0), 0);
    (void)mc_store_little_double(mc_store_little_double(head + 52, side), side);
}

/* One record of megabytes, which the .shx has two hundred times. */
static mc_shp *
open_repeated_record(void)
{
    static uint8_t shapes[HEAD + 8 + 36], entries[HEAD + 8 * RECORDS];
    mc_shp *shp;
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    store_head(shapes, 100);
    store_big(shapes + HEAD, 1);
    store_big(shapes + HEAD + 4, LARGE / 2);
    (void)mc_store_little32(shapes + HEAD + 8, POLYGON);
    (void)mc_store_little_double(mc_store_little_double(shapes + HEAD + 28, 1), 1);
    store_head(entries, 100);
    for (int i = 0; i < RECORDS; i++) {
        store_big(entries + HEAD + 8 * i, HEAD / 2);
        store_big(entries + HEAD + 8 * i + 4, LARGE / 2);
    }
    write_bytes("/a.shp", shapes, sizeof(shapes), HEAD + 8 + LARGE);
    write_bytes("/a.shx", entries, sizeof(entries), sizeof(entries));
    ck_assert(mc_shp_open(&shp, apr_pstrcat(pool, folder, "/a.shp", NULL), NULL, pool) == MC_OK);
    ck_assert_uint_eq(shp->count, RECORDS);
    return shp;
}

static void
remove_shapefile(void)
{
    static const char *const names[] = { "/a.shp", "/a.shx", "/a.qix" };
    for (int i = 0; i < 3; i++)
        unlink(apr_pstrcat(pool, folder, names[i], NULL));
    ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(records_that_nobody_sees_do_not_escape_the_deadline)
{
    const mc_shp *shp = open_repeated_record();
    mc_ctx late = { .pool = pool, .deadline = mc_clock_now() - 1 };
    mc_shp_reader reader;
    mc_shp_record record;
    mc_shp_begin(&reader, shp, &beside, pool);
    ck_assert(!mc_shp_next(&reader, &record));
    ck_assert_uint_eq(reader.at, RECORDS);
    ck_assert(mc_shp_check(&reader, pool) == MC_OK);
    mc_shp_end(&reader);
    mc_shp_begin(&reader, shp, &beside, pool);
    reader.ctx = &late;
    ck_assert(!mc_shp_next(&reader, &record));
    ck_assert_uint_lt(reader.at, 3);
    mc_shp_end(&reader);
    mc_error *error = mc_shp_check(&reader, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_UNAVAILABLE);
    mc_error_ignore(error);
    remove_shapefile();
}
END_TEST

START_TEST(large_records_are_in_the_budget)
{
    mc_shp *shp = open_repeated_record();
    const size_t before = mc_budget_used();
    mc_shp_reader reader;
    mc_shp_record record;
    mc_shp_begin(&reader, shp, &over, pool);
    ck_assert(mc_shp_next(&reader, &record));
    ck_assert_uint_eq(record.size, LARGE);
    ck_assert_uint_ge(mc_budget_used(), before + LARGE);
    mc_shp_end(&reader);
    ck_assert_uint_eq(mc_budget_used(), before);
    mc_budget_set(before + LARGE, NULL);
    mc_shp_begin(&reader, shp, &over, pool);
    ck_assert(!mc_shp_next(&reader, &record));
    mc_shp_end(&reader);
    mc_error *error = mc_shp_check(&reader, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_NO_MEMORY);
    mc_error_ignore(error);
    mc_shp_prepare(shp, pool); /* boxes need no whole records */
    ck_assert_int_eq(shp->search, MC_SHP_IN_MEMORY);
    ck_assert_uint_eq(shp->broken, 0);
    mc_budget_set(0, NULL);
    ck_assert_uint_eq(mc_budget_used(), before);
    remove_shapefile();
}
END_TEST

/* All records are looked at where a tree has more nodes than shapes can need. */
START_TEST(trees_of_too_many_nodes_are_given_up)
{
    enum { FEW = 24 * RECORDS - 10, MANY = 24 * RECORDS + 10 };
    static uint8_t tree[16 + NODE * (MANY + 1)] = { 'S', 'Q', 'T', 1, 1 };
    mc_shp *shp = open_repeated_record();
    for (int nodes = FEW; nodes <= MANY; nodes += MANY - FEW) {
        mc_shp_reader reader;
        (void)mc_store_little32(tree + 8, RECORDS);
        (void)mc_store_little_double(mc_store_little_double(tree + 16 + 20, 100), 100); /* the root's box */
        (void)mc_store_little32(tree + 16 + 40, (uint32_t)nodes);
        write_bytes("/a.qix", tree, sizeof(tree), sizeof(tree));
        ck_assert(mc_shp_open(&shp, apr_pstrcat(pool, folder, "/a.shp", NULL), NULL, pool) == MC_OK);
        mc_shp_prepare(shp, pool);
        ck_assert_int_eq(shp->search, MC_SHP_TREE);
        mc_shp_begin(&reader, shp, &beside, pool);
        ck_assert((reader.wanted == NULL) == (nodes == MANY));
        mc_shp_end(&reader);
    }
    remove_shapefile();
}
END_TEST

UNIT_MAIN("shapefile_bounds", records_that_nobody_sees_do_not_escape_the_deadline, large_records_are_in_the_budget,
          trees_of_too_many_nodes_are_given_up)
