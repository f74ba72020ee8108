/*
 * Another palette for a palette PNG: its PLTE and tRNS chunks (ISO/IEC 15948, 11.2.3 and 11.3.2.1) are replaced, all
 * other bytes are copied. Nothing is decompressed.
 */
#include <libdeflate.h>
#include <string.h>

#include "image/codec.h"
#include "image/png/png.h"
#include "mapcache/color_map.h"

enum { PNG_HEADER_END = 33, CHUNK_FRAME = 12 /* length, type, checksum */ };

/* Where the chunks of the colours stand in the file: whole chunks. `size` 0: there is none. */
typedef struct png_piece {
    size_t at, size;
} png_piece;

typedef struct png_colors {
    png_piece palette, alpha;
    int count;           /* entries of the palette */
    const uint8_t *rgb;  /* 3 * count bytes */
    const uint8_t *tRNS; /* alpha_count bytes */
    int alpha_count;
} png_colors;

static mc_error *
refuse_recoloring(apr_pool_t *pool, const char *what)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "%s", what);
}

static mc_error *
check_palette_header(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    if (size < PNG_HEADER_END || memcmp(data, mc_png_signature, 8) != 0)
        return refuse_recoloring(pool, "styles are for palette PNGs, and it is no PNG");
    if (mc_big32(data + 8) != 13 || memcmp(data + 12, "IHDR", 4) != 0 ||
        libdeflate_crc32(0, data + 12, 17) != mc_big32(data + 29))
        return refuse_recoloring(pool, "the PNG's header is broken");
    if (data[25] != MC_PNG_PALETTE)
        return refuse_recoloring(pool, "styles are for palette PNGs, and it is a PNG without a palette (its colours "
                                       "are true colours or greys)");
    return MC_OK;
}

static mc_error *
note_png_piece(png_colors *found, const uint8_t *data, size_t at, size_t length, apr_pool_t *pool)
{
    const uint8_t *type = data + at + 4;
    bool palette = memcmp(type, "PLTE", 4) == 0, alpha = memcmp(type, "tRNS", 4) == 0;
    if (!palette && !alpha)
        return MC_OK;
    if (libdeflate_crc32(0, type, length + 4) != mc_big32(type + 4 + length))
        return refuse_recoloring(pool, "a checksum of the PNG does not fit");
    const png_piece piece = { at, length + CHUNK_FRAME };
    if (palette) {
        if (found->palette.size > 0 || length < 3 || length > 768 || length % 3 != 0)
            return refuse_recoloring(pool, "the PNG's palette is broken");
        found->palette = piece;
        found->count = (int)(length / 3);
        found->rgb = type + 4;
        return MC_OK;
    }
    if (found->palette.size == 0 || found->alpha.size > 0 || length > (size_t)found->count)
        return refuse_recoloring(pool, "the PNG's transparency is broken");
    found->alpha = piece;
    found->alpha_count = (int)length;
    found->tRNS = type + 4;
    return MC_OK;
}

/* What stands before the image data, which are not looked at. */
static mc_error *
find_png_colors(png_colors *found, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    *found = (png_colors){ .count = 0 };
    MC_TRY(check_palette_header(data, size, pool));
    for (size_t at = PNG_HEADER_END; size - at >= CHUNK_FRAME;) {
        size_t length = mc_big32(data + at);
        if (length > size - at - CHUNK_FRAME)
            break;
        if (memcmp(data + at + 4, "IDAT", 4) == 0)
            return found->count > 0 ? MC_OK : refuse_recoloring(pool, "the PNG has no palette");
        MC_TRY(note_png_piece(found, data, at, length, pool));
        at += length + CHUNK_FRAME;
    }
    return refuse_recoloring(pool, "the PNG ends before its image data");
}

static void
read_png_color(uint8_t rgba[4], const png_colors *colors, int i)
{
    memcpy(rgba, colors->rgb + (size_t)i * 3, 3);
    rgba[3] = i < colors->alpha_count ? colors->tRNS[i] : 255;
}

/* What is wholly transparent has no colour. */
static bool
is_same_color(const uint8_t a[4], const uint8_t b[4])
{
    return a[3] == 0 ? b[3] == 0 : memcmp(a, b, 4) == 0;
}

/* Numbers by colour: chains of those that share a slot, the lowest first. */
typedef struct color_index {
    int16_t heads[256]; /* -1: none */
    int16_t next[MC_COLOR_MAP_ENTRIES];
} color_index;

static unsigned
hash_color(const uint8_t rgba[4])
{
    uint32_t value = (uint32_t)rgba[0] | (uint32_t)rgba[1] << 8 | (uint32_t)rgba[2] << 16 | (uint32_t)rgba[3] << 24;
    return rgba[3] == 0 ? 0 : (value * 0x9e3779b1u) >> 24;
}

static void
make_color_index(color_index *index, const mc_color_map *stored)
{
    memset(index->heads, -1, sizeof(index->heads));
    for (int i = stored->count - 1; i >= 0; i--) {
        if (!stored->listed[i])
            continue;
        unsigned slot = hash_color(stored->rgba[i]);
        index->next[i] = index->heads[slot];
        index->heads[slot] = (int16_t)i;
    }
}

static mc_error *
refuse_color(const uint8_t rgba[4], const char *why, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "it cannot be shown in another style: its colour %d,%d,%d,%d %s",
                           rgba[0], rgba[1], rgba[2], rgba[3], why);
}

/* The number that a colour of the tile stands for. Several may do where the map gives them one colour. */
static mc_error *
find_color_number(int *number, const uint8_t rgba[4], const color_index *index, const mc_color_map *map,
                  const mc_color_map *stored, apr_pool_t *pool)
{
    *number = -1;
    for (int i = index->heads[hash_color(rgba)]; i >= 0; i = index->next[i]) {
        if (!is_same_color(stored->rgba[i], rgba))
            continue;
        if (*number >= 0 && memcmp(map->rgba[*number], map->rgba[i], 4) != 0)
            return refuse_color(rgba, "stands for several numbers of the palette \"default\"", pool);
        *number = *number < 0 ? i : *number;
    }
    return *number >= 0 ? MC_OK : refuse_color(rgba, "is not one of the palette \"default\"", pool);
}

/* Whether the tile's palette is the stored one, in its order: then places are numbers, whatever colours occur twice.
 * Some programs fill the palette up to 256 entries. */
static bool
is_stored_order(const png_colors *colors, const mc_color_map *stored)
{
    if (colors->count < stored->count)
        return false;
    for (int i = 0; i < stored->count; i++) {
        uint8_t rgba[4];
        read_png_color(rgba, colors, i);
        if (stored->listed[i] && !is_same_color(stored->rgba[i], rgba))
            return false;
    }
    return true;
}

static mc_error *
choose_new_colors(uint8_t rgba[MC_COLOR_MAP_ENTRIES][4], const png_colors *colors, const mc_color_map *map,
                  const mc_color_map *stored, apr_pool_t *pool)
{
    color_index index;
    bool by_place = stored == NULL || is_stored_order(colors, stored);
    if (!by_place)
        make_color_index(&index, stored);
    for (int i = 0; i < colors->count; i++) {
        uint8_t own[4];
        int number = i;
        read_png_color(own, colors, i);
        if (!by_place)
            MC_TRY(find_color_number(&number, own, &index, map, stored, pool));
        if (!map->known[number])
            return mc_error_create(pool, MC_ERR_CORRUPT,
                                   "style \"%s\" has no colour for number %d (a line "
                                   "\"default\" has one for all others)",
                                   map->name, number);
        memcpy(rgba[i], map->rgba[number], 4);
    }
    return MC_OK;
}

static mc_error *
append_new_colors(mc_buf *png, uint8_t rgba[MC_COLOR_MAP_ENTRIES][4], int count, apr_pool_t *pool)
{
    uint8_t rgb[MC_COLOR_MAP_ENTRIES * 3], alpha[MC_COLOR_MAP_ENTRIES];
    int translucent = 0;
    for (int i = 0; i < count; i++) {
        memcpy(rgb + (size_t)i * 3, rgba[i], 3);
        alpha[i] = rgba[i][3];
        translucent = alpha[i] == 255 ? translucent : i + 1;
    }
    MC_TRY(mc_png_chunk(png, "PLTE", rgb, (size_t)count * 3, pool));
    return translucent == 0 ? MC_OK : mc_png_chunk(png, "tRNS", alpha, (size_t)translucent, pool);
}

mc_error *
mc_color_map_apply(mc_buf **recolored, const mc_buf *png, const mc_color_map *map, const mc_color_map *stored,
                   apr_pool_t *pool)
{
    png_colors colors;
    uint8_t rgba[MC_COLOR_MAP_ENTRIES][4];
    MC_TRY(find_png_colors(&colors, png->data, png->size, pool));
    MC_TRY(choose_new_colors(rgba, &colors, map, stored, pool));
    size_t behind = colors.palette.at + colors.palette.size;
    size_t until = colors.alpha.size > 0 ? colors.alpha.at : png->size;
    mc_buf *made = mc_buf_attach(mc_buf_create(0, INT32_MAX), pool);
    MC_TRY(mc_buf_reserve(made, png->size + MC_COLOR_MAP_ENTRIES * 4 + 2 * CHUNK_FRAME, pool));
    MC_TRY(mc_buf_append(made, png->data, colors.palette.at, pool));
    MC_TRY(append_new_colors(made, rgba, colors.count, pool));
    MC_TRY(mc_buf_append(made, png->data + behind, until - behind, pool));
    if (colors.alpha.size > 0) {
        until += colors.alpha.size;
        MC_TRY(mc_buf_append(made, png->data + until, png->size - until, pool));
    }
    *recolored = made;
    return MC_OK;
}
