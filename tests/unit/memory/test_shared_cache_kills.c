/* Processes that are killed while they use a table: at each instruction of a put in turn, and by chance. */
#include "unit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared_values.h"

enum { SMALL = 96 << 10, KEYS = 24 };

static int
wait_for_child(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        ck_assert_int_eq(errno, EINTR);
    return status;
}

/* A child that stops right before a put, under this process's eyes. */
static pid_t
fork_traced_writer(mc_shared_cache *cache, int key, int version, size_t size)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child > 0) {
        ck_assert(WIFSTOPPED(wait_for_child(child)));
        return child;
    }
    shared_value_ready ready;
    shared_value_prepare(&ready, key, version, size);
    uint32_t generation = shared_value_generation(cache, key);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(99);
    raise(SIGSTOP);
    shared_value_put_ready(cache, &ready, generation);
    raise(SIGSTOP);
    _exit(0);
}

/* Lets the child take at most so many steps; how many it took until it stopped by itself, or all. */
static long
step_child(pid_t child, long steps)
{
    for (long i = 0; i < steps; i++) {
        ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        int status = wait_for_child(child);
        ck_assert_msg(WIFSTOPPED(status), "status %d", status);
        if (WSTOPSIG(status) == SIGSTOP)
            return i;
    }
    return steps;
}

static void
kill_child(pid_t child)
{
    kill(child, SIGKILL);
    int status;
    do
        status = wait_for_child(child);
    while (!WIFSIGNALED(status) && !WIFEXITED(status));
}

static int
count_good_values(mc_shared_cache *cache)
{
    int good = 0;
    for (int key = 0; key < KEYS; key++) {
        shared_verdict verdict = shared_value_check(cache, key, NULL);
        ck_assert_int_ne(verdict, SHARED_WRONG);
        good += verdict == SHARED_GOOD;
    }
    return good;
}

/* More than fits, so that the next put has to evict. */
static void
fill_shared_cache(mc_shared_cache *cache, int version)
{
    for (int key = 0; key < KEYS; key++)
        shared_value_put(cache, key, version, (size_t)(3000 + key * 100));
}

/* A newcomer to a full table is let in by chance. */
static void
put_at_last(mc_shared_cache *cache, int key, int version, size_t size)
{
    for (int i = 0; i < 1000; i++)
        if (shared_value_put(cache, key, version, size).stored)
            return;
    ck_abort_msg("nothing can be put any more");
}

/* Steps cost a switch from one process to the other each: of one processor, that is a tenth of the time. */
static void
stay_on_one_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    (void)sched_setaffinity(0, sizeof(one), &one);
}

START_TEST(killed_at_any_instruction_of_a_put)
{
    enum { KILLS = 60 };
    stay_on_one_processor();
    mc_shared_cache *cache = mc_shared_cache_create(SMALL);
    fill_shared_cache(cache, 1);
    put_at_last(cache, 5, 1, 500);
    pid_t child = fork_traced_writer(cache, 5, 2, 1500); /* replaces, evicts, writes */
    long steps = step_child(child, 10000000);
    kill_child(child);
    ck_assert_int_gt(steps, 500);
    mc_shared_statistics before, after;
    int in_the_middle = 0;
    for (int i = 0; i < KILLS; i++) {
        fill_shared_cache(cache, 3 + i);
        put_at_last(cache, 5, 3 + i, 500);
        ck_assert_int_gt(count_good_values(cache), KEYS / 3);
        mc_shared_cache_stat(&before, cache);
        child = fork_traced_writer(cache, 5, 4 + i, 1500);
        step_child(child, steps * i / KILLS);
        ck_assert_int_ge(count_good_values(cache), 1); /* beside one that has stopped */
        kill_child(child);
        ck_assert_int_ge(count_good_values(cache), 1); /* nobody has the lock any more, and nobody took it since */
        mc_shared_put put = shared_value_put(cache, 0, i, 500);
        mc_shared_cache_stat(&after, cache);
        ck_assert_uint_eq(after.emptied - before.emptied, put.emptied);
        in_the_middle += put.emptied;
        put_at_last(cache, 0, i + 1, 500);
        ck_assert_int_eq(shared_value_check(cache, 0, NULL), SHARED_GOOD);
        ck_assert_uint_eq(after.busy, before.busy);
    }
    ck_assert_int_gt(in_the_middle, KILLS / 20);
    ck_assert_int_lt(in_the_middle, KILLS);
    mc_shared_cache_destroy(cache);
}
END_TEST

/* Readers find everything, and writers give up at once. */
START_TEST(a_writer_that_stops_holds_nobody_up)
{
    stay_on_one_processor();
    mc_shared_cache *cache = mc_shared_cache_create(SMALL);
    const int other = shared_value_other(cache, 5);
    ck_assert(shared_value_put(cache, 5, 1, 500).stored);
    pid_t child = fork_traced_writer(cache, other, 2, 1500);
    long steps = step_child(child, 10000000);
    kill_child(child);
    mc_shared_statistics s = { 0 };
    for (long at = steps / 4; s.busy == 0; at += steps / 20) {
        ck_assert_int_lt(at, steps);
        child = fork_traced_writer(cache, other, 3, 1500);
        step_child(child, at);
        shared_value_put(cache, 7, 1, 500);
        mc_shared_cache_stat(&s, cache);
        if (s.busy > 0) {
            ck_assert_int_eq(shared_value_check(cache, 5, NULL), SHARED_GOOD);
            shared_value_forget(cache, 5);
            ck_assert_int_eq(shared_value_check(cache, 5, NULL), SHARED_ABSENT);
            ck_assert_int_eq(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
            ck_assert(WIFSTOPPED(wait_for_child(child))); /* beyond the lock */
            int version = 0;
            ck_assert_int_eq(shared_value_check(cache, other, &version), SHARED_GOOD);
            ck_assert_int_eq(version, 3);
            kill_child(child);
            put_at_last(cache, 7, 1, 500);
            mc_shared_cache_stat(&s, cache);
            ck_assert_uint_eq(s.emptied, 0);
        } else {
            kill_child(child);
        }
    }
    mc_shared_cache_destroy(cache);
}
END_TEST

/* What children have done together. */
typedef struct kill_progress {
    _Atomic unsigned long steps, good;
} kill_progress;

/* Until somebody kills it. Ends by itself only when a value is wrong. */
static void
use_until_killed(mc_shared_cache *cache, kill_progress *progress, uint32_t state)
{
    for (;;) {
        state = state * 1664525 + 1013904223;
        int key = (int)(state >> 8) % KEYS, action = (int)(state >> 24) % 16;
        if (action == 0) {
            shared_value_forget(cache, key);
        } else if (action < 6) {
            shared_value_put(cache, key, (int)(state >> 16), state % 9000);
        } else {
            shared_verdict verdict = shared_value_check(cache, key, NULL);
            if (verdict == SHARED_WRONG)
                _exit(1);
            if (verdict == SHARED_GOOD)
                atomic_fetch_add(&progress->good, 1);
        }
        atomic_fetch_add(&progress->steps, 1);
    }
}

static pid_t
fork_user(mc_shared_cache *cache, kill_progress *progress, uint32_t state)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        use_until_killed(cache, progress, state);
    return child;
}

static void
wait_for_steps(kill_progress *progress, unsigned long more)
{
    unsigned long until = atomic_load(&progress->steps) + more;
    while (atomic_load(&progress->steps) < until)
        sched_yield();
}

START_TEST(killed_by_chance_while_others_read_every_byte)
{
    enum { CHILDREN = 4, KILLS = 300 };
    mc_shared_cache *cache = mc_shared_cache_create(SMALL);
    kill_progress *progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(progress != MAP_FAILED);
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++)
        children[i] = fork_user(cache, progress, (uint32_t)i);
    for (int i = 0; i < KILLS; i++) {
        wait_for_steps(progress, (unsigned long)(i * 7 % 40));
        int at = i % CHILDREN;
        kill(children[at], SIGKILL);
        int status = wait_for_child(children[at]);
        ck_assert_msg(WIFSIGNALED(status), "a child read a value that is wrong: %d", status);
        children[at] = fork_user(cache, progress, (uint32_t)(i + CHILDREN));
        count_good_values(cache);
    }
    wait_for_steps(progress, 1000);
    for (int i = 0; i < CHILDREN; i++) {
        kill(children[i], SIGKILL);
        ck_assert(WIFSIGNALED(wait_for_child(children[i])));
    }
    ck_assert_uint_gt(atomic_load(&progress->good), 1000);
    put_at_last(cache, 0, 1, 500);
    fill_shared_cache(cache, 3);
    ck_assert_int_gt(count_good_values(cache), KEYS / 3);
    mc_shared_statistics s;
    mc_shared_cache_stat(&s, cache);
    ck_assert_uint_gt(s.emptied, 0);
    munmap(progress, sizeof(*progress));
    mc_shared_cache_destroy(cache);
}
END_TEST

UNIT_MAIN("shared_cache_kills", killed_at_any_instruction_of_a_put, a_writer_that_stops_holds_nobody_up,
          killed_by_chance_while_others_read_every_byte)
