/* Moments that styles compare and compute with: text in the form of ISO 8601. */
#ifndef MC_DRAW_STYLE_MOMENT_H
#define MC_DRAW_STYLE_MOMENT_H

#include <stdbool.h>

typedef struct mc_moment {
    int year, month, day, hour, minute, second;
    bool has_time;
} mc_moment;

/* Whether each field is in its range. */
bool mc_moment_is_valid(const mc_moment *moment);

/* A number of at most `most` digits; *text then stands behind the number. */
int mc_moment_number(const char **text, int most);

/* "2026-11-22", "2026-11-22T08:30" or with seconds; text behind that is left out. False where there is no date. */
bool mc_moment_parse(mc_moment *moment, const char *text);

/* Seconds since the first of March of the year 0 (the proleptic Gregorian calendar). */
double mc_moment_seconds(const mc_moment *moment);

/* A date or a moment in the form of ISO 8601 or of PostgreSQL ("2026-11-22", "2026-11-22T08:30:00Z",
 * "2026-11-22 08:30:00.5+01") as seconds since some moment; in UTC where the text names no zone. False where the text
 * is no date. */
bool mc_date_seconds(double *seconds, const char *text);

#endif
