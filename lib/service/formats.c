/* Which of its formats a tileset answers in: by extension, by media type, by Accept. */
#include <apr_strings.h>
#include <string.h>

#include "service/service_base.h"
#include "text/accept.h"

/* As tiles are served with it: of mixed formats each part has its own. */
static const char *
type_of_format(const mc_format *format)
{
    const char *type = mc_coding_mime(mc_format_coding(format));
    return type == NULL ? "image/png" : type;
}

/* How much a client wants a format. Of equal weights a type that it names counts more than a wildcard, and then a
 * further format, which is the smaller one, more than the first; where it names neither, the first is what all read. */
typedef struct format_claim {
    int weight;
    mc_accept_match match;
} format_claim;

static format_claim
claim_of_type(const char *accept, const char *type)
{
    format_claim claim;
    claim.weight = mc_accept_share(&claim.match, accept, type);
    return claim;
}

static bool
is_better_claim(const format_claim *one, const format_claim *other)
{
    if (one->weight != other->weight)
        return one->weight > other->weight;
    return one->weight > 0 && one->match == MC_NAMED && other->match != MC_NAMED;
}

/* Of mixed formats the better one of both. */
static format_claim
claim_of_format(const char *accept, const mc_format *format)
{
    if (format->type != MC_FORMAT_MIXED)
        return claim_of_type(accept, type_of_format(format));
    format_claim one = claim_of_format(accept, format->transparent), other = claim_of_format(accept, format->opaque);
    return is_better_claim(&other, &one) ? other : one;
}

static mc_error *
refuse_formats(const mc_tileset *tileset, apr_pool_t *pool)
{
    const mc_format *format = tileset->format;
    const char *list = format->type != MC_FORMAT_MIXED ? type_of_format(format)
                                                       : apr_pstrcat(pool, type_of_format(format->transparent), ", ",
                                                                     type_of_format(format->opaque), NULL);
    for (int i = 0; i < tileset->variant_count; i++)
        list = apr_pstrcat(pool, list, ", ", type_of_format(tileset->variants[i]->format), NULL);
    return mc_error_create(pool, MC_ERR_NOT_ACCEPTABLE, "layer %s is to be had as %s", tileset->name, list);
}

/* NULL: the first format. */
static mc_error *
choose_by_accept(mc_tileset **variant, const mc_tileset *tileset, const mc_call *call, apr_pool_t *pool)
{
    const char *accept = mc_call_header(call, "Accept");
    *variant = NULL;
    if (accept == NULL || *accept == '\0')
        return MC_OK;
    format_claim best = claim_of_format(accept, tileset->format);
    for (int i = 0; i < tileset->variant_count; i++) {
        format_claim claim = claim_of_format(accept, tileset->variants[i]->format);
        bool smaller = *variant == NULL && claim.weight == best.weight && claim.weight > 0 && claim.match == MC_NAMED;
        if (!smaller && !is_better_claim(&claim, &best))
            continue;
        best = claim;
        *variant = tileset->variants[i];
    }
    return best.weight > 0 ? MC_OK : refuse_formats(tileset, pool);
}

/* One layer is taken from the store of that format; several are drawn over each other, and encoded in it. */
static void
use_variant(mc_tile_stack *stack, mc_tileset *variant)
{
    if (variant == NULL)
        return;
    stack->format = variant->format;
    if (stack->count == 1)
        stack->tiles[0].tileset = variant;
    else
        stack->exact = variant->format; /* one of them may be all that shows */
}

static mc_error *
negotiate_format(mc_tile_stack *stack, const mc_call *call, apr_pool_t *pool)
{
    mc_tileset *variant;
    MC_TRY(choose_by_accept(&variant, stack->tiles[0].tileset, call, pool));
    use_variant(stack, variant);
    stack->vary = "Accept";
    return MC_OK;
}

mc_error *
mc_stack_choose(mc_tile_stack *stack, const char *extension, const mc_call *call, apr_pool_t *pool)
{
    const mc_tileset *tileset = stack->tiles[0].tileset;
    if (tileset->variant_count == 0 || (extension != NULL && mc_tileset_takes_extension(tileset, extension)))
        return MC_OK;
    mc_tileset *variant = extension == NULL ? NULL : mc_tileset_variant(tileset, extension);
    if (variant == NULL)
        return negotiate_format(stack, call, pool);
    use_variant(stack, variant);
    return MC_OK;
}

mc_error *
mc_stack_choose_type(mc_tile_stack *stack, const char *mime, const mc_call *call, apr_pool_t *pool)
{
    const mc_tileset *tileset = stack->tiles[0].tileset;
    if (tileset->variant_count == 0)
        return MC_OK;
    if (mime == NULL || *mime == '\0')
        return negotiate_format(stack, call, pool);
    use_variant(stack, mc_tileset_variant_of_type(tileset, mime));
    return MC_OK;
}
