/* The budget for large allocations, and the end of a process whose pools find no memory. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/budget.h"
#include "mapcache/buf.h"

#define MB ((size_t)1 << 20)

static int reclaimed, refused;

static void
note_refusal(void)
{
    refused++;
}

static void
reclaim_two(void)
{
    if (reclaimed++ == 0)
        mc_budget_give(2 * MB);
}

static const mc_budget_hooks reclaiming = { reclaim_two, NULL }, counting = { NULL, note_refusal };

START_TEST(test_takes_and_refuses)
{
    size_t before = mc_budget_used();
    mc_budget_set(before + 10 * MB, &counting);
    ck_assert(mc_budget_take(6 * MB));
    ck_assert(!mc_budget_take(5 * MB));
    ck_assert(!mc_budget_take(SIZE_MAX));
    ck_assert_int_eq(refused, 2);
    ck_assert(mc_budget_take(4 * MB));
    ck_assert_uint_eq(mc_budget_used(), before + 10 * MB);
    mc_budget_charge(5 * MB); /* cannot be refused */
    ck_assert(!mc_budget_take(1));
    mc_budget_give(15 * MB);
    ck_assert_uint_eq(mc_budget_used(), before);
    mc_budget_set(0, NULL);
    ck_assert(mc_budget_take(1000 * MB));
    mc_budget_give(1000 * MB);
}
END_TEST

START_TEST(test_reclaims)
{
    reclaimed = 0;
    mc_budget_charge(2 * MB);
    mc_budget_set(mc_budget_used(), &reclaiming);
    ck_assert(mc_budget_take(2 * MB));
    ck_assert_int_eq(reclaimed, 1);
    ck_assert(!mc_budget_take(1));
    mc_budget_set(0, NULL);
    mc_budget_give(2 * MB);
}
END_TEST

/* What is no request leaves the other half, and takes what is idle first. */
START_TEST(test_half)
{
    const size_t before = mc_budget_used();
    reclaimed = refused = 0;
    mc_budget_charge(4 * MB);
    mc_budget_set(before + 10 * MB + before, &reclaiming);
    ck_assert(mc_budget_take_of_half(3 * MB)); /* of 4, two are idle */
    ck_assert_int_eq(reclaimed, 1);
    ck_assert(!mc_budget_take_of_half(1));
    ck_assert(!mc_budget_take_of_half(SIZE_MAX));
    ck_assert_uint_eq(mc_budget_used(), before + 5 * MB);
    ck_assert(mc_budget_take(5 * MB));
    mc_budget_set(before + 1, &counting);
    ck_assert(!mc_budget_take_of_half(1));
    ck_assert_int_eq(refused, 0);
    mc_budget_give(10 * MB);
    mc_budget_set(0, NULL);
    ck_assert(mc_budget_take_of_half(1000 * MB));
    mc_budget_give(1000 * MB);
    ck_assert_uint_eq(mc_budget_used(), before);
}
END_TEST

/* Buffers ask before they grow, keep what they have after a refusal, and give everything back. */
START_TEST(test_buffers)
{
    static const uint8_t bytes[100000];
    size_t before = mc_budget_used();
    mc_budget_set(before + MB, NULL);
    mc_buf *small = mc_buf_create(1000, 2000), *large = mc_buf_create(2 * MB, 4 * MB), *copy;
    ck_assert_uint_eq(mc_budget_used(), before);
    ck_ok(mc_buf_append(large, bytes, sizeof(bytes), pool));
    ck_assert_uint_eq(mc_budget_used(), before + large->capacity);
    ck_fails(NO_MEMORY, mc_buf_reserve(large, 3 * MB, pool));
    ck_assert_uint_eq(large->size, sizeof(bytes));
    ck_assert_mem_eq(large->data, bytes, sizeof(bytes));
    ck_ok(mc_buf_duplicate(&copy, bytes, sizeof(bytes), pool));
    ck_fails(NO_MEMORY, mc_buf_duplicate(&copy, bytes, 0x7fffffff, pool));
    mc_buf_unref(small);
    mc_buf_unref(large);
    apr_pool_clear(pool);
    ck_assert_uint_eq(mc_budget_used(), before);
    mc_budget_set(0, NULL);
}
END_TEST

START_TEST(test_memory_of_the_machine)
{
    size_t memory = mc_machine_memory();
    ck_assert_uint_ge(memory, 16 * MB);
    ck_assert_uint_le(memory, (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE));
}
END_TEST

/* In a child: a pool that asks for what the system refuses. */
static _Noreturn void
exhaust_pool(int out)
{
    const struct rlimit none = { 0, 0 };
    apr_pool_t *child;
    dup2(out, STDERR_FILENO);
    setrlimit(RLIMIT_CORE, &none);
    apr_pool_create_ex(&child, NULL, mc_memory_exhausted, NULL);
    for (;;)
        memset(apr_palloc(child, (size_t)1 << 45), 1, 1);
}

START_TEST(test_pools_end_the_process)
{
    int ends[2], status;
    char said[200] = "";
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        exhaust_pool(ends[1]);
    close(ends[1]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_gt((int)read(ends[0], said, sizeof(said) - 1), 0);
    close(ends[0]);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ck_assert_str_eq(said, "mapcache: no memory is left\n");
}
END_TEST

UNIT_MAIN("budget", test_takes_and_refuses, test_reclaims, test_half, test_buffers, test_memory_of_the_machine,
          test_pools_end_the_process)
