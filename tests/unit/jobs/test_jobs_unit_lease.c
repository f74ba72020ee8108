/* Units and what is done of them: arithmetic only. */
#include "unit.h"

#include <string.h>

#include "jobs/unit_lease.h"

static mc_tile_range limits[3];
static mc_job job;
static const mc_seed_area everything = { .columns = 1 };

static void
set_up(int columns, int rows, int side)
{
    limits[0] = (mc_tile_range){ 0, 0, 1, 1 };
    limits[1] = (mc_tile_range){ 3, 5, 3, 9 }; /* nothing */
    limits[2] = (mc_tile_range){ 5, 7, 38, 30 };
    job = (mc_job){ .minzoom = 4,
                    .maxzoom = 6,
                    .limits = limits,
                    .columns = columns,
                    .rows = rows,
                    .side = side,
                    .order = MC_SEED_LEVELS };
    job.units = mc_job_units(&job);
}

/* Every metatile that holds a tile of the limits is in one unit, and no other is. */
START_TEST(units_hold_each_metatile_once)
{
    static const int shapes[][3] = { { 1, 1, 1 }, { 1, 1, 8 }, { 2, 3, 4 }, { 5, 5, 2 }, { 8, 8, 100 }, { 3, 1, 7 } };
    for (size_t run = 0; run < 2 * sizeof(shapes) / sizeof(shapes[0]); run++) {
        static int seen[3][64][64];
        const int *shape = shapes[run / 2];
        int64_t total = 0;
        memset(seen, 0, sizeof(seen));
        set_up(shape[0], shape[1], shape[2]);
        job.order = run % 2 == 0 ? MC_SEED_LEVELS : MC_SEED_HILBERT;
        for (int64_t unit = 0; unit < job.units; unit++) {
            mc_job_block block = mc_job_block_of(&job, unit);
            ck_assert_int_ge(block.columns, 1);
            ck_assert_int_le(block.columns, job.side);
            ck_assert_int_le(block.rows, job.side);
            for (int i = 0; i < block.columns * block.rows; i++, total++)
                seen[block.z - 4][block.row + i / block.columns][block.column + i % block.columns]++;
        }
        ck_assert_int_eq(total, mc_job_metatiles(&job));
        for (int z = 0; z < 3; z++)
            for (int row = 0; row < 64; row++)
                for (int column = 0; column < 64; column++) {
                    int x = column * job.columns, y = row * job.rows;
                    bool wanted = x < limits[z].maxx && x + job.columns > limits[z].minx && y < limits[z].maxy &&
                                  y + job.rows > limits[z].miny && limits[z].minx < limits[z].maxx;
                    ck_assert_int_eq(seen[z][row][column], wanted);
                }
    }
}
END_TEST

/* From one unit to the next it is one step, in a square; the levels still come one after the other. */
START_TEST(units_may_follow_a_curve)
{
    mc_tile_range squares[2] = { { 4, 8, 36, 40 }, { 0, 0, 64, 64 } };
    mc_job curved = { .maxzoom = 1, .limits = squares, .columns = 1, .rows = 1, .side = 2, .order = MC_SEED_HILBERT };
    int64_t units = mc_job_units(&curved);
    ck_assert_int_eq(units, 256 + 1024);
    for (int64_t unit = 0; unit < units; unit++) {
        mc_job_block block = mc_job_block_of(&curved, unit);
        ck_assert_int_eq(block.z, unit >= 256);
        if (unit == 0 || unit == 256)
            continue;
        mc_job_block before = mc_job_block_of(&curved, unit - 1);
        ck_assert_int_eq(abs(block.column - before.column) + abs(block.row - before.row), 2);
    }
}
END_TEST

START_TEST(counts_do_not_overflow)
{
    mc_tile_range huge[2] = { { 0, 0, INT32_MAX, INT32_MAX }, { 0, 0, INT32_MAX, INT32_MAX } };
    mc_job large = { .maxzoom = 1, .limits = huge, .columns = 1, .rows = 1, .side = 1 };
    ck_assert_int_eq(mc_job_units(&large), 2 * (int64_t)INT32_MAX * INT32_MAX);
    mc_job_block last = mc_job_block_of(&large, mc_job_units(&large) - 1);
    ck_assert_int_eq(last.z, 1);
    ck_assert_int_eq(last.column, INT32_MAX - 1);
    ck_assert_int_eq(last.row, INT32_MAX - 1);
    large.order = MC_SEED_HILBERT; /* its curve ends at the lower right corner, which is missing here */
    last = mc_job_block_of(&large, mc_job_units(&large) - 1);
    ck_assert_int_eq(last.z, 1);
    ck_assert_int_eq(last.column, INT32_MAX - 1);
    ck_assert_int_le(last.row, 1);
}
END_TEST

static jobs_unit_lease *
hold(const mc_job_unit *unit)
{
    jobs_unit_lease *held = NULL;
    ck_assert(jobs_unit_lease_create(&held, unit, &job, &everything, pool));
    return held;
}

static void
meet(jobs_unit_lease *held, int n, mc_seed_outcome outcome)
{
    mc_seed_result result = { .outcome = outcome, .z = 6, .x = 1, .y = 2, .message = "why" };
    jobs_unit_lease_take(held, n, &result, 4);
}

static void
check_again(const mc_job_unit *state, int position, int count, const int *again)
{
    ck_assert_int_eq(state->position, position);
    ck_assert_int_eq(state->again_count, count);
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(state->again[i], again[i]);
}

START_TEST(a_unit_says_what_is_still_owed)
{
    set_up(1, 1, 4);
    mc_job_unit unit = { .unit = 1, .counts = { 100, 10, 400 } };
    jobs_unit_lease *held = hold(&unit);
    ck_assert_int_eq(held->size, 16);
    ck_assert_int_eq(held->todo, 16);
    mc_job_unit state = jobs_unit_lease_state(held, pool);
    check_again(&state, 0, 0, NULL);
    meet(held, 0, MC_SEED_DONE);
    meet(held, 3, MC_SEED_SKIPPED);
    meet(held, 5, MC_SEED_FAILED);
    state = jobs_unit_lease_state(held, pool);
    check_again(&state, 6, 4, (const int[]){ 1, 2, 4, 5 }); /* under way, and failed */
    ck_assert_int_eq(state.counts.done, 101);
    ck_assert_int_eq(state.counts.skipped, 11);
    ck_assert_int_eq(state.counts.tiles, 404);
    ck_assert_str_eq(state.message, "z6 x1 y2: why");

    /* Another worker goes on there. */
    held = hold(&state);
    ck_assert_int_eq(held->todo, 14);
    ck_assert_int_eq(held->places[0], 1);
    ck_assert_int_eq(held->places[3], 5);
    ck_assert_int_eq(held->places[4], 6);
    for (int n = 0; n < held->todo; n++)
        meet(held, n, n == 3 ? MC_SEED_FAILED : MC_SEED_DONE);
    state = jobs_unit_lease_state(held, pool);
    check_again(&state, 16, 1, (const int[]){ 5 });
    ck_assert_int_eq(state.counts.done + state.counts.skipped, 100 + 10 + 15);
}
END_TEST

/* Messages are of origins, and are cut: a database takes whole characters only. */
START_TEST(messages_are_whole_characters)
{
    set_up(1, 1, 4);
    mc_job_unit unit = { .unit = 1 };
    mc_seed_result result = { .outcome = MC_SEED_FAILED, .z = 6, .x = 1, .y = 2 };
    jobs_unit_lease *held = hold(&unit);
    for (size_t i = 0; i + 3 < sizeof(result.message); i += 2)
        memcpy(result.message + i, "\303\251", 2);
    result.message[7] = '\377';
    jobs_unit_lease_take(held, 0, &result, 1);
    const unsigned char *at = (const unsigned char *)jobs_unit_lease_state(held, pool).message;
    for (int more; *at != '\0'; at++) {
        more = *at < 0x80 ? 0 : *at >= 0xc2 && *at < 0xe0 ? 1 : *at >= 0xe0 && *at < 0xf0 ? 2 : -1;
        ck_assert_int_ge(more, 0);
        while (more-- > 0)
            ck_assert_int_eq(*++at & 0xc0, 0x80);
    }
}
END_TEST

START_TEST(rows_that_contradict_themselves_are_refused)
{
    static const int outside[] = { 3, 99 }, negative[] = { -1 };
    set_up(1, 1, 4);
    jobs_unit_lease *held;
    const mc_job_unit wrong[] = {
        { .unit = -1 },
        { .unit = job.units },
        { .unit = 1, .position = -1 },
        { .unit = 1, .position = 17 },
        { .unit = 1, .position = 4, .again = outside, .again_count = 2 },
        { .unit = 1, .position = 4, .again = negative, .again_count = 1 },
        { .unit = 1, .position = 3, .again = outside, .again_count = 1 },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert(!jobs_unit_lease_create(&held, &wrong[i], &job, &everything, pool));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { units_hold_each_metatile_once, units_may_follow_a_curve,
                                   counts_do_not_overflow,        a_unit_says_what_is_still_owed,
                                   messages_are_whole_characters, rows_that_contradict_themselves_are_refused };
    return unit_run("jobs_unit_lease", tests, (int)(sizeof(tests) / sizeof(tests[0])));
}
