/*
 * Which symbols of the trained tables a file of ours uses: read from its coded data, several symbols at a time, without
 * looking at what they say. What stands behind the last one that is used is left out of its tables, which are a tenth
 * of a small tile.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/bytes.h"
#include "image/jpeg/jpeg_header.h"
#include "image/jpeg/jpeg_tables.h"
#include "memory/scratch.h"

/* Larger files gain less than a hundredth, and take longer. Less than a part in WORTH is not worth reading on. An MCU
 * has four blocks of luminance and two of colour.
 */
enum { LARGEST = 24 << 10, BLOCKS = 6, LUMINANCES = 4, COEFFICIENTS = 64, LOOK = 11, LONGEST = 16, WORTH = 160 };

enum { BEHIND = 16 }; /* bytes that reading a segment may touch after its end */

/*
 * What the next LOOK bits say: how many bits the symbols take whose codes are in them, with the bits that follow each
 * code; by how many coefficients they get on; the last of their AC symbols in its table; and whether the block ends.
 * bits 0: the first code is longer.
 */
typedef struct next_symbols {
    uint8_t bits, coefficients, last, end;
} next_symbols;

typedef struct code_table {
    uint16_t first[LONGEST + 1]; /* of the codes of each length */
    uint16_t count[LONGEST + 1];
    uint8_t index[LONGEST + 1]; /* of the first one's symbol */
    const uint8_t *symbols;
    next_symbols looks[1 << LOOK];
} code_table;

typedef struct code_tables {
    atomic_bool ready;
    code_table tables[2][2];           /* of luminance and colour: DC, AC */
    const code_table *next[BLOCKS][2]; /* by the block of the MCU: for what follows in it, for its beginning */
} code_tables;

/* The index of the symbol whose code these 16 bits begin with, if it has at most `most` bits; -1: none. */
static int
find_code(const code_table *table, unsigned bits, int most, int *length)
{
    for (int l = 1; l <= most; l++) {
        unsigned code = bits >> (LONGEST - l);
        if (code - table->first[l] < table->count[l] && code >= table->first[l]) {
            *length = l;
            return (int)(table->index[l] + code - table->first[l]);
        }
    }
    return -1;
}

static void
number_codes(code_table *table, const uint8_t *trained)
{
    unsigned code = 0, index = 0;
    table->symbols = trained + LONGEST;
    for (int l = 1; l <= LONGEST; l++, code <<= 1) {
        table->first[l] = (uint16_t)code;
        table->index[l] = (uint8_t)index;
        table->count[l] = trained[l - 1];
        code += trained[l - 1];
        index += trained[l - 1];
    }
}

/* One more symbol into a look. False: the bits do not tell. */
static bool
add_to_look(next_symbols *l, const code_table *table, bool dc, unsigned bits)
{
    int length, most = LOOK - l->bits,
                index = most <= 0 ? -1 : find_code(table, bits << l->bits & 0xffff, most, &length);
    if (index < 0)
        return false;
    unsigned symbol = table->symbols[index];
    l->bits = (uint8_t)(l->bits + length + (int)(dc ? symbol : symbol & 15));
    l->end = !dc && symbol == 0;
    if (!l->end)
        l->coefficients = (uint8_t)(l->coefficients + (dc ? 1 : (symbol >> 4) + 1));
    if (!dc && index > l->last)
        l->last = (uint8_t)index;
    return !l->end;
}

static void
fill_looks(code_table *table, const code_table *ac)
{
    for (unsigned i = 0; i < 1 << LOOK; i++) {
        next_symbols *l = &table->looks[i];
        bool dc = table != ac;
        *l = (next_symbols){ 0 };
        while (add_to_look(l, dc ? table : ac, dc, i << (LONGEST - LOOK)))
            dc = false;
    }
}

static bool
is_trained_table(const mc_jpeg_codes *codes, const uint8_t *trained)
{
    return memcmp(codes->at + 1, trained, LONGEST) == 0 &&
           memcmp(codes->at + 1 + LONGEST, trained + LONGEST, codes->count) == 0;
}

static void
fill_code_tables(code_tables *codes, const mc_jpeg_trained *trained)
{
    for (int c = 0; c < 2; c++) {
        for (int k = 0; k < 2; k++)
            number_codes(&codes->tables[c][k], trained->tables[c][k]);
        for (int k = 0; k < 2; k++)
            fill_looks(&codes->tables[c][k], &codes->tables[c][1]);
    }
    for (int i = 0; i < BLOCKS; i++)
        for (int k = 0; k < 2; k++)
            codes->next[i][k] = &codes->tables[i >= LUMINANCES][1 - k];
}

static const code_tables *
find_code_tables(const mc_jpeg_header *header)
{
    static code_tables all[MC_JPEG_TRAINED];
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static const uint8_t numbers[MC_JPEG_TABLES] = { 0x00, 0x10, 0x01, 0x11 };
    for (int s = 0; s < MC_JPEG_TRAINED && header->count == MC_JPEG_TABLES; s++) {
        bool same = true;
        for (int i = 0; i < MC_JPEG_TABLES && same; i++)
            same = header->codes[i].at[0] == numbers[i] &&
                   is_trained_table(&header->codes[i], mc_jpeg_trained_tables[s].tables[i / 2][i % 2]);
        if (!same)
            continue;
        if (atomic_load_explicit(&all[s].ready, memory_order_acquire))
            return &all[s];
        pthread_mutex_lock(&mutex);
        if (!all[s].ready) /* once they are, others read them without the lock */
            fill_code_tables(&all[s], &mc_jpeg_trained_tables[s]);
        atomic_store_explicit(&all[s].ready, true, memory_order_release);
        pthread_mutex_unlock(&mutex);
        return &all[s];
    }
    return NULL;
}

/* A segment between two markers, without stuffed bytes and with some bytes more. */
typedef struct coded_segment {
    const uint8_t *bytes;
    size_t bits;
} coded_segment;

static inline uint64_t
bits_at(const uint8_t *bytes, size_t at)
{
    uint64_t word;
    memcpy(&word, bytes + (at >> 3), sizeof(word));
    return __builtin_bswap64(word) << (at & 7);
}

/* One symbol, where a look does not tell. */
static next_symbols
look_closely(const code_table *table, uint64_t bits, bool dc)
{
    next_symbols found = { .bits = LONGEST, .end = true };
    int length, index = find_code(table, (unsigned)(bits >> 48), LONGEST, &length);
    if (index < 0)
        return found; /* and the segment will not end where it should */
    unsigned symbol = table->symbols[index];
    found.bits = (uint8_t)((unsigned)length + (dc ? symbol : symbol & 15));
    found.end = !dc && symbol == 0;
    found.coefficients = (uint8_t)(dc ? 1 : found.end ? 0 : (symbol >> 4) + 1);
    found.last = (uint8_t)(dc ? 0 : index);
    return found;
}

/* Where reading a segment is. */
typedef struct segment_place {
    const uint8_t *bytes;
    size_t at, bits;
    int blocks;                 /* that are left */
    unsigned k, part;           /* coefficients of the block that have been read; which block of its MCU it is */
    const code_table *table;    /* for what follows */
    unsigned luminance, colour; /* the last of the AC symbols that have been read */
} segment_place;

static bool
goes_on(const segment_place *p)
{
    return p->blocks > 0 && p->at < p->bits;
}

/* Without a branch that depends on where a block ends. */
static inline __attribute__((always_inline)) void
read_on(segment_place *p, const code_tables *codes)
{
    uint64_t bits = bits_at(p->bytes, p->at);
    next_symbols l = p->table->looks[bits >> (64 - LOOK)];
    /* What seems to follow the last coefficient is the next block's. */
    if (__builtin_expect(l.bits == 0 || p->k + l.coefficients + l.end > COEFFICIENTS, 0))
        l = look_closely(p->table, bits, p->k == 0);
    if (p->part < LUMINANCES)
        p->luminance = l.last > p->luminance ? l.last : p->luminance;
    else
        p->colour = l.last > p->colour ? l.last : p->colour;
    unsigned next = p->k + l.coefficients, ends = l.end || next >= COEFFICIENTS, part = p->part + ends;
    p->k = ends ? 0 : next;
    p->at += l.bits;
    p->blocks -= (int)ends;
    p->part = part == BLOCKS ? 0 : part;
    p->table = codes->next[p->part][ends];
}

static bool
end_segment(unsigned last[2], const segment_place *p)
{
    last[0] = p->luminance > last[0] ? p->luminance : last[0];
    last[1] = p->colour > last[1] ? p->colour : last[1];
    return p->blocks == 0 && p->at <= p->bits && p->bits - p->at < 8;
}

/* Raises `last`. Segments do not depend on each other: the processor reads two at once. False: that is not what was
 * coded. */
static bool
read_segments(unsigned last[2], const coded_segment segments[2], int blocks, const code_tables *codes)
{
    const code_table *table = codes->next[0][1];
    segment_place a = { .bytes = segments[0].bytes, .bits = segments[0].bits, .blocks = blocks, .table = table };
    segment_place b = { .bytes = segments[1].bytes, .bits = segments[1].bits, .blocks = blocks, .table = table };
    while (goes_on(&a) && goes_on(&b)) {
        read_on(&a, codes);
        read_on(&b, codes);
    }
    while (goes_on(&a))
        read_on(&a, codes);
    while (goes_on(&b))
        read_on(&b, codes);
    bool ended = end_segment(last, &a);
    return (segments[1].bits == 0 || end_segment(last, &b)) && ended;
}

/* Returns what follows the segment and its marker. `room` has the segment's bytes. */
static const uint8_t *
copy_segment(coded_segment *s, uint8_t *room, const uint8_t *at, const uint8_t *end)
{
    size_t size = 0;
    for (bool marker = false; at < end && !marker;) {
        const uint8_t *stop = memchr(at, 0xff, (size_t)(end - at));
        size_t run = stop == NULL ? (size_t)(end - at) : (size_t)(stop - at);
        memcpy(room + size, at, run);
        size += run;
        marker = stop != NULL && stop[1] != 0;
        if (stop != NULL && !marker)
            room[size++] = 0xff;
        at += run + (stop == NULL ? 0 : 2);
    }
    memset(room + size, 0xff, BEHIND);
    *s = (coded_segment){ room, size * 8 };
    return at;
}

/* `most`: symbols of both AC tables. False: that is not what was coded, or hardly anything can be left out. */
static bool
find_last_symbols(unsigned last[2], const mc_jpeg_parts *parts, const code_tables *codes, unsigned most, uint8_t *room)
{
    const uint8_t *at = parts->data + parts->scan, *end = parts->data + parts->end;
    while (at < end) {
        coded_segment two[2] = { { room, 0 }, { room, 0 } };
        at = copy_segment(&two[0], room, at, end);
        if (at < end)
            at = copy_segment(&two[1], room + two[0].bits / 8 + BEHIND, at, end);
        if (!read_segments(last, two, parts->restart_interval * BLOCKS, codes) ||
            (most - last[0] - last[1] - 2) * WORTH < parts->end)
            return false;
    }
    return true;
}

/* The same counts without the symbols behind the last one. */
static void
shorten_codes(mc_jpeg_codes *codes, uint8_t *room, unsigned last)
{
    unsigned left = last + 1;
    memcpy(room, codes->at, 1 + LONGEST + left);
    for (int l = 1; l <= LONGEST; l++) {
        if (room[l] > left)
            room[l] = (uint8_t)left;
        left -= room[l];
    }
    *codes = (mc_jpeg_codes){ room, last + 1 };
}

void
mc_jpeg_leave_out(mc_jpeg_sink *file)
{
    static const uint8_t scan[] = { 3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0 };
    mc_jpeg_parts parts;
    mc_jpeg_header header;
    if (file->size > LARGEST || !mc_jpeg_parse(&parts, file->data, file->size) ||
        !mc_jpeg_header_read(&header, &parts) || parts.unit_width != 16 || parts.unit_height != 16 ||
        parts.restart_interval != (parts.width + 15) / 16 ||
        memcmp(parts.data + parts.scan - sizeof(scan), scan, sizeof(scan)) != 0)
        return;
    const code_tables *codes = find_code_tables(&header);
    uint8_t *room = codes == NULL ? NULL : mc_scratch_acquire(file->size + 2 * BEHIND);
    if (room == NULL)
        return;
    unsigned last[2] = { 0, 0 };
    if (find_last_symbols(last, &parts, codes, header.codes[1].count + header.codes[3].count, room)) {
        uint8_t shorter[2][1 + LONGEST + 256];
        for (int colour = 0; colour < 2; colour++)
            shorten_codes(&header.codes[colour * 2 + 1], shorter[colour], last[colour]);
        size_t size = mc_jpeg_header_write(room, &header), coded = file->size - parts.scan;
        memcpy(file->data, room, size);
        memmove(file->data + size, file->data + parts.scan, coded);
        file->size = size + coded;
    }
    mc_scratch_release(room);
}
