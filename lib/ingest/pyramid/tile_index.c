/* See tile_index.h. */
#include "ingest/pyramid/tile_index.h"

#include <stdlib.h>

/* A complete binary tree: node 1 is the root, those of node n are 2n and 2n + 1, the last half are images. */
typedef struct tile_index_node {
    mc_tile_range range;
    int last; /* highest number of an image in it; -1: none */
} tile_index_node;

typedef struct item {
    uint64_t place; /* on the curve */
    int number;
} item;

struct mc_tile_index {
    int leaves;
    tile_index_node *nodes;
};

static uint64_t
interleave_index_bits(uint32_t value)
{
    uint64_t v = value;
    v = (v | v << 16) & 0x0000ffff0000ffffu;
    v = (v | v << 8) & 0x00ff00ff00ff00ffu;
    v = (v | v << 4) & 0x0f0f0f0f0f0f0f0fu;
    v = (v | v << 2) & 0x3333333333333333u;
    return (v | v << 1) & 0x5555555555555555u;
}

static int
compare_tile_items(const void *a, const void *b)
{
    const item *left = a, *right = b;
    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    return left->number - right->number;
}

static bool
is_index_range_empty(const mc_tile_range *range)
{
    return range->minx >= range->maxx || range->miny >= range->maxy;
}

static tile_index_node
join_index_nodes(const tile_index_node *a, const tile_index_node *b)
{
    if (a->last < 0 || b->last < 0)
        return a->last < 0 ? *b : *a;
    tile_index_node both = *a;
    both.range = mc_tile_range_union(&a->range, &b->range);
    both.last = a->last > b->last ? a->last : b->last;
    return both;
}

mc_tile_index *
mc_tile_index_create(const mc_tile_range *ranges, int count, apr_pool_t *pool)
{
    mc_tile_index *made = apr_pcalloc(pool, sizeof(*made));
    item *items = apr_palloc(pool, sizeof(*items) * (size_t)(count + 1));
    for (made->leaves = 1; made->leaves < count;)
        made->leaves *= 2;
    made->nodes = apr_palloc(pool, sizeof(tile_index_node) * 2 * (size_t)made->leaves);
    for (int i = 0; i < count; i++) {
        uint32_t x = (uint32_t)((int64_t)ranges[i].minx + ranges[i].maxx) / 2;
        uint32_t y = (uint32_t)((int64_t)ranges[i].miny + ranges[i].maxy) / 2;
        items[i] = (item){ interleave_index_bits(x) | interleave_index_bits(y) << 1, i };
    }
    qsort(items, (size_t)count, sizeof(*items), compare_tile_items);
    for (int i = 0; i < made->leaves; i++) {
        tile_index_node *leaf = &made->nodes[made->leaves + i];
        *leaf = (tile_index_node){ .last = -1 };
        if (i < count && !is_index_range_empty(&ranges[items[i].number]))
            *leaf = (tile_index_node){ ranges[items[i].number], items[i].number };
    }
    for (int i = made->leaves - 1; i > 0; i--)
        made->nodes[i] = join_index_nodes(&made->nodes[2 * i], &made->nodes[2 * i + 1]);
    return made;
}

static bool
search_tile_index(const mc_tile_index *tile_index, int at, const mc_tile_range *block, int after)
{
    const tile_index_node *here = &tile_index->nodes[at];
    if (here->last <= after || here->last < 0 || here->range.minx >= block->maxx || block->minx >= here->range.maxx ||
        here->range.miny >= block->maxy || block->miny >= here->range.maxy)
        return false;
    return at >= tile_index->leaves || search_tile_index(tile_index, 2 * at, block, after) ||
           search_tile_index(tile_index, 2 * at + 1, block, after);
}

bool
mc_tile_index_any(const mc_tile_index *tile_index, const mc_tile_range *block, int after)
{
    return search_tile_index(tile_index, 1, block, after);
}
