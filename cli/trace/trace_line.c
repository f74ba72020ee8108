/*
 * The syntax of a trace line: [Wed Jan 15 12:17:50.503563 2020] [mapcache:debug] [pid 1:tid 2] file(line): [client
 * address] MOCKUP BEGIN name. Written as a small scanner, since a debug log holds millions of other lines.
 */
#include "trace_line.h"
#include "text/calendar.h"

#include <string.h>

/* What is left of the line. Each take_ function moves `at` only when it finds what it looks for. */
typedef struct scanner {
    const char *at;
    const char *end;
} scanner;

static bool
skip_trace_text(scanner *in, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(in->end - in->at) < size || memcmp(in->at, word, size) != 0)
        return false;
    in->at += size;
    return true;
}

static bool
is_trace_digit_next(const scanner *in)
{
    return in->at < in->end && *in->at >= '0' && *in->at <= '9';
}

/* One to 19 digits: no overflow. */
static bool
parse_trace_number(scanner *in, uint64_t *number)
{
    const char *start = in->at;
    *number = 0;
    while (is_trace_digit_next(in) && in->at - start < 20)
        *number = *number * 10 + (uint64_t)(*in->at++ - '0');
    return in->at > start && in->at - start < 20;
}

static bool
take_number_up_to(scanner *in, uint64_t *number, uint64_t most)
{
    return parse_trace_number(in, number) && *number <= most;
}

/* ".503563", any number of digits; none is allowed, too. */
static bool
parse_trace_fraction(scanner *in, int64_t *microseconds)
{
    *microseconds = 0;
    if (!skip_trace_text(in, "."))
        return true;
    int64_t unit = 100000;
    for (; is_trace_digit_next(in); unit /= 10)
        *microseconds += unit * (*in->at++ - '0');
    return true;
}

static bool
take_month(scanner *in, int *month)
{
    static const char *const names[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    for (*month = 0; *month < 12; (*month)++)
        if (skip_trace_text(in, names[*month]))
            return true;
    return false;
}

/* "[Wed Jan 15 12:17:50.503563 2020] " */
static bool
take_time(scanner *in, int64_t *time)
{
    uint64_t day, hour, minute, second, year;
    int64_t fraction;
    int month;
    if (!skip_trace_text(in, "[") || in->end - in->at < 4)
        return false;
    in->at += 4; /* the weekday */
    if (!take_month(in, &month) || !skip_trace_text(in, " "))
        return false;
    while (skip_trace_text(in, " ")) /* days below 10 may be padded */
        ;
    if (!take_number_up_to(in, &day, 31) || !skip_trace_text(in, " ") || !take_number_up_to(in, &hour, 23) ||
        !skip_trace_text(in, ":") || !take_number_up_to(in, &minute, 59) || !skip_trace_text(in, ":") ||
        !take_number_up_to(in, &second, 60) || !parse_trace_fraction(in, &fraction) || !skip_trace_text(in, " ") ||
        !take_number_up_to(in, &year, 9999) || !skip_trace_text(in, "] "))
        return false;
    int64_t seconds = (mc_calendar_days((int64_t)year, month + 1, (int64_t)day) * 24 + (int64_t)hour) * 3600 +
                      (int64_t)(minute * 60 + second);
    *time = seconds * 1000000 + fraction;
    return true;
}

/* "[mapcache:debug] ", then "[pid 4323:tid 139713916184320] ". Builds without threads write no tid. */
static bool
take_thread(scanner *in, uint64_t *pid, uint64_t *tid)
{
    while (!skip_trace_text(in, "[pid ")) {
        const char *close = memchr(in->at, ']', (size_t)(in->end - in->at));
        if (!skip_trace_text(in, "[") || close == NULL)
            return false;
        in->at = close + 1;
        if (!skip_trace_text(in, " "))
            return false;
    }
    *tid = 0;
    if (!parse_trace_number(in, pid) || (skip_trace_text(in, ":tid ") && !parse_trace_number(in, tid)))
        return false;
    return skip_trace_text(in, "] ");
}

/* What stands before the message: "mod_mapcache.c(346): [client 127.0.0.1:38854] ". What the line says must follow the
 * client at once, so that a client that gets its own text into the log cannot write events. */
static bool
take_prefix(scanner *in)
{
    static const char client[] = "[client ";
    const char *found = memmem(in->at, (size_t)(in->end - in->at), client, sizeof(client) - 1);
    if (found == NULL)
        return false;
    const char *close = memchr(found, ']', (size_t)(in->end - found));
    if (close == NULL)
        return false;
    in->at = close + 1;
    return skip_trace_text(in, " ");
}

static mc_slice
parse_trace_word(scanner *in)
{
    mc_slice word = { in->at, 0 };
    while (in->at < in->end && *in->at != ' ' && *in->at != ',' && *in->at != '\r' && *in->at != '\t')
        in->at++;
    word.size = (size_t)(in->at - word.text);
    return word;
}

bool
mc_trace_line_parse(mc_trace_line *line, const char *text, size_t size)
{
    scanner in = { text, text + size };
    if (!take_time(&in, &line->time) || !take_thread(&in, &line->pid, &line->tid) || !take_prefix(&in))
        return false;
    line->request = (mc_slice){ in.at, 0 };
    if (skip_trace_text(&in, "REQUEST ")) {
        line->request = (mc_slice){ in.at, (size_t)(in.end - in.at) };
        return line->request.size > 0;
    }
    if (!skip_trace_text(&in, "MOCKUP "))
        return false;
    line->begin = skip_trace_text(&in, "BEGIN ");
    if (!line->begin && !skip_trace_text(&in, "END "))
        return false;
    line->name = parse_trace_word(&in);
    line->note = skip_trace_text(&in, " ") ? parse_trace_word(&in) : (mc_slice){ in.at, 0 };
    return line->name.size > 0;
}
