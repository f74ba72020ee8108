/* Expire lists: lines z/x/y become boxes of Web Mercator; a broken line is named, and the rest counts. */
#include "changes/expire_list.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#define WORLD 20037508.342789244

static int64_t complaints[16];
static int complaint_count;

static void
note_complaint(void *baton, int64_t line)
{
    (void)baton;
    complaints[complaint_count++ % 16] = line;
}

static mc_expire_list *
read_list(const char *text, size_t piece)
{
    complaint_count = 0;
    mc_expire_list *list = mc_expire_list_create(note_complaint, NULL, pool);
    size_t size = strlen(text);
    for (size_t at = 0; at < size; at += piece)
        mc_expire_list_feed(list, text + at, size - at < piece ? size - at : piece);
    mc_expire_list_end(list);
    return list;
}

START_TEST(lines_become_boxes)
{
    for (size_t piece = 1; piece < 40; piece++) {
        const mc_expire_list *list = read_list("0/0/0\n1/1/0\r\n\n  \n2/0/3 \n1/1/0", piece);
        ck_assert_int_eq(list->tiles, 4);
        ck_assert_int_eq(list->broken, 0);
        ck_assert_int_eq(list->boxes->count, 3);
        const mc_extent *north_east = &list->boxes->boxes[1], *south_west = &list->boxes->boxes[2];
        ck_assert_double_eq_tol(north_east->minx, 0, 1e-6);
        ck_assert_double_eq_tol(north_east->miny, 0, 1e-6);
        ck_assert_double_eq_tol(north_east->maxx, WORLD, 1e-6);
        ck_assert_double_eq_tol(north_east->maxy, WORLD, 1e-6);
        ck_assert_double_eq_tol(south_west->minx, -WORLD, 1e-6);
        ck_assert_double_eq_tol(south_west->miny, -WORLD, 1e-6);
        ck_assert_double_eq_tol(south_west->maxx, -WORLD / 2, 1e-6);
        ck_assert_double_eq_tol(south_west->maxy, -WORLD / 2, 1e-6);
    }
}
END_TEST

START_TEST(broken_lines_are_named_by_their_numbers)
{
    static const char *const broken[] = { "x",
                                          "1/1",
                                          "1/1/1/1",
                                          "1/2/0",
                                          "1/0/2",
                                          "-1/0/0",
                                          "+1/0/0",
                                          "1/ 1/0",
                                          "31/0/0",
                                          "0/0/0x",
                                          "99999999999999999999/0/0",
                                          "5/4294967296/0",
                                          "1/1/1,",
                                          " 1/1/1",
                                          "1//1",
                                          "0000000000000000000000000000000000000001/0/0" };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        const char *text = apr_psprintf(pool, "3/1/1\n%s\n3/2/2\n", broken[i]);
        const mc_expire_list *list = read_list(text, 7);
        ck_assert_msg(list->tiles == 2 && list->broken == 1, "%s", broken[i]);
        ck_assert_int_eq(complaint_count, 1);
        ck_assert_int_eq(complaints[0], 2);
    }
}
END_TEST

START_TEST(zero_bytes_and_endless_lines_are_broken)
{
    mc_expire_list *list = mc_expire_list_create(NULL, NULL, pool);
    static char ones[1 << 20];
    memset(ones, '1', sizeof(ones));
    mc_expire_list_feed(list, "1/1/1\0\n", 7);
    mc_expire_list_feed(list, ones, sizeof(ones));
    mc_expire_list_feed(list, "\n4/1/1\n", 7);
    mc_expire_list_end(list);
    ck_assert_int_eq(list->broken, 2);
    ck_assert_int_eq(list->tiles, 1);
}
END_TEST

START_TEST(a_million_lines_are_bounded)
{
    char text[64];
    mc_expire_list *list = mc_expire_list_create(NULL, NULL, pool);
    for (int i = 0; i < 1000000; i++) {
        int size =
            snprintf(text, sizeof(text), "18/%d/%d\n", (int)(i * 7919LL % (1 << 18)), (int)(i * 104729LL % (1 << 18)));
        mc_expire_list_feed(list, text, (size_t)size);
    }
    ck_assert_int_eq(list->tiles, 1000000);
    ck_assert_int_le(list->boxes->count, MC_BOX_SET_MAX);
    ck_assert(!list->boxes->whole);
}
END_TEST

START_TEST(a_file_is_read_to_its_end)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "1/0/0\n1/1/1", 11), 11);
    close(ends[1]);
    mc_expire_list *list = mc_expire_list_create(NULL, NULL, pool);
    ck_assert_int_eq(mc_expire_list_read(list, ends[0]), 0);
    ck_assert_int_eq(list->tiles, 2);
    close(ends[0]);
    ck_assert_int_ne(mc_expire_list_read(list, -1), 0);
}
END_TEST

UNIT_MAIN("expire_list", lines_become_boxes, broken_lines_are_named_by_their_numbers,
          zero_bytes_and_endless_lines_are_broken, a_million_lines_are_bounded, a_file_is_read_to_its_end)
