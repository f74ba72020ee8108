/* See shared_blocks.h. */
#include "memory/shared_blocks.h"

#include <string.h>

static size_t
round_up_to_line(size_t size)
{
    return (size + 63) & ~(size_t)63;
}

/* One bucket for each two blocks at least: an entry has more than one block as a rule. */
static uint32_t
count_shared_buckets(uint32_t block_count)
{
    uint32_t count = 16;
    while (count < block_count / 2)
        count *= 2;
    return count;
}

size_t
mc_shared_stripe_size(uint32_t block_count)
{
    return round_up_to_line(sizeof(mc_shared_stripe_head)) +
           round_up_to_line(count_shared_buckets(block_count) * sizeof(mc_shared_bucket)) +
           round_up_to_line(block_count * sizeof(mc_shared_slot)) + round_up_to_line(block_count * sizeof(uint32_t)) +
           (size_t)block_count * MC_SHARED_BLOCK;
}

void
mc_shared_stripe_view(mc_shared_stripe *stripe, uint8_t *memory, uint32_t block_count)
{
    uint32_t buckets = count_shared_buckets(block_count);
    *stripe = (mc_shared_stripe){ .bucket_mask = buckets - 1, .block_count = block_count };
    stripe->head = (mc_shared_stripe_head *)(void *)memory;
    memory += round_up_to_line(sizeof(mc_shared_stripe_head));
    stripe->buckets = (mc_shared_bucket *)(void *)memory;
    memory += round_up_to_line(buckets * sizeof(mc_shared_bucket));
    stripe->slots = (mc_shared_slot *)(void *)memory;
    memory += round_up_to_line(block_count * sizeof(mc_shared_slot));
    stripe->links = (_Atomic uint32_t *)(void *)memory;
    memory += round_up_to_line(block_count * sizeof(uint32_t));
    stripe->words = (_Atomic uint64_t *)(void *)memory;
}

/* The words from the cursor on to the end of its block, and how many bytes they are; NULL: the chain has ended. */
static _Atomic uint64_t *
find_shared_words(mc_shared_cursor *cursor, size_t *room)
{
    const mc_shared_stripe *stripe = cursor->stripe;
    if (cursor->at == MC_SHARED_BLOCK) {
        if (cursor->block == 0 || cursor->block > stripe->block_count)
            return NULL;
        cursor->block = atomic_load_explicit(&stripe->links[cursor->block - 1], memory_order_relaxed);
        cursor->at = 0;
    }
    if (cursor->block == 0 || cursor->block > stripe->block_count)
        return NULL;
    *room = MC_SHARED_BLOCK - cursor->at;
    return stripe->words + (size_t)(cursor->block - 1) * MC_SHARED_WORDS + cursor->at / 8;
}

/* Asks the processor for the begin of the block after this one, whose place it cannot guess. */
static void
fetch_next_block(const mc_shared_cursor *cursor)
{
    const mc_shared_stripe *stripe = cursor->stripe;
    uint32_t next = atomic_load_explicit(&stripe->links[cursor->block - 1], memory_order_relaxed);
    if (next == 0 || next > stripe->block_count)
        return;
    const _Atomic uint64_t *words = stripe->words + (size_t)(next - 1) * MC_SHARED_WORDS;
    for (int line = 0; line < 4; line++)
        __builtin_prefetch((const void *)(words + line * 8));
}

/*
 * A writer may be writing there. What comes of that is thrown away, because the sequence of the entry has changed by
 * then; nothing is decided by these bytes before. The copy is by memcpy, which takes two thirds of the time of a loop
 * of atomic loads; such a loop is what ThreadSanitizer sees.
 */
static void
load_shared_words(uint8_t *data, const _Atomic uint64_t *words, size_t size)
{
#ifdef __SANITIZE_THREAD__
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = atomic_load_explicit(&words[at / 8], memory_order_relaxed);
        memcpy(data + at, &word, size - at < 8 ? size - at : 8);
    }
#else
    memcpy(data, (const void *)words, size);
#endif
}

static void
advance_shared_cursor(mc_shared_cursor *cursor, size_t size)
{
    cursor->at += (uint32_t)((size + 7) & ~(size_t)7);
}

bool
mc_shared_read(mc_shared_cursor *cursor, void *data, size_t size)
{
    for (uint8_t *out = data; size > 0;) {
        size_t room;
        const _Atomic uint64_t *words = find_shared_words(cursor, &room);
        if (words == NULL)
            return false;
        size_t part = size < room ? size : room;
        if (size > room)
            fetch_next_block(cursor);
        load_shared_words(out, words, part);
        advance_shared_cursor(cursor, part);
        out += part;
        size -= part;
    }
    return true;
}

bool
mc_shared_compare(mc_shared_cursor *cursor, const void *data, size_t size, bool *equal)
{
    *equal = true;
    for (const uint8_t *in = data; size > 0;) {
        uint8_t piece[256];
        size_t part = size < sizeof(piece) ? size : sizeof(piece);
        if (!mc_shared_read(cursor, piece, part))
            return false;
        *equal = *equal && memcmp(piece, in, part) == 0;
        in += part;
        size -= part;
    }
    return true;
}

static void
store_shared_words(_Atomic uint64_t *words, const uint8_t *data, size_t size)
{
    size_t whole = size / 8;
    for (size_t i = 0; i < whole; i++) {
        uint64_t word;
        memcpy(&word, data + i * 8, 8);
        atomic_store_explicit(&words[i], word, memory_order_relaxed);
    }
    if (size % 8 != 0) {
        uint64_t word = 0;
        memcpy(&word, data + whole * 8, size % 8);
        atomic_store_explicit(&words[whole], word, memory_order_relaxed);
    }
}

bool
mc_shared_write(mc_shared_cursor *cursor, const void *data, size_t size)
{
    for (const uint8_t *in = data; size > 0;) {
        size_t room;
        _Atomic uint64_t *words = find_shared_words(cursor, &room);
        if (words == NULL)
            return false;
        size_t part = size < room ? size : room;
        store_shared_words(words, in, part);
        advance_shared_cursor(cursor, part);
        in += part;
        size -= part;
    }
    return true;
}

uint32_t
mc_shared_blocks_free(const mc_shared_stripe *stripe)
{
    uint32_t used = atomic_load_explicit(&stripe->head->blocks_used, memory_order_relaxed);
    return used < stripe->block_count ? stripe->block_count - used : 0;
}

/* Blocks that were in use before come first: pages that nobody has touched stay with the system. */
static uint32_t
take_one_block(const mc_shared_stripe *stripe)
{
    mc_shared_stripe_head *head = stripe->head;
    uint32_t block = atomic_load_explicit(&head->free_block, memory_order_relaxed);
    if (block > stripe->block_count)
        return 0;
    if (block != 0) {
        uint32_t next = atomic_load_explicit(&stripe->links[block - 1], memory_order_relaxed);
        atomic_store_explicit(&head->free_block, next, memory_order_relaxed);
        return block;
    }
    uint32_t begun = atomic_load_explicit(&head->blocks_begun, memory_order_relaxed);
    if (begun >= stripe->block_count)
        return 0;
    atomic_store_explicit(&head->blocks_begun, begun + 1, memory_order_relaxed);
    return begun + 1;
}

uint32_t
mc_shared_blocks_take(const mc_shared_stripe *stripe, uint32_t count)
{
    uint32_t first = take_one_block(stripe), last = first;
    for (uint32_t i = 1; i < count && last != 0; i++) {
        uint32_t next = take_one_block(stripe);
        atomic_store_explicit(&stripe->links[last - 1], next, memory_order_relaxed);
        last = next;
    }
    if (last == 0)
        return 0;
    atomic_store_explicit(&stripe->links[last - 1], 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&stripe->head->blocks_used, count, memory_order_relaxed);
    return first;
}

bool
mc_shared_blocks_give(const mc_shared_stripe *stripe, uint32_t first, uint32_t count)
{
    mc_shared_stripe_head *head = stripe->head;
    uint32_t last = first;
    for (uint32_t i = 1; i < count && last != 0 && last <= stripe->block_count; i++)
        last = atomic_load_explicit(&stripe->links[last - 1], memory_order_relaxed);
    if (last == 0 || last > stripe->block_count)
        return false;
    atomic_store_explicit(&stripe->links[last - 1], atomic_load_explicit(&head->free_block, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&head->free_block, first, memory_order_relaxed);
    atomic_fetch_sub_explicit(&head->blocks_used, count, memory_order_relaxed);
    return true;
}
