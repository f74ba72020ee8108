/* What is known of the last load of each configuration file. */
#include <apr_general.h>
#include <apr_strings.h>
#include <check.h>
#include <stdlib.h>

#include "config/reload_state.h"

static apr_pool_t *pool;
static mc_reload_states *states;

static const char *
where_of(const char *error)
{
    mc_reload_states_tell_text(states, "/etc/mapcache/mapcache.xml", error, 7);
    return mc_reload_states_find(states, "/etc/mapcache/mapcache.xml", pool).where;
}

START_TEST(the_last_load_decides)
{
    mc_reload_state state = mc_reload_states_find(states, "/a.xml", pool);
    ck_assert(!state.known && !state.failed && state.loaded == 0 && state.error == NULL && state.where == NULL);
    mc_reload_states_tell(states, "/a.xml", MC_OK, 10);
    mc_reload_states_tell(states, "/b.xml", MC_OK, 11);
    mc_reload_states_tell(states, "/a.xml", mc_error_create(pool, MC_ERR_CONFIG, "/etc/a.xml:3:4: no"), 20);
    state = mc_reload_states_find(states, "/a.xml", pool);
    ck_assert(state.known && state.failed && state.loaded == 10 && state.tried == 20);
    ck_assert_str_eq(state.error, "/etc/a.xml:3:4: no");
    ck_assert_str_eq(state.where, "a.xml:3:4");
    ck_assert(!mc_reload_states_find(states, "/b.xml", pool).failed);
    mc_reload_states_tell(states, "/a.xml", MC_OK, 30);
    state = mc_reload_states_find(states, "/a.xml", pool);
    ck_assert(!state.failed && state.loaded == 30 && state.tried == 30 && state.error == NULL && state.where == NULL);
}
END_TEST

/* The place is told to everybody: no folder, and nothing that is no file. */
START_TEST(the_place_is_the_file_without_its_folder)
{
    ck_assert_str_eq(where_of("/etc/mapcache/mapcache.xml:12:3: wrong\n/etc/other.xml:1:2: wrong"),
                     "mapcache.xml:12:3");
    ck_assert_str_eq(where_of("C:x.xml:1:2: wrong"), "C:x.xml:1:2");
    ck_assert_str_eq(where_of("/srv/my maps/a.sld:7:1: wrong"), "a.sld:7:1");
    static const char *const without[] = { "/etc/x.xml: cannot be opened: Permission denied",
                                           "postgresql://user:word@host:5432:17: wrong",
                                           "host=secret:1:2: wrong",
                                           "\"/srv/secret:1:2: wrong",
                                           "https://maps.example/?key=secret:1:2: wrong",
                                           "/srv/x.xml:1: wrong",
                                           "/srv/x.xml:1:",
                                           "/srv/x.xml:1:2",
                                           "" };
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        ck_assert_str_eq(where_of(without[i]), "mapcache.xml");
}
END_TEST

START_TEST(there_is_room_for_many_files_and_no_more)
{
    for (int i = 0; i < 100; i++)
        mc_reload_states_tell_text(states, apr_psprintf(pool, "/%d.xml", i), NULL, 1);
    ck_assert(mc_reload_states_find(states, "/63.xml", pool).known);
    ck_assert(!mc_reload_states_find(states, "/64.xml", pool).known);
    mc_reload_states_tell_text(NULL, "/a.xml", NULL, 1);
    ck_assert(!mc_reload_states_find(NULL, "/a.xml", pool).known);
    ck_assert(!mc_reload_states_find(states, NULL, pool).known);
}
END_TEST

static void
set_up(void)
{
    apr_pool_create(&pool, NULL);
    states = mc_reload_states_create();
}

static void
take_down(void)
{
    mc_reload_states_destroy(states);
    mc_reload_states_destroy(NULL);
    apr_pool_destroy(pool);
}

int
main(void)
{
    apr_initialize();
    Suite *suite = suite_create("states of reloads");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, set_up, take_down);
    tcase_add_test(tcase, the_last_load_decides);
    tcase_add_test(tcase, the_place_is_the_file_without_its_folder);
    tcase_add_test(tcase, there_is_room_for_many_files_and_no_more);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
