/* Asking a server for tiles: all of a map together. */
#include <apr_strings.h>
#include <string.h>

#include "source/origin_send.h"
#include "source/tiles/tile_origin.h"
#include "text/text.h"

enum { TILE_BYTES_LEAST = 1 << 20, VECTOR_TILE_BYTES = 64 << 20 };

/* The name of a level at the server. */
static mc_error *
matrix_name(const char **name, const mc_tile_origin *origin, int z, apr_pool_t *pool)
{
    if (origin->matrices != NULL) {
        if (z >= origin->matrices->nelts)
            return mc_error_create(pool, MC_ERR_CONFIG, "source \"%s\": <matrix> names no level %d",
                                   origin->base.source.name, z);
        *name = APR_ARRAY_IDX(origin->matrices, z, const char *);
        return MC_OK;
    }
    const char *number = apr_itoa(pool, z + origin->zoom_offset);
    const char *mark = origin->matrix == NULL ? NULL : strstr(origin->matrix, "{z}");
    *name = mark == NULL ? number
                         : apr_pstrcat(pool, apr_pstrmemdup(pool, origin->matrix, (size_t)(mark - origin->matrix)),
                                       number, mark + 3, NULL);
    return MC_OK;
}

static mc_error *
address_of_tile(const char **url, const mc_origin_tile *tile, const mc_tile_origin *origin, const mc_grid *grid,
                const mc_render *wanted, apr_pool_t *pool)
{
    mc_tile_place place = { .z = tile->z + origin->zoom_offset,
                            .column = mc_grid_from_west(grid, tile->z, tile->x),
                            .row = mc_grid_flip_y(grid, tile->z, tile->y),
                            .row_from_south = mc_grid_tms_y(grid, tile->z, tile->y),
                            .dimension_count = wanted->dimension_count,
                            .dimensions = wanted->dimensions };
    MC_TRY(matrix_name(&place.matrix, origin, tile->z, pool));
    return mc_tile_url_expand(url, origin->url, &place, pool);
}

/* What a tile may take at most: 16 bits a channel and nothing gained by compression. */
static size_t
tile_bytes_most(const mc_tile_origin *origin, const mc_grid *grid, const mc_render *wanted)
{
    if (wanted->raw)
        return VECTOR_TILE_BYTES;
    size_t width = (size_t)(origin->tile_size > 0 ? origin->tile_size : grid->tile_width);
    size_t height = (size_t)(origin->tile_size > 0 ? origin->tile_size : grid->tile_height);
    return width * height * 8 + TILE_BYTES_LEAST;
}

static bool
is_absent_status(const mc_tile_origin *origin, int status)
{
    for (int i = 0; i < origin->absent_statuses.count; i++)
        if (status == (int)origin->absent_statuses.values[i])
            return true;
    return false;
}

static mc_error *
take_tile_answer(mc_origin_tile *tile, const mc_http_exchange *exchange, const mc_tile_origin *origin, bool image,
                 apr_pool_t *pool)
{
    const char *name = origin->base.source.name;
    const mc_http_reply *reply = &exchange->reply;
    if (exchange->error != MC_OK)
        return mc_error_wrap(pool, exchange->error->cause, exchange->error->kind, "source \"%s\": %s", name,
                             exchange->error->message);
    if (is_absent_status(origin, reply->status))
        return MC_OK;
    if (reply->status != 200)
        return mc_error_create(pool, MC_ERR_UPSTREAM, "source \"%s\" answered with status %d", name, reply->status);
    if (!image && !reply->framed) /* images have an end of their own; RFC 9112 6.3, 8 */
        return mc_error_create(pool, MC_ERR_UPSTREAM,
                               "source \"%s\": the server does not say how long the tile is: it may be half of one, or "
                               "nothing of one",
                               name);
    tile->body = reply->body;
    tile->media_type = apr_table_get(reply->headers, "Content-Type");
    return MC_OK;
}

mc_error *
mc_tile_origin_fetch(mc_origin_tile *tiles, int count, const mc_tile_origin *origin, const mc_grid *grid,
                     const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_http_exchange *exchanges = apr_pcalloc(pool, sizeof(*exchanges) * (size_t)count);
    for (int i = 0; i < count; i++) {
        const char *url;
        MC_TRY(address_of_tile(&url, &tiles[i], origin, grid, wanted, pool));
        exchanges[i].call = mc_http_block_call(origin->http, url, ctx, pool);
        exchanges[i].call.max_response = tile_bytes_most(origin, grid, wanted);
    }
    mc_origin_send_all(exchanges, count, origin->connections, &origin->base.source, ctx, pool);
    for (int i = 0; i < count; i++)
        MC_TRY(take_tile_answer(&tiles[i], &exchanges[i], origin, !wanted->raw, pool));
    return MC_OK;
}

void
mc_tile_origin_inspect(mc_source *source, mc_diagnostics *diagnostics, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_tile_origin *origin = (const mc_tile_origin *)source;
    const char *url;
    mc_tile_place first = { .z = origin->minzoom + origin->zoom_offset };
    mc_error *error = matrix_name(&first.matrix, origin, origin->minzoom, pool);
    if (error == MC_OK)
        error = mc_tile_url_expand(&url, origin->url, &first, pool);
    if (error != MC_OK) { /* values of dimensions, or the number of levels, are not known here: the server itself */
        mc_error_ignore(error);
        url = apr_pstrcat(pool, mc_origin_endpoint(origin->http->url, pool), "/", NULL);
        if (strchr(url, '{') != NULL)
            return;
    }
    mc_origin_inspect(source, origin->http, url, diagnostics, ctx, pool);
}
