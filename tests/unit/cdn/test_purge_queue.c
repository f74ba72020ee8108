/* What waits to be purged: each text once, neither lost nor put off for ever, and bounded. */
#include "cdn/purge_queue.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

static mc_purge_queue queue;

/* Takes all that is due, as texts with commas between them. */
static const char *
take_due(apr_time_t now, apr_time_t *next)
{
    const char *texts = "";
    mc_purge_item *item = mc_purge_queue_take(&queue, now, 100, 100000, next);
    while (item != NULL) {
        mc_purge_item *after = item->next;
        texts = apr_pstrcat(pool, texts, item->text, ",", NULL);
        free(item);
        item = after;
    }
    return texts;
}

START_TEST(a_text_that_changes_again_is_sent_when_due_and_once_more)
{
    apr_time_t next;
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(mc_purge_queue_add(&queue, "t:g:1", 100 + i, true), MC_PURGE_WAITS);
    ck_assert_int_eq(queue.count, 1);
    ck_assert_str_eq(take_due(99, &next), "");
    ck_assert_int_eq(next, 100);
    ck_assert_str_eq(take_due(100, &next), "t:g:1,");
    ck_assert_int_eq(next, 149);
    ck_assert_str_eq(take_due(148, &next), "");
    ck_assert_str_eq(take_due(149, &next), "t:g:1,");
    ck_assert_int_eq(next, 0);
    ck_assert_uint_eq(mc_purge_queue_oldest(&queue), UINT64_MAX);
}
END_TEST

START_TEST(what_failed_keeps_its_turn)
{
    apr_time_t next;
    (void)mc_purge_queue_add(&queue, "a", 1, true);
    (void)mc_purge_queue_add(&queue, "b", 1, true);
    mc_purge_item *item = mc_purge_queue_take(&queue, 1, 1, 1000, &next);
    ck_assert_ptr_null(item->next);
    ck_assert_int_eq(queue.count, 1);
    ck_assert_int_eq(next, 1);
    (void)mc_purge_queue_add(&queue, item->text, 2, true); /* changed while it was being sent */
    mc_purge_queue_put_back(&queue, item, true);
    ck_assert_int_eq(queue.count, 2);
    ck_assert_uint_eq(mc_purge_queue_oldest(&queue), 1);
    item = mc_purge_queue_take(&queue, 10, 100, 2, &next); /* bytes bound a batch, too */
    ck_assert_ptr_null(item->next);
    free(item);
    mc_purge_queue_clear(&queue);
}
END_TEST

START_TEST(too_many_keys_become_those_of_their_tileset)
{
    apr_time_t next;
    int coarsened = 0;
    for (int i = 0; i < 100; i++)
        (void)mc_purge_queue_add(&queue, apr_psprintf(pool, "small:g:9:3:0:%d", i), 5, true);
    (void)mc_purge_queue_add(&queue, ":maps", 5, true);
    for (int i = 0; i < 3 * MC_PURGE_QUEUE_MAX; i++) {
        char text[64];
        snprintf(text, sizeof(text), "large:g:12:3:%d:%d", i % 1000, i / 1000);
        coarsened += mc_purge_queue_add(&queue, text, 5, true) == MC_PURGE_COARSENED;
        ck_assert_int_le(queue.count, MC_PURGE_QUEUE_MAX);
    }
    ck_assert_int_ge(coarsened, 2);
    ck_assert_uint_eq(mc_purge_queue_oldest(&queue), 1);
    bool large = false, maps = false;
    int small = 0;
    for (mc_purge_item *item = mc_purge_queue_take(&queue, 5, 100000, 10000000, &next), *after; item != NULL;
         item = after) {
        after = item->next;
        large = large || strcmp(item->text, "large") == 0;
        maps = maps || strcmp(item->text, ":maps") == 0;
        small += strncmp(item->text, "small:", 6) == 0;
        free(item);
    }
    ck_assert(large && maps);
    ck_assert_int_eq(small, 100);
    ck_assert_int_eq(queue.count, 0);
}
END_TEST

START_TEST(tilesets_without_end_become_everything)
{
    apr_time_t next;
    for (int i = 0; i <= MC_PURGE_QUEUE_MAX; i++)
        (void)mc_purge_queue_add(&queue, apr_psprintf(pool, "tileset%d", i), i, true);
    ck_assert_int_eq(queue.count, 1);
    ck_assert_str_ne(take_due(MC_PURGE_QUEUE_MAX, &next), "");
    while (queue.count > 0)
        (void)take_due(2 * MC_PURGE_QUEUE_MAX, &next);
}
END_TEST

START_TEST(addresses_find_the_queue_full)
{
    for (int i = 0; i < MC_PURGE_QUEUE_MAX; i++)
        ck_assert_int_eq(mc_purge_queue_add(&queue, apr_psprintf(pool, "http://h/%d", i), 0, false), MC_PURGE_WAITS);
    ck_assert_int_eq(mc_purge_queue_add(&queue, "http://h/new", 0, false), MC_PURGE_FULL);
    ck_assert_int_eq(mc_purge_queue_add(&queue, "http://h/7", 0, false), MC_PURGE_WAITS);
    mc_purge_queue_clear(&queue);
    ck_assert_int_eq(queue.count, 0);
}
END_TEST

UNIT_MAIN("purge_queue", a_text_that_changes_again_is_sent_when_due_and_once_more, what_failed_keeps_its_turn,
          too_many_keys_become_those_of_their_tileset, tilesets_without_end_become_everything,
          addresses_find_the_queue_full)
