#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/gate.h"

static mc_gate *gate;
static atomic_int inside, most, passed;

static void *
go_through(void *unused)
{
    mc_ctx own = { .deadline = 0 };
    apr_pool_t *own_pool;
    apr_pool_create_unmanaged(&own_pool);
    for (int i = 0; i < 200; i++) {
        mc_error *error = mc_gate_enter(gate, &own, own_pool);
        if (error != MC_OK)
            break;
        int now = atomic_fetch_add(&inside, 1) + 1;
        int seen = atomic_load(&most);
        while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
            continue;
        atomic_fetch_add(&passed, 1);
        atomic_fetch_sub(&inside, 1);
        mc_gate_leave(gate);
    }
    apr_pool_destroy(own_pool);
    return unused;
}

START_TEST(never_more_inside_than_places)
{
    pthread_t threads[16];
    gate = mc_gate_create(3);
    for (int i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, go_through, NULL);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&passed), 16 * 200);
    ck_assert_int_le(atomic_load(&most), 3);
    mc_gate_destroy(gate);
}
END_TEST

START_TEST(waits_no_longer_than_the_deadline)
{
    gate = mc_gate_create(1);
    ck_ok(mc_gate_enter(gate, &ctx, pool));
    apr_time_t begin = apr_time_now();
    ctx.deadline = begin + 50000;
    ck_fails(UNAVAILABLE, mc_gate_enter(gate, &ctx, pool));
    ck_assert_int_ge(apr_time_now() - begin, 49000);
    mc_gate_leave(gate);
    ck_ok(mc_gate_enter(gate, &ctx, pool));
    mc_gate_leave(gate);
    mc_gate_destroy(gate);
}
END_TEST

START_TEST(no_gate_is_an_open_one)
{
    ck_ok(mc_gate_enter(NULL, &ctx, pool));
    mc_gate_leave(NULL);
}
END_TEST

UNIT_MAIN("gate", never_more_inside_than_places, waits_no_longer_than_the_deadline, no_gate_is_an_open_one)
