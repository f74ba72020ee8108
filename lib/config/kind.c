/* See kind.h. */
#include "config/kind.h"

#include <apr_strings.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* A list of pointers to any one type: read as bytes, because no pointer to void may stand for another one in place. */
static const void *
kind_at(const void *kinds, size_t index)
{
    const void *kind;
    memcpy(&kind, (const char *)kinds + index * sizeof(kind), sizeof(kind));
    return kind;
}

static const char *
type_of_kind(const void *kind)
{
    return *(const char *const *)kind;
}

const char *
mc_kind_types(const void *kinds, apr_pool_t *pool)
{
    const char *list = "";
    for (size_t i = 0; kind_at(kinds, i) != NULL; i++)
        list = apr_pstrcat(pool, list, i == 0 ? "" : ", ", type_of_kind(kind_at(kinds, i)), NULL);
    return list;
}

/* What other programs, and people, call a type. */
static const char *
translate_type(const char *noun, const char *type)
{
    static const struct {
        const char *noun, *word, *type;
    } rows[] = {
        { "service", "xyz", "gmaps" },
        { "service", "zxy", "gmaps" },
        { "service", "tiles", "gmaps" },
        { "service", "google", "gmaps" },
        { "service", "googlemaps", "gmaps" },
        { "service", "osm", "gmaps" },
        { "service", "ogc", "ogcapi" },
        { "service", "ogc-api", "ogcapi" },
        { "service", "bing", "ve" },
        { "service", "virtualearth", "ve" },
        { "service", "prometheus", "metrics" },
        { "cache", "file", "disk" },
        { "cache", "files", "disk" },
        { "cache", "directory", "disk" },
        { "cache", "gpkg", "geopackage" },
        { "cache", "postgis", "postgresql" },
        { "cache", "pg", "postgresql" },
        { "source", "raster", "gdal" },
        { "source", "geotiff", "gdal" },
        { "source", "tiff", "gdal" },
        { "source", "cog", "gdal" },
        { "source", "geojson", "ogr" },
        { "source", "geopackage", "ogr" },
        { "source", "gpkg", "ogr" },
        { "source", "vector", "ogr" },
        { "source", "shp", "shapefile" },
        { "source", "postgresql", "postgis" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].noun, noun) == 0 && strcasecmp(rows[i].word, type) == 0)
            return rows[i].type;
    return NULL;
}

/* The type that is probably meant, as the end of a complaint; "" where none is like it. */
static const char *
suggest_type(const void *kinds, const char *noun, const char *type, apr_pool_t *pool)
{
    enum { MOST = 64 };
    const char *types[MOST], *meant = translate_type(noun, type);
    int count = 0;
    bool built = false;
    for (; count < MOST && kind_at(kinds, (size_t)count) != NULL; count++) {
        types[count] = type_of_kind(kind_at(kinds, (size_t)count));
        built = built || (meant != NULL && strcmp(types[count], meant) == 0);
    }
    if (!built)
        meant = mc_config_nearest(type, types, count);
    return meant == NULL ? "" : apr_psprintf(pool, "; did you mean \"%s\"?", meant);
}

const void *
mc_kind_choose(const void *kinds, const char *noun, const mc_node *node, mc_kind_compare *compare, mc_build *build)
{
    const char *type = mc_node_attr(node, "type");
    for (size_t i = 0; type != NULL && kind_at(kinds, i) != NULL; i++)
        if (compare(type_of_kind(kind_at(kinds, i)), type) == 0)
            return kind_at(kinds, i);
    const char *types = mc_kind_types(kinds, build->pool);
    if (type == NULL)
        mc_complain(build->diagnostics, MC_REFUSED, node, "a %s needs the attribute type: one of %s", noun, types);
    else
        mc_complain(build->diagnostics, MC_REFUSED, node, "no %s has the type %s: it is one of %s%s", noun,
                    mc_config_quote(type, build->pool), types, suggest_type(kinds, noun, type, build->pool));
    return NULL;
}
