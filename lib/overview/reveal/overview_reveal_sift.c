/* Which of the rows that may be seen are. See overview_reveal.c. */
#include "overview/reveal/overview_reveal_private.h"

/* The rows that are wanted in a plane. */
static apr_array_header_t *
items_of_rows(const mc_overview_reveal *reveal, const mc_reveal_plane *look, apr_pool_t *pool)
{
    apr_array_header_t *items = apr_array_make(pool, 1024, sizeof(mc_reveal_item));
    for (int i = 0; i < reveal->rows->nelts; i++) {
        mc_reveal_row *row = &APR_ARRAY_IDX(reveal->rows, i, mc_reveal_row);
        const int64_t ordinal = row->feature.ordinal;
        if (mc_reveal_wants(look, &row->extent, ordinal, mc_overview_reveal_levels(reveal, ordinal)))
            APR_ARRAY_PUSH(items, mc_reveal_item) = (mc_reveal_item){
                .feature = &row->feature, .values = row->feature.values, .role = MC_REVEAL_ROW, .row = row
            };
    }
    return items;
}

static mc_error *
sift_item(bool *seen, const mc_overview_reveal *reveal, mc_reveal_plane *look, const mc_reveal_item *item, mc_ctx *ctx)
{
    mc_feature read;
    mc_sieve_box box;
    *seen = false;
    if (item->role == MC_REVEAL_GONE || !mc_reveal_reaches(&box, &read, reveal, look, item))
        return MC_OK;
    MC_TRY(mc_sieve_keeps(seen, look->plane->sieve, &read, ctx));
    const mc_sieve_box squares = mc_reveal_squares_of(&box);
    for (int y = squares.y0; *seen && y <= squares.y1; y++)
        for (int x = squares.x0; x <= squares.x1; x++)
            mc_reveal_close_square(look, x, y);
    return MC_OK;
}

/* Features of the level and rows, the one that is painted last first, as long as there are rows. */
static mc_error *
sift_rows_in_plane(void *baton, int index, mc_ctx *ctx)
{
    const mc_overview_reveal *reveal = baton;
    mc_reveal_plane *look = &reveal->looks[index];
    const apr_array_header_t *items = reveal->items[look->level];
    if (!look->looked_at)
        return MC_OK;
    const apr_array_header_t *rows = look->sifted = items_of_rows(reveal, look, look->plane->pool);
    for (int i = 0, r = 0; r < rows->nelts && look->open > 0;) {
        mc_reveal_item *row = &APR_ARRAY_IDX(rows, r, mc_reveal_item);
        const mc_reveal_item *item = i < items->nelts ? APR_ARRAY_IDX(items, i, const mc_reveal_item *) : NULL;
        const bool is_row = item == NULL || item->feature->ordinal < row->feature->ordinal;
        bool seen;
        if ((i + r) % MC_REVEAL_ITEMS_AT_ONCE == 0)
            MC_TRY(mc_ctx_check(ctx, ctx->pool));
        MC_TRY(sift_item(&seen, reveal, look, is_row ? row : item, ctx));
        if (is_row)
            row->seen = seen;
        i += !is_row;
        r += is_row;
    }
    return MC_OK;
}

mc_error *
mc_overview_reveal_sift(mc_overview_reveal *reveal, apr_array_header_t *rows)
{
    reveal->rows = rows;
    MC_TRY(mc_reveal_run(reveal, sift_rows_in_plane, reveal->count));
    for (int p = 0; p < reveal->count; p++) {
        const mc_reveal_plane *look = &reveal->looks[p];
        for (int i = 0; look->looked_at && i < look->sifted->nelts; i++) {
            const mc_reveal_item *item = &APR_ARRAY_IDX(look->sifted, i, mc_reveal_item);
            item->row->looked |= look->levels;
            item->row->seen |= item->seen ? look->levels : 0;
        }
    }
    return MC_OK;
}
