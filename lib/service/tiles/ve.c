/* Virtual Earth tiles by quadkey: /ve?layer=<layer>@<grid>&tile=<quadkey> (docs/reference/services.md 6.4). */
#include <string.h>

#include "service/param.h"
#include "service/service_base.h"

/* A longer key would overflow a row number. */
#define QUADKEY_MAX 30

typedef struct ve_params {
    const char *layer, *key;
    int level, x, row;
} ve_params;

static mc_error *
check_ve_layer(mc_param_reader *reader)
{
    const char *layer = ((const ve_params *)reader->target)->layer;
    if (strchr(layer, '@') != NULL)
        return MC_OK;
    return mc_error_create(reader->pool, MC_ERR_NOT_FOUND, "layer \"%s\" names no grid: it is written layer@grid",
                           layer);
}

/* Digits from the coarsest level on: bit 0 is the column's, bit 1 the row's. */
static mc_error *
read_quadkey(mc_param_reader *reader)
{
    ve_params *params = reader->target;
    const char *key = params->key;
    size_t level = strlen(key);
    if (key[strspn(key, "0123")] != '\0')
        return mc_param_refuse(reader);
    if (level == 0 || level > QUADKEY_MAX)
        return mc_error_create(reader->pool, MC_ERR_NOT_FOUND, "a quadkey of %lu digits is no level",
                               (unsigned long)level);
    params->level = (int)level;
    for (; *key != '\0'; key++) {
        params->x = params->x << 1 | ((*key - '0') & 1);
        params->row = params->row << 1 | (*key - '0') >> 1;
    }
    return MC_OK;
}

static const mc_param_row ve_tile_params[] = {
    MC_PARAM_TEXT("layer", offsetof(ve_params, layer), "Layers with `;` between them, each as name@grid.",
                  .flags = MC_PARAM_REQUIRED, .missing_kind = MC_ERR_BAD_REQUEST, .kind = MC_ERR_NOT_FOUND),
    MC_PARAM_TEXT("tile", offsetof(ve_params, key), "The quadkey: a digit from 0 to 3 for each level, at most 30.",
                  .flags = MC_PARAM_REQUIRED, .missing_kind = MC_ERR_BAD_REQUEST, .kind = MC_ERR_BAD_REQUEST,
                  .missing = "the parameter tile (a quadkey) is missing",
                  .refusal = "quadkey \"{value}\" has a digit other than 0 to 3"),
    MC_PARAM_STEP(check_ve_layer),
    MC_PARAM_STEP(read_quadkey),
    MC_PARAM_END,
};

static const mc_operation ve_operations[] = {
    { "tiles",
      "/ve?layer=<layer>@<grid>&tile=<quadkey>",
      { ve_tile_params },
      { { "/ve?layer=world@GoogleMapsCompatible&tile=03", 200, "image/png", "The tile that is 2/1/1 of gmaps.", NULL },
        { "/ve?layer=world@GoogleMapsCompatible&tile=04", 400, "text/plain", "Digits are 0 to 3.", NULL },
        { "/ve?layer=nothing@GoogleMapsCompatible&tile=03", 404, "text/plain", "There is no such layer.", NULL } } },
    { 0 },
};

static mc_error *
ve_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)ctx;
    ve_params params = { 0 };
    MC_TRY(mc_params_read(&params, ve_tile_params, call, pool));
    request->kind = MC_REQUEST_TILE;
    MC_TRY(mc_layers_parse(&request->u.tile, params.layer, call, MC_ERR_NOT_FOUND, pool));
    return mc_stack_place(&request->u.tile, params.level, params.x, params.row, true, pool);
}

const mc_service_ops mc_service_ve = {
    MC_SERVICE(ve, "ve", mc_service_plain_keys, mc_service_plain, "Tiles by quadkey."),
};
