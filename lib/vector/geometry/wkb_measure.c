/* Where well-known binary ends and where it lies, without making anything of it: see geometry.h. */
#include <math.h>

#include "vector/geometry/geometry.h"
#include "vector/geometry/wkb_bytes.h"

enum { POINT = 1, LINE = 2, POLYGON = 3, MULTIPOINT = 4, MULTIPOLYGON = 6 };

typedef struct measure {
    const uint8_t *at, *end;
    const mc_extent *box;
    mc_extent bounds; /* of what has been passed, as long as it does not meet the box */
    bool meets;
    mc_wkb_head head;
} measure;

static bool
take_measured_word(uint32_t *word, measure *m)
{
    return mc_wkb_word(word, &m->at, m->end, m->head.swapped);
}

/* Of most geometries the first vertex is inside of the box, and the others need not be looked at. */
static bool
pass_vertices(measure *m, uint32_t count)
{
    size_t stride = (size_t)m->head.values * 8;
    if (count > (size_t)(m->end - m->at) / stride)
        return false;
    const uint8_t *behind = m->at + count * stride;
    for (; !m->meets && m->at < behind; m->at += stride) {
        double x = mc_wkb_number(m->at, m->head.swapped), y = mc_wkb_number(m->at + 8, m->head.swapped);
        m->bounds = (mc_extent){ x < m->bounds.minx ? x : m->bounds.minx, y < m->bounds.miny ? y : m->bounds.miny,
                                 x > m->bounds.maxx ? x : m->bounds.maxx, y > m->bounds.maxy ? y : m->bounds.maxy };
        m->meets = m->bounds.minx <= m->box->maxx && m->bounds.maxx >= m->box->minx && m->bounds.miny <= m->box->maxy &&
                   m->bounds.maxy >= m->box->miny;
    }
    m->at = behind;
    return true;
}

/* A point, a line or a polygon. */
static bool
pass_plain(measure *m)
{
    uint32_t type = m->head.type, rings = 1, count = 1;
    if (type < POINT || type > POLYGON || (type == POLYGON && !take_measured_word(&rings, m)))
        return false;
    for (uint32_t i = 0; i < rings; i++)
        if ((type != POINT && !take_measured_word(&count, m)) || !pass_vertices(m, count))
            return false;
    return true;
}

static size_t
measure_wkb(measure *m, const void *bytes, size_t size, const mc_extent *box)
{
    const uint8_t *begin = bytes;
    *m = (measure){
        .at = begin, .end = begin + size, .box = box, .bounds = { HUGE_VAL, HUGE_VAL, -HUGE_VAL, -HUGE_VAL }
    };
    uint32_t members;
    bool good = mc_wkb_take_head(&m->head, &m->at, m->end);
    if (good && (m->head.type < MULTIPOINT || m->head.type > MULTIPOLYGON))
        good = pass_plain(m);
    else if (good) {
        good = take_measured_word(&members, m);
        for (uint32_t i = 0; good && i < members; i++)
            good = mc_wkb_take_head(&m->head, &m->at, m->end) && pass_plain(m);
    }
    return good ? (size_t)(m->at - begin) : 0;
}

size_t
mc_wkb_measure(bool *meets, const void *bytes, size_t size, const mc_extent *box)
{
    measure m;
    size_t measured = measure_wkb(&m, bytes, size, box);
    *meets = m.meets;
    return measured;
}

bool
mc_wkb_bounds(mc_extent *bounds, const void *bytes, size_t size)
{
    static const mc_extent nowhere = { HUGE_VAL, HUGE_VAL, -HUGE_VAL, -HUGE_VAL };
    measure m;
    if (measure_wkb(&m, bytes, size, &nowhere) == 0)
        return false;
    *bounds = m.bounds;
    return m.bounds.minx <= m.bounds.maxx && m.bounds.miny <= m.bounds.maxy;
}
