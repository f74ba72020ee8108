/* Archives of others whose tiles are those of web maps: Esri's bundles, MRF. */
#include <apr_file_info.h>
#include <apr_strings.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/archive/ranges.h"
#include "cache/blocks/mrf.h"
#include "data/data_private.h"
#include "grid/earth.h"
#include "mapcache/image.h"
#include "text/text.h"

enum {
    BUNDLE_SIDE = 128,
    BUNDLE_HEAD = 64,
    BUNDLE_BYTES = BUNDLE_SIDE * BUNDLE_SIDE * 8,
    BUNDLES_READ = 64, /* of the finest level, for the box */
    LEVELS_MAX = 24,
    SNIFFED = 16
};

/* --- bundles ------------------------------------------------------------------------------------------------------ */

/* What a folder of bundles holds. */
typedef struct bundle_folder {
    const char *base;             /* the folder of the levels */
    int first, last;              /* levels; -1: there is none */
    int west, north, east, south; /* tiles of the finest level from the upper left corner, inclusive; west < 0: none */
    const char *format;           /* NULL: not known */
} bundle_folder;

static bool
is_folder(const char *path, apr_pool_t *pool)
{
    apr_finfo_t info;
    return apr_stat(&info, path, APR_FINFO_TYPE, pool) == APR_SUCCESS && info.filetype == APR_DIR;
}

const char *
mc_data_glob_text(const char *text, apr_pool_t *pool)
{
    text = mc_replace_all(text, "[", "[[]", pool);
    return mc_replace_all(mc_replace_all(text, "*", "[*]", pool), "?", "[?]", pool);
}

/* The bundles of a level; globfree() must follow. */
static size_t
list_bundles(glob_t *found, const char *base, int level, apr_pool_t *pool)
{
    const char *plain = mc_data_glob_text(base, pool);
    *found = (glob_t){ 0 };
    return glob(apr_psprintf(pool, "%s/L%02d/R*C*.bundle", plain, level), GLOB_NOSORT | GLOB_NOESCAPE, NULL, found) == 0
               ? found->gl_pathc
               : 0;
}

static void
find_bundle_levels(bundle_folder *folder, apr_pool_t *pool)
{
    folder->first = folder->last = folder->west = -1;
    for (int level = 0; level < LEVELS_MAX; level++) {
        glob_t found;
        if (!is_folder(apr_psprintf(pool, "%s/L%02d", folder->base, level), pool))
            continue;
        if (list_bundles(&found, folder->base, level, pool) > 0) {
            folder->first = folder->first < 0 ? level : folder->first;
            folder->last = level;
        }
        globfree(&found);
    }
}

/* ".../RrrrrCcccc.bundle", in lower-case hexadecimal. */
static bool
parse_bundle_name(int *column, int *row, const char *path, apr_pool_t *pool)
{
    const char *name = strrchr(path, '/');
    size_t digits = name == NULL || name[1] != 'R' ? 0 : strspn(name + 2, "0123456789abcdef");
    if (digits == 0 || digits > 6 || name[2 + digits] != 'C')
        return false;
    *row = (int)strtol(apr_pstrmemdup(pool, name + 2, digits), NULL, 16);
    *column = (int)strtol(name + 3 + digits, NULL, 16);
    return *column >= 0;
}

/* The format of a tile; NULL: it is no picture that is served. */
static const char *
sniff_bundled_tile(mc_ranged_file *file, uint64_t offset, apr_pool_t *pool)
{
    uint8_t bytes[SNIFFED];
    if (mc_ranges_read(bytes, file, offset, sizeof(bytes), pool) != MC_OK)
        return NULL;
    return mc_coding_format(mc_image_sniff(bytes, sizeof(bytes)));
}

/* Widens the box by the tiles of a bundle. */
static void
take_bundle(bundle_folder *folder, const char *path, apr_pool_t *pool)
{
    mc_ranged_file file;
    int column, row;
    uint8_t *index = apr_palloc(pool, BUNDLE_BYTES);
    mc_ranges_look(&file, path);
    if (file.missing == 0 && parse_bundle_name(&column, &row, path, pool) && column < 1 << folder->last &&
        row < 1 << folder->last && mc_ranges_read(index, &file, BUNDLE_HEAD, BUNDLE_BYTES, pool) == MC_OK)
        for (int i = 0; i < BUNDLE_SIDE * BUNDLE_SIDE; i++) {
            uint64_t word = mc_little64(index + 8 * i);
            int x = column + i % BUNDLE_SIDE, y = row + i / BUNDLE_SIDE;
            if (word >> 40 == 0)
                continue;
            if (folder->format == NULL)
                folder->format = sniff_bundled_tile(&file, word & (((uint64_t)1 << 40) - 1), pool);
            bool first = folder->west < 0;
            folder->west = first || x < folder->west ? x : folder->west;
            folder->north = first || y < folder->north ? y : folder->north;
            folder->east = first || x > folder->east ? x : folder->east;
            folder->south = first || y > folder->south ? y : folder->south;
        }
    mc_ranges_close(&file);
}

/* A number of Esri's conf.xml; NAN: there is none. */
static double
number_of_child(const mc_node *node, const char *name)
{
    double number;
    const mc_node *child = node == NULL ? NULL : mc_node_child(node, name);
    return child == NULL || child->text == NULL || !mc_parse_double(&number, child->text) ? NAN : number;
}

/* Whether the levels are those of web maps, by conf.xml: beside the levels or above them. */
static bool
are_web_bundles(const char *base, apr_pool_t *pool)
{
    apr_finfo_t info;
    mc_node *root;
    const char *path = apr_pstrcat(pool, base, "/conf.xml", NULL);
    if (apr_stat(&info, path, APR_FINFO_TYPE, pool) != APR_SUCCESS)
        path = apr_pstrcat(pool, base, "/../conf.xml", NULL);
    if (apr_stat(&info, path, APR_FINFO_TYPE, pool) != APR_SUCCESS)
        return true; /* nothing says otherwise */
    if (info.filetype != APR_REG || mc_xml_parse_file(&root, path, pool) != MC_OK)
        return false;
    const mc_node *tiles = mc_node_child(root, "TileCacheInfo");
    const mc_node *corner = tiles == NULL ? NULL : mc_node_child(tiles, "TileOrigin");
    const mc_node *levels = tiles == NULL ? NULL : mc_node_child(tiles, "LODInfos");
    bool web = fabs(number_of_child(corner, "X") + MC_WEB_MERCATOR_HALF) < 1 &&
               fabs(number_of_child(corner, "Y") - MC_WEB_MERCATOR_HALF) < 1 &&
               number_of_child(tiles, "TileCols") == 256 && number_of_child(tiles, "TileRows") == 256;
    for (const mc_node *level = levels == NULL ? NULL : levels->children; level != NULL && web; level = level->next) {
        double wanted = 2 * MC_WEB_MERCATOR_HALF / 256 / exp2(number_of_child(level, "LevelID"));
        web = fabs(number_of_child(level, "Resolution") / wanted - 1) < 1e-6;
    }
    return web && levels != NULL;
}

/* A cache is called as its folder, which has that of the levels. */
static const char *
named_folder(const char *path, apr_pool_t *pool)
{
    const char *slash = strrchr(path, '/');
    bool inner = slash != NULL && slash > path && strcmp(slash + 1, "_alllayers") == 0;
    return inner ? apr_pstrmemdup(pool, path, (size_t)(slash - path)) : path;
}

static void
add_bundles(mc_data_search *search, const bundle_folder *folder, const char *path)
{
    double side = 2 * MC_WEB_MERCATOR_HALF / exp2(folder->last), half = MC_WEB_MERCATOR_HALF;
    mc_data_layer *layer = mc_data_add(search, MC_DATA_TILES, "bundle");
    if (layer == NULL)
        return;
    layer->format = folder->format;
    layer->data = folder->base;
    layer->name = mc_data_stem(named_folder(path, search->pool), search->pool);
    layer->minzoom = folder->first;
    layer->maxzoom = folder->last;
    layer->extent = (mc_extent){ folder->west * side - half, half - (folder->south + 1) * side,
                                 (folder->east + 1) * side - half, half - folder->north * side };
    layer->has_extent = mc_extent_valid(&layer->extent);
    layer->srs = "EPSG:3857";
    mc_data_place(layer, 0, search->pool);
}

bool
mc_data_look_bundles(mc_data_search *search, const char *path)
{
    apr_pool_t *pool = search->pool;
    const char *below = apr_pstrcat(pool, path, "/_alllayers", NULL);
    bundle_folder folder = { .base = is_folder(below, pool) ? below : apr_pstrdup(pool, path) };
    glob_t found;
    find_bundle_levels(&folder, pool);
    if (folder.first < 0)
        return false;
    size_t count = list_bundles(&found, folder.base, folder.last, pool);
    for (size_t i = 0; i < count && i < BUNDLES_READ; i++)
        take_bundle(&folder, found.gl_pathv[i], pool);
    globfree(&found);
    if (!are_web_bundles(folder.base, pool))
        mc_data_note(search, "%s: its tiles are not those of web maps: they need a configuration with their grid",
                     path);
    else if (folder.format == NULL)
        mc_data_note(search, "%s: its tiles are neither PNG nor JPEG", path);
    else if (strchr(folder.base, '{') != NULL)
        mc_data_note(search, "%s: a folder of tiles cannot have { in its name", path);
    else
        add_bundles(search, &folder, path);
    return true;
}

/* The folder of the levels that a bundle belongs to: FOLDER/Lzz/RrrrrCcccc.bundle. */
mc_error *
mc_data_look_bundle_file(mc_data_search *search, const char *path)
{
    int column, row;
    const char *name = strrchr(path, '/');
    char *folder = apr_pstrmemdup(search->pool, path, name == NULL ? 0 : (size_t)(name - path));
    char *level = strrchr(folder, '/');
    if (level == NULL || level[1] != 'L' || !parse_bundle_name(&column, &row, path, search->pool))
        return mc_error_create(search->pool, MC_ERR_CONFIG,
                               "\"%s\" is no bundle of a cache, which is called FOLDER/Lzz/RrrrrCcccc.bundle", path);
    *level = '\0';
    if (!mc_data_look_bundles(search, folder))
        return mc_error_create(search->pool, MC_ERR_CONFIG, "\"%s\" holds no bundles", folder);
    return MC_OK;
}

/* --- MRF ---------------------------------------------------------------------------------------------------------- */

/* The level of web maps that the finest pages are of; -1: they are not of one. */
static int
level_of_mrf(const mc_mrf_about *about)
{
    double half = MC_WEB_MERCATOR_HALF;
    int level = 0;
    while (level < LEVELS_MAX && 256 << level < about->width)
        level++;
    bool web = about->width == about->height && about->width == 256 << level && about->page_width == 256 &&
               about->page_height == 256 && about->placed && fabs(about->box.minx + half) < 1 &&
               fabs(about->box.miny + half) < 1 && fabs(about->box.maxx - half) < 1 && fabs(about->box.maxy - half) < 1;
    return web ? level : -1;
}

mc_error *
mc_data_look_mrf(mc_data_search *search, const char *path)
{
    mc_mrf_about about;
    MC_TRY(mc_mrf_look(&about, path, search->pool));
    int level = level_of_mrf(&about);
    if (level < 0 || strchr(path, '{') != NULL) {
        mc_data_note(search, "%s: its pages are not the tiles of web maps: they need a configuration with their grid",
                     path);
        return MC_OK;
    }
    mc_data_layer *layer = mc_data_add(search, MC_DATA_TILES, "mrf");
    if (layer == NULL)
        return MC_OK;
    layer->format = about.jpeg ? "JPEG" : "PNG";
    layer->data = apr_pstrdup(search->pool, path);
    layer->name = mc_data_stem(path, search->pool);
    layer->minzoom = about.levels ? 0 : level;
    layer->maxzoom = level;
    layer->extent = about.box;
    layer->has_extent = true;
    layer->srs = "EPSG:3857";
    mc_data_place(layer, 0, search->pool);
    return MC_OK;
}
