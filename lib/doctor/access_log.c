/* `host identity user [time] "METHOD target HTTP/1.1" status bytes ...`: what clients have sent stands in it. */
#include "doctor/access_log.h"

#include <string.h>

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The request behind the time: up to its quote. Where a quote or a backslash was escaped, there is one in it. */
static bool
find_request(const char **begin, const char **end, const char *text, const char *last)
{
    const char *time = memchr(text, '[', (size_t)(last - text));
    const char *behind = time == NULL ? NULL : memchr(time, ']', (size_t)(last - time));
    if (behind == NULL || last - behind < 3 || behind[1] != ' ' || behind[2] != '"')
        return false;
    *begin = behind + 3;
    *end = memchr(*begin, '"', (size_t)(last - *begin));
    return *end != NULL && memchr(*begin, '\\', (size_t)(*end - *begin)) == NULL;
}

static bool
read_logged_answer(mc_access_line *line, const char *at, const char *last)
{
    if (last - at < 5 || at[0] != ' ' || !is_digit(at[1]) || !is_digit(at[2]) || !is_digit(at[3]) || at[4] != ' ')
        return false;
    line->status = (at[1] - '0') * 100 + (at[2] - '0') * 10 + at[3] - '0';
    if (line->status < 100 || line->status > 599)
        return false;
    line->bytes = -1;
    for (at += 5; at < last && is_digit(*at); at++) {
        line->bytes = line->bytes < 0 ? 0 : line->bytes;
        if (line->bytes > INT64_MAX / 16)
            return false;
        line->bytes = line->bytes * 10 + (*at - '0');
    }
    return at == last || *at == ' ' || *at == '-' || *at == '\r' || *at == '\n';
}

bool
mc_access_line_parse(mc_access_line *line, const char *text, size_t size)
{
    const char *begin, *end, *last = text + size;
    if (!find_request(&begin, &end, text, last))
        return false;
    for (const char *at = begin; at < end; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            return false;
    const char *blank = memchr(begin, ' ', (size_t)(end - begin));
    if (blank == NULL || blank == begin || blank + 1 == end || blank[1] != '/')
        return false;
    line->method = begin;
    line->method_size = (size_t)(blank - begin);
    line->target = blank + 1;
    const char *protocol = memchr(line->target, ' ', (size_t)(end - line->target));
    line->target_size = (size_t)((protocol == NULL ? end : protocol) - line->target);
    return read_logged_answer(line, end + 1, last);
}
