/* See gzip_stored.h. A stream (RFC 1952) is 10 bytes, then stored blocks (RFC 1951, 3.2.4) of 5 bytes and their
 * content, then 8 bytes. */
#include "compress/gzip_stored.h"

#include <libdeflate.h>
#include <string.h>

#include "base/bytes.h"

enum { HEAD = 10, TAIL = 8, BLOCK_HEAD = 5, BLOCK_MOST = 65535 };

static size_t
count_stored_blocks(size_t total)
{
    size_t inside = total - HEAD - TAIL;
    return (inside + BLOCK_HEAD + BLOCK_MOST - 1) / (BLOCK_HEAD + BLOCK_MOST);
}

size_t
mc_gzip_stored_room(size_t total)
{
    return total - HEAD - TAIL - BLOCK_HEAD * count_stored_blocks(total);
}

void
mc_gzip_stored(uint8_t *out, size_t total, const uint8_t *data)
{
    static const uint8_t head[HEAD] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255 };
    size_t size = mc_gzip_stored_room(total);
    uint8_t *at = out + HEAD;
    memcpy(out, head, HEAD);
    for (size_t blocks = count_stored_blocks(total), done = 0; blocks > 0; blocks--) {
        size_t length = size - done < BLOCK_MOST ? size - done : BLOCK_MOST;
        at[0] = blocks == 1;
        at[1] = (uint8_t)length;
        at[2] = (uint8_t)(length >> 8);
        at[3] = (uint8_t)~at[1];
        at[4] = (uint8_t)~at[2];
        memcpy(at + BLOCK_HEAD, data + done, length);
        at += BLOCK_HEAD + length;
        done += length;
    }
    at = mc_store_little32(at, libdeflate_crc32(0, data, size));
    mc_store_little32(at, (uint32_t)size);
}
