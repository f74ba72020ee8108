/* See archive.h. A tile takes one look at the file, and one read where its directories are in memory. */
#include "cache/pmtiles/archive.h"

#include <stdlib.h>
#include <string.h>

#include "cache/memory.h"
#include "compress/packing.h"
#include "grid/tile_id.h"

enum {
    DEPTH_MAX = 4, /* directories above a tile, the root among them; writers make 2, readers of others follow 3 or 4 */
    DIRECTORY_BYTES_MAX = 16 << 20, /* as it stands in the file */
    METADATA_BYTES_MAX = 16 << 20,
};

/* What parts of files are remembered as. */
enum { FRONT_OF_ARCHIVE = 1, LEAF_OF_ARCHIVE };

/* The header and the root directory, as they are remembered. */
typedef struct pmtiles_front {
    mc_pmtiles_header header;
    mc_pmtiles_directory *root;
} pmtiles_front;

static void
free_pmtiles_front(void *value)
{
    pmtiles_front *front = value;
    free(front->root);
    free(front);
}

static struct mc_memory *
memory_of_directories(const mc_ctx *ctx)
{
    return ctx->process == NULL ? NULL : ctx->process->memory;
}

/* Whether what is read now may be remembered. */
static bool
is_archive_settled(const mc_pmtiles_archive *archive)
{
    return memory_of_directories(archive->ctx) != NULL && mc_stamp_settled(&archive->file.stamp, archive->file.taken);
}

static mc_error *
read_pmtiles_front(mc_pmtiles_archive *archive, apr_pool_t *pool)
{
    uint8_t bytes[MC_PMTILES_FRONT];
    uint64_t whole = mc_ranges_size(&archive->file);
    size_t size = whole < sizeof(bytes) ? (size_t)whole : sizeof(bytes);
    mc_pmtiles_header *header = &archive->header;
    MC_TRY(mc_ranges_read(bytes, &archive->file, 0, size, pool));
    MC_TRY(mc_pmtiles_parse_header(header, bytes, size, whole, pool));
    return mc_pmtiles_decode_directory(&archive->own, bytes + header->root.offset, (size_t)header->root.size,
                                       header->internal, pool);
}

mc_error *
mc_pmtiles_open(mc_pmtiles_archive *archive, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_range_key key;
    archive->ctx = ctx;
    archive->held = NULL;
    archive->own = NULL;
    archive->root = NULL;
    mc_ranges_key(&key, &archive->file, FRONT_OF_ARCHIVE, 0, 0);
    const pmtiles_front *known =
        mc_memory_find(memory_of_directories(ctx), MC_SHARE_LARGE, &archive->held, key.bytes, key.size);
    if (known != NULL) {
        archive->header = known->header;
        archive->root = known->root;
        return MC_OK;
    }
    archive->held = NULL;
    MC_TRY(read_pmtiles_front(archive, pool));
    archive->root = archive->own;
    if (!is_archive_settled(archive) || !mc_ranges_unchanged(&archive->file))
        return MC_OK;
    size_t bytes = mc_pmtiles_directory_bytes(archive->own);
    pmtiles_front *front = malloc(sizeof(*front));
    mc_pmtiles_directory *copy = malloc(bytes);
    if (front == NULL || copy == NULL) {
        free(front);
        free(copy);
        return MC_OK;
    }
    memcpy(copy, archive->own, bytes);
    *front = (pmtiles_front){ archive->header, copy };
    mc_memory_keep(ctx, MC_SHARE_LARGE, key.bytes, key.size, front, sizeof(*front) + bytes, free_pmtiles_front);
    return MC_OK;
}

void
mc_pmtiles_close(mc_pmtiles_archive *archive)
{
    mc_ranges_close(&archive->file);
    mc_clock_cache_release(archive->held);
    free(archive->own);
    archive->held = NULL;
    archive->own = NULL;
}

static mc_error *
check_leaf_place(const mc_pmtiles_archive *archive, const mc_pmtiles_entry *place, apr_pool_t *pool)
{
    const mc_pmtiles_section *leaves = &archive->header.leaves;
    if (place->offset > leaves->size || place->length > leaves->size - place->offset ||
        place->length > DIRECTORY_BYTES_MAX)
        return mc_error_create(pool, MC_ERR_CORRUPT,
                               "a directory of a PMTiles archive lies outside of the section of directories");
    return MC_OK;
}

static mc_error *
read_leaf(mc_pmtiles_directory **leaf, mc_pmtiles_archive *archive, const mc_pmtiles_entry *place, apr_pool_t *pool)
{
    const mc_pmtiles_section *leaves = &archive->header.leaves;
    apr_pool_t *scratch;
    mc_buf *bytes;
    MC_TRY(check_leaf_place(archive, place, pool));
    apr_pool_create(&scratch, pool);
    mc_error *error =
        mc_ranges_read_buf(&bytes, &archive->file, leaves->offset + place->offset, place->length, scratch);
    if (error == MC_OK)
        error = mc_pmtiles_decode_directory(leaf, bytes->data, bytes->size, archive->header.internal, scratch);
    error = mc_error_copy(error, pool);
    apr_pool_destroy(scratch);
    return error;
}

/* A leaf directory: of the memory (*held), or read now and then the caller's, until done_with_leaf. */
static mc_error *
find_leaf(mc_pmtiles_directory **leaf, mc_clock_cache_entry **held, mc_pmtiles_archive *archive,
          const mc_pmtiles_entry *place, apr_pool_t *pool)
{
    mc_range_key key;
    mc_ranges_key(&key, &archive->file, LEAF_OF_ARCHIVE, place->offset, place->length);
    *leaf = mc_memory_find(memory_of_directories(archive->ctx), MC_SHARE_LARGE, held, key.bytes, key.size);
    if (*leaf != NULL)
        return MC_OK;
    *held = NULL;
    return read_leaf(leaf, archive, place, pool);
}

/* keep: it may be asked for again. */
static void
done_with_leaf(mc_pmtiles_directory *leaf, mc_clock_cache_entry *held, const mc_pmtiles_archive *archive,
               const mc_pmtiles_entry *place, bool keep)
{
    mc_range_key key;
    if (held != NULL) {
        mc_clock_cache_release(held);
        return;
    }
    if (!keep || !is_archive_settled(archive) || !mc_ranges_unchanged(&archive->file)) {
        free(leaf);
        return;
    }
    mc_ranges_key(&key, &archive->file, LEAF_OF_ARCHIVE, place->offset, place->length);
    mc_memory_keep(archive->ctx, MC_SHARE_LARGE, key.bytes, key.size, leaf, mc_pmtiles_directory_bytes(leaf), free);
}

static mc_error *
refuse_depth(apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "the directories of a PMTiles archive nest more than %d deep",
                           DEPTH_MAX);
}

mc_error *
mc_pmtiles_seek(mc_pmtiles_entry *entry, mc_pmtiles_archive *archive, uint64_t id, apr_pool_t *pool)
{
    const mc_pmtiles_entry *found = mc_pmtiles_find(archive->root, id);
    mc_pmtiles_entry place = found == NULL ? (mc_pmtiles_entry){ 0 } : *found;
    for (int depth = 1; place.length > 0 && place.run == 0; depth++) {
        mc_pmtiles_directory *leaf;
        mc_clock_cache_entry *held;
        if (depth == DEPTH_MAX)
            return refuse_depth(pool);
        MC_TRY(find_leaf(&leaf, &held, archive, &place, pool));
        const mc_pmtiles_entry leaf_place = place;
        found = mc_pmtiles_find(leaf, id);
        place = found == NULL ? (mc_pmtiles_entry){ 0 } : *found;
        done_with_leaf(leaf, held, archive, &leaf_place, true);
    }
    *entry = place;
    return MC_OK;
}

static bool
is_leaf_known(const mc_pmtiles_archive *archive, const mc_pmtiles_entry *place)
{
    mc_range_key key;
    mc_clock_cache_entry *held;
    mc_ranges_key(&key, &archive->file, LEAF_OF_ARCHIVE, place->offset, place->length);
    if (mc_memory_find(memory_of_directories(archive->ctx), MC_SHARE_LARGE, &held, key.bytes, key.size) == NULL)
        return false;
    mc_clock_cache_release(held);
    return true;
}

/* The leaves, each once, that tiles stand in and that are not in memory. Tiles of a map follow each other in few. */
static mc_error *
list_unknown_leaves(mc_pmtiles_entry *leaves, int *found, const mc_pmtiles_archive *archive, const uint64_t *ids,
                    int count, apr_pool_t *pool)
{
    *found = 0;
    for (int i = 0; i < count; i++) {
        const mc_pmtiles_entry *place = mc_pmtiles_find(archive->root, ids[i]);
        bool listed = place == NULL || place->length == 0 || place->run != 0;
        for (int j = 0; j < *found && !listed; j++)
            listed = leaves[j].id == place->id;
        if (listed || is_leaf_known(archive, place))
            continue;
        MC_TRY(check_leaf_place(archive, place, pool));
        leaves[(*found)++] = *place;
    }
    return MC_OK;
}

mc_error *
mc_pmtiles_prepare(mc_pmtiles_archive *archive, const uint64_t *ids, int count, apr_pool_t *pool)
{
    int found;
    mc_pmtiles_entry *leaves = apr_pcalloc(pool, sizeof(*leaves) * (size_t)(count + 1));
    mc_range_part *parts = apr_pcalloc(pool, sizeof(*parts) * (size_t)(count + 1));
    if (!is_archive_settled(archive))
        return MC_OK;
    MC_TRY(list_unknown_leaves(leaves, &found, archive, ids, count, pool));
    if (found < 2) /* is read where it is looked into */
        return MC_OK;
    for (int i = 0; i < found; i++)
        parts[i] =
            (mc_range_part){ .offset = archive->header.leaves.offset + leaves[i].offset, .size = leaves[i].length };
    MC_TRY(mc_ranges_fetch_all(parts, found, &archive->file, pool));
    for (int i = 0; i < found; i++) {
        mc_pmtiles_directory *leaf;
        MC_TRY(mc_pmtiles_decode_directory(&leaf, parts[i].data->data, parts[i].data->size, archive->header.internal,
                                           pool));
        done_with_leaf(leaf, NULL, archive, &leaves[i], true);
    }
    return MC_OK;
}

/* Pictures that somebody has compressed once more are unpacked. Vector tiles stay as they are: the server settles with
 * each client what they are packed with. Streams that nobody could tell by their bytes become gzip. */
mc_error *
mc_pmtiles_unpack(mc_buf **data, const mc_pmtiles_archive *archive, apr_pool_t *pool)
{
    int coding = archive->header.coding;
    if (coding == MC_PMTILES_GZIP && archive->header.type <= MC_PMTILES_MVT)
        return MC_OK;
    if (archive->header.type == MC_PMTILES_MVT && (coding == MC_PMTILES_BROTLI || coding == MC_PMTILES_ZSTD) &&
        mc_packing_of((*data)->data, (*data)->size) ==
            (coding == MC_PMTILES_BROTLI ? MC_PACKED_BROTLI : MC_PACKED_ZSTD))
        return MC_OK;
    MC_TRY(mc_pmtiles_expand(data, *data, coding, MC_TILE_BYTES_MAX, pool));
    if (archive->header.type != MC_PMTILES_MVT || (coding != MC_PMTILES_BROTLI && coding != MC_PMTILES_ZSTD))
        return MC_OK;
    mc_buf *plain = *data;
    return mc_gzip(data, plain->data, plain->size, MC_GZIP_FAST, pool);
}

mc_error *
mc_pmtiles_read_stored(mc_buf **data, mc_pmtiles_archive *archive, const mc_pmtiles_entry *entry, apr_pool_t *pool)
{
    const mc_pmtiles_section *tiles = &archive->header.tiles;
    if (entry->offset > tiles->size || entry->length > tiles->size - entry->offset)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a tile of a PMTiles archive lies outside of its section");
    if (entry->length > MC_TILE_BYTES_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "a tile of a PMTiles archive has more than %d bytes",
                               MC_TILE_BYTES_MAX);
    return mc_ranges_read_buf(data, &archive->file, tiles->offset + entry->offset, entry->length, pool);
}

mc_error *
mc_pmtiles_read(mc_buf **data, mc_pmtiles_archive *archive, const mc_pmtiles_entry *entry, apr_pool_t *pool)
{
    MC_TRY(mc_pmtiles_read_stored(data, archive, entry, pool));
    return mc_pmtiles_unpack(data, archive, pool);
}

/* A walk under way. */
typedef struct pmtiles_walk {
    mc_pmtiles_archive *archive;
    uint64_t first, end;
    uint64_t next; /* no id below it may come any more */
    mc_pmtiles_visit *visit;
    void *baton;
    apr_pool_t *pool;
} pmtiles_walk;

/* limit: the first id that the directory must not reach, as others above have it. */
static mc_error *walk_leaf(pmtiles_walk *walk, const mc_pmtiles_entry *place, uint64_t limit, int depth);

static mc_error *
walk_directory(pmtiles_walk *walk, const mc_pmtiles_directory *directory, uint64_t limit, int depth)
{
    for (uint32_t i = 0; i < directory->count; i++) {
        const mc_pmtiles_entry *entry = &directory->entries[i];
        uint64_t next = i + 1 < directory->count ? directory->entries[i + 1].id : limit;
        uint64_t following = next < limit ? next : limit;
        if (entry->id >= walk->end)
            return MC_OK;
        if (entry->id < walk->next || entry->id >= limit || (entry->run > 0 && entry->run > following - entry->id))
            return mc_error_create(walk->pool, MC_ERR_CORRUPT,
                                   "the tiles of a PMTiles archive are not in the order of their numbers");
        if (entry->run == 0) {
            if (following > walk->first)
                MC_TRY(walk_leaf(walk, entry, following, depth + 1));
            continue;
        }
        walk->next = entry->id + entry->run;
        if (walk->next > walk->first)
            MC_TRY(walk->visit(walk->baton, entry));
    }
    return MC_OK;
}

static mc_error *
walk_leaf(pmtiles_walk *walk, const mc_pmtiles_entry *place, uint64_t limit, int depth)
{
    mc_pmtiles_directory *leaf;
    mc_clock_cache_entry *held;
    if (depth == DEPTH_MAX)
        return refuse_depth(walk->pool);
    MC_TRY(mc_ctx_check(walk->archive->ctx, walk->pool));
    MC_TRY(find_leaf(&leaf, &held, walk->archive, place, walk->pool));
    /* So no directory is visited twice, whatever the archive says. */
    mc_error *error = leaf->entries[0].id == place->id
                          ? walk_directory(walk, leaf, limit, depth)
                          : mc_error_create(walk->pool, MC_ERR_CORRUPT,
                                            "a directory of a PMTiles archive begins with another tile than is said");
    done_with_leaf(leaf, held, walk->archive, place, false);
    return error;
}

mc_error *
mc_pmtiles_walk(mc_pmtiles_archive *archive, uint64_t first, uint64_t end, mc_pmtiles_visit *visit, void *baton,
                apr_pool_t *pool)
{
    pmtiles_walk walk = { archive, first, end, 0, visit, baton, pool };
    return walk_directory(&walk, archive->root, UINT64_MAX, 0);
}

mc_error *
mc_pmtiles_read_metadata(mc_buf **json, mc_pmtiles_archive *archive, apr_pool_t *pool)
{
    const mc_pmtiles_section *metadata = &archive->header.metadata;
    if (metadata->size > METADATA_BYTES_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "the metadata of a PMTiles archive have more than %d bytes",
                               METADATA_BYTES_MAX);
    MC_TRY(mc_ranges_read_buf(json, &archive->file, metadata->offset, (size_t)metadata->size, pool));
    if (metadata->size == 0)
        return MC_OK;
    return mc_pmtiles_expand(json, *json, archive->header.internal, METADATA_BYTES_MAX, pool);
}
