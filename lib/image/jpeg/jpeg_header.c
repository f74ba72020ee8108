/* The tables in a file's header: comparing and writing. All lengths are hostile. */
#include "image/jpeg/jpeg_header.h"

#include <string.h>

#include "base/bytes.h"

enum { DHT = 0xc4, COUNTS = 16, FIXED = 1 + COUNTS, MARKER = 2, LENGTH = 2, SYMBOLS_MAX = 256 };

static bool
read_codes(mc_jpeg_header *header, const uint8_t *at, size_t size)
{
    while (size > 0) {
        if (size < FIXED || header->count == MC_JPEG_TABLES)
            return false;
        mc_jpeg_codes *codes = &header->codes[header->count++];
        *codes = (mc_jpeg_codes){ at, 0 };
        for (int length = 1; length <= COUNTS; length++)
            codes->count += at[length];
        if (codes->count > SYMBOLS_MAX || codes->count > size - FIXED)
            return false;
        at += FIXED + codes->count;
        size -= FIXED + codes->count;
    }
    return true;
}

bool
mc_jpeg_header_read(mc_jpeg_header *header, const mc_jpeg_parts *parts)
{
    *header = (mc_jpeg_header){
        .data = parts->data, .tables = parts->tables, .rest = parts->tables_end, .scan = parts->scan
    };
    if (parts->tables == 0 || parts->tables < parts->frame)
        return false;
    for (size_t at = header->tables; at < header->rest;) {
        const uint8_t *segment = header->data + at;
        if (segment[0] != 0xff || segment[1] != DHT)
            return false; /* fill bytes, or something else in between */
        size_t length = mc_big16(segment + MARKER);
        if (!read_codes(header, segment + MARKER + LENGTH, length - LENGTH))
            return false;
        at += MARKER + length;
    }
    return true;
}

/* Whether the shorter one is the beginning of the longer one. */
static bool
begins_alike(const mc_jpeg_codes *shorter, const mc_jpeg_codes *longer)
{
    unsigned left = shorter->count;
    if (shorter->at[0] != longer->at[0])
        return false;
    for (int length = 1; length <= COUNTS; length++) {
        unsigned count = longer->at[length] < left ? longer->at[length] : left;
        if (shorter->at[length] != count)
            return false;
        left -= count;
    }
    return memcmp(shorter->at + FIXED, longer->at + FIXED, shorter->count) == 0;
}

bool
mc_jpeg_tables_unite(mc_jpeg_header *header, const mc_jpeg_header *other)
{
    mc_jpeg_codes both[MC_JPEG_TABLES];
    if (header->count != other->count)
        return false;
    for (int i = 0; i < header->count; i++) {
        const mc_jpeg_codes *a = &header->codes[i], *b = &other->codes[i];
        both[i] = a->count < b->count ? *b : *a;
        if (!begins_alike(a->count < b->count ? a : b, &both[i]))
            return false;
    }
    memcpy(header->codes, both, sizeof(both[0]) * (size_t)header->count);
    return true;
}

bool
mc_jpeg_header_unite(mc_jpeg_header *header, const mc_jpeg_header *other)
{
    size_t rest = header->scan - header->rest;
    return header->tables == other->tables && memcmp(header->data, other->data, header->tables) == 0 &&
           rest == other->scan - other->rest &&
           memcmp(header->data + header->rest, other->data + other->rest, rest) == 0 &&
           mc_jpeg_tables_unite(header, other);
}

size_t
mc_jpeg_header_size(const mc_jpeg_header *header)
{
    size_t size = header->tables + MARKER + LENGTH + header->scan - header->rest;
    for (int i = 0; i < header->count; i++)
        size += FIXED + header->codes[i].count;
    return size;
}

size_t
mc_jpeg_header_write(uint8_t *out, const mc_jpeg_header *header)
{
    uint8_t *at = out + header->tables + MARKER + LENGTH;
    memcpy(out, header->data, header->tables);
    for (int i = 0; i < header->count; i++) {
        memcpy(at, header->codes[i].at, FIXED + header->codes[i].count);
        at += FIXED + header->codes[i].count;
    }
    size_t length = (size_t)(at - out) - header->tables - MARKER;
    out[header->tables] = 0xff;
    out[header->tables + 1] = DHT;
    out[header->tables + 2] = (uint8_t)(length >> 8);
    out[header->tables + 3] = (uint8_t)length;
    memcpy(at, header->data + header->rest, header->scan - header->rest);
    return (size_t)(at - out) + header->scan - header->rest;
}
