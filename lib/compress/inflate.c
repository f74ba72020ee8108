/*
 * An inflater for streams that shrink by a factor of ten and more: image tiles of which most is transparent. There the
 * long repetitions decide, not the codes: a repetition of zeros costs nothing but its symbol, and one of a few bytes is
 * copied sixteen bytes at a time. Dense streams are libdeflate's.
 */
#include "compress/inflate.h"

#include <libdeflate.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

enum { CODE_BITS_MAX = 15, TABLE_BITS = 9, LITERALS = 288, DISTANCES = 32, LENGTH_CODES = 19, ADLER_BASE = 65521 };

/* A Huffman code: short codes by a table, longer ones bit by bit along the canonical order. */
typedef struct inflate_code {
    uint16_t table[1 << TABLE_BITS]; /* symbol << 4 | bits; 0: a longer code, or none */
    uint16_t counts[CODE_BITS_MAX + 1], symbols[LITERALS];
} inflate_code;

typedef struct inflating {
    const uint8_t *in, *in_end;
    uint64_t bits;
    unsigned count;  /* of the bits that are valid */
    size_t overread; /* bytes made up beyond the end of the stream */
    uint8_t *out;
    size_t at, size;
    size_t first; /* of the bytes that are not zero; `size` while there is none */
    size_t zeros; /* from here to `at` all is zero */
    inflate_code literals, distances;
} inflating;

/* At least 56 bits. Beyond its end the stream goes on with zeros, which `finish` finds out. */
static inline void
refill_inflate_bits(inflating *s)
{
    if (s->in_end - s->in >= 8) {
        uint64_t more;
        memcpy(&more, s->in, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        more = __builtin_bswap64(more);
#endif
        s->bits |= more << s->count;
        s->in += (63 - s->count) >> 3;
        s->count |= 56;
        return;
    }
    while (s->count <= 56) {
        if (s->in < s->in_end)
            s->bits |= (uint64_t)*s->in++ << s->count;
        else
            s->overread++;
        s->count += 8;
    }
}

static inline unsigned
consume_inflate_bits(inflating *s, unsigned count)
{
    unsigned value = (unsigned)(s->bits & ((1u << count) - 1));
    s->bits >>= count;
    s->count -= count;
    return value;
}

static unsigned
reverse_code_bits(unsigned value, unsigned bits)
{
    unsigned result = 0;
    for (unsigned i = 0; i < bits; i++)
        result |= (value >> i & 1) << (bits - 1 - i);
    return result;
}

static void
fill_table(inflate_code *c, const uint8_t *lengths, unsigned count, const uint16_t *first)
{
    uint16_t next[CODE_BITS_MAX + 1];
    memcpy(next, first, sizeof(next));
    memset(c->table, 0, sizeof(c->table));
    for (unsigned symbol = 0; symbol < count; symbol++) {
        unsigned bits = lengths[symbol];
        if (bits == 0 || bits > TABLE_BITS)
            continue;
        for (unsigned i = reverse_code_bits(next[bits]++, bits); i < 1 << TABLE_BITS; i += 1u << bits)
            c->table[i] = (uint16_t)(symbol << 4 | bits);
    }
}

/* False for lengths that are no code. One symbol alone, or none, may leave the rest of the code unused. */
static bool
build_huffman_code(inflate_code *c, const uint8_t *lengths, unsigned count)
{
    uint16_t first[CODE_BITS_MAX + 1] = { 0 }, place[CODE_BITS_MAX + 2] = { 0 };
    int left = 1;
    memset(c->counts, 0, sizeof(c->counts));
    for (unsigned i = 0; i < count; i++)
        c->counts[lengths[i]]++;
    unsigned used = count - c->counts[0];
    c->counts[0] = 0;
    for (unsigned bits = 1; bits <= CODE_BITS_MAX; bits++) {
        left = left * 2 - c->counts[bits];
        if (left < 0)
            return false;
        first[bits] = (uint16_t)((first[bits - 1] + c->counts[bits - 1]) << 1);
        place[bits + 1] = (uint16_t)(place[bits] + c->counts[bits]);
    }
    if (left > 0 && (used > 1 || c->counts[1] != used))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (lengths[i] != 0)
            c->symbols[place[lengths[i]]++] = (uint16_t)i;
    fill_table(c, lengths, count, first);
    return true;
}

/* -1 when the bits are no code. */
static int
long_symbol(inflating *s, const inflate_code *c)
{
    int value = 0, first = 0, place = 0;
    for (unsigned bits = 1; bits <= CODE_BITS_MAX; bits++) {
        value |= (int)(s->bits >> (bits - 1) & 1);
        if (value - first < c->counts[bits]) {
            consume_inflate_bits(s, bits);
            return c->symbols[place + value - first];
        }
        place += c->counts[bits];
        first = (first + c->counts[bits]) << 1;
        value <<= 1;
    }
    return -1;
}

static inline int
next_symbol(inflating *s, const inflate_code *c)
{
    unsigned entry = c->table[s->bits & ((1 << TABLE_BITS) - 1)];
    if (entry == 0)
        return long_symbol(s, c);
    consume_inflate_bits(s, entry & 15);
    return (int)(entry >> 4);
}

/* Copies 1..258 bytes from `distance` before; what lies behind them is zero before and after. */
#ifdef __SSE4_1__
static inline void
copy_match(uint8_t *to, size_t distance, size_t length)
{
    const uint8_t *from = to - distance, *end = to + length;
    if (distance >= 16) {
        for (uint8_t *at = to; at < end; at += 16, from += 16)
            _mm_storeu_si128((__m128i *)(void *)at, _mm_loadu_si128((const __m128i *)(const void *)from));
    } else {
        uint8_t order[16];
        for (size_t i = 0; i < 16; i++)
            order[i] = (uint8_t)(i % distance);
        __m128i pattern = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)from),
                                           _mm_loadu_si128((const __m128i *)(const void *)order));
        size_t step = 16 - 16 % distance;
        for (uint8_t *at = to; at < end; at += step)
            _mm_storeu_si128((__m128i *)(void *)at, pattern);
    }
    _mm_storeu_si128((__m128i *)(void *)(to + length), _mm_setzero_si128());
}
#else
static inline void
copy_match(uint8_t *to, size_t distance, size_t length)
{
    for (size_t i = 0; i < length; i++)
        to[i] = to[i - distance];
}
#endif

/* Long runs are the same `count` bits again and again: `before` is what they were read from. `room` is how many bytes
 * they may fill at most: those whose copies are known to be zero. */
static inline void
repeat_zeros(inflating *s, size_t length, size_t room, uint64_t before, unsigned count)
{
    uint64_t mask = ((uint64_t)1 << count) - 1;
    for (; s->count >= count && ((s->bits ^ before) & mask) == 0 && length <= room; room -= length) {
        consume_inflate_bits(s, count);
        s->at += length;
    }
}

static inline bool
is_zero_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word == 0;
}

/* `before`, `count`: the bits as they were before the match was read, and how many there were. */
static inline bool
expand_inflate_match(inflating *s, size_t distance, size_t length, uint64_t before, unsigned count)
{
    if (distance > s->at || length > s->size - s->at)
        return false;
    size_t begin = s->at, at = begin + length, from = begin - distance;
    s->at = at;
    if (from >= s->zeros || from + length <= s->first) {
        size_t left = s->size - s->at, zeros_left = from >= s->zeros ? left : s->first - (from + length);
        repeat_zeros(s, length, left < zeros_left ? left : zeros_left, before, count - s->count);
        return true;
    }
    copy_match(s->out + begin, distance, length);
    while (at >= begin + 8 && is_zero_word(s->out + at - 8))
        at -= 8;
    while (at > begin && s->out[at - 1] == 0)
        at--;
    if (at > begin)
        s->zeros = at;
    return true;
}

static bool
inflate_symbols(inflating *s)
{
    static const uint16_t length_base[29] = { 3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                              31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 };
    static const uint8_t length_bits[29] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                             2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };
    static const uint16_t distance_base[30] = { 1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                                33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                                1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577 };
    for (;;) {
        refill_inflate_bits(s); /* for a length and a distance: at most 48 bits */
        uint64_t before = s->bits;
        unsigned count = s->count;
        int symbol = next_symbol(s, &s->literals);
        if (symbol < 0 || s->overread > 8)
            return false;
        if (symbol < 256) {
            if (s->at == s->size)
                return false;
            if (symbol != 0) {
                if (s->first == s->size)
                    s->first = s->at;
                s->out[s->at] = (uint8_t)symbol;
                s->zeros = s->at + 1;
            }
            s->at++;
            continue;
        }
        if (symbol == 256)
            return true;
        if (symbol > 285)
            return false;
        size_t length = length_base[symbol - 257] + consume_inflate_bits(s, length_bits[symbol - 257]);
        symbol = next_symbol(s, &s->distances);
        if (symbol < 0 || symbol > 29)
            return false;
        size_t distance = distance_base[symbol] + consume_inflate_bits(s, symbol < 4 ? 0 : (unsigned)symbol / 2 - 1);
        if (!expand_inflate_match(s, distance, length, before, count))
            return false;
    }
}

static bool
build_fixed(inflating *s)
{
    uint8_t lengths[LITERALS];
    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 112);
    memset(lengths + 256, 7, 24);
    memset(lengths + 280, 8, 8);
    bool built = build_huffman_code(&s->literals, lengths, LITERALS);
    memset(lengths, 5, DISTANCES);
    return built && build_huffman_code(&s->distances, lengths, DISTANCES);
}

/* RFC 1951, 3.2.7: the lengths of both codes, themselves coded. */
static bool
build_dynamic(inflating *s)
{
    static const uint8_t order[LENGTH_CODES] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
    uint8_t lengths[LITERALS + DISTANCES + 138] = { 0 };
    unsigned literals = consume_inflate_bits(s, 5) + 257, distances = consume_inflate_bits(s, 5) + 1,
             codes = consume_inflate_bits(s, 4) + 4, count = 0;
    if (literals > 286)
        return false;
    for (unsigned i = 0; i < codes; i++) {
        refill_inflate_bits(s);
        lengths[order[i]] = (uint8_t)consume_inflate_bits(s, 3);
    }
    if (!build_huffman_code(&s->distances, lengths, LENGTH_CODES))
        return false;
    memset(lengths, 0, LENGTH_CODES);
    while (count < literals + distances) {
        refill_inflate_bits(s);
        int symbol = next_symbol(s, &s->distances);
        if (symbol < 0 || s->overread > 8 || (symbol == 16 && count == 0))
            return false;
        if (symbol < 16) {
            lengths[count++] = (uint8_t)symbol;
            continue;
        }
        unsigned repeated = symbol == 16   ? 3 + consume_inflate_bits(s, 2)
                            : symbol == 17 ? 3 + consume_inflate_bits(s, 3)
                                           : 11 + consume_inflate_bits(s, 7);
        memset(lengths + count, symbol == 16 ? lengths[count - 1] : 0, repeated);
        count += repeated;
    }
    /* Without the end's code the block would never end. */
    return count == literals + distances && lengths[256] != 0 && build_huffman_code(&s->literals, lengths, literals) &&
           build_huffman_code(&s->distances, lengths + literals, distances);
}

static bool
copy_stored(inflating *s)
{
    consume_inflate_bits(s, s->count & 7);
    refill_inflate_bits(s);
    unsigned length = consume_inflate_bits(s, 16), check = consume_inflate_bits(s, 16);
    /* What has been read ahead goes back. */
    size_t ahead = s->count / 8;
    if (ahead < s->overread || length != (~check & 0xffff))
        return false;
    s->in -= ahead - s->overread;
    s->overread = 0;
    s->bits = 0;
    s->count = 0;
    if (length > (size_t)(s->in_end - s->in) || length > s->size - s->at)
        return false;
    for (unsigned i = 0; i < length; i++) {
        s->out[s->at] = s->in[i];
        if (s->in[i] != 0) {
            s->first = s->first == s->size ? s->at : s->first;
            s->zeros = s->at + 1;
        }
        s->at++;
    }
    s->in += length;
    return true;
}

static bool
inflate_blocks(inflating *s)
{
    for (bool last = false; !last;) {
        refill_inflate_bits(s);
        last = consume_inflate_bits(s, 1) == 1;
        unsigned type = consume_inflate_bits(s, 2);
        if (type == 3 || s->overread > 8)
            return false;
        if (type == 0 && !copy_stored(s))
            return false;
        if (type != 0 && (!(type == 1 ? build_fixed(s) : build_dynamic(s)) || !inflate_symbols(s)))
            return false;
    }
    return s->at == s->size;
}

/* Of zeros the checksum (RFC 1950, 8.2) is known without a look at them. */
static uint32_t
adler32_with_zeros(const uint8_t *out, size_t size, size_t begin, size_t end)
{
    if (begin >= end)
        return (uint32_t)(size % ADLER_BASE) << 16 | 1;
    uint32_t sum = libdeflate_adler32((uint32_t)(begin % ADLER_BASE) << 16 | 1, out + begin, end - begin);
    uint64_t low = sum & 0xffff, high = sum >> 16;
    high = (high + (size - end) % ADLER_BASE * low) % ADLER_BASE;
    return (uint32_t)(high << 16 | low);
}

bool
mc_inflate_sparse(uint8_t *out, size_t size, const uint8_t *stream, size_t length, size_t *begin, size_t *end)
{
    /* A method of 8, a window of at most 32 KB, no dictionary (RFC 1950, 2.2). */
    if (length < 6 || (stream[0] & 15) != 8 || stream[0] >> 4 > 7 || (stream[1] & 32) != 0 ||
        (stream[0] << 8 | stream[1]) % 31 != 0)
        return false;
    inflating s = { .in = stream + 2, .in_end = stream + length, .out = out, .size = size, .first = size };
    memset(out, 0, size + MC_INFLATE_SLACK);
    if (!inflate_blocks(&s))
        return false;
    consume_inflate_bits(&s, s.count & 7);
    refill_inflate_bits(&s);
    uint32_t expected = 0;
    for (int i = 0; i < 4; i++)
        expected = expected << 8 | consume_inflate_bits(&s, 8);
    if (s.overread > s.count / 8)
        return false;
    *begin = s.first;
    *end = s.zeros;
    return expected == adler32_with_zeros(out, size, s.first, s.zeros);
}
