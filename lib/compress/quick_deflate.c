/*
 * ISA-L, and a way around a defect of it. The loops of version 2.30 for x86 take the hash of the third byte of a stream
 * from bits 16 to 47 of the state's address instead of the data. So an entry of the table of matches is overwritten
 * that nobody can foretell, and where that is the entry of one of the first bytes, a match is lost: one stream in some
 * thousands is a little longer than the same one from other memory. Whether that has happened can be computed
 * afterwards; the state is then put elsewhere. Versions without the defect do some streams twice for nothing.
 */
#include "compress/quick_deflate.h"

#ifdef MC_HAVE_ISAL

#include <isa-l/igzip_lib.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum {
    STATE = (sizeof(struct isal_zstream) + 63) & ~63UL,
    TABLES = (ISAL_DEF_LVL1_DEFAULT + 63) & ~63UL,
    STEP = 1 << 16, /* from here on another address has another hash */
    PLACES = 4,
    FIXED_MOST = 256, /* bytes for which codes of their own take more room than they spare, and more time */
    FIRST = 3         /* bytes whose entries can be overwritten, or should be */
};

size_t
mc_quick_deflate_memory(void)
{
    return STATE + TABLES + STEP;
}

/* CRC-32C of four bytes, as the processor's instruction gives it for a beginning of 0: ISA-L's hash. */
static uint32_t
hash_crc32c(uint32_t bytes)
{
    for (int i = 0; i < 32; i++)
        bytes = bytes >> 1 ^ ((bytes & 1) != 0 ? 0x82f63b78u : 0);
    return bytes;
}

static bool
depends_on_place(const struct isal_zstream *stream, const uint8_t *data, size_t size)
{
    uint32_t overwritten = hash_crc32c((uint32_t)((uintptr_t)stream >> 16));
    for (size_t i = 0; i < FIRST && i + 4 <= size; i++) {
        uint32_t bytes;
        memcpy(&bytes, data + i, 4);
        if (((hash_crc32c(bytes) ^ overwritten) & stream->internal_state.hash_mask) == 0)
            return true;
    }
    return false;
}

/*
 * ISA-L's loops leave the upper halves of the vector registers in use (2.30 has no VZEROUPPER at all). From then on
 * each instruction of SSE has to keep what is there, and waits for what was in its register before: all code of the
 * thread that is made of such instructions takes up to three times as long, until somebody clears them.
 */
#ifdef __x86_64__
__attribute__((target("avx"))) static void
clear_upper_halves(void)
{
    _mm256_zeroupper();
}
#endif

static void
free_vector_registers(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx"))
        clear_upper_halves();
#endif
}

/* Where the bytes of a stream lie. */
typedef struct deflate_input {
    const mc_deflate_part *parts;
    int count;
    size_t size;              /* of all of them */
    uint8_t begin[FIRST + 4]; /* their first bytes, */
    size_t begin_size;        /* so many */
} deflate_input;

static deflate_input
look_at_parts(const mc_deflate_part *parts, int count)
{
    deflate_input in = { .parts = parts, .count = count };
    for (int i = 0; i < count; i++) {
        size_t left = sizeof(in.begin) - in.begin_size, some = parts[i].size < left ? parts[i].size : left;
        if (some > 0)
            memcpy(in.begin + in.begin_size, parts[i].data, some);
        in.begin_size += some;
        in.size += parts[i].size;
    }
    return in;
}

/* False where there is no room. */
static bool
deflate_parts(struct isal_zstream *stream, const deflate_input *in)
{
    bool done = true;
    for (int i = 0; i < in->count && done; i++) {
        stream->next_in = (uint8_t *)(uintptr_t)in->parts[i].data; /* only read */
        stream->avail_in = (uint32_t)in->parts[i].size;
        stream->end_of_stream = i == in->count - 1;
        done = isal_deflate(stream) == COMP_OK && stream->avail_in == 0;
    }
    return done && stream->internal_state.state == ZSTATE_END;
}

static size_t
deflate_with_isal(struct isal_zstream *stream, uint8_t *tables, void *out, size_t room, const deflate_input *in,
                  bool gzip)
{
    isal_deflate_init(stream);
    if (in->size <= FIXED_MOST) { /* RFC 1951, 3.2.6 */
        isal_deflate_set_hufftables(stream, NULL, IGZIP_HUFFTABLE_STATIC);
    } else {
        stream->level = 1;
        stream->level_buf = tables;
        stream->level_buf_size = ISAL_DEF_LVL1_DEFAULT;
    }
    stream->gzip_flag = gzip ? IGZIP_GZIP : IGZIP_ZLIB;
    stream->flush = NO_FLUSH;
    stream->next_out = out;
    stream->avail_out = (uint32_t)room;
    bool done = deflate_parts(stream, in);
    free_vector_registers();
    return done ? stream->total_out : 0;
}

size_t
mc_quick_deflate_parts(void *memory, void *out, size_t room, const mc_deflate_part *parts, int count, bool gzip)
{
    /* Where the state may lie, and the tables behind or before it. A stream for which none is good is one in 10^10. */
    static const size_t places[PLACES][2] = {
        { 0, STATE }, { TABLES, 0 }, { STEP, STEP + STATE }, { TABLES + STEP, 0 }
    };
    const deflate_input in = look_at_parts(parts, count);
    uint8_t *bytes = memory;
    size_t written = 0;
    if (in.size > UINT32_MAX || room > UINT32_MAX)
        return 0;
    for (int i = 0; i < PLACES; i++) {
        struct isal_zstream *stream = (struct isal_zstream *)(void *)(bytes + places[i][0]);
        written = deflate_with_isal(stream, bytes + places[i][1], out, room, &in, gzip);
        if (!depends_on_place(stream, in.begin, in.begin_size))
            break;
    }
    return written;
}

size_t
mc_quick_deflate(void *memory, void *out, size_t room, const void *data, size_t size, bool gzip)
{
    const mc_deflate_part part = { data, size };
    return mc_quick_deflate_parts(memory, out, room, &part, 1, gzip);
}

#else

#include <libdeflate.h>

size_t
mc_quick_deflate_memory(void)
{
    return 64; /* libdeflate has its own */
}

size_t
mc_quick_deflate(void *memory, void *out, size_t room, const void *data, size_t size, bool gzip)
{
    (void)memory;
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(1);
    if (compressor == NULL)
        return 0;
    size_t written = gzip ? libdeflate_gzip_compress(compressor, data, size, out, room)
                          : libdeflate_zlib_compress(compressor, data, size, out, room);
    libdeflate_free_compressor(compressor);
    return written;
}

size_t
mc_quick_deflate_parts(void *memory, void *out, size_t room, const mc_deflate_part *parts, int count, bool gzip)
{
    return count == 1 ? mc_quick_deflate(memory, out, room, parts->data, parts->size, gzip) : 0;
}

#endif
