/* Copies of data: one map at a time reads a bounded part of them, and none fails for that; what was found out stays. */
#include "vector/levels/level_data.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit.h"

static mc_level_data copy, other;
static mc_level_origin built;
static int file;

/* Data of so many bytes, that have no other name and no blocks on the disk but the last one, and levels of them. */
static void
make_copied_data(off_t size)
{
    char path[] = "/tmp/mapcache-level-data-XXXXXX";
    mc_ctx ctx = { .pool = pool };
    file = mkostemp(path, O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(pwrite(file, "end", 3, size - 3), 3);
    const int files[MC_LEVEL_ORIGINS] = { file, -1, file };
    mc_level_data_look(&copy, files, 7);
    mc_level_data_look(&other, files, 7);
    built = copy.origin;
    ck_assert(mc_level_origin_digest(&built.content, &built, files, &ctx, pool) == MC_OK);
    built.files[0].inode++; /* they were built from other files */
}

static mc_level_kinship
compare_copy(mc_level_data *data, mc_ctx *ctx)
{
    return mc_level_data_compare(data, &built, ctx, pool);
}

START_TEST(several_maps_read_one_after_the_other)
{
    mc_ctx ctx = { .pool = pool }, late = { .pool = pool, .deadline = mc_clock_now() - 1 };
    make_copied_data(MC_LEVEL_DATA_SHARE + 100);
    ck_assert_int_eq(compare_copy(&copy, &late), MC_LEVEL_UNREAD); /* no error */
    ck_assert_int_eq(copy.digest.at, 0);
    ck_assert_int_eq(compare_copy(&copy, &ctx), MC_LEVEL_UNREAD);
    ck_assert_int_eq(copy.digest.file, 0);
    ck_assert_int_ge(copy.digest.at, MC_LEVEL_PIECES_LEAST * MC_LEVEL_PIECE);
    ck_assert_int_le(copy.digest.at, MC_LEVEL_DATA_SHARE);
    for (mc_level_digest before = copy.digest; compare_copy(&copy, &ctx) == MC_LEVEL_UNREAD; before = copy.digest)
        ck_assert(copy.digest.file > before.file || copy.digest.at > before.at);
    ck_assert_int_eq(compare_copy(&copy, &ctx), MC_LEVEL_OF_THESE);
    ck_assert_int_eq(ftruncate(file, 0), 0); /* it is not read again */
    ck_assert_int_eq(compare_copy(&copy, &late), MC_LEVEL_OF_THESE);
    built.content++;
    ck_assert_int_eq(compare_copy(&copy, &late), MC_LEVEL_OF_OTHERS);
    close(file);
}
END_TEST

static int looks;

/* Between the pieces that one map reads, as another map would. */
static bool
compare_meanwhile(void *baton)
{
    (void)baton;
    mc_ctx ctx = { .pool = pool };
    looks++;
    ck_assert_int_eq(compare_copy(&copy, &ctx), MC_LEVEL_UNREAD);
    ck_assert_int_eq(compare_copy(&other, &ctx), MC_LEVEL_UNREAD);
    ck_assert_int_eq(other.digest.at, 0);
    return false;
}

START_TEST(one_map_reads_at_a_time)
{
    mc_ctx ctx = { .pool = pool, .abandoned = compare_meanwhile };
    make_copied_data(2 * MC_LEVEL_PIECE); /* that is read twice, as two files */
    looks = 0;
    ck_assert_int_eq(compare_copy(&copy, &ctx), MC_LEVEL_OF_THESE);
    ck_assert_int_eq(looks, 2 * 2 + 1);
    ctx.abandoned = NULL;
    ck_assert_int_eq(compare_copy(&other, &ctx), MC_LEVEL_OF_THESE);
    close(file);
}
END_TEST

static int writes_left;

/* The times of a file change by steps: each write has another one. */
static bool
write_meanwhile(void *baton)
{
    static int writes;
    (void)baton;
    if (writes_left > 0) {
        const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_sec = ++writes } };
        writes_left--;
        ck_assert_int_eq(futimens(file, times), 0);
    }
    return false;
}

START_TEST(data_that_change_meanwhile_are_read_again_some_times)
{
    mc_ctx ctx = { .pool = pool, .abandoned = write_meanwhile };
    make_copied_data(10);
    writes_left = 1;
    ck_assert_int_eq(compare_copy(&copy, &ctx), MC_LEVEL_UNREAD);
    ck_assert_int_eq(compare_copy(&copy, &ctx), MC_LEVEL_OF_THESE);
    int times = 0;
    for (writes_left = 1; compare_copy(&other, &ctx) == MC_LEVEL_UNREAD; writes_left = 1)
        ck_assert_int_lt(times++, 100);
    ck_assert_int_eq(compare_copy(&other, &ctx), MC_LEVEL_UNREADABLE);
    close(file);
}
END_TEST

/* Before the last of three files is read. */
static bool
shorten_meanwhile(void *baton)
{
    (void)baton;
    if (++looks == 3)
        ck_assert_int_eq(ftruncate(file, 9), 0);
    return false;
}

START_TEST(data_that_cannot_be_read_are_no_error)
{
    mc_ctx ctx = { .pool = pool, .abandoned = shorten_meanwhile };
    make_copied_data(10);
    looks = 0;
    ck_assert_int_eq(compare_copy(&copy, &ctx), MC_LEVEL_UNREAD);
    ck_assert_int_eq(looks, 3);
    ck_assert_int_eq(copy.digest.file, 0);
    ck_assert_int_eq(pwrite(file, "d", 1, 9), 1);
    ck_assert_int_eq(compare_copy(&copy, &ctx), MC_LEVEL_OF_THESE);
    ck_assert_int_eq(ftruncate(file, 9), 0); /* for good */
    for (int times = 0; compare_copy(&other, &ctx) == MC_LEVEL_UNREAD; times++)
        ck_assert_int_lt(times, 100);
    ck_assert_int_eq(compare_copy(&other, &ctx), MC_LEVEL_UNREADABLE);
    close(file);
    make_copied_data(10);
    ck_assert_int_eq(ftruncate(file, (off_t)5 << 30), 0); /* twice that is too much */
    mc_level_data_look(&copy, copy.files, 7);
    built.files[0].size = built.files[2].size = copy.origin.files[0].size;
    ck_assert_int_eq(compare_copy(&copy, &ctx), MC_LEVEL_UNREADABLE);
    ck_assert_int_eq(copy.digest.at, 0);
    close(file);
}
END_TEST

UNIT_MAIN("level_data", several_maps_read_one_after_the_other, one_map_reads_at_a_time,
          data_that_change_meanwhile_are_read_again_some_times, data_that_cannot_be_read_are_no_error)
