/* The marker structure of a JPEG file (ITU-T T.81 annex B), without decoding anything. All lengths are hostile. */
#include <string.h>

#include "base/bytes.h"
#include "image/codec.h"
#include "image/jpeg/jpeg.h"

enum {
    SOF0 = 0xc0,
    SOF15 = 0xcf,
    DHT = 0xc4,
    JPG = 0xc8,
    DAC = 0xcc,
    RST0 = 0xd0,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    DNL = 0xdc,
    DRI = 0xdd,
    TEM = 0x01
};

static bool
is_frame(int marker)
{
    return marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != JPG && marker != DAC;
}

/* One marker segment: its code, its payload (after the length) and where the next one begins. */
typedef struct jpeg_parse_segment {
    int marker;
    size_t payload, size, next;
} jpeg_parse_segment;

static bool
next_jpeg_segment(jpeg_parse_segment *found, const uint8_t *data, size_t size, size_t at)
{
    if (at + 4 > size || data[at] != 0xff)
        return false;
    while (at + 4 <= size && data[at + 1] == 0xff)
        at++; /* fill bytes */
    if (at + 4 > size)
        return false;
    found->marker = data[at + 1];
    if (found->marker == TEM || found->marker == 0 || (found->marker >= RST0 && found->marker <= EOI))
        return false; /* none of these may stand between segments */
    size_t length = mc_big16(data + at + 2);
    if (length < 2 || length > size - at - 2)
        return false;
    found->payload = at + 4;
    found->size = length - 2;
    found->next = at + 2 + length;
    return true;
}

mc_error *
mc_jpeg_size(int *width, int *height, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    jpeg_parse_segment found;
    size_t at = 2;
    while (size > 2 && next_jpeg_segment(&found, data, size, at) && found.marker != SOS) {
        if (is_frame(found.marker) && found.size >= 6) {
            const uint8_t *frame = data + found.payload;
            MC_TRY(mc_decode_check_size(mc_big16(frame + 3), mc_big16(frame + 1), pool));
            *width = (int)mc_big16(frame + 3);
            *height = (int)mc_big16(frame + 1);
            return MC_OK;
        }
        at = found.next;
    }
    return mc_error_create(pool, MC_ERR_CORRUPT, "not a usable JPEG image: no frame header");
}

/* The frame header of a baseline image of one or three components. */
static bool
parse_frame(mc_jpeg_parts *parts, const uint8_t *data, const jpeg_parse_segment *s)
{
    const uint8_t *frame = data + s->payload;
    if (s->marker != SOF0 || parts->frame != 0 || s->size < 6 || frame[0] != 8)
        return false;
    int components = frame[5], across = 1, down = 1;
    if ((components != 1 && components != 3) || s->size != 6 + 3 * (size_t)components)
        return false;
    for (int c = 0; c < components; c++) {
        int h = frame[6 + c * 3 + 1] >> 4, v = frame[6 + c * 3 + 1] & 15;
        if (h < 1 || h > 4 || v < 1 || v > 4)
            return false;
        across = h > across ? h : across;
        down = v > down ? v : down;
    }
    /* A scan of a single component has no interleaving: its MCU is one block whatever the sampling says. */
    if (components == 1 && (across > 1 || down > 1))
        return false;
    parts->frame = s->payload + 1;
    parts->height = (int)mc_big16(frame + 1);
    parts->width = (int)mc_big16(frame + 3);
    parts->unit_width = across * 8;
    parts->unit_height = down * 8;
    return parts->width > 0 && parts->height > 0;
}

/* The scan header of a sequential scan over all components of the frame. */
static bool
parse_scan(const mc_jpeg_parts *parts, const uint8_t *data, const jpeg_parse_segment *s)
{
    if (parts->frame == 0 || s->size < 1)
        return false;
    int components = data[parts->frame + 4];
    const uint8_t *scan = data + s->payload;
    if (scan[0] != components || s->size != 4 + 2 * (size_t)components)
        return false;
    const uint8_t *spectral = scan + 1 + 2 * components;
    return spectral[0] == 0 && spectral[1] == 63 && spectral[2] == 0;
}

bool
mc_jpeg_parse(mc_jpeg_parts *parts, const uint8_t *data, size_t size)
{
    *parts = (mc_jpeg_parts){ .data = data };
    if (size < 4 || data[0] != 0xff || data[1] != SOI || data[size - 2] != 0xff || data[size - 1] != EOI)
        return false;
    parts->end = size - 2;
    jpeg_parse_segment s;
    for (size_t at = 2; next_jpeg_segment(&s, data, parts->end, at); at = s.next) {
        if (s.marker == SOS) {
            parts->scan = s.next;
            return parse_scan(parts, data, &s);
        }
        if (s.marker == DNL || s.marker == DAC)
            return false;
        if (s.marker == DHT) {
            parts->tables = parts->tables == 0 ? at : parts->tables;
            parts->tables_end = s.next;
        }
        if (is_frame(s.marker) && !parse_frame(parts, data, &s))
            return false;
        if (s.marker == DRI) {
            if (s.size != 2)
                return false;
            parts->restart_interval = (int)mc_big16(data + s.payload);
        }
    }
    return false;
}

bool
mc_jpeg_segments(size_t *offsets, int count, const mc_jpeg_parts *parts)
{
    int found = 0;
    offsets[0] = parts->scan;
    const uint8_t *at = parts->data + parts->scan, *end = parts->data + parts->end;
    while ((at = memchr(at, 0xff, (size_t)(end - at))) != NULL) {
        if (at + 1 == end)
            return false;
        int code = at[1];
        if (code != 0) {
            size_t offset = (size_t)(at - parts->data);
            /* An empty segment would leave its row of MCUs to the decoder's fantasy. */
            if (code != RST0 + (found & 7) || found + 1 >= count || offset == offsets[found])
                return false;
            offsets[++found] = offset + 2;
        }
        at += 2;
    }
    if (found + 1 != count || offsets[found] >= parts->end)
        return false;
    offsets[count] = parts->end + 2; /* as if a marker followed */
    return true;
}
