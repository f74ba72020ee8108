/* Well-known binary as tiny well-known binary. */
#ifndef MC_VECTOR_GEOMETRY_WKB_PACK_H
#define MC_VECTOR_GEOMETRY_WKB_PACK_H

#include "vector/geometry/wkb_thin.h"

/*
 * Appends WKB of this machine's byte order as TWKB with `digits` decimals behind the point (-7 to MC_TWKB_DIGITS),
 * without Z and M. False, with nothing appended: the geometry is no point, line or polygon nor several of one kind, is
 * truncated, or has a coordinate that is not finite or too large.
 */
bool mc_wkb_pack(mc_wkb_buffer *buffer, const void *wkb, size_t size, int digits);

/* Appends a number of 7 bits a byte, the lowest first; its bytes. */
size_t mc_wkb_append_packed(mc_wkb_buffer *buffer, uint64_t number);

#endif
