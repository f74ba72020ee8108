/* Any bytes, packed as rows of imagery are: zlib reads what was packed. The first two bytes say how much of the rest is
 * taken, and how often it is repeated, so that there are streams of several blocks. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "compress/literal_deflate.h"
#include "fuzz_support.h"
#include "mapcache/error.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    size_t piece = size - 2 > data[0] ? size - 2 - data[0] : 1, times = 1 + (size_t)data[1] % 24, whole = piece * times;
    uint8_t *bytes = malloc(whole);
    for (size_t i = 0; i < times; i++)
        memcpy(bytes + i * piece, data + 2, piece);
    size_t room = mc_literal_deflate_room(whole);
    uint8_t *packed = malloc(room), *again = malloc(whole);
    size_t written = mc_literal_deflate(packed, room, bytes, whole);
    uLongf found = whole;
    MC_ASSERT(written > 0 && written <= room);
    MC_ASSERT(uncompress(again, &found, packed, written) == Z_OK && found == whole);
    MC_ASSERT(memcmp(again, bytes, whole) == 0);
    /* Where there is less room nothing is written beyond it. */
    uint8_t *less = malloc(written);
    MC_ASSERT(mc_literal_deflate(less, written - data[0] % written, bytes, whole) <= written);
    free(less);
    free(again);
    free(packed);
    free(bytes);
    return 0;
}
