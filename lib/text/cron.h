/* Moments that come again and again, written as in crontab(5): "15 0-23/6 * * *". UTC. */
#ifndef MC_TEXT_CRON_H
#define MC_TEXT_CRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which minutes, hours, ... of the calendar: a bit for each. */
typedef struct mc_cron {
    uint64_t minutes; /* 0..59 */
    uint32_t hours;   /* 0..23 */
    uint32_t days;    /* 1..31 */
    uint16_t months;  /* 1..12 */
    uint8_t weekdays; /* 0..6, from Sunday */
    bool any_day;     /* the field of days begins with '*' */
    bool any_weekday; /* the field of days of the week begins with '*' */
} mc_cron;

/*
 * Five fields with blanks between them: minute, hour, day of the month, month, day of the week (0 to 7, Sunday is 0 and
 * 7). A field is a list by commas of '*', a number or a range "a-b", with a step "/n" behind '*' or a range. Where
 * neither of the two fields of days begins with '*', a day is one that either of them names, as crontab(5) says.
 * NULL, or what is wrong (a string constant): also for what never comes (the 30th of February).
 */
const char *mc_cron_parse(mc_cron *cron, const char *text, size_t size);

/* The first moment after a time, in microseconds since 1970; INT64_MAX where there is none in the nine years behind
 * it. */
int64_t mc_cron_next(const mc_cron *cron, int64_t time_us);

#endif
