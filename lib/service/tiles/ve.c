/* Virtual Earth tiles by quadkey: /ve?layer=<layer>@<grid>&tile=<quadkey> (spec 6.4). */
#include <string.h>

#include "service/service_base.h"

/* A longer key would overflow a row number. */
#define QUADKEY_MAX 30

static mc_service *
ve_from_config(const mc_node *node, mc_build *build)
{
    return mc_service_plain(&mc_service_ve, node, build);
}

/* Digits from the coarsest level on: bit 0 is the column's, bit 1 the row's. False for other characters. */
static bool
parse_quadkey(int *x, int *row, const char *key)
{
    *x = 0;
    *row = 0;
    for (; *key != '\0'; key++) {
        if (*key < '0' || *key > '3')
            return false;
        *x = *x << 1 | ((*key - '0') & 1);
        *row = *row << 1 | (*key - '0') >> 1;
    }
    return true;
}

static mc_error *
ve_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)ctx;
    const char *layer = mc_param(call, "layer");
    const char *key = mc_param(call, "tile");
    if (layer == NULL)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "the parameter layer is missing");
    if (key == NULL)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "the parameter tile (a quadkey) is missing");
    if (strchr(layer, '@') == NULL)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "layer \"%s\" names no grid: it is written layer@grid", layer);
    if (key[strspn(key, "0123")] != '\0')
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "quadkey \"%s\" has a digit other than 0 to 3", key);
    size_t level = strlen(key);
    if (level == 0 || level > QUADKEY_MAX)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "a quadkey of %lu digits is no level", (unsigned long)level);
    int x, row;
    MC_ASSERT(parse_quadkey(&x, &row, key));
    request->kind = MC_REQUEST_TILE;
    MC_TRY(mc_layers_parse(&request->u.tile, layer, call, MC_ERR_NOT_FOUND, pool));
    return mc_stack_place(&request->u.tile, (int)level, x, row, true, pool);
}

const mc_service_ops mc_service_ve = {
    "ve", "ve", mc_service_plain_keys, "Tiles by quadkey.", ve_from_config, ve_parse, NULL,
};
