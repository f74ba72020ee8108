/* Planes of levels from which features have gone, and where they are looked at. */
#ifndef MC_OVERVIEW_OVERVIEW_REVEAL_PRIVATE_H
#define MC_OVERVIEW_OVERVIEW_REVEAL_PRIVATE_H

#include "base/workers.h"
#include "overview/overview_planes.h"
#include "overview/reveal/overview_reveal.h"

/* Features between two looks at the deadline. */
enum { MC_REVEAL_ITEMS_AT_ONCE = 256 };

enum {
    MC_REVEAL_SQUARE = 4,       /* pixels of the side of squares, in which rows are looked for */
    MC_REVEAL_SQUARE_BITS = 64, /* of a word */
    MC_REVEAL_KNOWN = 256,      /* features whose reach is remembered */
};

typedef struct mc_reveal_square {
    mc_sieve_box shown;  /* pixels in which rows may be seen, from where `below` says on */
    int64_t below;       /* ordinals */
    int64_t least, most; /* all rows that may be seen have ordinals between these */
    bool looked_at, shows;
} mc_reveal_square;

/* A plane is looked at by one thread at a time, with the plane's own pools. */
typedef struct mc_reveal_plane {
    mc_overview_plane *plane;
    int finest, level; /* levels that it tells about, from one to the other; features of the latter are looked at */
    uint32_t levels;   /* a bit for each of these */
    bool looked_at;
    int open;            /* squares that are looked at and have pixels that nothing hides so far */
    int64_t least, most; /* as of the squares */
    int reach;           /* pixels by which symbols reach over their geometry, but for tips of sharp bends */
    int columns, rows;   /* of squares */
    mc_reveal_square *squares;
    uint64_t *bits; /* of the squares, row by row: whether it is open */
    size_t words;   /* of a row of these */
    struct {
        const char *const *values;
        double reach;
    } known[MC_REVEAL_KNOWN];   /* by the place of a feature's values in memory, which many share */
    apr_array_header_t *wanted; /* mc_reveal_wanted */
    apr_array_header_t *sifted; /* mc_reveal_item: the rows that were looked at */
} mc_reveal_plane;

struct mc_overview_reveal {
    const mc_overview_job *job;
    const mc_reveal_level *levels;
    int level_count;
    apr_array_header_t **items; /* of each level, in a root pool: pointers to mc_reveal_item */
    mc_overview_planes *planes;
    mc_reveal_plane *looks;
    int count;                  /* of the planes */
    apr_array_header_t *rows;   /* mc_reveal_row: those that are sifted */
    struct mc_workers *workers; /* NULL: none */
    apr_pool_t *pool;
};

/* Runs a task for each of so many planes or levels; the baton is the reveal. */
mc_error *mc_reveal_run(mc_overview_reveal *reveal, mc_task *task, int count) MC_CHECKED;

/* ---- overview_reveal_find.c */

/* Whether a row is among those that are wanted in a plane. `have`: the levels that have the row. */
bool mc_reveal_wants(const mc_reveal_plane *look, const mc_extent *extent, int64_t ordinal, uint32_t have);

/* ---- overview_reveal_squares.c */

/* Pixels of the plane in reach of an extent in units of the CRS, on any lattice; false: there are none. */
bool mc_reveal_find_pixels(mc_sieve_box *box, const mc_reveal_plane *look, const mc_extent *extent);

/* Whether a square that has a pixel of the box is looked at. */
bool mc_reveal_meets_square(const mc_reveal_plane *look, const mc_sieve_box *box);

/* Whether a feature may touch a pixel that is looked at, and that nothing hides so far; the pixels in its reach. */
bool mc_reveal_may_be_shown(mc_sieve_box *box, const mc_overview_reveal *reveal, mc_reveal_plane *look,
                            const mc_reveal_item *item);

/* Reads a feature as maps of the plane do; false: it has nothing that they show. */
bool mc_reveal_read(mc_feature *read, mc_overview_plane *plane, const mc_overview_feature *feature);

/* Whether a feature counts in a plane, reaches pixels that are open there, and was read. */
bool mc_reveal_reaches(mc_sieve_box *box, mc_feature *read, const mc_overview_reveal *reveal, mc_reveal_plane *look,
                       const mc_reveal_item *item);

mc_sieve_box mc_reveal_box_of_square(const mc_reveal_plane *look, int x, int y);

/* Which squares have open pixels: these are looked at. */
void mc_reveal_note_squares(mc_reveal_plane *look);

/* A square all of whose pixels are hidden by now is not looked at any more. */
void mc_reveal_close_square(mc_reveal_plane *look, int x, int y);

/* The first and the last square of a box that is not empty. */
static inline mc_sieve_box
mc_reveal_squares_of(const mc_sieve_box *box)
{
    return (mc_sieve_box){ box->x0 / MC_REVEAL_SQUARE, box->y0 / MC_REVEAL_SQUARE, (box->x1 - 1) / MC_REVEAL_SQUARE,
                           (box->y1 - 1) / MC_REVEAL_SQUARE };
}

#endif
