/* See packing.h. */
#include "compress/packing.h"

#include <stdlib.h>
#include <string.h>

#include "compress/expand.h"
#include "memory/scratch.h"

/* By mc_gzip_level. Measured: docs/formats.md. */
static const int brotli_qualities[] = { 4, 6, 11 };
static const int zstd_qualities[] = { 3, 9, 19 };

/* The low bits of a stream of Brotli that say that its window has 22 bits. */
enum { WINDOW_MASK = 0x0f, WINDOW_22 = 0x0b };

/* Bytes from which on a copy of the parts, which puts them into one piece, is worth sparing. */
#define APART_FROM ((size_t)256 << 10)
/* Pieces from this size on come from the free list of the process. */
#define SHARED_FROM ((size_t)64 << 10)

static const uint8_t zstd_magic[] = { 0x28, 0xb5, 0x2f, 0xfd };

const char *
mc_packing_coding(mc_packing packing)
{
    switch (packing) {
    case MC_PACKED_GZIP:
        return "gzip";
    case MC_PACKED_BROTLI:
        return "br";
    case MC_PACKED_ZSTD:
        return "zstd";
    case MC_NOT_PACKED:
        break;
    }
    return "identity";
}

mc_packing
mc_packing_of(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    if (mc_is_gzip(data, size))
        return MC_PACKED_GZIP;
    if (size >= sizeof(zstd_magic) && memcmp(data, zstd_magic, sizeof(zstd_magic)) == 0)
        return MC_PACKED_ZSTD;
    return size > 0 && (bytes[0] & WINDOW_MASK) == WINDOW_22 ? MC_PACKED_BROTLI : MC_NOT_PACKED;
}

mc_error *
mc_pack(mc_buf **out, const void *data, size_t size, mc_packing packing, mc_gzip_level level, apr_pool_t *pool)
{
    switch (packing) {
    case MC_PACKED_GZIP:
        return mc_gzip(out, data, size, level, pool);
    case MC_PACKED_BROTLI:
        return mc_brotli_compress(out, data, size, brotli_qualities[level], pool);
    case MC_PACKED_ZSTD:
        return mc_zstd_compress(out, data, size, zstd_qualities[level], pool);
    case MC_NOT_PACKED:
        break;
    }
    return mc_buf_duplicate(out, data, size, pool);
}

/* Put into one piece before. */
static mc_error *
pack_joined(mc_buf **out, const mc_deflate_part *parts, int count, size_t size, mc_packing packing, mc_gzip_level level,
            apr_pool_t *pool)
{
    const bool shared = size >= SHARED_FROM;
    uint8_t *joined = shared ? mc_scratch_require(size) : malloc(size + 1), *at = joined;
    if (joined == NULL)
        return mc_error_create(pool, MC_ERR_LIMIT, "there is no memory for %lu bytes", (unsigned long)size);
    for (int i = 0; i < count; at += parts[i++].size)
        if (parts[i].size > 0)
            memcpy(at, parts[i].data, parts[i].size);
    mc_error *error = mc_pack(out, joined, size, packing, level, pool);
    if (shared)
        mc_scratch_release(joined);
    else
        free(joined);
    return error;
}

mc_error *
mc_pack_parts(mc_buf **out, const mc_deflate_part *parts, int count, mc_packing packing, mc_gzip_level level,
              apr_pool_t *pool)
{
    size_t size = 0;
    *out = NULL;
    for (int i = 0; i < count; i++)
        size += parts[i].size;
    if (size >= APART_FROM && packing == MC_PACKED_GZIP && level == MC_GZIP_FAST)
        MC_TRY(mc_gzip_parts(out, parts, count, size, pool));
    return *out != NULL ? MC_OK : pack_joined(out, parts, count, size, packing, level, pool);
}

mc_error *
mc_unpack(mc_buf **out, const void *data, size_t size, mc_packing packing, size_t most, apr_pool_t *pool)
{
    switch (packing) {
    case MC_PACKED_GZIP:
        return mc_gunzip(out, data, size, most, pool);
    case MC_PACKED_BROTLI:
        return mc_brotli_expand(out, data, size, most, pool);
    case MC_PACKED_ZSTD:
        return mc_zstd_expand(out, data, size, most, pool);
    case MC_NOT_PACKED:
        break;
    }
    if (size > most)
        return mc_error_create(pool, MC_ERR_LIMIT, "more than %lu bytes", (unsigned long)most);
    return mc_buf_duplicate(out, data, size, pool);
}

mc_error *
mc_repack(mc_buf **data, mc_packing packing, mc_gzip_level level, size_t most, apr_pool_t *pool)
{
    mc_buf *plain;
    mc_packing packed = mc_packing_of((*data)->data, (*data)->size);
    if (packed == packing)
        return MC_OK;
    MC_TRY(mc_unpack(&plain, (*data)->data, (*data)->size, packed, most, pool));
    return mc_pack(data, plain->data, plain->size, packing, level, pool);
}
