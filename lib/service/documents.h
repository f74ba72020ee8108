/*
 * Capabilities that a process has written, so that the next request for the same ones gets their bytes. A document is
 * the same as long as all that it is made of is: the configuration, the address that the client uses, what databases
 * say of dimensions (its update sequence) and of the places of data.
 */
#ifndef MC_SERVICE_DOCUMENTS_H
#define MC_SERVICE_DOCUMENTS_H

#include "mapcache/service.h"

typedef struct mc_documents mc_documents;

/* For documents of at most `bytes` together; 0: none is kept, and NULL is returned. */
mc_documents *mc_documents_create(size_t bytes);
void mc_documents_destroy(mc_documents *documents); /* NULL is ignored */

/* In place of a client's address (mc_http_request.base_url) in documents that are written before any client asks:
 * mc_document_recall makes documents for each client of these. */
const char *mc_documents_address(const mc_documents *documents);

/* What a document is made of besides its configuration, as a key. `form`: whatever else makes it another one, such as
 * its version. NULL where the document cannot be told from later ones: `sequence` (mc_update_sequence) is NULL. */
const char *mc_document_key(const mc_call *call, const char *form, const char *sequence, apr_pool_t *pool);

/* True: `request` is an answer with that document, as it was kept, or made of one that was written without a client's
 * address. False also for a key that is NULL. */
bool mc_document_recall(mc_request *request, const char *key, const char *mime, const mc_call *call, mc_ctx *ctx,
                        apr_pool_t *pool);

/* Keeps the document of `request`. Documents of older models of the same file go, those next that were not used for
 * longest. */
void mc_document_keep(const mc_request *request, const char *key, const mc_call *call, mc_ctx *ctx);

#endif
