#include "unit.h"

#include "base/bytes.h"

START_TEST(loads_have_the_order_of_their_name)
{
    static const uint8_t bytes[] = { 0x81, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0xf8 };
    ck_assert_uint_eq(mc_big16(bytes), 0x8102);
    ck_assert_uint_eq(mc_big32(bytes), 0x81020304);
    ck_assert_uint_eq(mc_little16(bytes), 0x0281);
    ck_assert_uint_eq(mc_little32(bytes), 0x04030281);
    ck_assert_uint_eq(mc_little64(bytes), UINT64_C(0xf807060504030281));
    ck_assert_uint_eq(mc_big_number(bytes, 8), UINT64_C(0x81020304050607f8));
    ck_assert_uint_eq(mc_big_number(bytes, 3), 0x810203);
    ck_assert_uint_eq(mc_big_number(bytes, 0), 0);
    ck_assert_uint_eq(mc_big_number(bytes, -1), 0); /* a field that is NULL */
}
END_TEST

START_TEST(stores_come_back)
{
    uint8_t bytes[10] = { 0 };
    ck_assert_ptr_eq(mc_store_big32(bytes + 1, 0xf1020304), bytes + 5);
    ck_assert_uint_eq(mc_big32(bytes + 1), 0xf1020304);
    ck_assert_uint_eq(bytes[1], 0xf1);
    ck_assert_ptr_eq(mc_store_little32(bytes + 1, 0xf1020304), bytes + 5);
    ck_assert_uint_eq(mc_little32(bytes + 1), 0xf1020304);
    ck_assert_uint_eq(bytes[1], 0x04);
    ck_assert_ptr_eq(mc_store_little64(bytes + 1, UINT64_C(0x3ff8000000000000)), bytes + 9);
    ck_assert_double_eq(mc_little_double(bytes + 1), 1.5);
    ck_assert_uint_eq(bytes[0] | bytes[9], 0);
}
END_TEST

UNIT_MAIN("bytes", loads_have_the_order_of_their_name, stores_come_back)
