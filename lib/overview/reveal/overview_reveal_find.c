/*
 * Which rows may be seen: those below the place where a pixel was hidden before, and above the one where it is hidden
 * now. See overview_reveal.c.
 */
#include "overview/reveal/overview_items.h"
#include "overview/reveal/overview_reveal_private.h"

static mc_extent
extent_of_pixels(const mc_reveal_plane *look, const mc_sieve_box *box)
{
    const mc_pixel_grid *grid = &look->plane->grid;
    const double left = (double)grid->left, top = (double)grid->top, more = look->reach + 1;
    return (
        mc_extent){ grid->x0 + (left + box->x0 - more) / grid->per_x, grid->y0 - (top + box->y1 + more) / grid->per_y,
                    grid->x0 + (left + box->x1 + more) / grid->per_x, grid->y0 - (top + box->y0 - more) / grid->per_y };
}

/* What shows in a square, once a feature is laid over it. */
static void
look_at_square(const mc_overview_reveal *reveal, const mc_reveal_plane *look, int x, int y, int64_t ordinal)
{
    mc_reveal_square *square = &look->squares[y * look->columns + x];
    mc_sieve_box box = mc_reveal_box_of_square(look, x, y);
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
        APR_ARRAY_PUSH(look->wanted, mc_reveal_wanted) =
            (mc_reveal_wanted){ extent_of_pixels(look, &square->shown), ordinal, square->below,
                                (int)(look - reveal->looks) };
        square->most = square->most > square->below ? square->most : square->below;
        square->least = ordinal;
    }
    square->shows = shows;
}

/* No feature is left: what still shows, shows all rows below. */
static void
end_search(const mc_overview_reveal *reveal, mc_reveal_plane *look)
{
    look->least = INT64_MAX;
    for (int y = 0; y < look->rows; y++)
        for (int x = 0; x < look->columns; x++) {
            look_at_square(reveal, look, x, y, -1);
            const mc_reveal_square *square = &look->squares[y * look->columns + x];
            look->most = square->most > look->most ? square->most : look->most;
            look->least = square->most > 0 && square->least < look->least ? square->least : look->least;
        }
    mc_sieve_open_shown(look->plane->sieve);
    mc_reveal_note_squares(look);
}

static mc_error *
find_in_plane(void *baton, int index, mc_ctx *ctx)
{
    static const mc_sieve_time times[] = {
        [MC_REVEAL_STAYS] = MC_SIEVE_BOTH, [MC_REVEAL_NEW] = MC_SIEVE_AFTER, [MC_REVEAL_GONE] = MC_SIEVE_BEFORE
    };
    const mc_overview_reveal *reveal = baton;
    mc_reveal_plane *look = &reveal->looks[index];
    const apr_array_header_t *items = reveal->items[look->level];
    mc_feature read;
    mc_sieve_box box;
    look->wanted = apr_array_make(look->plane->pool, 64, sizeof(mc_reveal_wanted));
    if (!look->looked_at)
        return MC_OK;
    for (int i = 0; i < items->nelts && look->open > 0; i++) {
        const mc_reveal_item *item = APR_ARRAY_IDX(items, i, const mc_reveal_item *);
        if (i % MC_REVEAL_ITEMS_AT_ONCE == 0)
            MC_TRY(mc_ctx_check(ctx, ctx->pool));
        if (!mc_reveal_reaches(&box, &read, reveal, look, item))
            continue;
        MC_TRY(mc_sieve_follow(&box, look->plane->sieve, &read, times[item->role], ctx));
        const mc_sieve_box squares = mc_reveal_squares_of(&box);
        for (int y = squares.y0; box.x0 < box.x1 && y <= squares.y1; y++)
            for (int x = squares.x0; x <= squares.x1; x++) {
                look_at_square(reveal, look, x, y, item->feature->ordinal);
                mc_reveal_close_square(look, x, y);
            }
    }
    end_search(reveal, look);
    return MC_OK;
}

static mc_error *
sort_level(void *baton, int level, mc_ctx *ctx)
{
    (void)ctx;
    mc_reveal_sort_items(((mc_overview_reveal *)baton)->items[level]);
    return MC_OK;
}

mc_error *
mc_overview_reveal_find(apr_array_header_t *wanted, mc_overview_reveal *reveal)
{
    MC_TRY(mc_reveal_run(reveal, sort_level, reveal->level_count));
    MC_TRY(mc_reveal_run(reveal, find_in_plane, reveal->count));
    for (int p = 0; p < reveal->count; p++)
        if (reveal->looks[p].looked_at)
            apr_array_cat(wanted, reveal->looks[p].wanted);
    return MC_OK;
}

/* Whether a row is among those that are wanted in a square of the box. */
static bool
is_between_in_squares(const mc_reveal_plane *look, const mc_sieve_box *box, int64_t ordinal)
{
    const mc_sieve_box squares = mc_reveal_squares_of(box);
    for (int y = squares.y0; y <= squares.y1; y++)
        for (int x = squares.x0; x <= squares.x1; x++) {
            const mc_reveal_square *square = &look->squares[y * look->columns + x];
            if (ordinal > square->least && ordinal < square->most)
                return true;
        }
    return false;
}

static bool
may_want_in_plane(const mc_reveal_plane *look, int64_t ordinal, uint32_t have)
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

/* What tells most rows apart at the least cost comes first. */
bool
mc_reveal_wants(const mc_reveal_plane *look, const mc_extent *extent, int64_t ordinal, uint32_t have)
{
    mc_sieve_box box;
    if (!may_want_in_plane(look, ordinal, have))
        return false;
    return mc_reveal_find_pixels(&box, look, extent) && mc_reveal_meets_square(look, &box) &&
           is_between_in_squares(look, &box, ordinal) && mc_sieve_is_open(look->plane->sieve, &box);
}

bool
mc_overview_reveal_wants(const mc_overview_reveal *reveal, const mc_extent *extent, int64_t ordinal, uint32_t have)
{
    for (int p = 0; p < reveal->count; p++)
        if (mc_reveal_wants(&reveal->looks[p], extent, ordinal, have))
            return true;
    return false;
}
