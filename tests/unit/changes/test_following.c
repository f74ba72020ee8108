/* What a process does with the change logs that it follows: what is read becomes marks, and later is settled; with
 * batches that the test makes, and without a database. */
#include <apr_strings.h>
#include <string.h>

#include "changes/changes_private.h"
#include "config_text.h"

#define DATABASE "dbname=nowhere"

static mc_changes *changes;
static mc_watch watch;
static mc_watch_link links[1];
static const mc_grid_link *link_of_grid;
static int taken, dropped, told, settled, settle_fails_at;
static apr_time_t settled_at;
static atomic_int lines_of_step, lines_of_rest, lines_of_bound, lines_of_loss;

static void
count_line(void *baton, mc_log_level level, const char *message)
{
    (void)baton, (void)level;
    lines_of_step += strstr(message, "was set back by 3600.") != NULL;
    lines_of_rest += strstr(message, "tileset \"t\", grid \"deep\": each change of a table") != NULL;
    lines_of_bound += strstr(message, "\"one too many\" are not followed") != NULL;
    lines_of_loss += strstr(message, "has lost what was not read") != NULL;
}

static const mc_log counting_log = { .level = MC_LOG_DEBUG, .write = count_line };

static void
take_thing(void *thing)
{
    (void)thing;
    taken++;
}

static void
drop_thing(void *thing)
{
    (void)thing;
    dropped++;
}

static const mc_owner owner = { take_thing, drop_thing, NULL };

static void
hear_of_change(const mc_watch *of)
{
    (void)of;
    told++;
}

static mc_error *
note_settled(const mc_watch *of, const mc_watch_link *link, int z, const mc_tile_range *range, apr_time_t time,
             mc_ctx *at, apr_pool_t *scratch)
{
    (void)of, (void)link, (void)z, (void)range, (void)at;
    settled++;
    settled_at = time;
    return settled == settle_fails_at ? mc_error_create(scratch, MC_ERR_IO, "the disk is full") : MC_OK;
}

static void
follow(const char *file, const mc_grid_link *link, const char *table)
{
    static const mc_changes_config config = { .poll = 3600, .settle = 3600 };
    links[0] = (mc_watch_link){ .link = link, .columns = 1, .rows = 1 };
    watch = (mc_watch){ .tileset = "t", .links = links, .link_count = 1, .vector_buffer = -1 };
    watch.changed = hear_of_change;
    watch.settle = note_settled;
    watch.tables = apr_array_make(pool, 1, sizeof(mc_watch_table));
    if (table != NULL)
        APR_ARRAY_PUSH(watch.tables, mc_watch_table) =
            (mc_watch_table){ .connection = DATABASE, .table = table, .margin = 1, .told = true };
    mc_following following = { file, &config, apr_array_make(pool, 1, sizeof(mc_watch *)), &owner };
    APR_ARRAY_PUSH(following.watches, mc_watch *) = &watch;
    mc_changes_follow(changes, &following);
}

static void
set_up_following(void)
{
    unit_setup();
    mc_build build = config_build();
    build.grids = apr_hash_make(pool);
    mc_grid_builtins(build.grids, pool);
    link_of_grid = mc_grid_link_from_config(config_elements("<grid>GoogleMapsCompatible</grid>"), &build);
    taken = dropped = told = settled = settle_fails_at = 0;
    changes = mc_changes_create(&process, &counting_log); /* its threads find no database */
}

static void
tear_down_following(void)
{
    mc_changes_destroy(changes);
    unit_teardown();
}

/* Of the table with that object id, read now: a square kilometre in Switzerland. */
static mc_log_batch
batch_of(uint32_t relation)
{
    mc_log_batch batch = { .tables = apr_array_make(pool, 1, sizeof(mc_log_table)), .rows = 1, .trip = 100 };
    mc_log_table table = { relation, 4326, mc_box_set_create(pool) };
    mc_box_set_add(table.boxes, &(mc_extent){ 8.05, 47.05, 8.06, 47.06 });
    APR_ARRAY_PUSH(batch.tables, mc_log_table) = table;
    batch.steady = mc_clock_now();
    batch.seen = apr_time_now();
    batch.lost_by = batch.seen - 500;
    return batch;
}

/* The object id of the first name. */
static apr_array_header_t *
found_as(uint32_t relation)
{
    apr_array_header_t *found = apr_array_make(pool, 1, sizeof(mc_log_name));
    APR_ARRAY_PUSH(found, mc_log_name) = (mc_log_name){ 0, relation };
    return found;
}

static bool
take_batch(apr_time_t *time, const mc_log_batch *batch)
{
    return mc_changes_take(time, changes, DATABASE, batch, found_as(7), mc_changes_names_number(changes), pool);
}

static apr_time_t
mark_at(int z, int x, int y)
{
    return mc_marks_find(atomic_load(&links[0].marks), z, x, y);
}

enum { X = (int)((8.055 + 180) / 360 * 256), Y = 166 }; /* of the square, at level 8, from below */

START_TEST(what_a_table_logs_marks_the_tiles_that_show_the_table)
{
    apr_time_t time;
    follow("a.xml", link_of_grid, "public.roads");
    mc_log_batch other = batch_of(8), batch = batch_of(7);
    int before = told;
    ck_assert(take_batch(&time, &other));
    ck_assert_int_eq(mark_at(8, X, Y), 0);
    ck_assert_int_eq(told, before);
    ck_assert(take_batch(&time, &batch));
    ck_assert_int_eq(time, batch.seen);
    ck_assert_int_eq(mark_at(8, X, Y), time);
    ck_assert_int_eq(mark_at(8, X + 2, Y), 0);
    ck_assert_int_eq(told, before + 1);
}
END_TEST

START_TEST(names_of_another_configuration_are_looked_up_again)
{
    apr_time_t time;
    follow("a.xml", link_of_grid, "public.roads");
    mc_log_batch batch = batch_of(7);
    unsigned number = mc_changes_names_number(changes);
    follow("a.xml", link_of_grid, "public.rivers");
    ck_assert_int_eq(dropped, 1);
    ck_assert(!mc_changes_take(&time, changes, DATABASE, &batch, found_as(7), number, pool));
    ck_assert_int_eq(mark_at(8, X, Y), 0);
    bool done = true;
    ck_ok(mc_changes_settle(&done, changes, DATABASE, &batch, found_as(7), number, &ctx, pool));
    ck_assert(!done && settled == 0);
    apr_array_header_t *names;
    ck_assert_int_eq(mc_changes_list_names(&names, changes, DATABASE, pool), number + 1);
    ck_assert_int_eq(names->nelts, 1);
    ck_assert_str_eq(APR_ARRAY_IDX(names, 0, const char *), "public.rivers");
    mc_changes_list_names(&names, changes, "dbname=elsewhere", pool);
    ck_assert_int_eq(names->nelts, 0);
}
END_TEST

START_TEST(what_is_lost_marks_everything_up_to_when_it_was_removed)
{
    apr_time_t time;
    follow("a.xml", link_of_grid, "public.roads");
    mc_log_batch batch = batch_of(8);
    batch.lost = true;
    batch.lost_by = batch.seen - 1000000;
    int before = lines_of_loss;
    ck_assert(take_batch(&time, &batch));
    ck_assert_int_eq(time, batch.lost_by);
    ck_assert_int_eq(mark_at(0, 0, 0), batch.lost_by);
    ck_assert_int_eq(mark_at(18, 5, 200000), batch.lost_by);
    ck_assert_int_eq(lines_of_loss, before + 1);
}
END_TEST

START_TEST(what_is_settled_belongs_to_a_model_that_lives_meanwhile)
{
    follow("a.xml", link_of_grid, "public.roads");
    mc_log_batch batch = batch_of(7), other = batch_of(8);
    bool done = false;
    ck_ok(
        mc_changes_settle(&done, changes, DATABASE, &other, found_as(7), mc_changes_names_number(changes), &ctx, pool));
    ck_assert(done && settled == 0);
    ck_ok(
        mc_changes_settle(&done, changes, DATABASE, &batch, found_as(7), mc_changes_names_number(changes), &ctx, pool));
    ck_assert(done);
    ck_assert_int_ge(settled, link_of_grid->grid->level_count);
    ck_assert_int_eq(settled_at, batch.seen);
    settled = 0;
    settle_fails_at = 3;
    ck_fails(IO, mc_changes_settle(&done, changes, DATABASE, &batch, found_as(7), mc_changes_names_number(changes),
                                   &ctx, pool));
    ck_assert_int_eq(settled, 3);
    ck_assert_int_eq(taken, 3);
    ck_assert_int_eq(dropped, 3);
}
END_TEST

START_TEST(a_clock_that_is_set_back_makes_no_change_older_than_tiles_from_before)
{
    enum { HOUR = 3600 };
    const apr_interval_time_t hour = HOUR * APR_USEC_PER_SEC;
    apr_time_t time;
    follow("a.xml", link_of_grid, "public.roads");
    mc_log_batch first = batch_of(7);
    first.offset = 2 * hour; /* ahead of ours */
    ck_assert(take_batch(&time, &first));
    ck_assert_int_eq(time, first.seen + 2 * hour + first.trip);
    mc_log_batch second = batch_of(7);
    second.seen = first.seen + 1000000;
    second.steady = first.steady + 1000000;
    second.offset = hour; /* set back by one */
    int before = lines_of_step;
    ck_assert(take_batch(&time, &second));
    ck_assert_int_ge(time, second.seen + 2 * hour);
    ck_assert_int_le(time, second.seen + 2 * hour + 1000000);
    ck_assert_int_eq(mark_at(8, X, Y), time);
    ck_assert_int_eq(lines_of_step, before + 1);
    bool done;
    ck_ok(mc_changes_settle(&done, changes, DATABASE, &second, found_as(7), mc_changes_names_number(changes), &ctx,
                            pool));
    ck_assert_int_eq(settled_at, time); /* of tiles from before the step, none is kept */
    ck_assert_int_lt(mc_changes_now(changes), apr_time_now() + hour + 1000000); /* new tiles get the clock's time */
    mc_log_batch third = second;
    third.seen = second.seen + 2 * hour; /* it has made up for that */
    third.steady = second.steady + 2 * hour;
    ck_assert(take_batch(&time, &third));
    ck_assert_int_eq(time, third.seen + hour + third.trip);
    ck_assert_int_eq(lines_of_step, before + 1);
}
END_TEST

START_TEST(a_grid_whose_tiles_are_not_told_apart_is_in_the_log)
{
    mc_level levels[70];
    for (int z = 0; z < 70; z++)
        levels[z] = (mc_level){ 1.0 / (z + 1), 1, 1 };
    mc_tile_range limits[70];
    for (int z = 0; z < 70; z++)
        limits[z] = (mc_tile_range){ 0, 0, 1, 1 };
    mc_grid grid = *link_of_grid->grid;
    grid.name = "deep";
    grid.level_count = 70;
    grid.levels = levels;
    mc_grid_link link = *link_of_grid;
    link.grid = &grid;
    link.limits = limits;
    int before = lines_of_rest;
    follow("deep.xml", &link, NULL);
    ck_assert_int_eq(lines_of_rest, before + 1);
    ck_assert(mc_marks_is_rest(atomic_load(&links[0].marks)));
}
END_TEST

START_TEST(more_configurations_than_there_is_room_for_are_in_the_log)
{
    for (int i = 0; i < MC_FOLLOWINGS_MAX; i++)
        follow(apr_psprintf(pool, "%d.xml", i), link_of_grid, NULL);
    ck_assert_int_eq(dropped, 0);
    int before = lines_of_bound;
    follow("one too many", link_of_grid, NULL);
    ck_assert_int_eq(lines_of_bound, before + 1);
    ck_assert_int_eq(dropped, 1);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { what_a_table_logs_marks_the_tiles_that_show_the_table,
                                   names_of_another_configuration_are_looked_up_again,
                                   what_is_lost_marks_everything_up_to_when_it_was_removed,
                                   what_is_settled_belongs_to_a_model_that_lives_meanwhile,
                                   a_clock_that_is_set_back_makes_no_change_older_than_tiles_from_before,
                                   a_grid_whose_tiles_are_not_told_apart_is_in_the_log,
                                   more_configurations_than_there_is_room_for_are_in_the_log };
    return unit_run_between("following", tests, (int)(sizeof(tests) / sizeof(tests[0])), set_up_following,
                            tear_down_following);
}
