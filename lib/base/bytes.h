/* Numbers in bytes, of the byte order in the function's name. The bytes may stand at any address. */
#ifndef MC_BASE_BYTES_H
#define MC_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t
mc_little16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[1] << 8 | bytes[0]);
}

static inline uint32_t
mc_little32(const uint8_t *bytes)
{
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static inline uint16_t
mc_big16(const uint8_t *bytes)
{
    return __builtin_bswap16(mc_little16(bytes));
}

static inline uint32_t
mc_big32(const uint8_t *bytes)
{
    return __builtin_bswap32(mc_little32(bytes));
}

/* A number of `size` bytes, at most 8; without a sign. 0 for a size of 0 or less. */
static inline uint64_t
mc_big_number(const void *bytes, int size)
{
    const uint8_t *at = bytes;
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

static inline uint64_t
mc_little64(const uint8_t *bytes)
{
    return (uint64_t)mc_little32(bytes + 4) << 32 | mc_little32(bytes);
}

static inline double
mc_little_double(const uint8_t *bytes)
{
    uint64_t bits = mc_little64(bytes);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* The functions that store return the address after the number. */
static inline uint8_t *
mc_store_big32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
    return at + 4;
}

static inline uint8_t *
mc_store_little32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
    return at + 4;
}

static inline uint8_t *
mc_store_little64(uint8_t *at, uint64_t value)
{
    return mc_store_little32(mc_store_little32(at, (uint32_t)value), (uint32_t)(value >> 32));
}

static inline uint8_t *
mc_store_little_double(uint8_t *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return mc_store_little64(at, bits);
}

#endif
