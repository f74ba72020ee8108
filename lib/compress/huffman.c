/*
 * Lengths are found in place, by the two-queue method over sorted frequencies (Moffat and Katajainen, 1995). Of a code
 * that is too long the longest words are cut, and others made longer until all of them have a place (Kraft's sum).
 */
#include "compress/huffman.h"

#include <stdbool.h>
#include <string.h>

#include "mapcache/error.h"

enum { SYMBOL_BITS = 9, DEPTH_MAX = MC_HUFFMAN_SYMBOLS_MAX };

/* One pass of a radix sort: by eight bits of the keys from `shift` on. */
static void
sort_by_byte(uint64_t *sorted, const uint64_t *keys, int count, int shift)
{
    int begin[257] = { 0 };
    for (int i = 0; i < count; i++)
        begin[(keys[i] >> shift & 255) + 1]++;
    for (int i = 0; i < 256; i++)
        begin[i + 1] += begin[i];
    for (int i = 0; i < count; i++)
        sorted[begin[keys[i] >> shift & 255]++] = keys[i];
}

/* Symbols that occur, with their frequencies above SYMBOL_BITS, the rarest first; of equal ones the lowest symbol. */
static int
sort_symbols(uint64_t *keys, const uint32_t *frequencies, int count)
{
    uint64_t other[MC_HUFFMAN_SYMBOLS_MAX];
    uint32_t bits = 0;
    int used = 0;
    for (int i = 0; i < count; i++)
        if (frequencies[i] > 0) {
            keys[used++] = (uint64_t)frequencies[i] << SYMBOL_BITS | (uint64_t)i;
            bits |= frequencies[i];
        }
    sort_by_byte(other, keys, used, SYMBOL_BITS);
    sort_by_byte(keys, other, used, SYMBOL_BITS + 8);
    if (bits >> 16 == 0)
        return used;
    sort_by_byte(other, keys, used, SYMBOL_BITS + 16);
    memcpy(keys, other, sizeof(*keys) * (size_t)used);
    return used;
}

/* nodes[i]: at first the sorted frequencies; then the parents of the inner nodes, 0 to count - 2. */
static void
join_nodes(uint32_t *nodes, int count)
{
    int leaf = 0, inner = 0;
    for (int next = 0; next < count - 1; next++) {
        uint32_t weight = 0;
        for (int i = 0; i < 2; i++) {
            if (inner < next && (leaf >= count || nodes[inner] < nodes[leaf])) {
                weight += nodes[inner];
                nodes[inner++] = (uint32_t)next;
            } else {
                weight += nodes[leaf++];
            }
        }
        nodes[next] = weight;
    }
}

/* How many words there are of each length up to DEPTH_MAX, by the depths of the inner nodes, from the root down. */
static void
count_lengths(int *counts, uint32_t *nodes, int count)
{
    int inner = count - 2, places = 1;
    nodes[inner] = 0;
    for (int i = inner - 1; i >= 0; i--)
        nodes[i] = nodes[nodes[i]] + 1;
    for (uint32_t depth = 0; places > 0; depth++) {
        int nodes_here = 0;
        for (; inner >= 0 && nodes[inner] == depth; inner--)
            nodes_here++;
        counts[depth] = places - nodes_here;
        places = 2 * nodes_here;
    }
}

/* Cuts words to `limit` bits, and makes others longer, then shorter, until the code is complete. */
static void
limit_lengths(int *counts, int limit)
{
    const uint32_t whole = 1u << limit;
    uint32_t kraft = 0;
    for (int i = limit + 1; i <= DEPTH_MAX; i++) {
        counts[limit] += counts[i];
        counts[i] = 0;
    }
    for (int i = 1; i <= limit; i++)
        kraft += (uint32_t)counts[i] << (limit - i);
    while (kraft > whole) {
        int length = limit - 1;
        while (counts[length] == 0)
            length--;
        counts[length]--;
        counts[length + 1]++;
        kraft -= 1u << (limit - length - 1);
    }
    for (int length = limit; kraft < whole;) {
        uint32_t gain = 1u << (limit - length);
        if (counts[length] == 0 || gain > whole - kraft) {
            length--;
            continue;
        }
        counts[length]--;
        counts[length - 1]++;
        kraft += gain;
    }
}

/* True, with two words of one bit, where no code has to be found. */
static bool
has_trivial_lengths(uint8_t *lengths, const uint64_t *keys, int used)
{
    if (used > 1)
        return false;
    int symbol = used == 0 ? 0 : (int)(keys[0] & ((1u << SYMBOL_BITS) - 1));
    lengths[symbol] = 1;
    lengths[symbol == 0 ? 1 : 0] = 1;
    return true;
}

void
mc_huffman_lengths(uint8_t *lengths, const uint32_t *frequencies, int count, int limit)
{
    uint64_t keys[MC_HUFFMAN_SYMBOLS_MAX];
    uint32_t nodes[MC_HUFFMAN_SYMBOLS_MAX];
    int counts[DEPTH_MAX + 1] = { 0 };
    MC_ASSERT(count >= 2 && count <= MC_HUFFMAN_SYMBOLS_MAX && limit <= 15 && count <= 1 << limit);
    memset(lengths, 0, (size_t)count);
    int used = sort_symbols(keys, frequencies, count);
    if (has_trivial_lengths(lengths, keys, used))
        return;
    for (int i = 0; i < used; i++)
        nodes[i] = (uint32_t)(keys[i] >> SYMBOL_BITS);
    join_nodes(nodes, used);
    count_lengths(counts, nodes, used);
    limit_lengths(counts, limit);
    for (int length = 1, next = used - 1; length <= limit; length++)
        for (int i = 0; i < counts[length]; i++)
            lengths[keys[next--] & ((1u << SYMBOL_BITS) - 1)] = (uint8_t)length;
}

/* The lowest `count` bits, at least one, in the opposite order. */
static uint16_t
reverse_bits(unsigned bits, int count)
{
    bits = (bits & 0x5555) << 1 | (bits >> 1 & 0x5555);
    bits = (bits & 0x3333) << 2 | (bits >> 2 & 0x3333);
    bits = (bits & 0x0f0f) << 4 | (bits >> 4 & 0x0f0f);
    bits = (bits & 0x00ff) << 8 | bits >> 8;
    return (uint16_t)(bits >> (16 - count));
}

void
mc_huffman_codes(mc_huffman_code *codes, const uint8_t *lengths, int count)
{
    unsigned counts[16] = { 0 }, next[16] = { 0 };
    for (int i = 0; i < count; i++)
        counts[lengths[i]]++;
    counts[0] = 0;
    for (int length = 1; length < 16; length++)
        next[length] = (next[length - 1] + counts[length - 1]) << 1;
    for (int i = 0; i < count; i++) {
        codes[i] = (mc_huffman_code){ 0, lengths[i] };
        if (lengths[i] > 0)
            codes[i].bits = reverse_bits(next[lengths[i]]++, lengths[i]);
    }
}
