#include "locker_cases.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/workers.h"

void
locks_exclude_each_other(make_locker *make)
{
    mc_locker *one = make(), *other = make();
    mc_lock *a, *b, *again;
    bool waited = true;
    ck_ok(mc_locker_acquire(&a, &waited, one, "a", &ctx, pool));
    ck_assert(!waited);
    ck_ok(mc_locker_acquire(&b, &waited, other, "b /\r\n 'x' \\", &ctx, pool));
    ck_assert(!waited);
    ctx.deadline = mc_clock_now() + APR_USEC_PER_SEC; /* time enough to connect on a busy machine */
    ck_fails(UNAVAILABLE, mc_locker_acquire(&again, &waited, other, "a", &ctx, pool));
    ck_assert(waited && mc_clock_now() >= ctx.deadline);
    ctx.deadline = 0;
    ck_ok(mc_locker_try(&again, other, "a", &ctx, pool));
    ck_assert_ptr_null(again);
    ck_fails(UNAVAILABLE, (ctx.deadline = mc_clock_now() + APR_USEC_PER_SEC,
                           mc_locker_acquire(&again, &waited, one, "a", &ctx, pool)));
    ctx.deadline = 0;
    mc_lock_release(a);
    ck_ok(mc_locker_acquire(&again, &waited, other, "a", &ctx, pool)); /* who has given up waiting may get it and go */
    mc_lock_release(again);
    mc_lock_release(b);
    for (int i = 0; i < 10; i++) { /* connections go back and are used again */
        ck_ok(mc_locker_acquire(&a, &waited, i % 2 == 0 ? one : other, "c", &ctx, pool));
        ck_assert(!waited);
        mc_lock_release(a);
    }
}

typedef struct locker_meeting {
    mc_locker *lockers[2];
    atomic_int inside, total, next;
} locker_meeting;

static void *
meet_at_lock(void *baton)
{
    locker_meeting *m = baton;
    mc_locker *locker = m->lockers[m->next++ % 2];
    apr_pool_t *own = mc_task_pool_acquire();
    mc_ctx own_ctx = { .pool = own, .process = &process, .log = &mc_log_stderr };
    for (int i = 0; i < 8; i++) {
        mc_lock *lock;
        bool waited;
        mc_error *error = mc_locker_acquire(&lock, &waited, locker, "room", &own_ctx, own);
        ck_assert_msg(error == MC_OK, "%s", mc_error_chain(error, own));
        ck_assert_int_eq(++m->inside, 1);
        m->total++;
        usleep(1000);
        m->inside--;
        mc_lock_release(lock);
    }
    mc_task_pool_release(own);
    return NULL;
}

void
lockers_take_turns(make_locker *make)
{
    locker_meeting m = { .lockers = { make(), make() } };
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, meet_at_lock, &m);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(m.total, 48);
}

void
dead_holders_free_locks(make_locker *make, void (*restart)(void))
{
    int ready[2];
    char byte;
    mc_lock *lock;
    bool waited;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        restart();
        mc_locker *locker = make();
        if (mc_locker_acquire(&lock, &waited, locker, "held", &ctx, pool) != MC_OK || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    mc_locker *locker = make();
    ck_ok(mc_locker_try(&lock, locker, "held", &ctx, pool));
    ck_assert_ptr_null(lock);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ctx.deadline = mc_clock_now() + 60 * APR_USEC_PER_SEC; /* the lock itself would last an hour */
    ck_ok(mc_locker_acquire(&lock, &waited, locker, "held", &ctx, pool));
    mc_lock_release(lock);
    ctx.deadline = 0;
}
