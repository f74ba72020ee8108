/*
 * Marks against a plain array of times, of two tilesets on a grid of five levels, in a table with room for 16, and of a
 * set that shares the marks of the first one: no mark is missed, none is newer than the newest, and where there was
 * room for all none is too many. Input: steps, each a byte that says what, one for the set and level, and four numbers.
 */
#include "changes/marks.h"

#include <string.h>

#include "fuzz_support.h"
#include "mapcache/error.h"

enum { LEVELS = 5, SIDE = 1 << (LEVELS - 1), SETS = 2, STEP_SIZE = 6, STEPS_MOST = 150 };

static mc_level levels[LEVELS];
static mc_grid grid = { .name = "g", .level_count = LEVELS, .levels = levels };
static mc_grid fine_grid = { .name = "g@2x", .level_count = LEVELS, .levels = levels };
static const int columns[SETS] = { 1, 3 }, rows[SETS] = { 1, 2 }; /* of a metatile */

/* What is marked and drawn, by metatile. */
static apr_time_t marked[SETS][LEVELS][SIDE][SIDE], drawn[SETS][LEVELS][SIDE][SIDE];
static apr_time_t newest;

static void
mark_model(int set, int z, const mc_tile_range *range, apr_time_t time)
{
    for (int y = range->miny / rows[set]; y <= (range->maxy - 1) / rows[set] && range->miny < range->maxy; y++)
        for (int x = range->minx / columns[set]; x <= (range->maxx - 1) / columns[set] && range->minx < range->maxx;
             x++)
            if (marked[set][z][y][x] < time)
                marked[set][z][y][x] = time;
    newest = time > newest ? time : newest;
}

static void
forget_model(apr_time_t time)
{
    apr_time_t *all = &marked[0][0][0][0];
    for (size_t i = 0; i < sizeof(marked) / sizeof(*all); i++)
        all[i] = all[i] <= time ? 0 : all[i];
}

static void
check_all(mc_mark_set *const *sets, const mc_mark_set *shared, bool exactly)
{
    for (int set = 0; set < SETS; set++)
        for (int z = 0; z < LEVELS; z++)
            for (int y = 0; y < 1 << z; y++)
                for (int x = 0; x < 1 << z; x++) {
                    apr_time_t wanted = marked[set][z][y / rows[set]][x / columns[set]];
                    apr_time_t found = mc_marks_find(sets[set], z, x, y);
                    apr_time_t own = mc_marks_drawn(sets[set], z, x, y);
                    MC_ASSERT(set != 0 || mc_marks_find(shared, z, x, y) == found);
                    MC_ASSERT(found >= wanted && found <= newest && (!exactly || found == wanted));
                    MC_ASSERT(own == 0 || own == drawn[set][z][y / rows[set]][x / columns[set]]);
                }
}

static void
take_step(mc_marks *marks, mc_mark_set *const *sets, const uint8_t *step)
{
    int set = step[1] & 1, z = (step[1] >> 1) % LEVELS, side = 1 << z, x = step[2] % side, y = step[3] % side;
    const mc_tile_range range = { x, y, x + step[4] % (side - x + 1), y + step[5] % (side - y + 1) };
    apr_time_t time = 1 + step[0] / 4;
    switch (step[0] % 4) {
    case 0:
        mc_marks_forget(marks, step[2]);
        forget_model(step[2]);
        return;
    case 1:
        mc_marks_note_drawn(sets[set], z, x, y, time);
        drawn[set][z][y / rows[set]][x / columns[set]] = time;
        return;
    case 2:
        mc_marks_add(sets[set], z, &range, 1, time);
        mark_model(set, z, &range, time);
        return;
    default: { /* some at once: each lies further to the left */
        mc_tile_range ranges[3];
        for (int i = 0; i < 3; i++) {
            ranges[i] = (mc_tile_range){ range.minx >> i, range.miny, range.maxx >> i, range.maxy };
            mark_model(set, z, &ranges[i], time);
        }
        mc_marks_add(sets[set], z, ranges, 3, time);
    }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool exactly = true;
    mc_marks *marks = mc_marks_create(16, 8);
    mc_mark_set *sets[SETS];
    for (int z = 0; z < LEVELS; z++)
        levels[z] = (mc_level){ 1, 1 << z, 1 << z };
    sets[0] = mc_marks_set(marks, "a", &grid, columns[0], rows[0], NULL);
    sets[1] = mc_marks_set(marks, "b", &grid, columns[1], rows[1], NULL);
    const mc_mark_set *shared = mc_marks_set(marks, "a", &fine_grid, columns[0], rows[0], sets[0]);
    memset(marked, 0, sizeof(marked));
    memset(drawn, 0, sizeof(drawn));
    newest = 0;
    for (int i = 0; i < STEPS_MOST && size >= STEP_SIZE; i++, data += STEP_SIZE, size -= STEP_SIZE) {
        take_step(marks, sets, data);
        mc_marks_statistics statistics = mc_marks_stat(marks);
        exactly = exactly && statistics.coarsened == 0 && statistics.rectangles == 0;
        MC_ASSERT(statistics.entries <= 16);
        if (i % 32 == 31)
            check_all(sets, shared, exactly);
    }
    check_all(sets, shared, exactly);
    mc_marks_destroy(marks);
    return 0;
}
