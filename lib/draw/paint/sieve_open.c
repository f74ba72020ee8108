/* What can be seen once features are gone: see sieve.h. */
#include <string.h>

#include "draw/paint/sieve_private.h"

enum {
    OPAQUE = 65535, /* nothing hides the pixel */
    /* Of 16: as long as so much of what shone through does so still, nothing is done. Eight of 255 may shine through
     * instead of five then, in crowds 4/3 instead of 1/3. */
    LET_THROUGH = 10,
    LET_THROUGH_IN_CROWD = 4,
    /* bits of a pixel */
    SHOWS = 1,
    SHOWED = 2,
    TOUCHED = 4, /* by what has gone now */
};

static void
note_touched_row(uint8_t *restrict shows, const uint8_t *restrict alpha, int count)
{
    for (int x = 0; x < count; x++)
        shows[x] |= alpha[x] > 0 ? TOUCHED : 0;
}

static void
note_touched(const mc_sieve *sieve, int lattice, const mc_sieve_box *box)
{
    const uint8_t *alpha = sieve->alpha[lattice];
    for (int y = box->y0; y < box->y1; y++, alpha += mc_sieve_row_length(box))
        note_touched_row(sieve->shows + (size_t)y * sieve->stride + box->x0, alpha, box->x1 - box->x0);
}

mc_error *
mc_sieve_lay(mc_sieve *sieve, const mc_feature *feature, bool now, mc_ctx *ctx)
{
    mc_sieve_box box;
    if (sieve->shows == NULL && sieve->hides) {
        sieve->shows = apr_pcalloc(sieve->pool, sieve->stride * (size_t)sieve->height);
        mc_sieve_charge(sieve, sieve->stride * (size_t)sieve->height);
    }
    MC_TRY(mc_sieve_paint(&box, sieve, feature, ctx));
    for (int i = 0; i < sieve->lattices && box.x0 < box.x1; i++) {
        mc_sieve_lay_painted(sieve, sieve->shines, i, &box);
        if (now)
            note_touched(sieve, i, &box);
    }
    return MC_OK;
}

static void
uncover_row(uint16_t *restrict shines, uint16_t *restrict before, uint8_t *restrict open, const uint8_t *restrict shows,
            int count, uint16_t least)
{
    for (int x = 0; x < count; x++) {
        const bool uncovered = shows[x] != 0 && shines[x] < least;
        shines[x] = before[x] = (uint16_t)(uncovered ? OPAQUE : 0);
        open[x] |= uncovered;
    }
}

bool
mc_sieve_uncover(mc_sieve *sieve)
{
    const uint16_t part = (uint16_t)(sieve->crowded ? LET_THROUGH_IN_CROWD : LET_THROUGH);
    const uint16_t least = (uint16_t)(sieve->merged ? OPAQUE : OPAQUE / 16 * part);
    sieve->closed = true;
    if (!sieve->hides || sieve->shows == NULL)
        return false;
    const size_t pixels = sieve->stride * (size_t)sieve->height;
    sieve->hidden = (uint16_t)(sieve->hidden * 16 / part);
    memset(sieve->open, 0, pixels);
    for (int i = 0; i < sieve->lattices; i++) {
        sieve->before[i] = apr_palloc(sieve->pool, sizeof(*sieve->before[i]) * pixels);
        mc_sieve_charge(sieve, sizeof(*sieve->before[i]) * pixels);
        for (int y = 0; y < sieve->height; y++) {
            const size_t at = (size_t)y * sieve->stride;
            uncover_row(sieve->shines[i] + at, sieve->before[i] + at, sieve->open + at, sieve->shows + at, sieve->width,
                        least);
        }
    }
    memset(sieve->shows, 0, pixels);
    return memchr(sieve->open, 1, pixels) != NULL;
}

bool
mc_sieve_is_open(const mc_sieve *sieve, const mc_sieve_box *box)
{
    return !mc_sieve_hides_box(sieve, box);
}

static void
note_shown_row(uint8_t *restrict shows, const uint16_t *restrict before, const uint16_t *restrict shines, int count,
               uint16_t hidden)
{
    for (int x = 0; x < count; x++)
        shows[x] |= (uint8_t)(before[x] <= hidden && shines[x] > hidden ? SHOWS | SHOWED : 0);
}

/* Notes where something shows that did not before, in any lattice. */
static void
note_shown(const mc_sieve *sieve, const mc_sieve_box *box)
{
    for (int y = box->y0; y < box->y1; y++) {
        const size_t at = (size_t)y * sieve->stride + (size_t)box->x0;
        uint8_t *shows = sieve->shows + at;
        for (int x = 0; x < box->x1 - box->x0; x++)
            shows[x] &= SHOWED;
        for (int i = 0; i < sieve->lattices; i++)
            note_shown_row(shows, sieve->before[i] + at, sieve->shines[i] + at, box->x1 - box->x0, sieve->hidden);
    }
}

mc_error *
mc_sieve_follow(mc_sieve_box *box, mc_sieve *sieve, const mc_feature *feature, mc_sieve_time time, mc_ctx *ctx)
{
    MC_TRY(mc_sieve_paint(box, sieve, feature, ctx));
    if (box->x0 >= box->x1)
        return MC_OK;
    for (int i = 0; i < sieve->lattices; i++) {
        if ((time & MC_SIEVE_BEFORE) != 0)
            mc_sieve_lay_painted(sieve, sieve->before, i, box);
        if ((time & MC_SIEVE_AFTER) != 0)
            mc_sieve_lay_painted(sieve, sieve->shines, i, box);
    }
    mc_sieve_note_open(sieve, box);
    note_shown(sieve, box);
    return MC_OK;
}

bool
mc_sieve_find_shown(mc_sieve_box *box, const mc_sieve *sieve)
{
    mc_sieve_box found = { box->x1, box->y1, box->x0, box->y0 };
    for (int y = box->y0; y < box->y1; y++)
        for (int x = box->x0; x < box->x1; x++)
            if ((sieve->shows[(size_t)y * sieve->stride + (size_t)x] & SHOWS) != 0) {
                found.x0 = x < found.x0 ? x : found.x0;
                found.y0 = y < found.y0 ? y : found.y0;
                found.x1 = x + 1 > found.x1 ? x + 1 : found.x1;
                found.y1 = y + 1 > found.y1 ? y + 1 : found.y1;
            }
    *box = found;
    return found.x0 < found.x1;
}

void
mc_sieve_open_shown(mc_sieve *sieve)
{
    const size_t pixels = sieve->stride * (size_t)sieve->height;
    for (size_t at = 0; at < pixels; at++)
        sieve->open[at] = (sieve->shows[at] & SHOWED) != 0;
    for (int i = 0; i < sieve->lattices; i++)
        for (size_t at = 0; at < pixels; at++)
            sieve->shines[i][at] = (uint16_t)(sieve->open[at] != 0 ? OPAQUE : 0);
}
