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

UNIT_MAIN("secret", passwords_end_where_programs_end_them, passwords_of_queries_and_connection_strings,
          what_is_no_password_stays)
