#include "unit.h"

#include <string.h>

#include "mapcache/buf.h"

START_TEST(grows_up_to_its_maximum)
{
    mc_buf *buf = mc_buf_attach(mc_buf_create(1, 1000), pool);
    char bytes[600];
    memset(bytes, 'x', sizeof(bytes));
    ck_ok(mc_buf_append(buf, bytes, sizeof(bytes), pool));
    ck_assert_uint_eq(buf->size, 600);
    ck_fails(LIMIT, mc_buf_append(buf, bytes, 401, pool));
    ck_assert_uint_eq(buf->size, 600);
    ck_ok(mc_buf_append(buf, bytes, 400, pool));
    ck_assert_int_eq(memcmp(buf->data, bytes, 600), 0);
}
END_TEST

START_TEST(huge_additions_do_not_overflow)
{
    mc_buf *buf = mc_buf_attach(mc_buf_copy("ab", 2), pool);
    ck_fails(LIMIT, mc_buf_reserve(buf, SIZE_MAX, pool));
    ck_fails(LIMIT, mc_buf_reserve(buf, SIZE_MAX - 1, pool));
}
END_TEST

UNIT_MAIN("buf", grows_up_to_its_maximum, huge_additions_do_not_overflow)
