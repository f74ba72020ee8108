/* Which form of a packed vector tile a client gets. */
#include <string.h>

#include "base/hash.h"
#include "compress/packing.h"
#include "server/server_private.h"
#include "text/accept.h"

/* What expands further was not made of features: vector tiles shrink to a third or a twentieth. Few bytes may expand to
 * LEAST_ROOM whatever they are. */
#define EXPANDED_MAX ((size_t)64 << 20)
#define LEAST_ROOM ((size_t)8 << 20)
enum { RATIO_MAX = 64 };

static size_t
expanded_most(size_t size)
{
    if (size > EXPANDED_MAX / RATIO_MAX)
        return EXPANDED_MAX;
    return size * RATIO_MAX > LEAST_ROOM ? size * RATIO_MAX : LEAST_ROOM;
}

/* Whether Accept-Encoding allows a coding. What is not packed is allowed unless it is refused (RFC 9110, 12.5.3); a
 * client that says nothing gets what needs no knowledge of codings. */
static bool
accepts_packing(const char *accepted, mc_packing packing)
{
    mc_accept_match match;
    if (accepted == NULL)
        return packing == MC_NOT_PACKED;
    int weight = mc_accept_share(&match, accepted, mc_packing_coding(packing));
    if (packing == MC_PACKED_GZIP && match != MC_NAMED) { /* the old name means the same (RFC 9110, 8.4.1.3) */
        mc_accept_match old;
        int old_weight = mc_accept_share(&old, accepted, "x-gzip");
        if (old == MC_NAMED)
            return old_weight > 0;
    }
    return weight > 0 || (packing == MC_NOT_PACKED && match == MC_NOT_NAMED);
}

/* The tag of the form that is made of the stored one. */
static uint64_t
tag_of_form(uint64_t tag, mc_packing packing)
{
    const char *name = packing == MC_NOT_PACKED ? "expanded" : mc_packing_coding(packing);
    return tag == 0 ? 0 : mc_hash64(name, strlen(name), tag);
}

static mc_error *
choose_packed_form(mc_packing *chosen, mc_packing stored, const char *accepted, apr_pool_t *pool)
{
    const mc_packing forms[] = { stored, MC_PACKED_GZIP, MC_NOT_PACKED };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (accepts_packing(accepted, forms[i])) {
            *chosen = forms[i];
            return MC_OK;
        }
    return mc_error_create(pool, MC_ERR_NOT_ACCEPTABLE, "the tile is to be had as %s%s or not compressed at all",
                           mc_packing_coding(stored), stored == MC_PACKED_GZIP ? "" : ", gzip");
}

mc_error *
mc_result_negotiate(mc_result *result, const mc_http_request *request, apr_pool_t *pool)
{
    const char *accepted = request->headers == NULL ? NULL : apr_table_get(request->headers, "Accept-Encoding");
    mc_packing stored = (mc_packing)result->packing, chosen = MC_NOT_PACKED;
    MC_TRY(choose_packed_form(&chosen, stored, accepted, pool));
    if (chosen == stored)
        return MC_OK;
    result->packing = chosen;
    result->tag = tag_of_form(result->tag, chosen);
    result->unmodified = result->tag != 0 && mc_request_tag(request) == result->tag;
    if (result->unmodified) /* the client has that form: nobody makes it */
        return MC_OK;
    mc_buf *plain;
    size_t size = result->data->size;
    MC_TRY(mc_unpack(&plain, result->data->data, size, stored, expanded_most(size), pool));
    result->data = plain;
    return chosen == MC_NOT_PACKED ? MC_OK
                                   : mc_pack(&result->data, plain->data, plain->size, chosen, MC_GZIP_FAST, pool);
}
