/*
 * Stored tiles that are marked as old: what tells is the time that they are stored with, so that all processes and
 * hosts that share the store see the mark, and stores need nothing new. A marked tile has the 64th part of the time
 * that the tile had, which lies in the autumn of 1970: no tile was made then, and the true age is known to a minute.
 */
#ifndef MC_CACHE_MARKED_H
#define MC_CACHE_MARKED_H

#include <apr_time.h>
#include <stdbool.h>

enum { MC_MARK_SHARE = 64 };

/* Seconds since 1970: tiles were made after the first time (2000-01-01), and will be before the second one (2051). */
#define MC_MARK_EARLIEST INT64_C(946684800)
#define MC_MARK_LATEST INT64_C(2556144000)

/* Whether a stored tile of that time is marked. */
static inline bool
mc_is_marked_time(apr_time_t mtime)
{
    apr_time_t seconds = apr_time_sec(mtime);
    return seconds >= MC_MARK_EARLIEST / MC_MARK_SHARE && seconds <= MC_MARK_LATEST / MC_MARK_SHARE;
}

/* The time that a tile of that time is stored with when it is marked; whole seconds, as some stores have no others.
 * Times that no tile can have (0: the store does not know) become the earliest one. */
static inline apr_time_t
mc_marked_time(apr_time_t mtime)
{
    apr_time_t seconds = apr_time_sec(mtime);
    seconds = seconds < MC_MARK_EARLIEST ? MC_MARK_EARLIEST : seconds > MC_MARK_LATEST ? MC_MARK_LATEST : seconds;
    return apr_time_from_sec(seconds / MC_MARK_SHARE);
}

/* When a stored tile was made, marked or not: at most 64 seconds too early. */
static inline apr_time_t
mc_time_made(apr_time_t mtime)
{
    return mc_is_marked_time(mtime) ? mtime * MC_MARK_SHARE : mtime;
}

/* Whether a tile of the first time was certainly made after one of the second time; both may be marked. */
static inline bool
mc_is_made_later(apr_time_t mtime, apr_time_t other)
{
    apr_time_t unsure = mc_is_marked_time(other) ? apr_time_from_sec(MC_MARK_SHARE + 1) : 0;
    return mc_time_made(mtime) > mc_time_made(other) + unsure;
}

#endif
