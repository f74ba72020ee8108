#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "text/secret.h"

/* Each secret has the word codfish at its beginning or its end: neither may be left. */
static void
check_hidden(const char *address, const char *wanted)
{
    const char *hidden = mc_hide_address_password(address, pool);
    ck_assert_str_eq(hidden, wanted);
    char *blanked = apr_pstrdup(pool, address);
    mc_blank_address_password(blanked);
    ck_assert_msg(strstr(blanked, "cod") == NULL && strstr(blanked, "fish") == NULL, "%s", blanked);
    ck_assert_uint_eq(strlen(blanked), strlen(address));
    const char *message = apr_psprintf(pool, "/vsicurl/%s: \"%s\" is not there; no password", address, address);
    message = mc_hide_passwords(message, address, pool);
    ck_assert_msg(strstr(message, "cod") == NULL && strstr(message, "fish") == NULL, "%s", message);
    ck_assert_msg(strstr(message, "is not there") != NULL, "%s", message);
}

START_TEST(passwords_end_where_programs_end_them)
{
    const char *signs = "?#\"'<>| :@%$&=";
    for (const char *sign = signs; *sign != '\0'; sign++)
        check_hidden(apr_psprintf(pool, "postgresql://me:cod%cfish@host:5432/db?table=a", *sign),
                     "postgresql://me:***@host:5432/db?table=a");
    for (const char *sign = "\"'<>|:@%$&="; *sign != '\0'; sign++)
        check_hidden(apr_psprintf(pool, "https://me:cod%cfish@host/a.tif", *sign), "https://me:***@host/a.tif");
    check_hidden("postgres://me:cod/fish@host/db", "postgres://me:***@host/db");
    check_hidden("http://me:cod?fish@host/a.tif", "http://me:***@host/a.tif");
    check_hidden("postgresql://:codfish@host", "postgresql://:***@host");
}
END_TEST

START_TEST(passwords_of_queries_and_connection_strings)
{
    check_hidden("postgresql://host/db?pass%77ord=codfish&table=a", "postgresql://host/db?pass%77ord=***&table=a");
    check_hidden("postgresql://host/db?user=me&%50ASSWORD=cod#<'\" fish",
                 "postgresql://host/db?user=me&%50ASSWORD=***");
    check_hidden("postgresql://host/db?sslpassword=cod;fish&a=b", "postgresql://host/db?sslpassword=***&a=b");
    check_hidden("postgresql://me:codfish@host/db?password=fish", "postgresql://me:***@host/db?password=***");
    check_hidden("host=a password='cod \\' fish' user=b", "host=a password='***' user=b");
    check_hidden("host=a password = cod;\\ \"fish user=b", "host=a password = *** user=b");
}
END_TEST

START_TEST(what_is_no_password_stays)
{
    static const char *const plain[] = {
        "http://host:8080/tiles@2x.png",  "https://host/a:b@c.tif", "postgresql://me@host/db", "/data/a:b@c.tif",
        "http://[::1]:8080/tiles@2x.png", "a passwordless host",    "http://host/?a=b",
    };
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        ck_assert_ptr_eq(mc_hide_address_password(plain[i], pool), plain[i]);
        ck_assert_str_eq(mc_hide_passwords(plain[i], plain[i], pool), plain[i]);
    }
}
END_TEST

START_TEST(keys_of_an_api_are_no_part_of_a_log)
{
    static const char *const pairs[][2] = {
        { "https://h/1/2/3.png?key=abc", "https://h/1/2/3.png?key=***" },
        { "https://h/t?z=1&api_key=a/b=c&x=2", "https://h/t?z=1&api_key=***&x=2" },
        { "https://h/t?Subscription-Key=1&ACCESS_TOKEN=2#f", "https://h/t?Subscription-Key=***&ACCESS_TOKEN=***#f" },
        { "https://h/t?a%70ikey=1&%6Bey=2&sig=", "https://h/t?a%70ikey=***&%6Bey=***&sig=" },
        { "https://h/t?authorization=1&X-Amz-Signature=2", "https://h/t?authorization=***&X-Amz-Signature=***" },
        { "https://h/key=1/t?z=1&layers=roads#key=1", "https://h/key=1/t?z=1&layers=roads#key=1" },
        { "https://h/t?", "https://h/t?" },
        { "https://h/t?=1&&key", "https://h/t?=1&&key" },
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        ck_assert_str_eq(mc_hide_query_keys(pairs[i][0], pool), pairs[i][1]);
}
END_TEST

UNIT_MAIN("secret", keys_of_an_api_are_no_part_of_a_log, passwords_end_where_programs_end_them,
          passwords_of_queries_and_connection_strings, what_is_no_password_stays)
