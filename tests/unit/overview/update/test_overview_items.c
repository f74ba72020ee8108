/* Items in drawing order, the one that is painted last first, however large the numbers of their rows are. */
#include "overview/update/overview_items.h"

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
        mc_reveal_push_item(items,
                            &(mc_reveal_item){ .feature = &features[i], .bounds = features[i].bounds, .role = role });
    }
    return items;
}

static void
assert_last_first(const apr_array_header_t *items)
{
    for (int i = 0; i < items->nelts; i++) {
        const mc_reveal_item *item = APR_ARRAY_IDX(items, i, const mc_reveal_item *);
        ck_assert(item->bounds.minx == item->feature->bounds.minx);
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

START_TEST(two_sorted_arrays_become_one)
{
    apr_array_header_t *left = make_items(3000, MC_REVEAL_STAYS), *right = apr_array_make(pool, 8, sizeof(void *));
    mc_overview_feature rows[3] = { { .ordinal = 4000 }, { .ordinal = 1500 }, { .ordinal = 0 } };
    for (int i = 0; i < 3; i++)
        mc_reveal_push_item(right, &(mc_reveal_item){ .feature = &rows[i], .role = MC_REVEAL_ROW });
    mc_reveal_sort_items(left);
    apr_array_header_t *all = mc_reveal_merge_items(left, right, pool);
    ck_assert_int_eq(all->nelts, COUNT + 3);
    assert_last_first(all);
    ck_assert(APR_ARRAY_IDX(all, 0, mc_reveal_item *) == APR_ARRAY_IDX(right, 0, mc_reveal_item *));
    ck_assert_int_eq(mc_reveal_merge_items(right, apr_array_make(pool, 1, sizeof(void *)), pool)->nelts, 3);
}
END_TEST

UNIT_MAIN("overview_items", items_are_sorted_and_none_is_lost, two_sorted_arrays_become_one)
