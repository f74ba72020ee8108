/*
 * Each block is read twice: to count what occurs, runs of zeros too, and to write it. A run of zeros is its first zero
 * and a match with the byte before, so that there is one distance, of one bit.
 */
#include "compress/literal_deflate.h"

#include <libdeflate.h>
#include <stdbool.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/bytes.h"
#include "compress/huffman.h"

enum {
    BLOCK_SIZE = 1 << 16, /* smaller ones follow the image closer, and have more tables: measured */
    RUN_MIN = 12,         /* the shortest run of zeros that is looked for; 8 cost relief a fifth of the speed */
    RUNS_MAX = BLOCK_SIZE / (RUN_MIN + 1) + 1,
    LITERALS = 256,
    END_OF_BLOCK = 256,
    LENGTHS = 29, /* symbols for the length of a match, from 257 on */
    SYMBOLS = 257 + LENGTHS,
    MATCH_MIN = 3,
    MATCH_MAX = 258,
    CODE_MAX = 12, /* bits of a literal: four of them, and seven bits that wait, fit into 64 */
    CODE_SHIFT = 6,
    SAMPLED = 4,                    /* one in four literals is counted: 0.1 % more bytes */
    SAMPLED_BLOCK = BLOCK_SIZE / 2, /* bytes of a block of which fewer would not tell enough */
    LENGTH_SYMBOLS = 19             /* of the code in which the lengths of codes are written */
};

/* The first length of each symbol, and its extra bits (RFC 1951, 3.2.5). */
static const uint16_t length_begins[LENGTHS] = { 3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                                 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 };
static const uint8_t length_extra[LENGTHS] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                               2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };

/* Zeros within a block: the first one is written as it is. */
typedef struct zero_run {
    uint16_t begin, matched; /* and how many follow the first */
} zero_run;

/* Bits that wait to be written, the first one lowest. */
typedef struct bit_writer {
    uint64_t bits;
    unsigned count;
    uint8_t *at;
} bit_writer;

typedef struct literal_block {
    const uint8_t *begin, *end;
    bool last;
    uint32_t counts[SYMBOLS];
    uint8_t lengths[SYMBOLS + 1]; /* and that of the distance */
    uint32_t codes[SYMBOLS];      /* bits, above their number in the lowest six bits */
    int run_count;
    zero_run runs[RUNS_MAX];
} literal_block;

static inline void
put_bits(bit_writer *writer, uint64_t bits, unsigned count)
{
    writer->bits |= bits << writer->count;
    writer->count += count;
}

/* Writes whole bytes, at most seven; up to eight are overwritten behind them. */
static inline void
flush_bits(bit_writer *writer)
{
    uint64_t bits = writer->bits;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bits = __builtin_bswap64(bits);
#endif
    memcpy(writer->at, &bits, sizeof(bits));
    writer->at += writer->count >> 3;
    writer->bits >>= writer->count & ~7u;
    writer->count &= 7;
}

/* Which of 32 bytes are zero, the first one in the lowest bit. */
static inline uint32_t
find_zeros(const uint8_t *bytes)
{
#ifdef __SSE2__
    const __m128i zero = _mm_setzero_si128();
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(bytes + 16));
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(low, zero)) |
           (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(high, zero)) << 16;
#else
    uint32_t zeros = 0;
    for (int i = 0; i < 32; i++)
        zeros |= (uint32_t)(bytes[i] == 0) << i;
    return zeros;
#endif
}

static const uint8_t *
skip_zeros(const uint8_t *at, const uint8_t *end)
{
    while (end - at >= 8 && mc_little64(at) == 0)
        at += 8;
    while (at < end && *at == 0)
        at++;
    return at;
}

/* The first of at least RUN_MIN zeros from `at` on; `end` where there are none. */
static inline const uint8_t *
find_run(const uint8_t *at, const uint8_t *end)
{
    while (end - at >= 32) {
        uint32_t zeros = find_zeros(at), runs = zeros & zeros >> 1;
        runs &= runs >> 2;
        runs &= runs >> 4;
        runs &= runs >> 4; /* twelve in a row */
        if (runs != 0)
            return at + __builtin_ctz(runs);
        at += zeros >> 31 == 0 ? 32 : 32 - __builtin_clz(~zeros);
    }
    while (end - at >= RUN_MIN) {
        const uint8_t *behind = skip_zeros(at, end);
        if (behind - at >= RUN_MIN)
            return at;
        at = behind + 1;
    }
    return end;
}

/* How much of `left` zeros the next match takes: no rest is too short for a match. */
static inline unsigned
next_match(size_t left)
{
    return left <= MATCH_MAX ? (unsigned)left : left - MATCH_MAX < MATCH_MIN ? MATCH_MAX - MATCH_MIN : MATCH_MAX;
}

/* Above ten bytes each two bits below the highest one of `length` - 3 have a symbol. */
static inline unsigned
length_symbol(unsigned length)
{
    unsigned above = length - MATCH_MIN;
    if (length == MATCH_MAX)
        return LENGTHS - 1;
    if (above < 8)
        return above;
    unsigned highest = 31 - (unsigned)__builtin_clz(above);
    return 4 * (highest - 1) + (above >> (highest - 2) & 3);
}

static inline void
count_four(uint32_t counts[4][LITERALS], uint32_t bytes)
{
    counts[0][bytes & 255]++;
    counts[1][bytes >> 8 & 255]++;
    counts[2][bytes >> 16 & 255]++;
    counts[3][bytes >> 24]++;
}

/* How often literals occur, in several tables: one counter that is raised twice in a row waits for itself. */
typedef struct literal_counts {
    uint32_t sampled[4][LITERALS]; /* one in SAMPLED of those that are counted here */
    uint32_t all[LITERALS];
} literal_counts;

/* Of long stretches a part is counted, eight bytes at a time, unless `exact`. */
static void
count_literals(literal_counts *counts, const uint8_t *at, const uint8_t *end, bool exact)
{
    if (!exact)
        for (; end - at >= 8 * SAMPLED; at += 8 * SAMPLED) {
            uint64_t eight = mc_little64(at);
            count_four(counts->sampled, (uint32_t)eight);
            count_four(counts->sampled, (uint32_t)(eight >> 32));
        }
    for (; at < end; at++)
        counts->all[*at]++;
}

static void
count_matches(literal_block *block, unsigned matched)
{
    for (unsigned length; matched > 0; matched -= length) {
        length = next_match(matched);
        block->counts[257 + length_symbol(length)]++;
    }
}

/* Each literal gets a code where not all of them are counted. */
static void
sum_literals(literal_block *block, const literal_counts *counts, bool exact)
{
    for (int i = 0; i < LITERALS; i++) {
        uint32_t sampled =
            counts->sampled[0][i] + counts->sampled[1][i] + counts->sampled[2][i] + counts->sampled[3][i];
        block->counts[i] = counts->all[i] + sampled * SAMPLED + (exact ? 0 : 1);
    }
}

static void
count_symbols(literal_block *block, bool exact)
{
    literal_counts counts;
    memset(&counts, 0, sizeof(counts));
    memset(block->counts, 0, sizeof(block->counts));
    block->run_count = 0;
    for (const uint8_t *at = block->begin; at < block->end;) {
        const uint8_t *run = find_run(at, block->end);
        if (run == block->end) {
            count_literals(&counts, at, run, exact);
            break;
        }
        count_literals(&counts, at, run + 1, exact);
        at = skip_zeros(run + RUN_MIN, block->end);
        zero_run found = { (uint16_t)(run - block->begin), (uint16_t)(at - run - 1) };
        block->runs[block->run_count++] = found;
        count_matches(block, found.matched);
    }
    sum_literals(block, &counts, exact);
    block->counts[END_OF_BLOCK] = 1;
}

/* Symbols for the lengths of all codes (RFC 1951, 3.2.7), each with the number of its repetitions above eight bits. */
static int
pack_lengths(uint16_t *packed, uint32_t *counts, const uint8_t *lengths, int count)
{
    int made = 0;
    for (int i = 0, same; i < count; i += same) {
        for (same = 1; i + same < count && lengths[i + same] == lengths[i];)
            same++;
        int left = same;
        if (lengths[i] != 0) {
            packed[made++] = lengths[i];
            left--;
        }
        while (left >= 3) {
            int most = lengths[i] != 0 ? 6 : left > 10 ? 138 : 10, taken = left < most ? left : most;
            int symbol = lengths[i] != 0 ? 16 : taken > 10 ? 18 : 17;
            packed[made++] = (uint16_t)(symbol | (taken - (symbol == 18 ? 11 : 3)) << 8);
            left -= taken;
        }
        while (left-- > 0)
            packed[made++] = lengths[i];
    }
    for (int i = 0; i < made; i++)
        counts[packed[i] & 255]++;
    return made;
}

/* The head of a block with codes of its own: which codes they are. */
static void
write_codes(bit_writer *writer, const literal_block *block)
{
    static const uint8_t order[LENGTH_SYMBOLS] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
    static const uint8_t extra[3] = { 2, 3, 7 };
    uint16_t packed[SYMBOLS + 1];
    uint32_t counts[LENGTH_SYMBOLS] = { 0 };
    uint8_t lengths[LENGTH_SYMBOLS];
    mc_huffman_code codes[LENGTH_SYMBOLS];
    int count = pack_lengths(packed, counts, block->lengths, SYMBOLS + 1), ordered = LENGTH_SYMBOLS;
    mc_huffman_lengths(lengths, counts, LENGTH_SYMBOLS, 7);
    mc_huffman_codes(codes, lengths, LENGTH_SYMBOLS);
    while (ordered > 4 && lengths[order[ordered - 1]] == 0)
        ordered--;
    put_bits(writer, (uint64_t)(block->last ? 1 : 0) | 2u << 1, 3);
    put_bits(writer, SYMBOLS - 257, 5);
    put_bits(writer, 0, 5); /* one distance */
    put_bits(writer, (uint64_t)(ordered - 4), 4);
    flush_bits(writer);
    for (int i = 0; i < ordered; i++) {
        put_bits(writer, lengths[order[i]], 3);
        flush_bits(writer);
    }
    for (int i = 0; i < count; i++) {
        int symbol = packed[i] & 255;
        put_bits(writer, codes[symbol].bits, codes[symbol].length);
        if (symbol >= 16)
            put_bits(writer, packed[i] >> 8, extra[symbol - 16]);
        flush_bits(writer);
    }
}

static inline uint64_t
code_bits(uint32_t code)
{
    return code >> CODE_SHIFT;
}

/* Of one code, or of several that were added: together at most 63 bits. */
static inline unsigned
count_code_bits(uint32_t codes)
{
    return codes & ((1 << CODE_SHIFT) - 1);
}

static inline void
put_code(bit_writer *writer, uint32_t code)
{
    put_bits(writer, code_bits(code), count_code_bits(code));
}

/* Four at a time, joined before they wait for what is in the writer. */
static inline void
write_literals(bit_writer *writer, const uint32_t *codes, const uint8_t *at, const uint8_t *end)
{
    for (; end - at >= 4; at += 4) {
        uint32_t a = codes[at[0]], b = codes[at[1]], c = codes[at[2]], d = codes[at[3]];
        uint64_t low = code_bits(a) | code_bits(b) << count_code_bits(a);
        uint64_t high = code_bits(c) | code_bits(d) << count_code_bits(c);
        put_bits(writer, low | high << count_code_bits(a + b), count_code_bits(a + b + c + d));
        flush_bits(writer);
    }
    for (; at < end; at++)
        put_code(writer, codes[*at]);
    flush_bits(writer);
}

static void
write_matches(bit_writer *writer, const uint32_t *codes, unsigned matched)
{
    for (unsigned length; matched > 0; matched -= length) {
        length = next_match(matched);
        unsigned symbol = length_symbol(length);
        put_code(writer, codes[257 + symbol]);
        put_bits(writer, length - length_begins[symbol], length_extra[symbol]);
        put_bits(writer, 0, 1); /* the distance */
        flush_bits(writer);
    }
}

static void
write_block(bit_writer *shared, const literal_block *block)
{
    bit_writer writer = *shared; /* in registers */
    const uint8_t *at = block->begin;
    write_codes(&writer, block);
    for (int i = 0; i < block->run_count; i++) {
        const uint8_t *matched = block->begin + block->runs[i].begin + 1;
        write_literals(&writer, block->codes, at, matched);
        write_matches(&writer, block->codes, block->runs[i].matched);
        at = matched + block->runs[i].matched;
    }
    write_literals(&writer, block->codes, at, block->end);
    put_code(&writer, block->codes[END_OF_BLOCK]);
    flush_bits(&writer);
    *shared = writer;
}

/* The most bytes that the block can take, its head included; where literals were not all counted each has the longest
 * code. */
static size_t
bound_block(const literal_block *block, bool exact)
{
    enum { HEAD_BITS = 17 + LENGTH_SYMBOLS * 3 + (SYMBOLS + 1) * (7 + 7) };
    size_t bits = HEAD_BITS + (exact ? 0 : (size_t)(block->end - block->begin) * CODE_MAX);
    for (int i = exact ? 0 : LITERALS; i < SYMBOLS; i++)
        bits += (size_t)block->counts[i] * (block->lengths[i] + (i < 257 ? 0u : 1u + length_extra[i - 257]));
    return bits / 8 + 1;
}

static void
find_block_codes(literal_block *block, bool exact)
{
    mc_huffman_code codes[SYMBOLS];
    count_symbols(block, exact);
    mc_huffman_lengths(block->lengths, block->counts, SYMBOLS, CODE_MAX);
    mc_huffman_codes(codes, block->lengths, SYMBOLS);
    for (int i = 0; i < SYMBOLS; i++)
        block->codes[i] = (uint32_t)codes[i].bits << CODE_SHIFT | codes[i].length;
    block->lengths[SYMBOLS] = 1;
}

size_t
mc_literal_deflate(uint8_t *out, size_t room, const uint8_t *data, size_t size)
{
    enum { AROUND = 2 + 4 + sizeof(uint64_t) }; /* head, checksum, and what a flush writes too far */
    literal_block block;
    bit_writer writer = { .at = out + 2 };
    const uint8_t *end = data + size;
    block.end = data;
    do {
        block.begin = block.end;
        block.last = end - block.begin <= BLOCK_SIZE;
        block.end = block.last ? end : block.begin + BLOCK_SIZE;
        size_t around = (size_t)(writer.at - out) + AROUND;
        bool exact = block.end - block.begin < SAMPLED_BLOCK;
        find_block_codes(&block, exact);
        if (!exact && around + bound_block(&block, false) > room)
            find_block_codes(&block, exact = true);
        if (around + bound_block(&block, exact) > room)
            return 0;
        write_block(&writer, &block);
    } while (!block.last);
    out[0] = 0x78; /* deflate with a window of 32 KB; no dictionary, the fastest level */
    out[1] = 0x01;
    if (writer.count > 0)
        *writer.at++ = (uint8_t)writer.bits;
    (void)mc_store_big32(writer.at, libdeflate_adler32(1, data, size));
    return (size_t)(writer.at + 4 - out);
}
