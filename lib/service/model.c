/* What documents say about tilesets: where they have data, what type their tiles are, which values dimensions know. */
#include <apr_hash.h>
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "grid/earth.h"
#include "service/service_base.h"

/* What the list of one dimension may take of the time of a document. */
#define LIST_AT_MOST (10 * APR_USEC_PER_SEC)
#define KNOWN_KEY "mc_known_dimensions"
#define DEGREES_PER_RADIAN (180.0 / 3.14159265358979323846)

const char *
mc_meta(const mc_metadata *metadata, const char *key)
{
    return metadata != NULL ? mc_metadata_get(metadata, key) : NULL;
}

bool
mc_metadata_find_link(mc_metadata_link *link, const mc_metadata *metadata)
{
    const mc_metadata *parts = metadata != NULL ? mc_metadata_nested(metadata, "metadataurl") : NULL;
    const char *type = mc_meta(parts, "type"), *format = mc_meta(parts, "format");
    link->url = parts != NULL ? mc_meta(parts, "url") : mc_meta(metadata, "metadataurl");
    link->format = format != NULL ? format : "text/xml";
    link->is_fgdc = type != NULL && strcasecmp(type, "fgdc") == 0;
    return link->url != NULL && *link->url != '\0';
}

static double
mercator_latitude(double y)
{
    return atan(sinh(y / MC_EARTH_RADIUS)) * DEGREES_PER_RADIAN;
}

bool
mc_grid_is_mercator(const mc_grid *grid)
{
    return grid->epsg == 3857 || grid->epsg == 900913 || grid->epsg == 3785;
}

/* What the registry says of a code counts, whatever <units> says. */
static bool
is_geographic(const mc_grid *grid)
{
    double metres = grid->epsg != 0 ? mc_crs_metres_per_unit(grid->epsg) : grid->metres_per_unit;
    return grid->epsg == 4326 || fabs(metres / MC_METRES_PER_DEGREE - 1) < 1e-6;
}

bool
mc_grid_degrees(mc_extent *degrees, const mc_grid *grid, const mc_extent *box)
{
    if (mc_grid_is_mercator(grid))
        *degrees = (mc_extent){ box->minx / MC_EARTH_RADIUS * DEGREES_PER_RADIAN, mercator_latitude(box->miny),
                                box->maxx / MC_EARTH_RADIUS * DEGREES_PER_RADIAN, mercator_latitude(box->maxy) };
    else if (is_geographic(grid))
        *degrees = (mc_extent){ box->minx, fmax(box->miny, -90), box->maxx, fmin(box->maxy, 90) };
    else
        return false;
    return true;
}

mc_extent
mc_tileset_degrees(const mc_tileset *tileset)
{
    mc_extent degrees = { -180, -90, 180, 90 };
    if (mc_tileset_data_box(&degrees, tileset))
        return degrees;
    if (tileset->has_wgs84_box)
        return tileset->wgs84_box;
    for (int i = 0; i < tileset->link_count; i++)
        if (mc_grid_degrees(&degrees, tileset->links[i]->grid, &tileset->links[i]->extent))
            break;
    return degrees;
}

const char *
mc_tileset_mime(const mc_tileset *tileset)
{
    if (tileset->format != NULL && tileset->format->mime != NULL)
        return tileset->format->mime;
    return "image/png";
}

static bool
is_mixed(const mc_tileset *tileset)
{
    return tileset->format != NULL && tileset->format->type == MC_FORMAT_MIXED;
}

const char *
mc_tileset_address_extension(const mc_tileset *tileset)
{
    return is_mixed(tileset) ? "png" : mc_tileset_extension(tileset);
}

bool
mc_tileset_takes_extension(const mc_tileset *tileset, const char *extension)
{
    return strcmp(extension, mc_tileset_extension(tileset)) == 0 ||
           (is_mixed(tileset) && (strcmp(extension, "png") == 0 || strcmp(extension, "jpg") == 0));
}

bool
mc_tileset_offers_extension(const mc_tileset *tileset, const char *extension)
{
    return mc_tileset_takes_extension(tileset, extension) || mc_tileset_variant(tileset, extension) != NULL ||
           (tileset->variant_count > 0 && strcmp(extension, MC_EXTENSION_BY_ACCEPT) == 0);
}

bool
mc_tileset_is_image(const mc_tileset *tileset)
{
    return mc_format_is_image(tileset->format);
}

bool
mc_tileset_has_legend(const mc_tileset *tileset)
{
    return tileset->source != NULL && tileset->source->ops->legend != NULL;
}

bool
mc_tileset_style_has_legend(const mc_tileset *tileset, const mc_color_map *style)
{
    return style != NULL || mc_tileset_has_legend(tileset) || tileset->stored_palette != NULL;
}

const apr_array_header_t *
mc_tileset_info_formats(const mc_tileset *tileset)
{
    if (tileset->source == NULL || tileset->source->info_formats == NULL || tileset->source->info_formats->nelts == 0)
        return NULL;
    return tileset->source->info_formats;
}

/* What one request knows of a dimension: documents speak of it several times, and a database that fails is waited for
 * once. */
typedef struct known_dimension {
    const apr_array_header_t *values; /* NULL: not asked yet */
    const char *default_value;        /* the same */
} known_dimension;

static known_dimension *
find_known_dimension(const mc_dimension *dimension, const char *tileset, mc_ctx *ctx)
{
    void *data = NULL;
    const char *key = apr_psprintf(ctx->pool, "%pp %s", (const void *)dimension, tileset) /* %pp: APR's pointer */;
    apr_pool_userdata_get(&data, KNOWN_KEY, ctx->pool);
    apr_hash_t *all = data;
    if (all == NULL) {
        all = apr_hash_make(ctx->pool);
        apr_pool_userdata_setn(all, KNOWN_KEY, NULL, ctx->pool);
    }
    known_dimension *known = apr_hash_get(all, key, APR_HASH_KEY_STRING);
    if (known == NULL) {
        known = apr_pcalloc(ctx->pool, sizeof(*known));
        apr_hash_set(all, key, APR_HASH_KEY_STRING, known);
    }
    return known;
}

static const apr_array_header_t *
list_known_values(mc_dimension *dimension, const char *tileset, mc_ctx *ctx)
{
    apr_array_header_t *values = NULL;
    mc_ctx own = *ctx; /* a document must not wait for one database until there is no time for the others */
    own.deadline = mc_clock_now() + mc_ctx_remaining(ctx, LIST_AT_MOST);
    mc_error *error = mc_dimension_list(&values, dimension, tileset, &own, ctx->pool);
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_WARN, error);
    if (error == MC_OK && values != NULL && values->nelts > 0)
        return values;
    values = apr_array_make(ctx->pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(values, const char *) = dimension->default_value;
    return values;
}

const apr_array_header_t *
mc_dimension_values_known(mc_dimension *dimension, const char *tileset, mc_ctx *ctx)
{
    known_dimension *known = find_known_dimension(dimension, tileset, ctx);
    if (known->values == NULL)
        known->values = list_known_values(dimension, tileset, ctx);
    return known->values;
}

const apr_array_header_t *
mc_dimension_values_published(mc_dimension *dimension, const char *tileset, mc_ctx *ctx)
{
    const apr_array_header_t *values = mc_dimension_values_known(dimension, tileset, ctx);
    return dimension->periods ? mc_dimension_periods(values, ctx->pool) : values;
}

const char *
mc_dimension_default_known(mc_dimension *dimension, const char *tileset, mc_ctx *ctx)
{
    known_dimension *known = find_known_dimension(dimension, tileset, ctx);
    if (known->default_value != NULL)
        return known->default_value;
    mc_ctx own = *ctx;
    own.deadline = mc_clock_now() + mc_ctx_remaining(ctx, LIST_AT_MOST);
    mc_error *error = mc_dimension_default(&known->default_value, dimension, tileset, &own, ctx->pool);
    if (error == MC_OK)
        return known->default_value;
    mc_log_error(ctx, MC_LOG_WARN, error);
    known->default_value = dimension->default_value;
    return known->default_value;
}

const char *
mc_dimension_units(const mc_dimension *dimension)
{
    if (dimension->unit != NULL)
        return dimension->unit;
    return dimension->time ? "ISO8601" : "";
}

const char *
mc_dimension_unit_symbol(const mc_dimension *dimension)
{
    static const char *const symbols[][2] = {
        { "m", "m" },
        { "metre", "m" },
        { "metres", "m" },
        { "meter", "m" },
        { "meters", "m" },
        { "EPSG:5030", "m" },
        { "CRS:88", "m" },
        { "EPSG:5773", "m" },
        { "ft", "ft" },
        { "foot", "ft" },
        { "feet", "ft" },
        { "km", "km" },
        { "cm", "cm" },
        { "mm", "mm" },
        { "Pa", "Pa" },
        { "hPa", "hPa" },
        { "kPa", "kPa" },
        { "K", "K" },
        { "kelvin", "K" },
        { "Celsius", "\xc2\xb0"
                     "C" },
        { "degree", "\xc2\xb0" },
        { "degrees", "\xc2\xb0" },
        { "percent", "%" },
        { "%", "%" },
    };
    for (size_t i = 0; dimension->unit != NULL && i < sizeof(symbols) / sizeof(symbols[0]); i++)
        if (strcasecmp(dimension->unit, symbols[i][0]) == 0)
            return symbols[i][1];
    return NULL;
}
