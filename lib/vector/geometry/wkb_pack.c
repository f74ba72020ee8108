/* See wkb_pack.h. What stands where: the specification of TWKB, 0.23, of its authors. */
#include "vector/geometry/wkb_pack.h"

#include <math.h>

#include "vector/geometry/geometry.h"
#include "vector/geometry/wkb_bytes.h"

enum { PACK_POINT = 1, PACK_LINE, PACK_POLYGON, PACK_LAST = 6 };

/* Whole numbers beyond this are not told apart by doubles. */
#define PACK_MOST 9e15

typedef struct wkb_packing {
    mc_wkb_buffer *out;
    const uint8_t *at, *end;
    double scale;    /* whole numbers for a unit */
    int64_t last[2]; /* the vertex before */
} wkb_packing;

size_t
mc_wkb_append_packed(mc_wkb_buffer *buffer, uint64_t number)
{
    uint8_t bytes[10];
    size_t size = 0;
    for (; number >= 0x80; number >>= 7)
        bytes[size++] = (uint8_t)(number | 0x80);
    bytes[size++] = (uint8_t)number;
    mc_wkb_append(buffer, bytes, size);
    return size;
}

static bool
pack_vertices(wkb_packing *p, uint32_t count, int values)
{
    if (count > (size_t)(p->end - p->at) / ((size_t)values * 8))
        return false;
    for (uint32_t i = 0; i < count; i++, p->at += (size_t)values * 8)
        for (int v = 0; v < 2; v++) {
            const double number = mc_wkb_number(p->at + 8 * v, false) * p->scale;
            if (!(fabs(number) < PACK_MOST))
                return false;
            const int64_t whole = llround(number), step = whole - p->last[v];
            mc_wkb_append_packed(p->out, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
            p->last[v] = whole;
        }
    return true;
}

static bool
take_word(uint32_t *word, wkb_packing *p)
{
    return mc_wkb_word(word, &p->at, p->end, false);
}

static bool
pack_single(wkb_packing *p, uint32_t type, int values)
{
    uint32_t rings = 1, count = 1;
    if (type == PACK_POLYGON) {
        if (!take_word(&rings, p))
            return false;
        mc_wkb_append_packed(p->out, rings);
    }
    for (uint32_t i = 0; i < rings; i++) {
        if (type != PACK_POINT) {
            if (!take_word(&count, p))
                return false;
            mc_wkb_append_packed(p->out, count);
        }
        if (!pack_vertices(p, count, values))
            return false;
    }
    return true;
}

static bool
pack_geometry(wkb_packing *p, int digits)
{
    mc_wkb_head head, member;
    uint32_t count;
    if (!mc_wkb_take_head(&head, &p->at, p->end) || head.swapped || head.type < PACK_POINT || head.type > PACK_LAST)
        return false;
    const unsigned zigzag = (unsigned)digits << 1 ^ (unsigned)(digits >> 31);
    const uint8_t first[2] = { (uint8_t)((zigzag & 0x0F) << 4 | head.type), 0 };
    mc_wkb_append(p->out, first, sizeof(first));
    if (head.type <= PACK_POLYGON)
        return pack_single(p, head.type, head.values);
    if (!take_word(&count, p))
        return false;
    mc_wkb_append_packed(p->out, count);
    for (uint32_t i = 0; i < count; i++)
        if (!mc_wkb_take_head(&member, &p->at, p->end) || member.swapped || member.type != head.type - PACK_POLYGON ||
            !pack_single(p, member.type, member.values))
            return false;
    return true;
}

bool
mc_wkb_pack(mc_wkb_buffer *buffer, const void *wkb, size_t size, int digits)
{
    const size_t begin = buffer->size;
    wkb_packing p = { .out = buffer, .at = wkb, .end = (const uint8_t *)wkb + size, .scale = pow(10, digits) };
    bool packed = digits >= -MC_TWKB_DIGITS && digits <= MC_TWKB_DIGITS && pack_geometry(&p, digits);
    if (!packed)
        buffer->size = begin;
    return packed;
}
