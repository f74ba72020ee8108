/* Addresses by example, from the tables of operations: `mapcache urls`, docs/urls.md. */
#include <apr_strings.h>

#include "server/reference.h"
#include "service/param.h"

/* tests/integration/test_urls.py serves this with data of its own, and asks each example. */
static const char example_page_head[] =
    "# Addresses by example\n\n"
    "Written by `mapcache urls` from the tables of the services. Addresses stand behind the alias: with "
    "`MapCacheAlias /mapcache` on `maps.example.org`, `/gmaps/world/2/1/1.png` is "
    "`https://maps.example.org/mapcache/gmaps/world/2/1/1.png`. What each part may be: "
    "[parameters.md](parameters.md). For `[`, `]` and `;` write `curl -g` and quotes.\n\n"
    "A layer is written `NAME[DIMENSION=VALUE]@GRID`; the values and the grid may be left out. Extensions of tiles "
    "are those of the format; `.json` behind a layer is its TileJSON. A WMS answers in the format of `<service "
    "type=\"wms\">`, JPEG without one, unless `allow_client_override` lets clients choose.\n\n"
    "The examples are those of this configuration, and answer as this page says:\n\n"
    "    <mapcache>\n"
    "      <source name=\"world\" type=\"gdal\"><data>/data/world.tif</data></source>\n"
    "      <source name=\"roads\" type=\"shapefile\"><layer "
    "name=\"roads\"><data>/data/roads.shp</data></layer></source>\n"
    "      <cache name=\"tiles\" type=\"sqlite3\"><dbfile>/var/cache/mapcache/tiles.sqlite3</dbfile></cache>\n"
    "      <format name=\"mvt\" type=\"MVT\"/>\n"
    "      <tileset name=\"world\"><source>world</source><cache>tiles</cache>\n"
    "        <grid>GoogleMapsCompatible</grid><grid>WGS84</grid><format>PNG</format></tileset>\n"
    "      <tileset name=\"years\"><source>world</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid>\n"
    "        <format>PNG</format><dimensions><dimension type=\"values\" name=\"time\" default=\"2024\">"
    "<value>2023</value><value>2024</value></dimension></dimensions></tileset>\n"
    "      <tileset name=\"roads\"><source>roads</source><cache>tiles</cache>"
    "<grid>GoogleMapsCompatible</grid><format>PNG</format><formats>WEBP</formats></tileset>\n"
    "      <tileset name=\"landcover\"><source>world</source><cache>tiles</cache>"
    "<grid>GoogleMapsCompatible</grid><format>PNG8</format>\n"
    "        <palette name=\"default\">0 40 90 160 255 water</palette>"
    "<palette name=\"grey\">0 90 90 90 255 water</palette></tileset>\n"
    "      <tileset name=\"roads-mvt\"><source>roads</source><cache>tiles</cache>"
    "<grid>GoogleMapsCompatible</grid><format>mvt</format></tileset>\n"
    "      <jobs><connection>dbname=jobs</connection></jobs>\n"
    "      <service type=\"tms\" enabled=\"true\"/> <service type=\"wmts\" enabled=\"true\"/>\n"
    "      <service type=\"gmaps\" enabled=\"true\"/> <service type=\"kml\" enabled=\"true\"/>\n"
    "      <service type=\"ve\" enabled=\"true\"/> <service type=\"mapguide\" enabled=\"true\"/>\n"
    "      <service type=\"ogcapi\" enabled=\"true\"/>\n"
    "      <service type=\"wms\" enabled=\"true\"><format allow_client_override=\"true\">PNG</format></service> "
    "<service type=\"demo\" enabled=\"true\"/>\n"
    "      <service type=\"metrics\" enabled=\"true\"/> <service type=\"health\" enabled=\"true\"/>\n"
    "      <service type=\"ready\" enabled=\"true\"/> <service type=\"status\" "
    "enabled=\"true\"><page>true</page></service>\n"
    "      <service type=\"jobs\" "
    "enabled=\"true\"><token>b07c2e9d51f84a6630ab42ce</token><public>true</public></service>\n"
    "      <service type=\"purge\" enabled=\"true\"><token>b07c2e9d51f84a6630ab42ce</token></service>\n"
    "    </mapcache>\n\n";

static const char *
example_answer_text(const mc_url_example *example, apr_pool_t *pool)
{
    return example->mime == NULL ? apr_psprintf(pool, "%d", example->status)
                                 : apr_psprintf(pool, "%d, `%s`", example->status, example->mime);
}

static void
write_url_operation(apr_array_header_t *parts, const char *service, const mc_operation *operation, apr_pool_t *pool)
{
    APR_ARRAY_PUSH(parts, const char *) =
        apr_psprintf(pool, "### %s: %s\n\n`%s`\n\n| example | answer | meaning |\n|---|---|---|\n", service,
                     operation->name, operation->address);
    for (const mc_url_example *example = operation->examples; example->url != NULL; example++) {
        const char *body = example->body == NULL ? "" : apr_psprintf(pool, " with `%s`", example->body);
        APR_ARRAY_PUSH(parts, const char *) = apr_psprintf(pool, "| `%s`%s | %s | %s |\n", example->url, body,
                                                           example_answer_text(example, pool), example->help);
    }
    APR_ARRAY_PUSH(parts, const char *) = "\n";
}

const char *
mc_urls_markdown(apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 256, sizeof(const char *));
    APR_ARRAY_PUSH(parts, const char *) = example_page_head;
    for (int i = 0; mc_service_kinds[i] != NULL; i++) {
        const mc_service_ops *ops = mc_service_kinds[i];
        APR_ARRAY_PUSH(parts, const char *) = apr_psprintf(pool, "## %s\n\n%s\n\n", ops->type, ops->help);
        for (const mc_operation *operation = ops->operations; operation->name != NULL; operation++)
            write_url_operation(parts, ops->type, operation, pool);
    }
    return apr_array_pstrcat(pool, parts, '\0');
}
