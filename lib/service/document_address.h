/*
 * Documents that are written before any client asks have a mark where the client's address comes: an address without a
 * slash at its end, of a host that no configuration has. In documents it is followed by a slash (mc_call.base) or by a
 * question mark (mc_url_wms).
 */
#ifndef MC_SERVICE_DOCUMENT_ADDRESS_H
#define MC_SERVICE_DOCUMENT_ADDRESS_H

#include "service/service_base.h"

/* Whether no writer of documents escapes a character of an address. */
bool mc_address_is_plain(const char *address);

/* Whether each mark of the text is followed by what is expected. */
bool mc_address_can_be_filled(const mc_buf *text, const char *mark);

/* The text with the address of the call's client, which is plain, in place of each mark; attached to `pool`.
 * MC_ERR_UNAVAILABLE without memory. */
mc_error *mc_address_fill(mc_buf **filled, const mc_buf *text, const char *mark, const mc_call *call,
                          apr_pool_t *pool) MC_CHECKED;

#endif
