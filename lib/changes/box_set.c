/* See box_set.h. */
#include "changes/box_set.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

enum { SLOTS = 4 * MC_BOX_SET_MAX, EMPTY = 0, FINEST = -40, STEP = 2 };
#define FARTHEST 1e15

/* Which box of the set lies in a cell: a table of places by the hash of the cell of a box's least corner. */
typedef struct mc_box_lattice {
    int exponent;     /* of the side of a cell: a power of two */
    int slots[SLOTS]; /* place + 1; EMPTY */
} mc_box_lattice;

mc_box_set *
mc_box_set_create(apr_pool_t *pool)
{
    mc_box_set *set = apr_pcalloc(pool, sizeof(*set));
    set->boxes = apr_palloc(pool, sizeof(*set->boxes) * (MC_BOX_SET_MAX + 1));
    set->lattice = apr_pcalloc(pool, sizeof(*set->lattice));
    set->lattice->exponent = FINEST;
    return set;
}

mc_box_set *
mc_box_set_create_whole(apr_pool_t *pool)
{
    mc_box_set *set = apr_pcalloc(pool, sizeof(*set));
    set->whole = true;
    return set;
}

typedef struct box_cell {
    double x, y;
} box_cell;

static box_cell
cell_of(const mc_box_lattice *lattice, const mc_extent *box)
{
    return (box_cell){ floor(ldexp(box->minx, -lattice->exponent)) + 0.0,
                       floor(ldexp(box->miny, -lattice->exponent)) + 0.0 };
}

static void
put_box(mc_box_set *set, const mc_extent *box)
{
    mc_box_lattice *lattice = set->lattice;
    const box_cell cell = cell_of(lattice, box);
    for (unsigned slot = (unsigned)mc_hash64(&cell, sizeof(cell), 0) % SLOTS;; slot = (slot + 1) % SLOTS) {
        int place = lattice->slots[slot];
        if (place == EMPTY) {
            set->boxes[set->count++] = *box;
            lattice->slots[slot] = set->count;
            return;
        }
        const box_cell known = cell_of(lattice, &set->boxes[place - 1]);
        if (known.x != cell.x || known.y != cell.y)
            continue;
        set->boxes[place - 1] = mc_extent_union(&set->boxes[place - 1], box); /* its corner stays in the cell */
        return;
    }
}

/* All boxes into a lattice that is coarser. */
static void
coarsen_lattice(mc_box_set *set)
{
    int count = set->count;
    set->lattice->exponent += STEP;
    memset(set->lattice->slots, EMPTY, sizeof(set->lattice->slots));
    set->count = 0;
    for (int i = 0; i < count; i++) {
        const mc_extent box = set->boxes[i]; /* the place may be written meanwhile, never one behind it */
        put_box(set, &box);
    }
}

void
mc_box_set_add(mc_box_set *set, const mc_extent *box)
{
    bool sound = box->minx <= box->maxx && box->miny <= box->maxy && fabs(box->minx) <= FARTHEST &&
                 fabs(box->miny) <= FARTHEST && fabs(box->maxx) <= FARTHEST && fabs(box->maxy) <= FARTHEST;
    set->whole = set->whole || !sound;
    if (set->whole)
        return;
    put_box(set, box);
    while (set->count > MC_BOX_SET_MAX)
        coarsen_lattice(set);
}
