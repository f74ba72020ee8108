/* See mask.h. */
#include "ingest/pyramid/mask.h"
#include "base/bytes.h"

#include <string.h>

enum { COM = 0xfe, SOI = 0xd8, SOS = 0xda, APP0 = 0xe0, PART_MAX = 60000 };

static const char label[] = "mapcache data:"; /* what such a comment begins with */

struct mc_mask {
    uint8_t *bytes;
    size_t size;
};

/* Seven bits a byte, the lowest ones first, the eighth says that more follow. */
static size_t
put_mask_varint(uint8_t *out, uint32_t value)
{
    size_t size = 0;
    for (; value >= 128; value >>= 7)
        out[size++] = (uint8_t)(value | 128);
    out[size++] = (uint8_t)value;
    return size;
}

mc_mask *
mc_mask_create(const mc_pixels *pixels, apr_pool_t *pool)
{
    bool data = false, any = false;
    uint32_t length = 0;
    size_t room = (size_t)pixels->width * (size_t)pixels->height + 16;
    mc_mask *mask = apr_pcalloc(pool, sizeof(*mask));
    mask->bytes = apr_palloc(pool, room);
    for (int y = 0; y < pixels->height; y++) {
        const uint8_t *row = pixels->data + (size_t)y * pixels->stride;
        for (int x = 0; x < pixels->width; x++, length++) {
            bool here = row[(size_t)x * 4 + 3] != 0;
            any = any || !here;
            if (here == data)
                continue;
            mask->size += put_mask_varint(mask->bytes + mask->size, length);
            data = here;
            length = 0;
        }
    }
    mask->size += put_mask_varint(mask->bytes + mask->size, length);
    return any ? mask : NULL;
}

mc_error *
mc_mask_insert(mc_buf **masked, mc_buf *jpeg, const mc_mask *mask, apr_pool_t *pool)
{
    *masked = jpeg;
    const uint8_t *data = jpeg->data;
    if (jpeg->size < 4 || data[0] != 0xff || data[1] != SOI)
        return MC_OK;
    size_t at = 2; /* behind JFIF's header, which must be the first segment */
    if (jpeg->size > 6 && data[2] == 0xff && data[3] == APP0)
        at += 2 + mc_big16(data + 4);
    if (at > jpeg->size)
        return MC_OK;
    mc_buf *made = mc_buf_attach(mc_buf_create(jpeg->size + mask->size + 64, INT32_MAX), pool);
    MC_TRY(mc_buf_append(made, data, at, pool));
    for (size_t from = 0; from < mask->size; from += PART_MAX) {
        size_t part = mask->size - from < PART_MAX ? mask->size - from : PART_MAX, length = part + sizeof(label) + 1;
        const uint8_t head[4] = { 0xff, COM, (uint8_t)(length >> 8), (uint8_t)length };
        MC_TRY(mc_buf_append(made, head, sizeof(head), pool));
        MC_TRY(mc_buf_append(made, label, sizeof(label) - 1, pool));
        MC_TRY(mc_buf_append(made, mask->bytes + from, part, pool));
    }
    MC_TRY(mc_buf_append(made, data + at, jpeg->size - at, pool));
    *masked = made;
    return MC_OK;
}

/* Empties runs as they are read. */
typedef struct mask_reader_state {
    mc_pixels *pixels;
    size_t at, total; /* pixels */
    uint32_t run;
    int read_bits;
    bool data;
} mask_reader_state;

static bool
end_mask_run(mask_reader_state *r)
{
    if (r->run > r->total - r->at)
        return false;
    for (size_t end = r->at + r->run; r->at < end; r->at++)
        if (!r->data)
            memset(r->pixels->data + r->at / (size_t)r->pixels->width * r->pixels->stride +
                       r->at % (size_t)r->pixels->width * 4,
                   0, 4);
    r->run = 0;
    r->read_bits = 0;
    r->data = !r->data;
    return true;
}

static bool
read_mask_part(mask_reader_state *r, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (r->read_bits > 28)
            return false;
        r->run |= (uint32_t)(bytes[i] & 127) << r->read_bits;
        r->read_bits += 7;
        if (bytes[i] < 128 && !end_mask_run(r))
            return false;
    }
    return true;
}

bool
mc_mask_apply(mc_pixels *pixels, const uint8_t *data, size_t size)
{
    mask_reader_state r = { .pixels = pixels, .total = (size_t)pixels->width * (size_t)pixels->height };
    bool any = false;
    for (size_t at = 2; at + 4 <= size && data[0] == 0xff && data[1] == SOI && data[at] == 0xff;) {
        size_t length = mc_big16(data + at + 2);
        if (data[at + 1] == SOS || length < 2 || length > size - at - 2)
            break;
        const uint8_t *text = data + at + 4;
        bool ours = data[at + 1] == COM && length >= sizeof(label) + 1 && memcmp(text, label, sizeof(label) - 1) == 0;
        if (ours && !read_mask_part(&r, text + sizeof(label) - 1, length - 2 - (sizeof(label) - 1)))
            return false;
        any = any || ours;
        at += 2 + length;
    }
    if (any)
        pixels->opacity = MC_OPACITY_UNKNOWN;
    return !any || r.at == r.total;
}
