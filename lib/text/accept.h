/* What clients say of the media types and codings that they take: Accept and Accept-Encoding (RFC 9110, 12.5). */
#ifndef MC_TEXT_ACCEPT_H
#define MC_TEXT_ACCEPT_H

#include <stdbool.h>
#include <stddef.h>

/* The greatest weight: "q=1". Weights have three digits, so that thousandths are whole numbers (RFC 9110, 12.4.2). */
enum { MC_WEIGHT_MAX = 1000 };

/* How exactly a header names a thing; the more exact one counts (RFC 9110, 12.5.1). */
typedef enum mc_accept_match {
    MC_NOT_NAMED,     /* no item speaks of it */
    MC_NAMED_BY_ALL,  /* "*" or any type */
    MC_NAMED_BY_KIND, /* "image" of any subtype */
    MC_NAMED          /* by its own name */
} mc_accept_match;

/*
 * The weight that a list gives to a media type ("image/png") or a content coding ("gzip"), 0 to MC_WEIGHT_MAX, by the
 * first item of the most exact kind; 0 and MC_NOT_NAMED where none speaks of it. Names are compared in any case. Other
 * parameters than q are passed over, quoted texts too, and so is what stands in `name` behind a semicolon. A weight
 * that is no number counts as 1, as whoever names a thing wants it; one beyond the limits as the limit. Time is in
 * proportion to the length of the list, and no memory is taken.
 */
int mc_accept_share(mc_accept_match *match, const char *list, const char *name);

/* The weight of a media type by a whole Accept header: a header that is not there (NULL), or that has no items, accepts
 * everything (RFC 9110, 12.5.1). */
int mc_accept_weight(const char *accept, const char *name);

/* The index of the type with the greatest weight, the first of equal ones; -1: none is accepted. */
int mc_accept_choose(const char *accept, const char *const *names, int count);

#endif
