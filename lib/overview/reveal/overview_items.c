/* See overview_items.h. Ordinals are sorted by their bits, from the lowest: there are hundreds of thousands of them,
 * and comparing two by pointers waits for memory. */
#include "overview/reveal/overview_items.h"

#include <apr_strings.h>

enum { ITEM_BITS = 11, ITEM_BUCKETS = 1 << ITEM_BITS };

typedef struct item_key {
    uint64_t order; /* least for what is painted last */
    mc_reveal_item *item;
} item_key;

void
mc_reveal_push_item(apr_array_header_t *items, const mc_reveal_item *item)
{
    APR_ARRAY_PUSH(items, mc_reveal_item *) = apr_pmemdup(items->pool, item, sizeof(*item));
}

/* One pass: keys that are equal in these bits stay in their order. */
static void
sort_keys_by_bits(item_key *to, const item_key *from, int count, int shift)
{
    int starts[ITEM_BUCKETS + 1] = { 0 };
    for (int i = 0; i < count; i++)
        starts[(from[i].order >> shift) % ITEM_BUCKETS + 1]++;
    for (int b = 0; b < ITEM_BUCKETS; b++)
        starts[b + 1] += starts[b];
    for (int i = 0; i < count; i++)
        to[starts[(from[i].order >> shift) % ITEM_BUCKETS]++] = from[i];
}

void
mc_reveal_sort_items(apr_array_header_t *items)
{
    const int count = items->nelts;
    item_key *keys = apr_palloc(items->pool, sizeof(*keys) * (size_t)(count + 1));
    item_key *sorted = apr_palloc(items->pool, sizeof(*keys) * (size_t)(count + 1));
    mc_reveal_item *copies = apr_palloc(items->pool, sizeof(*copies) * (size_t)(count + 1));
    int64_t last = 0;
    for (int i = 0; i < count; i++) {
        const int64_t ordinal = APR_ARRAY_IDX(items, i, mc_reveal_item *)->feature->ordinal;
        last = ordinal > last ? ordinal : last;
    }
    for (int i = 0; i < count; i++) {
        mc_reveal_item *item = APR_ARRAY_IDX(items, i, mc_reveal_item *);
        keys[i] = (item_key){ (uint64_t)(last - item->feature->ordinal), item };
    }
    for (int shift = 0; shift < 63 && last >> shift > 0; shift += ITEM_BITS) {
        item_key *from = keys;
        sort_keys_by_bits(sorted, from, count, shift);
        keys = sorted;
        sorted = from;
    }
    for (int i = 0; i < count; i++) {
        copies[i] = *keys[i].item;
        APR_ARRAY_IDX(items, i, mc_reveal_item *) = &copies[i];
    }
}
