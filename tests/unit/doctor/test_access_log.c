/* Lines of access logs. */
#include "doctor/access_log.h"

#include <string.h>

#include "unit.h"

static bool
parse_line(mc_access_line *line, const char *text)
{
    return mc_access_line_parse(line, text, strlen(text));
}

START_TEST(common_and_combined_lines_are_read)
{
    mc_access_line line;
    ck_assert(parse_line(&line,
                         "::1 - bob [28/Nov/2026:22:00:00 +0000] \"GET /tms/1.0.0/a@g/0/0/0.png?x=1 HTTP/1.1\" 200 "
                         "1234 \"http://a/\" \"agent \\\"x\\\"\"\n"));
    ck_assert(line.method_size == 3 && memcmp(line.method, "GET", 3) == 0);
    ck_assert(line.target_size == 28 && memcmp(line.target, "/tms/1.0.0/a@g/0/0/0.png?x=1", 28) == 0);
    ck_assert(line.status == 200 && line.bytes == 1234);
    ck_assert(parse_line(&line, "h - - [t] \"HEAD / HTTP/1.0\" 304 -"));
    ck_assert(line.status == 304 && line.bytes == -1 && line.target_size == 1);
    ck_assert(parse_line(&line, "h - - [t] \"GET /\" 200 9223\n") && line.bytes == 9223);
}
END_TEST

START_TEST(what_is_no_such_line_is_refused)
{
    static const char *const bad[] = {
        "",
        "h - - [t]",
        "h - - [t] \"",
        "h - - [t] \"GET / HTTP/1.1\"",
        "h - - [t] \"GET / HTTP/1.1\" 20",
        "h - - [t] \"GET / HTTP/1.1\" 999 1",
        "h - - [t] \"GET / HTTP/1.1\" 200 99999999999999999999999",
        "h - - [t] \"GET / HTTP/1.1\" 200 12x",
        "h - - [t] \"GET http://a/ HTTP/1.1\" 200 1",
        "h - - [t] \"GET\" 200 1",
        "h - - [t] \" / HTTP/1.1\" 200 1",
        "h - - [t] \"GET /\\x22 HTTP/1.1\" 200 1",
        "h - - [t] \"GET /\t HTTP/1.1\" 200 1",
        "h - - t \"GET / HTTP/1.1\" 200 1",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        mc_access_line line;
        ck_assert_msg(!parse_line(&line, bad[i]), "%s", bad[i]);
    }
}
END_TEST

UNIT_MAIN("access_log", common_and_combined_lines_are_read, what_is_no_such_line_is_refused)
