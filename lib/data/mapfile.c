/*
 * A map file of MapServer: its name, box and CRS, by the words that stand before its first layer. MapServer itself is
 * not asked, so that a configuration with a map file starts no process.
 */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "data/data_private.h"
#include "text/text.h"

enum { HEAD_MAX = 64 * 1024 /* bytes that are looked through */ };

/* The next word, number or quoted text of a map file at *at, without its quotes; NULL: the end. # begins a comment. */
static const char *
next_map_word(const char **at, bool *quoted, apr_pool_t *pool)
{
    for (;;) {
        *at += strspn(*at, " \t\r\n");
        if (**at != '#')
            break;
        *at += strcspn(*at, "\n");
    }
    const char *word = *at;
    *quoted = *word == '"' || *word == '\'';
    if (*word == '\0')
        return NULL;
    size_t size = *quoted ? strcspn(word + 1, *word == '"' ? "\"" : "'") : strcspn(word, " \t\r\n#\"'");
    *at = word + size + (*quoted ? 1 + (word[size + 1] != '\0') : 0);
    return apr_pstrmemdup(pool, word + *quoted, size);
}

static bool
read_map_extent(mc_extent *extent, const char **at, apr_pool_t *pool)
{
    double *const edges[] = { &extent->minx, &extent->miny, &extent->maxx, &extent->maxy };
    bool quoted;
    for (int i = 0; i < 4; i++) {
        const char *word = next_map_word(at, &quoted, pool);
        if (word == NULL || quoted || !mc_parse_double(edges[i], word))
            return false;
    }
    return mc_extent_valid(extent);
}

/* "init=epsg:3857", "epsg:3857" and "EPSG:3857"; other forms are of no use here. */
static const char *
read_map_projection(const char **at, apr_pool_t *pool)
{
    bool quoted;
    int code;
    const char *word = next_map_word(at, &quoted, pool);
    if (word == NULL || !quoted)
        return NULL;
    word += strncasecmp(word, "init=", 5) == 0 ? 5 : 0;
    if (strncasecmp(word, "epsg:", 5) != 0 || !mc_parse_int(&code, word + 5, 1, 999999))
        return NULL;
    return apr_psprintf(pool, "EPSG:%d", code);
}

static void
describe_mapfile(mc_data_layer *layer, const char *text, apr_pool_t *pool)
{
    bool quoted;
    const char *word;
    while ((word = next_map_word(&text, &quoted, pool)) != NULL && (quoted || strcasecmp(word, "LAYER") != 0)) {
        if (quoted)
            continue;
        if (strcasecmp(word, "EXTENT") == 0 && !layer->has_extent)
            layer->has_extent = read_map_extent(&layer->extent, &text, pool);
        else if (strcasecmp(word, "PROJECTION") == 0 && layer->srs == NULL)
            layer->srs = read_map_projection(&text, pool);
    }
}

/* Whether it is a raster of PCRaster, whose files are called so, too: GDAL reads them. */
static bool
is_pcraster(const char *path, apr_pool_t *pool)
{
    static const char beginning[] = "RUU CROSS SYSTEM MAP FORMAT";
    apr_file_t *file;
    apr_size_t size = 0;
    char bytes[sizeof(beginning) - 1];
    if (apr_file_open(&file, path, APR_READ | APR_BINARY, APR_OS_DEFAULT, pool) != APR_SUCCESS)
        return false;
    (void)apr_file_read_full(file, bytes, sizeof(bytes), &size);
    apr_file_close(file);
    return size == sizeof(bytes) && memcmp(bytes, beginning, size) == 0;
}

bool
mc_data_is_mapfile(const char *path, apr_pool_t *pool)
{
    size_t size = strlen(path);
    return size > 4 && strcasecmp(path + size - 4, ".map") == 0 && !is_pcraster(path, pool);
}

mc_error *
mc_data_look_mapfile(mc_data_search *search, const char *path)
{
    apr_file_t *file;
    apr_size_t size = 0;
    char *head = apr_palloc(search->pool, HEAD_MAX + 1);
    bool quoted;
    if (apr_file_open(&file, path, APR_READ | APR_BINARY, APR_OS_DEFAULT, search->pool) != APR_SUCCESS)
        return mc_error_create(search->pool, MC_ERR_UNAVAILABLE, "\"%s\" cannot be read", path);
    (void)apr_file_read_full(file, head, HEAD_MAX, &size);
    apr_file_close(file);
    head[size] = '\0';
    const char *at = head, *first = next_map_word(&at, &quoted, search->pool);
    if (first == NULL || quoted || strcasecmp(first, "MAP") != 0)
        return mc_error_create(search->pool, MC_ERR_CONFIG,
                               "\"%s\" does not begin with MAP, as map files of MapServer do", path);
    mc_data_layer *layer = mc_data_add(search, MC_DATA_RASTER, "mapserver");
    if (layer == NULL)
        return MC_OK;
    layer->data = apr_pstrdup(search->pool, path);
    layer->name = mc_data_stem(path, search->pool);
    layer->transparent = true;
    describe_mapfile(layer, at, search->pool);
    mc_data_place(layer, 0, search->pool);
    layer->maxzoom = -1; /* what a map file shows at which scale, MapServer knows */
    return MC_OK;
}
