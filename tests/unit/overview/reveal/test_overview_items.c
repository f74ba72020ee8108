/* Items in drawing order, the one that is painted last first, however large the numbers of their rows are. */
#include "overview/reveal/overview_items.h"

#include "unit.h"

enum { COUNT = 5000 };

static mc_overview_feature features[COUNT];

/* Ordinals below `most`, many of them twice. */
static apr_array_header_t *
make_items(int64_t most, mc_reveal_role role)
{
    static uint64_t number = 88172645463325252U;
    apr_array_header_t *items = apr_array_make(pool, COUNT, sizeof(mc_reveal_item *));
    for (int i = 0; i < COUNT; i++) {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        features[i] = (mc_overview_feature){ .ordinal = (int64_t)(number % (uint64_t)most), .bounds = { i, 0, i, 1 } };
        mc_reveal_push_item(items, &(mc_reveal_item){ .feature = &features[i], .role = role });
    }
    return items;
}

static void
assert_last_first(const apr_array_header_t *items)
{
    for (int i = 0; i < items->nelts; i++) {
        const mc_reveal_item *item = APR_ARRAY_IDX(items, i, const mc_reveal_item *);
        if (i > 0)
            ck_assert(item->feature->ordinal <= APR_ARRAY_IDX(items, i - 1, const mc_reveal_item *)->feature->ordinal);
    }
}

START_TEST(items_are_sorted_and_none_is_lost)
{
    const int64_t most[] = { 1, 3000, 2049, 4194305, (int64_t)1 << 45 };
    for (size_t m = 0; m < sizeof(most) / sizeof(most[0]); m++) {
        apr_array_header_t *items = make_items(most[m], MC_REVEAL_STAYS);
        bool found[COUNT] = { false };
        mc_reveal_sort_items(items);
        assert_last_first(items);
        ck_assert_int_eq(items->nelts, COUNT);
        for (int i = 0; i < COUNT; i++)
            found[APR_ARRAY_IDX(items, i, const mc_reveal_item *)->feature - features] = true;
        for (int i = 0; i < COUNT; i++)
            ck_assert(found[i]);
    }
    apr_array_header_t *none = apr_array_make(pool, 1, sizeof(mc_reveal_item *));
    mc_reveal_sort_items(none);
    ck_assert_int_eq(none->nelts, 0);
}
END_TEST

UNIT_MAIN("overview_items", items_are_sorted_and_none_is_lost)
