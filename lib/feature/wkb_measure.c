/* Where well-known binary ends and where it lies, without making anything of it: see geometry.h. */
#include <math.h>
#include <string.h>

#include "feature/geometry.h"

enum { POINT = 1, LINE = 2, POLYGON = 3, MULTIPOINT = 4, MULTIPOLYGON = 6 };

#define EWKB_Z 0x80000000U
#define EWKB_M 0x40000000U
#define EWKB_SRID 0x20000000U

typedef struct measure {
    const uint8_t *at, *end;
    const mc_extent *box;
    mc_extent bounds; /* of what has been passed, as long as it does not meet the box */
    bool meets;
    bool swapped; /* the bytes are of the other order than this machine's */
} measure;

static bool
take_word(uint32_t *word, measure *m)
{
    if (m->end - m->at < 4)
        return false;
    memcpy(word, m->at, 4);
    m->at += 4;
    if (m->swapped)
        *word = __builtin_bswap32(*word);
    return true;
}

static double
number_at(const uint8_t *bytes, bool swapped)
{
    uint64_t bits;
    double value;
    memcpy(&bits, bytes, 8);
    if (swapped)
        bits = __builtin_bswap64(bits);
    memcpy(&value, &bits, 8);
    return value;
}

/* Of most geometries the first vertex is inside of the box, and the others need not be looked at. */
static bool
pass_vertices(measure *m, uint32_t count, size_t stride)
{
    if (count > (size_t)(m->end - m->at) / stride)
        return false;
    const uint8_t *behind = m->at + count * stride;
    for (; !m->meets && m->at < behind; m->at += stride) {
        double x = number_at(m->at, m->swapped), y = number_at(m->at + 8, m->swapped);
        m->bounds = (mc_extent){ x < m->bounds.minx ? x : m->bounds.minx, y < m->bounds.miny ? y : m->bounds.miny,
                                 x > m->bounds.maxx ? x : m->bounds.maxx, y > m->bounds.maxy ? y : m->bounds.maxy };
        m->meets = m->bounds.minx <= m->box->maxx && m->bounds.maxx >= m->box->minx && m->bounds.miny <= m->box->maxy &&
                   m->bounds.maxy >= m->box->miny;
    }
    m->at = behind;
    return true;
}

/* Byte order, type (without what it says of Z, M and SRID), bytes of a vertex. */
static bool
take_head(uint32_t *type, size_t *stride, measure *m)
{
    const uint16_t one = 1;
    uint8_t machine;
    uint32_t word, srid;
    if (m->at >= m->end || *m->at > 1)
        return false;
    memcpy(&machine, &one, 1);
    m->swapped = *m->at++ != machine;
    if (!take_word(&word, m) || ((word & EWKB_SRID) != 0 && !take_word(&srid, m)))
        return false;
    uint32_t iso = (word & 0x0FFFFFFFU) / 1000;
    *type = (word & 0x0FFFFFFFU) % 1000;
    *stride =
        8 * (2U + ((word & EWKB_Z) != 0 || iso == 1 || iso == 3) + ((word & EWKB_M) != 0 || iso == 2 || iso == 3));
    return true;
}

/* A point, a line or a polygon. */
static bool
pass_plain(measure *m, uint32_t type, size_t stride)
{
    uint32_t rings = 1, count = 1;
    if (type < POINT || type > POLYGON || (type == POLYGON && !take_word(&rings, m)))
        return false;
    for (uint32_t i = 0; i < rings; i++)
        if ((type != POINT && !take_word(&count, m)) || !pass_vertices(m, count, stride))
            return false;
    return true;
}

size_t
mc_wkb_measure(bool *meets, const void *bytes, size_t size, const mc_extent *box)
{
    const uint8_t *begin = bytes;
    measure m = {
        .at = begin, .end = begin + size, .box = box, .bounds = { HUGE_VAL, HUGE_VAL, -HUGE_VAL, -HUGE_VAL }
    };
    uint32_t type, members = 1;
    size_t stride;
    bool good = take_head(&type, &stride, &m);
    if (good && (type < MULTIPOINT || type > MULTIPOLYGON))
        good = pass_plain(&m, type, stride);
    else if (good) {
        good = take_word(&members, &m);
        for (uint32_t i = 0; good && i < members; i++)
            good = take_head(&type, &stride, &m) && pass_plain(&m, type, stride);
    }
    *meets = m.meets;
    return good ? (size_t)(m.at - begin) : 0;
}
