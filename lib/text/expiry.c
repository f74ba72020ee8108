/* See expiry.h. */
#include "text/expiry.h"

#include <apr_strings.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "text/cron.h"
#include "text/text.h"
#include "text/time.h"

enum { TEXT_MAX = 1000 };

#define EXPIRY_SECOND INT64_C(1000000)
#define EXPIRY_MINUTE (60 * EXPIRY_SECOND)
#define LAST_TIME (INT64_C(253402300800) * EXPIRY_SECOND) /* the year 10000 */

typedef enum expiry_kind { EXPIRY_AGE, EXPIRY_DATE, EXPIRY_CRON } expiry_kind;

struct mc_expiry {
    expiry_kind kind;
    int seconds;     /* of AGE */
    int64_t date_us; /* of DATE */
    mc_cron cron;
    /* Of CRON: the last answer, in minutes since 1970: the end of what was made in [high half, low half). */
    _Atomic uint64_t known;
};

static const char *
parse_expiry_cron(mc_expiry *expiry, const char *text)
{
    expiry->kind = EXPIRY_CRON;
    return mc_cron_parse(&expiry->cron, text, strlen(text));
}

/* Weeks and shorter: all of one length. */
static const char *
parse_expiry_duration(mc_expiry *expiry, const char *text)
{
    int64_t length = 0;
    if (strchr(text, 'Y') != NULL || (strchr(text, 'M') != NULL && strcspn(text, "T") > strcspn(text, "M")))
        return "a duration is one of weeks, days, hours, minutes and seconds, as in \"P7D\" or \"PT6H\"";
    if (mc_time_step(&length, text, 1) != NULL || length < EXPIRY_SECOND || length > INT_MAX * EXPIRY_SECOND)
        return "a duration is written as \"P7D\", \"PT6H\" or \"P1DT12H30M\", from a second to 68 years";
    expiry->kind = EXPIRY_AGE;
    expiry->seconds = (int)(length / EXPIRY_SECOND);
    return NULL;
}

static const char *
parse_expiry_date(mc_expiry *expiry, const char *text)
{
    mc_time_span span;
    const char *expected = "it is seconds (\"3600\"), a duration (\"PT6H\"), a date (\"2027-01-01T06:00Z\") or "
                           "\"cron: 15 */6 * * *\"";
    if (strchr(text, '/') != NULL || strstr(text, "--") != NULL ||
        mc_time_parse(&span, text, strlen(text), 0) != NULL || span.start_us <= 0)
        return expected;
    expiry->kind = EXPIRY_DATE;
    expiry->date_us = span.start_us;
    return NULL;
}

const char *
mc_expiry_parse(mc_expiry **expiry, const char *text, apr_pool_t *pool)
{
    static const char blanks[] = " \t\n\v\f\r";
    *expiry = NULL;
    text += strspn(text, blanks);
    size_t size = strlen(text);
    if (size > TEXT_MAX)
        return "it is longer than 1000 bytes";
    while (size > 0 && strchr(blanks, text[size - 1]) != NULL)
        size--;
    char *trimmed = apr_pstrmemdup(pool, text, size);
    mc_expiry *made = apr_pcalloc(pool, sizeof(*made));
    const char *wrong = NULL;
    if (mc_parse_int(&made->seconds, trimmed, INT_MIN, INT_MAX)) {
        if (made->seconds <= 0)
            return NULL;
    } else if (strncmp(trimmed, "cron:", 5) == 0)
        wrong = parse_expiry_cron(made, trimmed + 5);
    else if (*trimmed == 'P')
        wrong = parse_expiry_duration(made, trimmed);
    else
        wrong = parse_expiry_date(made, trimmed);
    if (wrong == NULL)
        *expiry = made;
    return wrong;
}

/* Most of what is asked about was made since the same moment: its answer is remembered. */
static int64_t
end_by_cron(mc_expiry *expiry, int64_t made_us)
{
    uint64_t known = atomic_load_explicit(&expiry->known, memory_order_relaxed);
    int64_t from = (int64_t)(known >> 32) * EXPIRY_MINUTE, end = (int64_t)(known & UINT32_MAX) * EXPIRY_MINUTE;
    if (made_us >= from && made_us < end)
        return end;
    if (made_us > LAST_TIME) /* a store that counts otherwise */
        return MC_EXPIRY_NEVER;
    made_us = made_us < 0 ? 0 : made_us;
    end = mc_cron_next(&expiry->cron, made_us);
    if (end / EXPIRY_MINUTE > UINT32_MAX)
        return end;
    known = (uint64_t)((made_us + EXPIRY_MINUTE - 1) / EXPIRY_MINUTE) << 32 | (uint64_t)(end / EXPIRY_MINUTE);
    atomic_store_explicit(&expiry->known, known, memory_order_relaxed);
    return end;
}

int64_t
mc_expiry_end(mc_expiry *expiry, int64_t made_us)
{
    int64_t end;
    if (expiry == NULL)
        return MC_EXPIRY_NEVER;
    switch (expiry->kind) {
    case EXPIRY_AGE:
        return __builtin_add_overflow(made_us, expiry->seconds * EXPIRY_SECOND, &end) ? MC_EXPIRY_NEVER : end;
    case EXPIRY_DATE:
        return made_us < expiry->date_us ? expiry->date_us : MC_EXPIRY_NEVER;
    case EXPIRY_CRON:
        return end_by_cron(expiry, made_us);
    }
    return MC_EXPIRY_NEVER;
}

int
mc_expiry_age(const mc_expiry *expiry)
{
    return expiry != NULL && expiry->kind == EXPIRY_AGE ? expiry->seconds : 0;
}
