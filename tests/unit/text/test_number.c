#include "unit.h"

#include <apr_strings.h>
#include <float.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "text/text.h"

START_TEST(whole_numbers_need_the_whole_string)
{
    int value = 7;
    static const char *const bad[] = { "",   " 1",  "1 ",         "1x",          "+",   "-", "0x10",
                                       "1.", "--1", "2147483648", "-2147483649", "1e3", NULL };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!mc_parse_int(&value, bad[i], INT_MIN, INT_MAX), "accepted '%s'", bad[i]);
    ck_assert_int_eq(value, 7);
    ck_assert(mc_parse_int(&value, "-2147483648", INT_MIN, INT_MAX) && value == INT_MIN);
    ck_assert(mc_parse_int(&value, "2147483647", INT_MIN, INT_MAX) && value == INT_MAX);
    ck_assert(mc_parse_int(&value, "+0012", 0, 12) && value == 12);
    ck_assert(!mc_parse_int(&value, "13", 0, 12));
    ck_assert(!mc_parse_int(&value, "-1", 0, 12));
    int64_t wide;
    ck_assert(mc_parse_int64(&wide, "-9223372036854775808", INT64_MIN, INT64_MAX) && wide == INT64_MIN);
    ck_assert(mc_parse_int64(&wide, "9223372036854775807", INT64_MIN, INT64_MAX) && wide == INT64_MAX);
    ck_assert(!mc_parse_int64(&wide, "9223372036854775808", INT64_MIN, INT64_MAX));
    ck_assert(!mc_parse_int64(&wide, "-9223372036854775809", INT64_MIN, INT64_MAX));
    ck_assert(!mc_parse_int64(&wide, "99999999999999999999999999", INT64_MIN, INT64_MAX));
    ck_assert(mc_parse_config_int(&value, " \n42", 0, 100) && value == 42);
    ck_assert(!mc_parse_config_int(&value, "42 ", 0, 100));
}
END_TEST

START_TEST(sizes_know_their_units)
{
    int64_t size = 5;
    ck_assert(mc_parse_size(&size, "64M") && size == 64 << 20);
    ck_assert(mc_parse_size(&size, "3k") && size == 3072);
    ck_assert(mc_parse_size(&size, "2G") && size == INT64_C(2) << 30);
    ck_assert(mc_parse_size(&size, "20GB") && size == INT64_C(20) << 30);
    ck_assert(mc_parse_size(&size, "7MiB") && size == 7 << 20);
    ck_assert(mc_parse_size(&size, "1T") && size == INT64_C(1) << 40);
    ck_assert(mc_parse_size(&size, "0") && size == 0);
    static const char *const bad[] = { "",           "M",    "-1", "+1",  "1P",   "1B",
                                       "1Mb",        "1MBB", "1i", "1 M", "\x0b", "9223372036854775807K",
                                       "9999999999G" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!mc_parse_size(&size, bad[i]), "accepted '%s'", bad[i]);
    ck_assert_int_eq(size, 0);
}
END_TEST

START_TEST(doubles_are_exact)
{
    static const char *const texts[] = { "0",        "-0.0",   "1",
                                         "0.1",      "-180",   "20037508.3427892480",
                                         "1e22",     "1e23",   "9007199254740993",
                                         "1e-22",    "3.",     ".5",
                                         "4.9e-324", "1E+05",  "123456789012345678901234567890",
                                         "1e-400",   "17e307", "0.000000000000000000000000000001234567890123456789",
                                         "+7.25",    "8.5e-5", "559082264.028717800" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        double value = NAN;
        ck_assert_msg(mc_parse_double(&value, texts[i]), "refused '%s'", texts[i]);
        double expected = strtod(texts[i], NULL);
        ck_assert_msg(memcmp(&value, &expected, sizeof(value)) == 0, "'%s' gave %.17g", texts[i], value);
    }
}
END_TEST

START_TEST(random_doubles_survive_the_way_through_text)
{
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        double value;
        memcpy(&value, &state, sizeof(value));
        if (i % 2 == 0)
            value = (double)(int64_t)(state % 4000000000000u) / 1e5 - 2e7;
        if (!isfinite(value))
            continue;
        char text[64];
        snprintf(text, sizeof(text), i % 3 == 0 ? "%.17g" : "%.9f", value);
        double parsed;
        if (strlen(text) > 60)
            continue;
        ck_assert(mc_parse_double(&parsed, text));
        double expected = strtod(text, NULL);
        ck_assert_msg(memcmp(&parsed, &expected, sizeof(parsed)) == 0, "'%s' gave %.17g", text, parsed);
    }
}
END_TEST

START_TEST(what_is_no_finite_number_is_refused)
{
    double value = 1.5;
    static const char *const bad[] = { "",    " 1",  "1 ",    "nan",     "inf",   "-infinity", "0x10",  "1e",
                                       "1e+", ".",   "-",     "-.",      "1.2.3", "1,5",       "1e999", "-1e999",
                                       "e5",  "1d3", "1_000", "1e99999", "١",     NULL };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!mc_parse_double(&value, bad[i]), "accepted '%s'", bad[i]);
    char *endless = malloc(100001);
    memset(endless, '1', 100000);
    endless[100000] = '\0';
    ck_assert(!mc_parse_double(&value, endless));
    free(endless);
    ck_assert(value == 1.5);
}
END_TEST

/* A locale with a decimal comma, made for the test; where it cannot be made, the test still holds the digits. */
static void
enter_comma_locale(void)
{
    char folder[] = "/tmp/mc-locale-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    const char *make = apr_psprintf(pool, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1", folder, folder);
    bool made = system(make) == 0;
    setenv("LOCPATH", folder, 1);
    made = made && setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    ck_assert_int_eq(system(apr_pstrcat(pool, "rm -rf ", folder, NULL)), 0);
    char text[16];
    snprintf(text, sizeof(text), "%.1f", 1.5);
    ck_assert_str_eq(text, made ? "1,5" : "1.5");
}

START_TEST(the_locale_does_not_matter)
{
    enter_comma_locale();
    double value;
    ck_assert_str_eq(mc_double_text('f', 2, -1234.5, pool), "-1234.50");
    ck_assert_str_eq(mc_double_text('g', 17, 0.1, pool), "0.10000000000000001");
    ck_assert_str_eq(mc_double_text('e', 3, 1234.5, pool), "1.234e+03");
    ck_assert_uint_eq(strlen(mc_double_text('f', 80, -DBL_MAX, pool)), 391);
    ck_assert(mc_parse_double(&value, "1.5") && value == 1.5);
    ck_assert(mc_parse_double(&value, "1.23456789012345678901") && value > 1.23 && value < 1.24);
    ck_assert(!mc_parse_double(&value, "1,5"));
    setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(lists_of_numbers)
{
    double v[4];
    int found = -1;
    ck_assert(mc_parse_doubles(v, 4, NULL, "-180,-90,180,90", ","));
    ck_assert(v[0] == -180 && v[1] == -90 && v[2] == 180 && v[3] == 90);
    ck_assert(mc_parse_doubles(v, 4, &found, "1,2", ",") && found == 2);
    ck_assert(!mc_parse_doubles(v, 4, NULL, "1,2,3", ","));
    ck_assert(!mc_parse_doubles(v, 4, NULL, "1,2,3,4,5", ","));
    ck_assert(!mc_parse_doubles(v, 4, &found, "1,2,3,4,5", ","));
    ck_assert(!mc_parse_doubles(v, 4, NULL, "1,2,,4", ","));
    ck_assert(!mc_parse_doubles(v, 4, &found, "1,2,", ","));
    ck_assert(!mc_parse_doubles(v, 4, &found, ",1", ","));
    ck_assert(!mc_parse_doubles(v, 4, &found, "", ","));
    ck_assert(!mc_parse_doubles(v, 4, &found, "1, 2", ","));
    ck_assert(mc_parse_doubles(v, 4, NULL, "\n -180,-90\t 180 ,, 90\r\n", " ,\t\r\n"));
    ck_assert(v[0] == -180 && v[3] == 90);
    ck_assert(mc_parse_doubles(v, 4, &found, "  ", " ,\t\r\n") && found == 0);
    ck_assert(!mc_parse_doubles(v, 4, &found, "1 2 x", " "));
}
END_TEST

UNIT_MAIN("number", whole_numbers_need_the_whole_string, sizes_know_their_units, doubles_are_exact,
          random_doubles_survive_the_way_through_text, what_is_no_finite_number_is_refused, the_locale_does_not_matter,
          lists_of_numbers)
