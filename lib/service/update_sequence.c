/*
 * The age of capabilities: UPDATESEQUENCE. A text whose first part is a time, so that texts have the order of times;
 * all processes and hosts that serve the same make the same text.
 */
#include <apr_strings.h>
#include <string.h>

#include "base/hash.h"
#include "service/param.h"
#include "service/service_base.h"
#include "text/text.h"

/* "2026-11-23T01:02:03.123456": what is compared as a time. */
enum { TIME_SIZE = 26, DIGEST_DIGITS = 9, DIGEST_LIMIT = 1000000000 };

static uint64_t
hash_text(const char *text, uint64_t seed)
{
    return mc_hash64(text, strlen(text) + 1, seed);
}

/* What documents say of a dimension whose values a database has. */
static uint64_t
hash_dimension(mc_dimension *dimension, const char *tileset, uint64_t seed, mc_ctx *ctx)
{
    const apr_array_header_t *values = mc_dimension_values_known(dimension, tileset, ctx);
    uint64_t hash = hash_text(dimension->name, hash_text(tileset, seed));
    for (int i = 0; i < values->nelts; i++)
        hash = hash_text(APR_ARRAY_IDX(values, i, const char *), hash);
    return hash_text(mc_dimension_default_known(dimension, tileset, ctx), hash);
}

const char *
mc_update_sequence(const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_time_t newest = call->config->mtime;
    apr_time_exp_t at;
    uint64_t hash = 0;
    bool asked = false;
    if (newest <= 0)
        return NULL;
    for (int i = 0; i < call->config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(call->config->tilesets, i, const mc_tileset *);
        for (int j = 0; j < tileset->dimension_count; j++) {
            mc_dimension *dimension = tileset->dimensions[j];
            if (!dimension->ops->from_backend)
                continue;
            apr_time_t changed = mc_dimension_changed(dimension);
            newest = changed > newest ? changed : newest;
            hash = hash_dimension(dimension, tileset->name, hash, ctx);
            asked = true;
        }
    }
    apr_time_exp_gmt(&at, newest);
    return apr_psprintf(pool, "%04d-%02d-%02dT%02d:%02d:%02d.%06d%sZ", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday,
                        at.tm_hour, at.tm_min, at.tm_sec, at.tm_usec,
                        asked ? apr_psprintf(pool, "%0*d", DIGEST_DIGITS, (int)(hash % DIGEST_LIMIT)) : "");
}

/* Whether two texts are of one time, and the client's speaks of other values: which came first cannot be told. */
static bool
has_other_values(const char *theirs, const char *ours)
{
    return strlen(ours) == TIME_SIZE + DIGEST_DIGITS + 1 && strlen(theirs) == strlen(ours) &&
           strspn(theirs + TIME_SIZE, "0123456789") == DIGEST_DIGITS && theirs[TIME_SIZE + DIGEST_DIGITS] == 'Z';
}

/* A time, or a number: what older versions of this server wrote. */
static bool
begins_as_age(const char *text)
{
    text += *text == '-';
    return *text >= '0' && *text <= '9';
}

mc_error *
mc_update_sequence_check(mc_capabilities_params *params, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *ours = params->sequence = mc_update_sequence(call, ctx, pool), *theirs = params->update_sequence;
    if (theirs == NULL || ours == NULL)
        return MC_OK;
    int order = strncmp(theirs, ours, TIME_SIZE);
    params->is_current = strcmp(theirs, ours) == 0;
    if ((order < 0 && begins_as_age(theirs)) ||
        (order == 0 && (strcmp(theirs, ours) <= 0 || has_other_values(theirs, ours))))
        return MC_OK;
    return mc_error_create(pool, MC_ERR_INVALID_UPDATE_SEQUENCE, "UPDATESEQUENCE %s is not one of this server's",
                           mc_message_text(theirs, 100, pool));
}
