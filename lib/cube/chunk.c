/* Which pixels of a chunk are known, as bytes. */
#include "cube/chunk.h"
#include "base/bytes.h"

#include <string.h>

enum { HEAD = 2 };

size_t
mc_cover_size(int dates, size_t pixels)
{
    return HEAD + (size_t)dates * (1 + mc_mask_size(pixels));
}

size_t
mc_cover_write(uint8_t *out, const mc_cover *covers, const uint8_t *const *masks, int dates, size_t pixels)
{
    bool all = true;
    for (int i = 0; i < dates; i++)
        all = all && covers[i] == MC_COVER_ALL;
    if (all)
        return 0;
    uint8_t *at = out;
    *at++ = (uint8_t)(dates >> 8);
    *at++ = (uint8_t)dates;
    for (int i = 0; i < dates; i++)
        *at++ = (uint8_t)covers[i];
    for (int i = 0; i < dates; i++)
        if (covers[i] == MC_COVER_SOME) {
            memcpy(at, masks[i], mc_mask_size(pixels));
            at += mc_mask_size(pixels);
        }
    return (size_t)(at - out);
}

bool
mc_cover_read(mc_cover *cover, const uint8_t **mask, const void *stored, size_t size, int slot, size_t pixels)
{
    const uint8_t *bytes = stored;
    size_t before = 0;
    *cover = MC_COVER_ALL;
    if (size == 0)
        return true;
    if (size < HEAD)
        return false;
    size_t dates = mc_big16(bytes);
    if (size < HEAD + dates)
        return false;
    *cover = MC_COVER_NONE;
    if ((size_t)slot >= dates)
        return true;
    for (size_t i = 0; i <= (size_t)slot; i++) {
        if (bytes[HEAD + i] > MC_COVER_SOME)
            return false;
        before += i < (size_t)slot && bytes[HEAD + i] == MC_COVER_SOME;
    }
    *cover = (mc_cover)bytes[HEAD + slot];
    if (*cover != MC_COVER_SOME)
        return true;
    size_t offset = HEAD + dates + before * mc_mask_size(pixels);
    *mask = bytes + offset;
    return size - (HEAD + dates) >= (before + 1) * mc_mask_size(pixels);
}
