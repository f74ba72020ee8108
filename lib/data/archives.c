/* Archives of tiles: PMTiles. */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <string.h>

#include "cache/pmtiles/archive.h"
#include "data/data_private.h"
#include "text/json.h"

bool
mc_data_is_pmtiles(const char *path, apr_pool_t *pool)
{
    char bytes[7];
    apr_file_t *file;
    apr_size_t size = 0;
    if (apr_file_open(&file, path, APR_READ | APR_BINARY, APR_OS_DEFAULT, pool) != APR_SUCCESS)
        return false;
    bool read = apr_file_read_full(file, bytes, sizeof(bytes), &size) == APR_SUCCESS;
    apr_file_close(file);
    return read && memcmp(bytes, "PMTiles", sizeof(bytes)) == 0;
}

/* What is looked for in the metadata. */
typedef struct metadata_text {
    const char *text;
    apr_pool_t *pool;
} metadata_text;

static mc_error *
take_metadata_text(void *baton, const char *text, size_t size)
{
    metadata_text *found = baton;
    if (found->text == NULL && size < 4000)
        found->text = apr_pstrmemdup(found->pool, text, size);
    return MC_OK;
}

const char *
mc_data_json_text(const char *json, size_t size, const char *name, apr_pool_t *pool)
{
    const mc_json_step step = { name, 0 };
    const mc_json_path path = { &step, 1 };
    metadata_text found = { NULL, pool };
    mc_error_ignore(mc_json_walk(json, size, &path, take_metadata_text, &found, pool));
    return found.text;
}

typedef struct first_entry {
    mc_pmtiles_entry entry;
    apr_pool_t *pool;
} first_entry;

/* mc_pmtiles_visit */
static mc_error *
take_first_entry(void *baton, const mc_pmtiles_entry *entry)
{
    first_entry *first = baton;
    first->entry = *entry;
    return mc_error_create(first->pool, MC_ERR_LIMIT, "one is enough");
}

/* By the header, or where it does not say, by the first tile; NULL: it is none that is served. */
static const char *
format_of_archive(mc_pmtiles_archive *archive, apr_pool_t *pool)
{
    static const char *const names[] = { NULL, "MVT", "PNG", "JPEG", "WEBP" };
    first_entry first = { { 0 }, pool };
    mc_buf *data;
    int type = archive->header.type;
    if (type != MC_PMTILES_OTHER)
        return type <= MC_PMTILES_WEBP ? names[type] : NULL;
    mc_error_ignore(mc_pmtiles_walk(archive, 0, UINT64_MAX, take_first_entry, &first, pool));
    if (first.entry.length == 0 || mc_pmtiles_read(&data, archive, &first.entry, pool) != MC_OK)
        return NULL;
    return mc_coding_format(mc_image_sniff(data->data, data->size));
}

static void
describe_archive(mc_data_layer *layer, mc_pmtiles_archive *archive, apr_pool_t *pool)
{
    const mc_pmtiles_header *header = &archive->header;
    mc_buf *json;
    layer->minzoom = header->minzoom;
    layer->maxzoom = header->maxzoom;
    layer->extent = (mc_extent){ header->west, header->south, header->east, header->north };
    layer->has_extent = mc_extent_valid(&layer->extent);
    layer->srs = "CRS:84";
    if (mc_pmtiles_read_metadata(&json, archive, pool) == MC_OK && json->size > 0) {
        const char *text = (const char *)json->data;
        layer->title = mc_data_json_text(text, json->size, "name", pool);
        layer->description = mc_data_json_text(text, json->size, "description", pool);
        layer->attribution = mc_data_json_text(text, json->size, "attribution", pool);
    }
    mc_data_place(layer, 0, pool);
}

static mc_error *
look_at_archive(mc_data_search *search, mc_pmtiles_archive *archive, const char *path)
{
    apr_pool_t *pool = search->pool;
    MC_TRY(mc_pmtiles_open(archive, search->ctx, pool));
    const char *format = format_of_archive(archive, pool);
    if (format == NULL) {
        mc_data_note(search, "%s: its tiles are neither PNG nor JPEG nor WebP nor MVT", path);
        return MC_OK;
    }
    if (strchr(path, '{') != NULL) {
        mc_data_note(search, "%s: a file of tiles cannot have { in its name", path);
        return MC_OK;
    }
    mc_data_layer *layer = mc_data_add(search, MC_DATA_TILES, "pmtiles");
    if (layer == NULL)
        return MC_OK;
    layer->format = format;
    layer->data = apr_pstrdup(pool, path);
    layer->name = mc_data_stem(path, pool);
    describe_archive(layer, archive, pool);
    return MC_OK;
}

mc_error *
mc_data_look_pmtiles(mc_data_search *search, const char *path)
{
    mc_pmtiles_archive archive;
    mc_ranges_look(&archive.file, path);
    if (archive.file.missing != 0)
        return mc_error_create(search->pool, MC_ERR_UNAVAILABLE, "there is no file \"%s\"", path);
    mc_error *error = look_at_archive(search, &archive, path);
    mc_pmtiles_close(&archive);
    return error;
}
