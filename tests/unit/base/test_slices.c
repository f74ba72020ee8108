/* Threads that answer at once ask for short slices of processor time. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/slices.h"

/* Nanoseconds of this thread's slices; 0: the kernel tells of none. */
static uint64_t
read_slice(void)
{
    uint64_t words[6] = { 0 }; /* struct sched_attr: sched_runtime is its fourth */
    ck_assert_int_eq(syscall(SYS_sched_getattr, 0, words, sizeof(words), 0), 0);
    return words[3];
}

static void *
choose_short_ones(void *can)
{
    uint64_t words[6] = { 0 };
    ck_assert_int_eq(syscall(SYS_sched_getattr, 0, words, sizeof(words), 0), 0);
    bool ordinary = sched_getscheduler(0) == SCHED_OTHER && words[3] > 200000;
    words[3] = 100000;
    *(bool *)can = ordinary && syscall(SYS_sched_setattr, 0, words, 0) == 0 && read_slice() == 100000;
    return NULL;
}

/* Whether the kernel lets a thread of this process have short ones: not before Linux 6.12, not in every policy. */
static bool
can_be_short(void)
{
    bool can = false;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, choose_short_ones, &can), 0);
    pthread_join(thread, NULL);
    return can;
}

START_TEST(test_shortens_and_restores)
{
    uint64_t before = read_slice();
    bool can = can_be_short();
    mc_slices_shorten();
    uint64_t inside = read_slice();
    mc_slices_shorten();
    mc_slices_restore();
    ck_assert_uint_eq(read_slice(), before);
    mc_slices_restore();
    ck_assert_uint_eq(read_slice(), before);
    if (can)
        ck_assert_uint_lt(inside, before / 2);
    else
        ck_assert_uint_eq(inside, before);
}
END_TEST

/* What only waits changes nothing, whatever begins and ends inside. */
START_TEST(test_keeps_what_is_held)
{
    uint64_t before = read_slice();
    mc_slices_shorten();
    uint64_t inside = read_slice();
    mc_slices_hold();
    mc_slices_hold();
    mc_slices_restore();
    ck_assert_uint_eq(read_slice(), inside);
    mc_slices_shorten();
    mc_slices_release(NULL);
    mc_slices_restore();
    ck_assert_uint_eq(read_slice(), inside);
    mc_slices_release(NULL);
    mc_slices_restore();
    ck_assert_uint_eq(read_slice(), before);
}
END_TEST

/* What is small keeps short slices, until it says that it is not. */
START_TEST(test_small_work_keeps_them)
{
    uint64_t before = read_slice();
    mc_slices_shorten();
    uint64_t inside = read_slice();
    for (int grows = 0; grows < 2; grows++) {
        MC_SLICES_SMALL(true);
        mc_slices_restore();
        ck_assert_uint_eq(read_slice(), inside);
        if (grows) {
            mc_slices_not_small();
            ck_assert_uint_eq(read_slice(), before);
        }
        mc_slices_shorten();
        ck_assert_uint_eq(read_slice(), inside);
        mc_slices_not_small(); /* nobody has asked for others */
        ck_assert_uint_eq(read_slice(), inside);
    }
    MC_SLICES_SMALL(false);
    mc_slices_restore();
    ck_assert_uint_eq(read_slice(), before);
}
END_TEST

static void *
restore_inherited(void *found)
{
    mc_slices_restore();
    *(uint64_t *)found = read_slice();
    return NULL;
}

/* A thread begins with those of the thread that has started it. */
START_TEST(test_restores_what_is_inherited)
{
    uint64_t before = read_slice(), found = 1;
    pthread_t thread;
    mc_slices_shorten();
    ck_assert_int_eq(pthread_create(&thread, NULL, restore_inherited, &found), 0);
    pthread_join(thread, NULL);
    mc_slices_restore();
    ck_assert_uint_eq(found, before);
}
END_TEST

/* A thread that somebody put into another class is left alone. */
START_TEST(test_other_policies_stay)
{
    const struct sched_param ordinary = { 0 };
    ck_assert_int_eq(sched_setscheduler(0, SCHED_BATCH, &ordinary), 0);
    uint64_t before = read_slice();
    mc_slices_shorten();
    ck_assert_uint_eq(read_slice(), before);
    ck_assert_int_eq(sched_getscheduler(0), SCHED_BATCH);
    mc_slices_restore();
    ck_assert_int_eq(sched_getscheduler(0), SCHED_BATCH);
    ck_assert_int_eq(sched_setscheduler(0, SCHED_OTHER, &ordinary), 0);
}
END_TEST

UNIT_MAIN("slices", test_shortens_and_restores, test_keeps_what_is_held, test_small_work_keeps_them,
          test_restores_what_is_inherited, test_other_policies_stay)
