/* Which reader an area needs. */
#include <apr_strings.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/module.h"
#include "seed/area_private.h"
#include "text/text.h"

enum { FILE_MAX = 256 << 20 };

/* The whole file, malloc'ed. */
static mc_error *
load_seed_area_file(char **bytes, size_t *size, const char *path, apr_pool_t *pool)
{
    FILE *in = fopen(path, "rb");
    if (in == NULL)
        return mc_error_create(pool, MC_ERR_IO, "%s cannot be opened: %s", path, strerror(errno));
    size_t room = 1 << 16;
    *size = 0;
    *bytes = malloc(room);
    MC_ASSERT(*bytes != NULL);
    for (size_t got = 1; got > 0 && *size < FILE_MAX; *size += got) {
        if (*size == room)
            *bytes = realloc(*bytes, room *= 2);
        MC_ASSERT(*bytes != NULL);
        got = fread(*bytes + *size, 1, room - *size, in);
    }
    bool failed = ferror(in) != 0, whole = feof(in) != 0;
    int reason = errno;
    fclose(in);
    if (failed)
        return mc_error_create(pool, MC_ERR_IO, "%s cannot be read: %s", path, strerror(reason));
    return whole ? MC_OK
                 : mc_error_create(pool, MC_ERR_LIMIT, "%s has more than %d MB: simplify it, or use an OGR source",
                                   path, FILE_MAX >> 20);
}

/* Twice: once for the CRS, which may stand at the end. */
static mc_error *
read_area_text(mc_areas_text *text, const char *srs, const mc_grid *grid, int finest)
{
    if (text->end - text->begin >= 3 && memcmp(text->begin, "\xef\xbb\xbf", 3) == 0)
        text->begin += 3;
    text->at = text->begin;
    mc_areas_skip(text);
    bool json = text->at < text->end && *text->at == '{';
    MC_TRY((json ? mc_areas_json : mc_areas_wkt)(text));
    if (srs == NULL && text->srs[0] != '\0')
        srs = text->srs;
    if (srs == NULL && json)
        srs = "EPSG:4326"; /* RFC 7946, 4: longitude and latitude of WGS 84, in this order */
    MC_TRY(mc_region_begin(&text->builder, grid, finest, srs, text->pool));
    text->at = text->begin;
    text->points.count = 0;
    return (json ? mc_areas_json : mc_areas_wkt)(text);
}

static mc_error *
parse_seed_area_text(mc_region_builder **builder, const char *bytes, size_t size, const char *name, const char *srs,
                     const mc_grid *grid, int finest, apr_pool_t *pool)
{
    mc_areas_text text = { .path = name, .pool = pool, .begin = bytes, .end = bytes + size };
    mc_error *error = read_area_text(&text, srs, grid, finest);
    free(text.points.xy);
    *builder = text.builder;
    return error;
}

mc_error *
mc_seed_area_parse(mc_seed_region **region, const char *bytes, size_t size, const char *name, const char *srs,
                   const mc_grid *grid, int finest, apr_pool_t *pool)
{
    mc_region_builder *builder;
    *region = NULL;
    MC_TRY(parse_seed_area_text(&builder, bytes, size, name, srs, grid, finest, pool));
    *region = mc_region_finish(builder);
    return MC_OK;
}

mc_error *
mc_seed_area_read(mc_seed_region **region, const char *path, const char *srs, const mc_grid *grid, int finest,
                  apr_pool_t *pool)
{
    char *bytes = NULL;
    size_t size = 0;
    mc_region_builder *builder = NULL;
    *region = NULL;
    mc_error *error = load_seed_area_file(&bytes, &size, path, pool);
    if (error == MC_OK)
        error = parse_seed_area_text(&builder, bytes, size, path, srs, grid, finest, pool);
    free(bytes);
    if (error == MC_OK)
        *region = mc_region_finish(builder); /* needs memory of its own: the text's is free by now */
    return error;
}

mc_error *
mc_seed_area_text(const char **text, const char *path, apr_pool_t *pool)
{
    char *bytes = NULL;
    size_t size = 0;
    mc_error *error = load_seed_area_file(&bytes, &size, path, pool);
    if (error == MC_OK && memchr(bytes, 0, size) != NULL)
        error = mc_error_create(pool, MC_ERR_CORRUPT, "%s is no text", path);
    if (error == MC_OK)
        *text = apr_pstrmemdup(pool, bytes, size);
    free(bytes);
    return error;
}

mc_error *
mc_seed_area_ogr(mc_seed_region **region, int64_t *features, int64_t *invalid, const mc_seed_ogr *wanted,
                 const mc_grid *grid, int finest, apr_pool_t *pool)
{
    void *symbol;
    mc_region_builder *builder;
    *region = NULL;
    MC_TRY(mc_module_symbol(&symbol, "gdal", MC_AREAS_OGR_SYMBOL, pool));
    MC_TRY(mc_region_begin(&builder, grid, finest, wanted->srs, pool));
    MC_TRY(((const mc_areas_ogr_ops *)symbol)->read(builder, features, invalid, wanted, pool));
    *region = mc_region_finish(builder);
    return MC_OK;
}

mc_error *
mc_seed_shape_cut(const char **json, mc_extent *bounds, const mc_seed_shape *shape, const mc_extent *box,
                  apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "gdal", MC_AREAS_OGR_SYMBOL, pool));
    return ((const mc_areas_ogr_ops *)symbol)->cut(json, bounds, shape, box, pool);
}
