/* The files that a configuration was read of: which of them is another one now. */
#include <apr_general.h>
#include <apr_strings.h>
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config_files.h"

static apr_pool_t *pool;
static char folder[] = "/tmp/mapcache-config-files-XXXXXX";
static mc_config_files *files;

static const char *
place_of(const char *name)
{
    return apr_pstrcat(pool, folder, "/", name, NULL);
}

static void
write_text(const char *name, const char *text)
{
    FILE *file = fopen(place_of(name), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert(fputs(text, file) >= 0 && fclose(file) == 0);
}

/* As if it had been written at another time. */
static void
set_time(const char *name, time_t seconds)
{
    const struct timespec times[2] = { { seconds, 0 }, { seconds, 0 } };
    ck_assert_int_eq(utimensat(AT_FDCWD, place_of(name), times, 0), 0);
}

static void
note_two(void)
{
    files = mc_config_files_create(pool);
    write_text("mapcache.xml", "<mapcache/>");
    write_text("style.sld", "first");
    set_time("mapcache.xml", 1000);
    set_time("style.sld", 1000);
    mc_config_files_note(files, place_of("mapcache.xml"));
    mc_config_files_note(files, place_of("style.sld"));
    mc_config_files_note(files, place_of("style.sld"));
    mc_config_files_note(files, "");
    ck_assert_int_eq(mc_config_files_count(files), 2);
    ck_assert_ptr_null(mc_config_files_changed(files));
}

START_TEST(a_file_with_other_contents_has_changed)
{
    note_two();
    const uint64_t before = mc_config_files_stamp(files);
    ck_assert_uint_eq(mc_config_files_stamp(files), before);
    write_text("style.sld", "other");
    set_time("style.sld", 1000); /* of the same size and time: the time of the inode tells */
    ck_assert_str_eq(mc_config_files_changed(files), place_of("style.sld"));
    ck_assert_uint_ne(mc_config_files_stamp(files), before);
    ck_assert_str_eq(mc_config_files_changed(files), place_of("style.sld"));
    mc_config_files *copy = mc_config_files_copy(files, pool);
    ck_assert_str_eq(mc_config_files_changed(copy), place_of("style.sld"));
    ck_assert_str_eq(mc_config_files_path(copy, 1), place_of("style.sld"));
    ck_assert_uint_eq(mc_config_files_stamp(copy), mc_config_files_stamp(files));
}
END_TEST

START_TEST(a_touch_changes_the_configuration_alone)
{
    note_two();
    set_time("style.sld", 2000);
    ck_assert_ptr_null(mc_config_files_changed(files));
    ck_assert_int_eq(rename(place_of("style.sld"), place_of("moved")), 0);
    write_text("style.sld", "first"); /* another inode */
    ck_assert_ptr_null(mc_config_files_changed(files));
    set_time("mapcache.xml", 2000);
    ck_assert_str_eq(mc_config_files_changed(files), place_of("mapcache.xml"));
}
END_TEST

START_TEST(a_file_comes_and_goes)
{
    note_two();
    mc_config_files_note(files, place_of("picture.png"));
    ck_assert_ptr_null(mc_config_files_changed(files));
    write_text("picture.png", "");
    ck_assert_str_eq(mc_config_files_changed(files), place_of("picture.png"));
    ck_assert_int_eq(unlink(place_of("picture.png")), 0);
    ck_assert_ptr_null(mc_config_files_changed(files));
    ck_assert_int_eq(unlink(place_of("style.sld")), 0);
    ck_assert_str_eq(mc_config_files_changed(files), place_of("style.sld"));
}
END_TEST

START_TEST(what_is_no_regular_file_is_not_read)
{
    note_two();
    ck_assert_int_eq(mkfifo(place_of("pipe"), 0600), 0);
    ck_assert_int_eq(mkdir(place_of("folder"), 0700), 0);
    mc_config_files_note(files, place_of("pipe")); /* and waits for no writer */
    mc_config_files_note(files, place_of("folder"));
    mc_config_files_note(files, place_of("folder/nothing"));
    ck_assert_ptr_null(mc_config_files_changed(files));
    mc_config_files_note(NULL, place_of("style.sld"));
    ck_assert_int_eq(rmdir(place_of("folder")) | unlink(place_of("pipe")), 0);
}
END_TEST

START_TEST(files_of_more_than_a_part_are_compared_to_their_end)
{
    char *text = malloc(200001);
    memset(text, 'a', 200000);
    text[200000] = '\0';
    note_two();
    write_text("large", text);
    mc_config_files_note(files, place_of("large"));
    set_time("large", 5);
    ck_assert_ptr_null(mc_config_files_changed(files));
    text[199999] = 'b';
    write_text("large", text);
    ck_assert_str_eq(mc_config_files_changed(files), place_of("large"));
    free(text);
}
END_TEST

static void
set_up(void)
{
    apr_pool_create(&pool, NULL);
}

static void
take_down(void)
{
    apr_pool_destroy(pool);
}

int
main(void)
{
    apr_initialize();
    if (mkdtemp(folder) == NULL)
        return EXIT_FAILURE;
    Suite *suite = suite_create("files of a configuration");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, set_up, take_down);
    tcase_add_test(tcase, a_file_with_other_contents_has_changed);
    tcase_add_test(tcase, a_touch_changes_the_configuration_alone);
    tcase_add_test(tcase, a_file_comes_and_goes);
    tcase_add_test(tcase, what_is_no_regular_file_is_not_read);
    tcase_add_test(tcase, files_of_more_than_a_part_are_compared_to_their_end);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    char command[100];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) == 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
