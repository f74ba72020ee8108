/*
 * The cache "mrf": NASA's Meta Raster Format, whose pages are tiles. An XML file says how many there are; a file of
 * indexes has 16 bytes for each page (offset and size, big-endian), rows from the north, the finest level first; a file
 * of data has the pages.
 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cache/blocks/blocks.h"
#include "cache/blocks/mrf.h"
#include "cache/memory.h"
#include "text/text.h"

enum { MRF_LEVELS_MAX = 31, ENTRY_BYTES = 16, DESCRIBED_MRF = 4, SIZE_MAX_OF_MRF = 1 << 30 };

typedef struct mrf_cache {
    mc_block_cache block;
    const char *file;
    mc_template *template;
} mrf_cache;

/* What the XML file says. */
typedef struct mrf_description {
    int width, height;           /* pixels of the finest level */
    int page_width, page_height; /* pixels */
    bool levels;                 /* each following one is half as large */
    bool jpeg;
    char index[MC_PATH_MAX], data[MC_PATH_MAX];
} mrf_description;

static const mc_key mrf_keys[] = {
    MC_CACHE_KEYS(mc_block_cache),
    MC_KEY_TEXT("file", offsetof(mrf_cache, file),
                "Path of the XML file (.mrf), with {tileset}, {grid} and {dim} or {dim:NAME}.",
                .flags = MC_KEY_REQUIRED | MC_KEY_WORKDIR | MC_KEY_OURS),
    MC_KEY_END,
};

static mc_error *
mrf_path(char *path, const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    return mc_template_expand(path, ((const mrf_cache *)base)->template, key, pool);
}

static mc_error *
refuse_mrf(const char *why, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "no MRF whose pages are tiles: %s", why);
}

/* A whole number of an attribute; 0: there is none that can be. */
static int
mrf_number(const mc_node *node, const char *attribute, int otherwise)
{
    int number;
    const char *text = node == NULL ? NULL : mc_node_attr(node, attribute);
    if (text == NULL)
        return otherwise;
    return mc_parse_int(&number, text, 1, SIZE_MAX_OF_MRF) ? number : 0;
}

static const char *
trimmed_text(const mc_node *node, apr_pool_t *pool)
{
    const char *text = node == NULL || node->text == NULL ? "" : node->text;
    text += strspn(text, " \t\r\n");
    return apr_pstrndup(pool, text, strcspn(text, " \t\r\n"));
}

/* The file beside the XML file, by its name there or its usual ending. */
static mc_error *
name_mrf_part(char *part, const char *path, const mc_node *named, const char *ending, apr_pool_t *pool)
{
    const char *name = trimmed_text(named, pool), *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    size_t stem = dot != NULL && (slash == NULL || dot > slash) ? (size_t)(dot - path) : strlen(path);
    const char *whole = *name == '\0' ? apr_pstrcat(pool, apr_pstrmemdup(pool, path, stem), ending, NULL)
                                      : mc_config_path(path, name, pool);
    if (strstr(whole, "://") != NULL || strlen(whole) >= MC_PATH_MAX)
        return refuse_mrf("its data are not in files", pool);
    memcpy(part, whole, strlen(whole) + 1);
    return MC_OK;
}

static mc_error *
describe_mrf(mrf_description *about, mc_node **whole, const char *path, apr_pool_t *pool)
{
    mc_node *root;
    MC_TRY(mc_xml_parse_file(&root, path, pool));
    *whole = root;
    const mc_node *raster = strcmp(root->name, "MRF_META") == 0 ? mc_node_child(root, "Raster") : NULL;
    if (raster == NULL)
        return refuse_mrf("there is no <Raster>", pool);
    const mc_node *size = mc_node_child(raster, "Size"), *page = mc_node_child(raster, "PageSize");
    const mc_node *sets = mc_node_child(root, "Rsets");
    const char *coding = trimmed_text(mc_node_child(raster, "Compression"), pool);
    about->width = mrf_number(size, "x", 0);
    about->height = mrf_number(size, "y", 0);
    about->page_width = mrf_number(page, "x", 512);
    about->page_height = mrf_number(page, "y", 512);
    about->levels = sets != NULL;
    if (about->width == 0 || about->height == 0 || about->page_width == 0 || about->page_height == 0)
        return refuse_mrf("it has no size", pool);
    if (mrf_number(size, "c", 1) != mrf_number(page, "c", 1) || mrf_number(size, "z", 1) != 1)
        return refuse_mrf("its bands stand apart", pool);
    bool jpeg = about->jpeg = strcmp(coding, "JPEG") == 0;
    if (!jpeg && strcmp(coding, "PNG") != 0 && *coding != '\0')
        return refuse_mrf("its pages are neither PNG nor JPEG", pool);
    if (sets != NULL && mrf_number(sets, "scale", 2) != 2)
        return refuse_mrf("its levels are not halved", pool);
    MC_TRY(name_mrf_part(about->index, path, mc_node_child(raster, "IndexFile"), ".idx", pool));
    return name_mrf_part(about->data, path, mc_node_child(raster, "DataFile"), jpeg ? ".pjg" : ".ppg", pool);
}

mc_error *
mc_mrf_look(mc_mrf_about *about, const char *path, apr_pool_t *pool)
{
    static const char *const sides[] = { "minx", "miny", "maxx", "maxy" };
    mrf_description *found = apr_palloc(pool, sizeof(*found));
    double box[4];
    mc_node *root;
    MC_TRY(describe_mrf(found, &root, path, pool));
    const mc_node *tags = mc_node_child(root, "GeoTags");
    const mc_node *edges = tags == NULL ? NULL : mc_node_child(tags, "BoundingBox");
    *about = (mc_mrf_about){ .width = found->width,
                             .height = found->height,
                             .page_width = found->page_width,
                             .page_height = found->page_height,
                             .levels = found->levels,
                             .jpeg = found->jpeg,
                             .placed = edges != NULL };
    for (int i = 0; i < 4 && about->placed; i++) {
        const char *text = mc_node_attr(edges, sides[i]);
        about->placed = text != NULL && mc_parse_double(&box[i], text);
    }
    if (about->placed)
        about->box = (mc_extent){ box[0], box[1], box[2], box[3] };
    return MC_OK;
}

/* From the memory of the process where the file is known under its stamp. */
static mc_error *
find_mrf_description(mrf_description *about, mc_ranged_file *file, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_range_key key;
    mc_clock_cache_entry *entry;
    struct mc_memory *memory = ctx->process == NULL ? NULL : ctx->process->memory;
    mc_ranges_key(&key, file, DESCRIBED_MRF, 0, 0);
    const mrf_description *known = mc_memory_find(memory, MC_SHARE_LARGE, &entry, key.bytes, key.size);
    if (known != NULL) {
        memcpy(about, known, sizeof(*about));
        mc_clock_cache_release(entry);
        return MC_OK;
    }
    mc_node *root;
    MC_TRY(describe_mrf(about, &root, file->path, pool));
    mrf_description *kept =
        memory != NULL && mc_stamp_settled(&file->stamp, file->taken) ? malloc(sizeof(*kept)) : NULL;
    if (kept == NULL)
        return MC_OK;
    memcpy(kept, about, sizeof(*kept));
    mc_memory_keep(ctx, MC_SHARE_LARGE, key.bytes, key.size, kept, sizeof(*kept), free);
    return MC_OK;
}

static uint64_t
count_mrf_pages(int pixels, int page)
{
    MC_ASSERT(page > 0);
    return ((uint64_t)pixels + (uint64_t)page - 1) / (uint64_t)page;
}

/* *before: pages in front of those of the tile's level. False: no level of the file is that of the grid. */
static bool
find_mrf_level(uint64_t *before, const mrf_description *about, const mc_tile_key *key)
{
    const mc_level *level = &key->grid->levels[key->z];
    int width = about->width, height = about->height;
    *before = 0;
    for (int i = 0; i < (about->levels ? MRF_LEVELS_MAX : 1); i++) {
        uint64_t columns = count_mrf_pages(width, about->page_width);
        uint64_t rows = count_mrf_pages(height, about->page_height);
        if (columns == (uint64_t)level->columns && rows == (uint64_t)level->rows)
            return true;
        *before += columns * rows;
        if (columns * rows == 1)
            return false;
        width = (width + 1) / 2;
        height = (height + 1) / 2;
    }
    return false;
}

static mc_error *
find_mrf_page(uint64_t *offset, uint64_t *size, const mrf_description *about, uint64_t number, apr_pool_t *pool)
{
    mc_ranged_file index;
    uint8_t entry[ENTRY_BYTES];
    *offset = *size = 0;
    if (number > UINT64_MAX / ENTRY_BYTES)
        return refuse_mrf("its index is too large", pool);
    mc_ranges_look(&index, about->index);
    if (index.missing != 0)
        return mc_error_create(pool, MC_ERR_IO, "the index of an MRF cannot be opened: %s", about->index);
    mc_error *error = mc_ranges_read(entry, &index, number * ENTRY_BYTES, sizeof(entry), pool);
    mc_ranges_close(&index);
    MC_TRY(error);
    *offset = mc_big_number(entry, 8);
    *size = mc_big_number(entry + 8, 8);
    return MC_OK;
}

static mc_error *
refuse_mrf_level(const mc_block_cache *base, const mc_tile_key *key, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CONFIG,
                           "no level of the MRF of cache \"%s\" has the tiles of level %d of grid \"%s\"",
                           base->base.cache.name, key->z, key->grid->name);
}

static mc_error *
read_mrf_tile(mc_buf **data, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *key, mc_ctx *ctx,
              apr_pool_t *pool)
{
    mrf_description *about = apr_palloc(pool, sizeof(*about));
    const mc_grid *grid = key->grid;
    mc_ranged_file pages;
    uint64_t before, offset, size;
    MC_TRY(find_mrf_description(about, file, ctx, pool));
    if (about->page_width != grid->tile_width || about->page_height != grid->tile_height ||
        !find_mrf_level(&before, about, key))
        return refuse_mrf_level(base, key, pool);
    uint64_t number =
        before + (uint64_t)mc_block_row(key) * (uint64_t)grid->levels[key->z].columns + (uint64_t)mc_block_column(key);
    MC_TRY(find_mrf_page(&offset, &size, about, number, pool));
    if (size == 0)
        return MC_OK;
    if (size > MC_TILE_BYTES_MAX)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a page of an MRF cannot have %lu bytes", (unsigned long)size);
    mc_ranges_look(&pages, about->data);
    if (pages.missing != 0)
        return mc_error_create(pool, MC_ERR_IO, "the data of an MRF cannot be opened: %s", about->data);
    mc_error *error = mc_ranges_read_buf(data, &pages, offset, (size_t)size, pool);
    mc_ranges_close(&pages);
    return error == MC_OK ? mc_block_check_picture(*data, base, pool) : error; /* the MRF may name any file */
}

static mc_block_shape
mrf_shape(const mc_block_cache *base, const mc_tile_key *key)
{
    (void)base, (void)key;
    return (mc_block_shape){ .north_west = true };
}

/* All tiles of a level that the MRF has; none of other levels. */
static mc_error *
mrf_range(mc_tile_range *range, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *key, mc_ctx *ctx,
          apr_pool_t *pool)
{
    mrf_description *about = apr_palloc(pool, sizeof(*about));
    const mc_level *level = &key->grid->levels[key->z];
    uint64_t before;
    MC_TRY(find_mrf_description(about, file, ctx, pool));
    bool found = find_mrf_level(&before, about, key), any = found;
    for (mc_tile_key other = { .grid = key->grid }; other.z < key->grid->level_count && !any; other.z++)
        any = find_mrf_level(&before, about, &other);
    if (!any || about->page_width != key->grid->tile_width || about->page_height != key->grid->tile_height)
        return refuse_mrf_level(base, key, pool);
    *range = (mc_tile_range){ 0, 0, found ? level->columns : 0, found ? level->rows : 0 };
    return MC_OK;
}

static mc_error *
present_in_mrf(bool *present, mc_ranged_file *file, const mc_block_cache *base, const mc_tile_key *keys, int count,
               mc_ctx *ctx, apr_pool_t *pool)
{
    mrf_description *about = apr_palloc(pool, sizeof(*about));
    const mc_level *level = &keys[0].grid->levels[keys[0].z];
    uint64_t before = 0, offset, size;
    (void)base;
    MC_TRY(find_mrf_description(about, file, ctx, pool));
    if (!find_mrf_level(&before, about, &keys[0]))
        return refuse_mrf("its level has gone", pool);
    for (int i = 0; i < count; i++) {
        uint64_t number = (uint64_t)mc_block_row(&keys[i]) * (uint64_t)level->columns;
        MC_TRY(find_mrf_page(&offset, &size, about, before + number + (uint64_t)mc_block_column(&keys[i]), pool));
        present[i] = size > 0;
    }
    return MC_OK;
}

static const mc_block_kind mrf_kind = {
    .path = mrf_path, .read = read_mrf_tile, .shape = mrf_shape, .range = mrf_range, .present = present_in_mrf
};

static mc_cache *
mrf_from_config(const mc_node *node, mc_build *build)
{
    const mc_template_rules rules = { .sqlite = true, .columns = -1, .rows = -1, .top = -1 };
    mrf_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    cache->block.kind = &mrf_kind;
    cache->block.identity = 7;
    if (!mc_cache_read(&cache->block.base, &mc_cache_mrf, true, node, build))
        return NULL;
    cache->block.place = cache->file;
    cache->template = mc_template_compile(cache->file, &rules, build->pool);
    /* Index and data may change without the XML file, by whose stamp tiles would be remembered. */
    cache->block.base.cache.remember = false;
    return &cache->block.base.cache;
}

static bool
mrf_tells_grids(const mc_cache *base)
{
    return mc_template_by_grid(((const mrf_cache *)base)->template);
}

const mc_cache_ops mc_cache_mrf = {
    MC_KIND("mrf", mrf_keys, mrf_from_config, "Tiles in NASA's Meta Raster Format; they are only read."),
    .get = mc_block_get,
    .exists = mc_block_exists,
    .put = mc_block_refuse_put,
    .remove = mc_block_refuse_remove,
    .reach = mc_block_reach,
    .used_by = mc_block_used_by,
    .tells_grids = mrf_tells_grids,
    MC_BLOCK_LISTING_OPS,
};
