/*
 * See overview_reveal.h. A row that is not in the level is hidden in each pixel by what lies over it there. Once
 * features have gone, more shines through in their pixels: twice as much, say, where one of them covered half. As long
 * as that is little for all that have gone since the level was built, nothing is done in a pixel. Else what goes
 * now, what is new and what is left are laid over it from the top (what went in earlier updates is not). Below the
 * place where it was hidden before, and above the one where it is hidden now, rows may be seen.
 */
#include "overview/update/overview_reveal.h"

#include <math.h>
#include <string.h>

#include "overview/overview_planes.h"
#include "overview/update/overview_items.h"

enum {
    SQUARE = 4,          /* pixels of the side of squares, in which rows are looked for */
    SQUARE_BITS = 64,    /* of a word */
    KNOWN = 256,         /* features whose reach is remembered */
    ITEMS_AT_ONCE = 256, /* features between two looks at the deadline */
};
/* Pixels by which what is painted of a geometry may lie beside where its bounds and the reach of its symbols say. */
#define PIXELS_OFF 1

typedef struct reveal_square {
    mc_sieve_box shown;  /* pixels in which rows may be seen, from where `below` says on */
    int64_t below;       /* ordinals */
    int64_t least, most; /* all rows that may be seen have ordinals between these */
    bool looked_at, shows;
} reveal_square;

typedef struct reveal_plane {
    mc_overview_plane *plane;
    int finest, level; /* levels that it tells about, from one to the other; features of the latter are looked at */
    uint32_t levels;   /* a bit for each of these */
    bool looked_at;
    int open;            /* squares that are looked at and have pixels that nothing hides so far */
    int64_t least, most; /* as of the squares */
    int reach;           /* pixels by which symbols reach over their geometry, but for tips of sharp bends */
    int columns, rows;   /* of squares */
    reveal_square *squares;
    uint64_t *bits; /* of the squares, row by row: whether it is open */
    size_t words;   /* of a row of these */
    struct {
        const char *const *values;
        double reach;
    } known[KNOWN]; /* by the place of a feature's values in memory, which many share */
} reveal_plane;

struct mc_overview_reveal {
    const mc_overview_job *job;
    const mc_reveal_level *levels;
    int level_count;
    apr_array_header_t **items; /* of each level: pointers to mc_reveal_item */
    mc_overview_planes *planes;
    reveal_plane *looks;
    int count; /* of the planes */
    mc_geometry geometry;
    apr_pool_t *pool, *scratch;
};

static apr_status_t
free_reveal(void *data)
{
    mc_overview_reveal *reveal = data;
    mc_geometry_free(&reveal->geometry);
    return APR_SUCCESS;
}

/* Reads a feature as maps of the plane do; false: it has nothing that they show. */
static bool
read_in_plane(mc_feature *read, mc_overview_reveal *reveal, const mc_overview_plane *plane,
              const mc_overview_feature *feature)
{
    apr_pool_clear(reveal->scratch);
    mc_error *error = (feature->packed ? mc_twkb_read : mc_wkb_read)(&reveal->geometry, feature->geometry,
                                                                     feature->size, &plane->grid, reveal->scratch);
    mc_error_ignore(error);
    *read =
        (mc_feature){ .geometry = &reveal->geometry, .values = (const char **)feature->values, .query = &plane->query };
    return error == MC_OK && !mc_geometry_is_empty(&reveal->geometry);
}

/* ---- Pixels that are looked at ---- */

static double
reach_of_values(reveal_plane *look, const char *const *values)
{
    const size_t at = ((uintptr_t)values / sizeof(void *)) % KNOWN;
    if (look->known[at].values != values) {
        const mc_feature valued = { .values = (const char **)values, .query = &look->plane->query };
        look->known[at].values = values;
        look->known[at].reach = mc_sieve_reach_of(look->plane->sieve, &valued);
    }
    return look->known[at].reach;
}

/* Bounds in pixels of a level as those of a plane. */
static mc_extent
bounds_in_plane(const mc_overview_reveal *reveal, const reveal_plane *look, const mc_extent *bounds)
{
    const double by = reveal->levels[look->level].level->resolution / look->plane->resolution;
    const double left = (double)look->plane->grid.left, top = (double)look->plane->grid.top;
    return (mc_extent){ bounds->minx * by - left, bounds->miny * by - top, bounds->maxx * by - left,
                        bounds->maxy * by - top };
}

/* The same of bounds in units of the CRS. */
static mc_extent
extent_in_plane(const reveal_plane *look, const mc_extent *extent)
{
    const mc_pixel_grid *grid = &look->plane->grid;
    const double left = (double)grid->left, top = (double)grid->top;
    return (mc_extent){ (extent->minx - grid->x0) * grid->per_x - left, (grid->y0 - extent->maxy) * grid->per_y - top,
                        (extent->maxx - grid->x0) * grid->per_x - left, (grid->y0 - extent->miny) * grid->per_y - top };
}

/* Pixels of the plane in reach of bounds there, on any lattice; false: there are none. */
static bool
find_pixels(mc_sieve_box *box, const reveal_plane *look, const mc_extent *bounds, double reach)
{
    const double more = reach + PIXELS_OFF, x0 = bounds->minx - more, y0 = bounds->miny - more;
    const double x1 = ceil(bounds->maxx + more + 0.5), y1 = ceil(bounds->maxy + more + 0.5);
    if (!(x1 > 0 && y1 > 0 && x0 < look->plane->width && y0 < look->plane->height))
        return false;
    *box = (mc_sieve_box){ x0 < 0 ? 0 : (int)x0, y0 < 0 ? 0 : (int)y0,
                           x1 > look->plane->width ? look->plane->width : (int)x1,
                           y1 > look->plane->height ? look->plane->height : (int)y1 };
    return box->x0 < box->x1 && box->y0 < box->y1;
}

/* Whether a square that has a pixel of the box is looked at: a bit for each square stays in the processor's cache,
 * where the pixels of a plane do not. */
static bool
meets_square(const reveal_plane *look, const mc_sieve_box *box)
{
    const int left = box->x0 / SQUARE, right = (box->x1 - 1) / SQUARE;
    for (int y = box->y0 / SQUARE; y <= (box->y1 - 1) / SQUARE; y++) {
        const uint64_t *row = look->bits + (size_t)y * look->words;
        for (int x = left; x <= right; x = (x | (SQUARE_BITS - 1)) + 1) {
            const int last = right < (x | (SQUARE_BITS - 1)) ? right : x | (SQUARE_BITS - 1);
            const uint64_t mask = ~(uint64_t)0 >> (SQUARE_BITS - 1 - (last - x));
            if ((row[x / SQUARE_BITS] >> x % SQUARE_BITS & mask) != 0)
                return true;
        }
    }
    return false;
}

/* Whether the box has a pixel that is looked at and that nothing hides so far. */
static bool
meets_open(const reveal_plane *look, const mc_sieve_box *box)
{
    return meets_square(look, box) && mc_sieve_is_open(look->plane->sieve, box);
}

/* Whether a feature may touch a pixel that is looked at, and that nothing hides so far; the pixels in its reach. */
static bool
may_be_shown(mc_sieve_box *box, const mc_overview_reveal *reveal, reveal_plane *look, const mc_reveal_item *item)
{
    const mc_extent bounds = item->row != NULL ? extent_in_plane(look, &item->row->extent)
                                               : bounds_in_plane(reveal, look, &item->feature->bounds);
    return find_pixels(box, look, &bounds, reach_of_values(look, item->values)) && meets_open(look, box);
}

static mc_sieve_box
box_of_square(const reveal_plane *look, int x, int y)
{
    const int right = (x + 1) * SQUARE, bottom = (y + 1) * SQUARE;
    return (mc_sieve_box){ x * SQUARE, y * SQUARE, right < look->plane->width ? right : look->plane->width,
                           bottom < look->plane->height ? bottom : look->plane->height };
}

static void
note_squares(reveal_plane *look)
{
    look->open = 0;
    memset(look->bits, 0, sizeof(*look->bits) * look->words * (size_t)look->rows);
    for (int y = 0; y < look->rows; y++)
        for (int x = 0; x < look->columns; x++) {
            const mc_sieve_box box = box_of_square(look, x, y);
            reveal_square *square = &look->squares[y * look->columns + x];
            square->looked_at = mc_sieve_is_open(look->plane->sieve, &box);
            look->bits[(size_t)y * look->words + (size_t)x / SQUARE_BITS] |= (uint64_t)square->looked_at
                                                                             << x % SQUARE_BITS;
            look->open += square->looked_at;
        }
    look->looked_at = look->open > 0;
}

/* A square all of whose pixels are hidden by now is not looked at any more. */
static void
close_square(reveal_plane *look, int x, int y)
{
    uint64_t *bits = &look->bits[(size_t)y * look->words + (size_t)x / SQUARE_BITS];
    const uint64_t bit = (uint64_t)1 << x % SQUARE_BITS;
    const mc_sieve_box box = box_of_square(look, x, y);
    if ((*bits & bit) == 0 || mc_sieve_is_open(look->plane->sieve, &box))
        return;
    *bits &= ~bit;
    look->open--;
}

static mc_error *
uncover_plane(mc_overview_reveal *reveal, reveal_plane *look)
{
    mc_feature read;
    const apr_array_header_t *gone = reveal->levels[look->level].gone;
    for (int i = 0; i < gone->nelts; i++) {
        const mc_reveal_item *item = APR_ARRAY_IDX(gone, i, const mc_reveal_item *);
        MC_TRY(mc_ctx_check(reveal->job->ctx, reveal->pool));
        if (read_in_plane(&read, reveal, look->plane, item->feature))
            MC_TRY(mc_sieve_lay(look->plane->sieve, &read, item->role == MC_REVEAL_GONE, reveal->job->ctx));
    }
    look->reach = mc_sieve_reach(reveal->job->layer->style, mc_overview_scale(reveal->job, look->plane->resolution));
    look->columns = (look->plane->width + SQUARE - 1) / SQUARE;
    look->rows = (look->plane->height + SQUARE - 1) / SQUARE;
    look->squares = apr_pcalloc(reveal->pool, sizeof(*look->squares) * (size_t)look->columns * (size_t)look->rows);
    look->words = (size_t)(look->columns + SQUARE_BITS - 1) / SQUARE_BITS;
    look->bits = apr_palloc(reveal->pool, sizeof(*look->bits) * look->words * (size_t)look->rows);
    if (mc_sieve_uncover(look->plane->sieve))
        note_squares(look);
    return MC_OK;
}

/* In units of the CRS. */
static void
add_area_of_gone(mc_extent *area, const mc_overview_reveal *reveal, const mc_reveal_level *level)
{
    const mc_extent first = mc_grid_tile_extent(reveal->job->grid, 0, 0, 0);
    const double side = level->level->resolution;
    mc_extent all = { INFINITY, INFINITY, -INFINITY, -INFINITY };
    for (int i = 0; i < level->gone->nelts; i++) {
        const mc_extent *bounds = &APR_ARRAY_IDX(level->gone, i, const mc_reveal_item *)->feature->bounds;
        all = (mc_extent){ fmin(all.minx, bounds->minx), fmin(all.miny, bounds->miny), fmax(all.maxx, bounds->maxx),
                           fmax(all.maxy, bounds->maxy) };
    }
    area->minx = fmin(area->minx, first.minx + (all.minx - 1) * side);
    area->miny = fmin(area->miny, first.maxy - (all.maxy + 1) * side);
    area->maxx = fmax(area->maxx, first.minx + (all.maxx + 1) * side);
    area->maxy = fmax(area->maxy, first.maxy - (all.miny - 1) * side);
}

static mc_error *
create_looks(mc_overview_reveal *reveal)
{
    reveal->count = mc_overview_planes_count(reveal->planes);
    reveal->looks = apr_pcalloc(reveal->pool, sizeof(*reveal->looks) * (size_t)reveal->count);
    reveal->items = apr_palloc(reveal->pool, sizeof(*reveal->items) * (size_t)reveal->level_count);
    for (int k = 0; k < reveal->level_count; k++)
        reveal->items[k] = apr_array_make(reveal->pool, 1024, sizeof(mc_reveal_item *));
    for (int p = 0; p < reveal->count; p++) {
        reveal_plane *look = &reveal->looks[p];
        look->plane = mc_overview_planes_at(reveal->planes, p);
        for (int k = reveal->level_count - 1; k >= 0; k--)
            if (mc_overview_planes_serve(reveal->planes, p, k)) {
                look->level = look->levels == 0 ? k : look->level;
                look->finest = k;
                look->levels |= (uint32_t)1 << k;
            }
        MC_TRY(uncover_plane(reveal, look));
    }
    return MC_OK;
}

mc_error *
mc_overview_reveal_create(mc_overview_reveal **reveal, bool *fits, const mc_reveal_level *levels, int count,
                          const mc_overview_job *job, apr_pool_t *pool)
{
    mc_overview_reveal *made = apr_pcalloc(pool, sizeof(*made));
    mc_overview_level *own = apr_pcalloc(pool, sizeof(*own) * (size_t)count);
    mc_extent area = { INFINITY, INFINITY, -INFINITY, -INFINITY };
    *made = (mc_overview_reveal){ .job = job, .levels = levels, .level_count = count, .pool = pool };
    apr_pool_create(&made->scratch, pool);
    apr_pool_cleanup_register(pool, made, free_reveal, apr_pool_cleanup_null);
    *reveal = made;
    *fits = true;
    for (int k = 0; k < count; k++) {
        own[k] = *levels[k].level;
        add_area_of_gone(&area, made, &levels[k]);
    }
    for (int k = 0; k < count; k++)
        *fits = *fits && mc_overview_plane_fits(job, own[k].resolution, &area);
    if (!*fits)
        return MC_OK;
    MC_TRY(mc_overview_planes_of_area(&made->planes, own, count, &area, job, pool));
    return create_looks(made);
}

/* ---- Features ---- */

uint32_t
mc_overview_reveal_levels(const mc_overview_reveal *reveal, int64_t ordinal)
{
    uint32_t levels = 0;
    for (int k = 0; k < reveal->level_count; k++)
        levels |= (uint32_t)mc_overview_ordinals_have(reveal->levels[k].known, ordinal) << k;
    return levels;
}

bool
mc_overview_reveal_knows(const mc_overview_reveal *reveal, uint32_t plane, int64_t ordinal)
{
    return plane >= (uint32_t)reveal->count ||
           (reveal->looks[plane].levels & ~mc_overview_reveal_levels(reveal, ordinal)) == 0;
}

void
mc_overview_reveal_add(mc_overview_reveal *reveal, int level, const mc_overview_feature *feature, mc_reveal_role role)
{
    const mc_reveal_item item = { .feature = feature, .values = feature->values, .role = role };
    mc_sieve_box box;
    for (int p = 0; p < reveal->count; p++) {
        reveal_plane *look = &reveal->looks[p];
        if (look->looked_at && look->level == level && may_be_shown(&box, reveal, look, &item)) {
            mc_reveal_push_item(reveal->items[level], &item);
            return;
        }
    }
}

/* What only one of two levels has was not laid over the plane that they have in common when they were built, and hides
 * nothing there. But what has gone opens pixels, and is taken for what hid others, wherever it was. */
static bool
counts_in_plane(const mc_overview_reveal *reveal, const reveal_plane *look, const mc_reveal_item *item)
{
    return item->role >= MC_REVEAL_GONE || look->finest == look->level ||
           mc_overview_ordinals_have(reveal->levels[look->finest].known, item->feature->ordinal);
}

/* Whether a feature counts in a plane, reaches pixels that are open there, and was read. */
static bool
reaches_plane(mc_sieve_box *box, mc_feature *read, mc_overview_reveal *reveal, reveal_plane *look,
              const mc_reveal_item *item)
{
    return may_be_shown(box, reveal, look, item) && counts_in_plane(reveal, look, item) &&
           read_in_plane(read, reveal, look->plane, item->feature);
}

/* ---- Which rows may be seen ---- */

static mc_extent
extent_of_pixels(const reveal_plane *look, const mc_sieve_box *box)
{
    const mc_pixel_grid *grid = &look->plane->grid;
    const double left = (double)grid->left, top = (double)grid->top, more = look->reach + 1;
    return (
        mc_extent){ grid->x0 + (left + box->x0 - more) / grid->per_x, grid->y0 - (top + box->y1 + more) / grid->per_y,
                    grid->x0 + (left + box->x1 + more) / grid->per_x, grid->y0 - (top + box->y0 - more) / grid->per_y };
}

/* What shows in a square, once a feature is laid over it. */
static void
look_at_square(apr_array_header_t *wanted, const mc_overview_reveal *reveal, const reveal_plane *look, int x, int y,
               int64_t ordinal)
{
    reveal_square *square = &look->squares[y * look->columns + x];
    mc_sieve_box box = box_of_square(look, x, y);
    const bool shows = square->looked_at && ordinal >= 0 && mc_sieve_find_shown(&box, look->plane->sieve);
    if (shows && !square->shows) {
        square->shown = box;
        square->below = ordinal;
    } else if (shows) {
        square->shown = (mc_sieve_box){ box.x0 < square->shown.x0 ? box.x0 : square->shown.x0,
                                        box.y0 < square->shown.y0 ? box.y0 : square->shown.y0,
                                        box.x1 > square->shown.x1 ? box.x1 : square->shown.x1,
                                        box.y1 > square->shown.y1 ? box.y1 : square->shown.y1 };
    } else if (square->shows) {
        APR_ARRAY_PUSH(wanted, mc_reveal_wanted) = (mc_reveal_wanted){ extent_of_pixels(look, &square->shown), ordinal,
                                                                       square->below, (int)(look - reveal->looks) };
        square->most = square->most > square->below ? square->most : square->below;
        square->least = ordinal;
    }
    square->shows = shows;
}

static mc_error *
find_in_plane(apr_array_header_t *wanted, mc_overview_reveal *reveal, reveal_plane *look)
{
    static const mc_sieve_time times[] = {
        [MC_REVEAL_STAYS] = MC_SIEVE_BOTH, [MC_REVEAL_NEW] = MC_SIEVE_AFTER, [MC_REVEAL_GONE] = MC_SIEVE_BEFORE
    };
    const apr_array_header_t *items = reveal->items[look->level];
    mc_feature read;
    mc_sieve_box box;
    for (int i = 0; i < items->nelts && look->open > 0; i++) {
        const mc_reveal_item *item = APR_ARRAY_IDX(items, i, const mc_reveal_item *);
        if (i % ITEMS_AT_ONCE == 0)
            MC_TRY(mc_ctx_check(reveal->job->ctx, reveal->pool));
        if (!reaches_plane(&box, &read, reveal, look, item))
            continue;
        MC_TRY(mc_sieve_follow(&box, look->plane->sieve, &read, times[item->role], reveal->job->ctx));
        for (int y = box.y0 / SQUARE; box.x0 < box.x1 && y <= (box.y1 - 1) / SQUARE; y++)
            for (int x = box.x0 / SQUARE; x <= (box.x1 - 1) / SQUARE; x++) {
                look_at_square(wanted, reveal, look, x, y, item->feature->ordinal);
                close_square(look, x, y);
            }
    }
    look->least = INT64_MAX;
    for (int y = 0; y < look->rows; y++)
        for (int x = 0; x < look->columns; x++) {
            look_at_square(wanted, reveal, look, x, y, -1);
            const reveal_square *square = &look->squares[y * look->columns + x];
            look->most = square->most > look->most ? square->most : look->most;
            look->least = square->most > 0 && square->least < look->least ? square->least : look->least;
        }
    mc_sieve_open_shown(look->plane->sieve);
    note_squares(look);
    return MC_OK;
}

mc_error *
mc_overview_reveal_find(apr_array_header_t *wanted, mc_overview_reveal *reveal)
{
    for (int k = 0; k < reveal->level_count; k++)
        mc_reveal_sort_items(reveal->items[k]);
    for (int p = 0; p < reveal->count; p++)
        if (reveal->looks[p].looked_at)
            MC_TRY(find_in_plane(wanted, reveal, &reveal->looks[p]));
    return MC_OK;
}

/* Whether a row is among those that are wanted in a square of the box. */
static bool
is_between_in_squares(const reveal_plane *look, const mc_sieve_box *box, int64_t ordinal)
{
    for (int y = box->y0 / SQUARE; y <= (box->y1 - 1) / SQUARE; y++)
        for (int x = box->x0 / SQUARE; x <= (box->x1 - 1) / SQUARE; x++) {
            const reveal_square *square = &look->squares[y * look->columns + x];
            if (ordinal > square->least && ordinal < square->most)
                return true;
        }
    return false;
}

static bool
may_want_in_plane(const reveal_plane *look, int64_t ordinal, uint32_t have)
{
    return look->looked_at && ordinal > look->least && ordinal < look->most && (look->levels & ~have) != 0;
}

bool
mc_overview_reveal_may_want(const mc_overview_reveal *reveal, int64_t ordinal, uint32_t have)
{
    for (int p = 0; p < reveal->count; p++)
        if (may_want_in_plane(&reveal->looks[p], ordinal, have))
            return true;
    return false;
}

/* What tells most rows apart at the least cost comes first. `have`: the levels that have the row. */
static bool
wants_in_plane(const reveal_plane *look, const mc_extent *extent, int64_t ordinal, uint32_t have)
{
    mc_sieve_box box;
    if (!may_want_in_plane(look, ordinal, have))
        return false;
    const mc_extent bounds = extent_in_plane(look, extent);
    return find_pixels(&box, look, &bounds, look->reach) && meets_square(look, &box) &&
           is_between_in_squares(look, &box, ordinal) && mc_sieve_is_open(look->plane->sieve, &box);
}

bool
mc_overview_reveal_wants(const mc_overview_reveal *reveal, const mc_extent *extent, int64_t ordinal, uint32_t have)
{
    for (int p = 0; p < reveal->count; p++)
        if (wants_in_plane(&reveal->looks[p], extent, ordinal, have))
            return true;
    return false;
}

/* ---- Which are seen ---- */

/* The rows that are wanted in a plane. */
static apr_array_header_t *
items_of_rows(const mc_overview_reveal *reveal, const reveal_plane *look, apr_array_header_t *rows, apr_pool_t *pool)
{
    apr_array_header_t *items = apr_array_make(pool, 1024, sizeof(mc_reveal_item));
    for (int i = 0; i < rows->nelts; i++) {
        mc_reveal_row *row = &APR_ARRAY_IDX(rows, i, mc_reveal_row);
        const int64_t ordinal = row->feature.ordinal;
        if (!wants_in_plane(look, &row->extent, ordinal, mc_overview_reveal_levels(reveal, ordinal)))
            continue;
        row->looked |= look->levels;
        APR_ARRAY_PUSH(items, mc_reveal_item) = (mc_reveal_item){
            .feature = &row->feature, .values = row->feature.values, .role = MC_REVEAL_ROW, .row = row
        };
    }
    return items;
}

static mc_error *
sift_item(mc_overview_reveal *reveal, reveal_plane *look, const mc_reveal_item *item)
{
    mc_feature read;
    mc_sieve_box box;
    bool seen;
    if (item->role == MC_REVEAL_GONE || !reaches_plane(&box, &read, reveal, look, item))
        return MC_OK;
    MC_TRY(mc_sieve_keeps(&seen, look->plane->sieve, &read, reveal->job->ctx));
    if (seen && item->row != NULL)
        item->row->seen |= look->levels;
    for (int y = box.y0 / SQUARE; seen && y <= (box.y1 - 1) / SQUARE; y++)
        for (int x = box.x0 / SQUARE; x <= (box.x1 - 1) / SQUARE; x++)
            close_square(look, x, y);
    return MC_OK;
}

/* Features of the level and rows, the one that is painted last first, as long as there are rows. */
static mc_error *
sift_rows_in_plane(mc_overview_reveal *reveal, reveal_plane *look, const apr_array_header_t *rows)
{
    const apr_array_header_t *items = reveal->items[look->level];
    for (int i = 0, r = 0; r < rows->nelts && look->open > 0;) {
        const mc_reveal_item *row = &APR_ARRAY_IDX(rows, r, mc_reveal_item);
        const mc_reveal_item *item = i < items->nelts ? APR_ARRAY_IDX(items, i, const mc_reveal_item *) : NULL;
        const bool is_row = item == NULL || item->feature->ordinal < row->feature->ordinal;
        if ((i + r) % ITEMS_AT_ONCE == 0)
            MC_TRY(mc_ctx_check(reveal->job->ctx, reveal->pool));
        MC_TRY(sift_item(reveal, look, is_row ? row : item));
        i += !is_row;
        r += is_row;
    }
    return MC_OK;
}

mc_error *
mc_overview_reveal_sift(mc_overview_reveal *reveal, apr_array_header_t *rows)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, reveal->pool);
    for (int p = 0; p < reveal->count; p++) {
        reveal_plane *look = &reveal->looks[p];
        apr_pool_clear(pool);
        if (look->looked_at)
            MC_TRY(sift_rows_in_plane(reveal, look, items_of_rows(reveal, look, rows, pool)));
    }
    return MC_OK;
}
