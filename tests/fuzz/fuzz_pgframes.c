/*
 * Any bytes as what a PostgreSQL server sends, in pieces: where its messages begin is the same for pieces of any size,
 * and what is refused is refused for them all.
 */
#include "db/postgres/postgres_frames.c"

#include "fuzz_support.h"
#include "mapcache/error.h"

/* In pieces of so many bytes; `size` for all at once. */
static bool
pass_pieces(mc_pg_frames *frames, const uint8_t *data, size_t size, size_t piece)
{
    *frames = (mc_pg_frames){ 0 };
    for (size_t at = 0; at < size; at += piece) {
        size_t length = piece < size - at ? piece : size - at;
        uint8_t *bytes = malloc(length); /* of its own, so that a step over its end is seen */
        MC_ASSERT(bytes != NULL);
        for (size_t i = 0; i < length; i++)
            bytes[i] = data[at + i];
        const char *complaint = mc_pg_frames_pass(frames, bytes, length);
        free(bytes);
        if (complaint != NULL)
            return false;
    }
    return true;
}

/* The same by the book: PostgreSQL's manual, "Message Formats". */
static bool
count_by_the_book(int *settings, const uint8_t *data, size_t size)
{
    *settings = 0;
    for (size_t at = 0; size - at >= MC_PG_HEAD;) {
        size_t length = (size_t)mc_big_number(data + at + 1, 4);
        if (length < 4 || length > MC_PG_MESSAGE_MAX)
            return false;
        *settings += data[at] == 'S';
        if (*settings > MC_PG_SETTINGS_MAX)
            return false;
        if (1 + length > size - at)
            return true;
        at += 1 + length;
    }
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mc_pg_frames whole, pieces;
    int settings;
    if (size < 2)
        return 0;
    size_t piece = 1 + data[0] % 64;
    bool taken = pass_pieces(&whole, data + 1, size - 1, size - 1);
    MC_ASSERT(pass_pieces(&pieces, data + 1, size - 1, piece) == taken);
    MC_ASSERT(count_by_the_book(&settings, data + 1, size - 1) == taken);
    MC_ASSERT(whole.settings == settings && pieces.settings == settings);
    MC_ASSERT(!taken || (whole.left == pieces.left && whole.head_size == pieces.head_size));
    MC_ASSERT(whole.head_size < MC_PG_HEAD);
    return 0;
}
