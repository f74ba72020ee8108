/* The header of PMTiles files (version 3, "Header Design"). */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/pmtiles/format.h"

static mc_error *
refuse_header(const char *why, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "no PMTiles archive of version 3: %s", why);
}

static mc_pmtiles_section
parse_section(const uint8_t *bytes)
{
    return (mc_pmtiles_section){ mc_little64(bytes), mc_little64(bytes + 8) };
}

static bool
is_section_inside(const mc_pmtiles_section *section, uint64_t file_size)
{
    return section->offset <= file_size && section->size <= file_size - section->offset;
}

static double
parse_degrees(const uint8_t *bytes)
{
    return (double)(int32_t)mc_little32(bytes) / 1e7;
}

mc_error *
mc_pmtiles_parse_header(mc_pmtiles_header *header, const uint8_t *bytes, size_t size, uint64_t file_size,
                        apr_pool_t *pool)
{
    if (size < MC_PMTILES_HEADER || memcmp(bytes, "PMTiles", 7) != 0)
        return refuse_header("it does not begin as one", pool);
    if (bytes[7] != 3)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a PMTiles archive of version %d: version 3 is read", bytes[7]);
    *header = (mc_pmtiles_header){
        .root = parse_section(bytes + 8),
        .metadata = parse_section(bytes + 24),
        .leaves = parse_section(bytes + 40),
        .tiles = parse_section(bytes + 56),
        .addressed = mc_little64(bytes + 72),
        .entries = mc_little64(bytes + 80),
        .contents = mc_little64(bytes + 88),
        .clustered = bytes[96] == 1,
        .internal = bytes[97],
        .coding = bytes[98],
        .type = bytes[99],
        .minzoom = bytes[100],
        .maxzoom = bytes[101],
        .west = parse_degrees(bytes + 102),
        .south = parse_degrees(bytes + 106),
        .east = parse_degrees(bytes + 110),
        .north = parse_degrees(bytes + 114),
        .centre_zoom = bytes[118],
        .centre_x = parse_degrees(bytes + 119),
        .centre_y = parse_degrees(bytes + 123),
    };
    const mc_pmtiles_section *sections[] = { &header->root, &header->metadata, &header->leaves, &header->tiles };
    for (int i = 0; i < 4; i++)
        if (!is_section_inside(sections[i], file_size))
            return refuse_header("a section lies beyond the end of the file", pool);
    if (header->root.size == 0 || header->root.offset < MC_PMTILES_HEADER ||
        header->root.offset + header->root.size > MC_PMTILES_FRONT)
        return refuse_header("its root directory is not in the first 16384 bytes", pool);
    return MC_OK;
}

static uint8_t *
put_section(uint8_t *at, const mc_pmtiles_section *section)
{
    return mc_store_little64(mc_store_little64(at, section->offset), section->size);
}

static uint8_t *
put_degrees(uint8_t *at, double degrees)
{
    return mc_store_little32(at, (uint32_t)(int32_t)lround(degrees * 1e7));
}

void
mc_pmtiles_format_header(uint8_t bytes[MC_PMTILES_HEADER], const mc_pmtiles_header *header)
{
    static const uint8_t magic[8] = { 'P', 'M', 'T', 'i', 'l', 'e', 's', 3 };
    uint8_t *at = bytes;
    memcpy(at, magic, sizeof(magic));
    at = put_section(at + 8, &header->root);
    at = put_section(at, &header->metadata);
    at = put_section(at, &header->leaves);
    at = put_section(at, &header->tiles);
    at = mc_store_little64(at, header->addressed);
    at = mc_store_little64(at, header->entries);
    at = mc_store_little64(at, header->contents);
    *at++ = header->clustered;
    *at++ = (uint8_t)header->internal;
    *at++ = (uint8_t)header->coding;
    *at++ = (uint8_t)header->type;
    *at++ = (uint8_t)header->minzoom;
    *at++ = (uint8_t)header->maxzoom;
    at = put_degrees(at, header->west);
    at = put_degrees(at, header->south);
    at = put_degrees(at, header->east);
    at = put_degrees(at, header->north);
    *at++ = (uint8_t)header->centre_zoom;
    at = put_degrees(at, header->centre_x);
    put_degrees(at, header->centre_y);
}
