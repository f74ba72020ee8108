/* Footprints: what they hold, what is remembered of files, and that nothing stale or foreign is shown. */
#include "footprint_fixture.h"

START_TEST(a_footprint_is_the_box_of_what_shows)
{
    start();
    mc_cache *cache = products("");
    put_patch(cache, "a", 3, 1, 2, (patch){ 10, 20, 30, 40, 200 });
    put_patch(cache, "a", 3, 1, 3, (patch){ 0, 0, 256, 256, 255 });
    put_patch(cache, "a", 3, 1, 4, (patch){ 255, 255, 1, 1, 255 });
    put_patch(cache, "a", 3, 1, 5, (patch){ 0 });
    mc_footprint_want wants[5];
    for (int i = 0; i < 5; i++)
        wants[i].key = product_key("a", 3, 1, 2 + i);
    mc_footprints *batch;
    ck_ok(mc_footprints_look(&batch, cache, wants, 5, &ctx, pool));
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(wants[i].file, wants[0].file);
        ck_ok(mc_footprints_fetch(batch, i, &ctx));
        ck_assert(wants[i].known);
    }
    check_patch(wants[0].footprint, (patch){ 10, 20, 30, 40, 200 });
    ck_assert_int_eq(wants[0].footprint->opacity, MC_TRANSLUCENT);
    check_patch(wants[1].footprint, (patch){ 0, 0, 256, 256, 255 });
    ck_assert_int_eq(wants[1].footprint->opacity, MC_OPAQUE);
    check_patch(wants[2].footprint, (patch){ 255, 255, 1, 1, 255 });
    ck_assert_int_eq(wants[2].footprint->opacity, MC_OPAQUE);
    ck_assert_int_eq(wants[3].footprint->width, 0);
    ck_assert_int_eq(wants[3].footprint->opacity, MC_EMPTY);
    ck_assert_ptr_null(wants[4].footprint);
    ck_assert(wants[0].footprint->tag != wants[1].footprint->tag && wants[0].footprint->mtime != 0);
    finish();
}
END_TEST

START_TEST(files_have_numbers_of_their_own)
{
    start();
    mc_cache *cache = products("");
    put_patch(cache, "a", 0, 0, 0, (patch){ 1, 1, 1, 1, 255 });
    put_patch(cache, "b", 0, 0, 0, (patch){ 2, 2, 2, 2, 255 });
    mc_footprint_want wants[4];
    static const char *const names[] = { "a", "b", "nothing", "a" };
    for (int i = 0; i < 4; i++)
        wants[i].key = product_key(names[i], 0, 0, 0);
    mc_footprints *batch;
    ck_ok(mc_footprints_look(&batch, cache, wants, 4, &ctx, pool));
    ck_assert_int_eq(wants[0].file, wants[3].file);
    ck_assert_int_ne(wants[0].file, wants[1].file);
    ck_assert_int_ne(wants[0].file, wants[2].file);
    for (int i = 0; i < 4; i++)
        ck_ok(mc_footprints_fetch(batch, i, &ctx));
    check_patch(wants[1].footprint, (patch){ 2, 2, 2, 2, 255 });
    ck_assert_ptr_null(wants[2].footprint);
    check_patch(wants[3].footprint, (patch){ 1, 1, 1, 1, 255 });
    finish();
}
END_TEST

START_TEST(what_is_no_image_is_an_error_each_time)
{
    start();
    mc_cache *cache = products("");
    mc_tile_key key = product_key("a", 1, 1, 1);
    put(cache, &key, "not a picture");
    usleep(60000);
    for (int i = 0; i < 2; i++) {
        mc_footprint_want want = { .key = key };
        mc_footprints *batch;
        apr_pool_t *request;
        apr_pool_create(&request, pool);
        ck_ok(mc_footprints_look(&batch, cache, &want, 1, &ctx, request));
        ck_assert(!want.known);
        ck_fails(CORRUPT, mc_footprints_fetch(batch, 0, &ctx));
        ck_assert(!want.known);
        apr_pool_destroy(request);
    }
    finish();
}
END_TEST

UNIT_MAIN("footprint", a_footprint_is_the_box_of_what_shows, files_have_numbers_of_their_own,
          what_is_no_image_is_an_error_each_time)
