/* Media types by a request's Accept header (RFC 9110, 12.4.2 and 12.5.1). */
#ifndef MC_SERVICE_OGCAPI_ACCEPT_H
#define MC_SERVICE_OGCAPI_ACCEPT_H

/*
 * The weight, 0 to 1, that an Accept header gives a media type: that of its most specific range that fits. Parameters
 * of ranges are passed over, and a weight that is no number from 0 to 1 counts as 1. NULL and a header without ranges
 * accept everything. As many as MC_ACCEPT_RANGES_MAX ranges are read: what follows counts as not there.
 */
double mc_accept_weight(const char *accept, const char *mime);

/* The index of the type with the greatest weight, the first of equal ones; -1: none is accepted. */
int mc_accept_choose(const char *accept, const char *const *mimes, int count);

enum { MC_ACCEPT_RANGES_MAX = 64 };

#endif
