/*
 * Whether a statement of SQLite has looked at the clock: an answer that depends on 'now' holds for no longer than the
 * request, however long its file stays the same.
 */
#ifndef MC_DIMENSION_SQLITE_CLOCK_H
#define MC_DIMENSION_SQLITE_CLOCK_H

/* The name of SQLite's default file system with a clock that counts who reads it; registered at the first call. NULL
 * where SQLite has none. */
const char *mc_sqlite_clock(void);

/* How often this thread has made SQLite read the clock. */
unsigned long mc_sqlite_clock_reads(void);

#endif
