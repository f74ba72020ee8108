#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/idle.h"

enum { MOST = 3, MOST_BYTES = 1000 };

typedef struct thing {
    mc_idle_thing idle;
    atomic_int users;
} thing;

static atomic_int destroyed;

static void
destroy_thing(mc_idle_thing *idle)
{
    atomic_fetch_add(&destroyed, 1);
    free(idle);
}

static mc_idle waiting = MC_IDLE(MOST, MOST_BYTES, destroy_thing);

/* Of a file that changed long ago, at another time for each `version`. */
static mc_idle_key
old_key(const char *text, int version)
{
    mc_stamp stamp = { .inode = 7, .size = 100, .mtime_ns = version, .wal_size = -1 };
    return mc_idle_key_of(text, &stamp);
}

static thing *
make_thing(mc_idle_key key, size_t bytes)
{
    thing *made = calloc(1, sizeof(*made));
    ck_assert_ptr_nonnull(made);
    made->idle.key = key;
    made->idle.bytes = bytes;
    return made;
}

static thing *
take_thing(const char *text, int version)
{
    mc_idle_key key = old_key(text, version);
    return (thing *)mc_idle_take(&waiting, &key);
}

START_TEST(things_are_found_by_text_and_stamp)
{
    thing *first = make_thing(old_key("a", 1), 10), *second = make_thing(old_key("a", 1), 10);
    ck_assert_ptr_null(take_thing("a", 1));
    mc_idle_give(&waiting, &first->idle, true);
    mc_idle_give(&waiting, &second->idle, true);
    ck_assert_ptr_null(take_thing("b", 1));
    ck_assert_ptr_eq(take_thing("a", 1), second);
    ck_assert_ptr_eq(take_thing("a", 1), first);
    ck_assert_ptr_null(take_thing("a", 1));
    ck_assert_uint_eq(waiting.bytes, 0);
    mc_idle_give(&waiting, &first->idle, true);
    mc_idle_give(&waiting, &second->idle, false);
    ck_assert_int_eq(destroyed, 1);
    ck_assert_ptr_null(take_thing("a", 2));
    ck_assert_int_eq(destroyed, 2);
    ck_assert_int_eq(waiting.count, 0);
}
END_TEST

START_TEST(number_and_bytes_are_bounded)
{
    static const char *const texts[] = { "a", "b", "c", "d" };
    for (int i = 0; i < 4; i++)
        mc_idle_give(&waiting, &make_thing(old_key(texts[i], 1), 100)->idle, true);
    ck_assert_int_eq(destroyed, 1);
    ck_assert_ptr_null(take_thing("a", 1));
    mc_idle_give(&waiting, &make_thing(old_key("large", 1), 850)->idle, true);
    ck_assert_int_eq(destroyed, 3);
    ck_assert(waiting.count == 2 && waiting.bytes == 950);
    mc_idle_give(&waiting, &make_thing(old_key("too large", 1), MOST_BYTES + 1)->idle, true);
    ck_assert(waiting.count == 2 && destroyed == 4);
    ck_assert_ptr_null(take_thing("too large", 1));
    mc_idle_give(&waiting, &take_thing("large", 1)->idle, false);
    mc_idle_give(&waiting, &take_thing("d", 1)->idle, false);
    ck_assert(waiting.count == 0 && waiting.bytes == 0);
}
END_TEST

START_TEST(what_was_changing_does_not_wait)
{
    mc_stamp stamp = { .inode = 7, .mtime_ns = apr_time_now() * 1000, .wal_size = -1 };
    mc_idle_give(&waiting, &make_thing(mc_idle_key_of("a", &stamp), 1)->idle, true);
    ck_assert(waiting.count == 0 && destroyed == 1);
    mc_stamp none = { 0 };
    mc_idle_give(&waiting, &make_thing(mc_idle_key_of("address", &none), 1)->idle, true);
    mc_idle_key key = mc_idle_key_of("address", &none);
    mc_idle_thing *taken = mc_idle_take(&waiting, &key);
    ck_assert_ptr_nonnull(taken);
    mc_idle_give(&waiting, taken, false);
}
END_TEST

static void *
use_things(void *unused)
{
    for (int i = 0; i < 20000; i++) {
        mc_idle_key key = old_key(i % 3 == 0 ? "a" : "b", i % 50 == 0 ? 2 : 1);
        thing *mine = (thing *)mc_idle_take(&waiting, &key);
        if (mine == NULL)
            mine = make_thing(key, (size_t)(i % 400));
        if (atomic_fetch_add(&mine->users, 1) != 0)
            return &waiting; /* somebody else has it too */
        atomic_fetch_sub(&mine->users, 1);
        mc_idle_give(&waiting, &mine->idle, i % 7 != 0);
    }
    return unused;
}

START_TEST(a_thing_is_of_one_thread)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_things, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert(waiting.count <= MOST && waiting.bytes <= MOST_BYTES);
}
END_TEST

UNIT_MAIN("idle", things_are_found_by_text_and_stamp, number_and_bytes_are_bounded, what_was_changing_does_not_wait,
          a_thing_is_of_one_thread)
