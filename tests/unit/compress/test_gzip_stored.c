/* Streams of a chosen size. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "compress/gzip.h"
#include "compress/gzip_stored.h"

START_TEST(streams_have_the_size_that_is_wanted)
{
    static const size_t sizes[] = { MC_GZIP_STORED_LEAST,
                                    25,
                                    1000,
                                    65557,
                                    65558,
                                    65559,
                                    65560,
                                    65561,
                                    65562,
                                    65563,
                                    65564,
                                    131098,
                                    131099,
                                    131103,
                                    300000 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        size_t total = sizes[i], room = mc_gzip_stored_room(total);
        uint8_t *text = malloc(room), *stream = malloc(total);
        mc_buf *back;
        for (size_t j = 0; j < room; j++)
            text[j] = (uint8_t)(j * 7 + j / 251);
        mc_gzip_stored(stream, total, text);
        ck_ok(mc_gunzip(&back, stream, total, 1 << 20, pool));
        ck_assert_uint_eq(back->size, room);
        ck_assert_int_eq(memcmp(back->data, text, room), 0);
        free(text);
        free(stream);
    }
}
END_TEST

UNIT_MAIN("gzip_stored", streams_have_the_size_that_is_wanted)
