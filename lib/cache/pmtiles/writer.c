/*
 * See writer.h. In the file: the header, the root directory, the metadata, the tiles, the leaf directories. The front
 * has the room that the largest root directory takes; the blanks behind the metadata fill what the real one leaves, so
 * that the sections are without gaps, and the tiles are written once.
 */
#include "cache/pmtiles/writer.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "cache/pmtiles/contents.h"
#include "compress/gzip.h"
#include "compress/gzip_stored.h"
#include "grid/tile_id.h"

enum {
    BUFFER_BYTES = 1 << 20,
    ENTRIES_BUFFERED = 1 << 15,
    ROOT_MOST = MC_PMTILES_FRONT - MC_PMTILES_HEADER,
    ENTRIES_OF_ROOT = 16384, /* more are parted into leaves at once */
    ENTRIES_OF_LEAF = 4096,  /* at least */
    LEAVES_WANTED = 3500,    /* so many places fit into most root directories */
};

/* Columns and rows of a level, inclusive. */
typedef struct tile_box {
    uint32_t minx, miny, maxx, maxy;
} tile_box;

struct mc_pmtiles_writer {
    const char *path, *temporary;
    mc_pmtiles_description description;
    int file, entry_file; /* -1: none */
    uint64_t front;       /* bytes before the tiles */
    uint64_t size;        /* bytes of tiles so far */
    uint64_t flushed;     /* of these, in the file */
    uint8_t *buffer;      /* the others */
    mc_contents *contents;
    mc_pmtiles_entry pending; /* the last entry, which may go on; length 0: none yet */
    mc_pmtiles_entry *entries;
    size_t buffered;
    uint64_t entry_count, addressed, different;
    int minzoom, maxzoom;
    tile_box box; /* of the tiles of maxzoom */
};

static mc_error *
writer_error(const mc_pmtiles_writer *writer, const char *what, apr_pool_t *pool)
{
    char text[128];
    mc_error *cause =
        mc_error_create(pool, MC_ERR_IO, "%s: %s", writer->temporary, strerror_r(errno, text, sizeof(text)));
    return mc_error_wrap(pool, cause, MC_ERR_IO, "%s", what);
}

static const char *
name_draft_archive(const char *path, apr_pool_t *pool)
{
    static _Atomic unsigned counter;
    return apr_psprintf(pool, "%s.%d.%u.tmp", path, (int)getpid(), atomic_fetch_add(&counter, 1));
}

/* A file without a name in the archive's folder; -1 with errno. */
static int
open_nameless_file(const char *path, apr_pool_t *pool)
{
    const char *slash = strrchr(path, '/');
    const char *folder = slash == NULL ? "." : apr_pstrmemdup(pool, path, (size_t)(slash - path) + 1);
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return file;
    const char *name = name_draft_archive(path, pool);
    file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0)
        (void)unlink(name);
    return file;
}

mc_error *
mc_pmtiles_writer_create(mc_pmtiles_writer **result, const char *path, const mc_pmtiles_description *description,
                         apr_pool_t *pool)
{
    mc_pmtiles_writer *writer = apr_pcalloc(pool, sizeof(*writer));
    *result = writer;
    writer->path = apr_pstrdup(pool, path);
    writer->temporary = name_draft_archive(path, pool);
    writer->description = *description;
    writer->minzoom = MC_TILE_ID_LEVEL_MAX + 1;
    writer->maxzoom = -1;
    /* Blanks that fill the front are part of the metadata, in blocks of 64 KB with 5 bytes before each. */
    size_t metadata = description->metadata_size + MC_GZIP_STORED_LEAST;
    writer->front = MC_PMTILES_FRONT + metadata + (metadata + ROOT_MOST) / 65535 * 5;
    writer->buffer = malloc(BUFFER_BYTES);
    writer->entries = malloc(sizeof(*writer->entries) * ENTRIES_BUFFERED);
    writer->contents = mc_contents_create();
    writer->entry_file = -1;
    writer->file = open(writer->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (writer->file >= 0)
        writer->entry_file = open_nameless_file(path, pool);
    if (writer->file < 0 || writer->entry_file < 0)
        return writer_error(writer, "an archive of tiles cannot be written", pool);
    if (writer->buffer == NULL || writer->entries == NULL || writer->contents == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory to write an archive of tiles");
    return MC_OK;
}

void
mc_pmtiles_writer_destroy(mc_pmtiles_writer *writer)
{
    if (writer->file >= 0) {
        close(writer->file);
        if (writer->temporary != NULL)
            (void)unlink(writer->temporary);
    }
    if (writer->entry_file >= 0)
        close(writer->entry_file);
    free(writer->buffer);
    free(writer->entries);
    mc_contents_destroy(writer->contents);
}

uint64_t
mc_pmtiles_writer_count(const mc_pmtiles_writer *writer)
{
    return writer->addressed;
}

/* ---- contents */

static mc_error *
flush_tiles(mc_pmtiles_writer *writer, apr_pool_t *pool)
{
    size_t waiting = (size_t)(writer->size - writer->flushed);
    if (!mc_files_write_at(writer->file, writer->front + writer->flushed, writer->buffer, waiting))
        return writer_error(writer, "an archive of tiles cannot be written", pool);
    writer->flushed = writer->size;
    return MC_OK;
}

static mc_error *
append_content(mc_pmtiles_writer *writer, const void *data, size_t size, apr_pool_t *pool)
{
    if (writer->size - writer->flushed + size > BUFFER_BYTES)
        MC_TRY(flush_tiles(writer, pool));
    if (size > BUFFER_BYTES) {
        if (!mc_files_write_at(writer->file, writer->front + writer->size, data, size))
            return writer_error(writer, "an archive of tiles cannot be written", pool);
        writer->flushed += size;
    } else {
        memcpy(writer->buffer + (writer->size - writer->flushed), data, size);
    }
    writer->size += size;
    return MC_OK;
}

/* Whether the bytes at a place of the archive are these: whoever made the tiles may have made hashes meet. */
static bool
is_same_bytes(const mc_pmtiles_writer *writer, uint64_t offset, const uint8_t *data, size_t size)
{
    uint8_t piece[16384];
    if (offset >= writer->flushed)
        return memcmp(writer->buffer + (offset - writer->flushed), data, size) == 0;
    for (size_t done = 0; done < size;) {
        size_t part = size - done < sizeof(piece) ? size - done : sizeof(piece);
        if (mc_files_read_at(writer->file, writer->front + offset + done, piece, part) != part ||
            memcmp(piece, data + done, part) != 0)
            return false;
        done += part;
    }
    return true;
}

static mc_error *
place_content(uint64_t *offset, mc_pmtiles_writer *writer, const void *data, size_t size, apr_pool_t *pool)
{
    uint64_t hash = mc_hash64(data, size, 0);
    mc_content_place *known = mc_contents_find(writer->contents, hash, (uint32_t)size);
    if (known != NULL && is_same_bytes(writer, known->offset, data, size)) {
        mc_contents_use(known);
        *offset = known->offset;
        return MC_OK;
    }
    *offset = writer->size;
    MC_TRY(append_content(writer, data, size, pool));
    writer->different++;
    mc_contents_add(writer->contents, hash, *offset, (uint32_t)size);
    return MC_OK;
}

/* ---- entries */

static mc_error *
flush_entries(mc_pmtiles_writer *writer, apr_pool_t *pool)
{
    if (!mc_files_write(writer->entry_file, writer->entries, sizeof(*writer->entries) * writer->buffered))
        return writer_error(writer, "the list of the tiles of an archive cannot be written", pool);
    writer->buffered = 0;
    return MC_OK;
}

static mc_error *
store_pending_entry(mc_pmtiles_writer *writer, apr_pool_t *pool)
{
    if (writer->pending.length == 0)
        return MC_OK;
    writer->entries[writer->buffered++] = writer->pending;
    writer->entry_count++;
    return writer->buffered == ENTRIES_BUFFERED ? flush_entries(writer, pool) : MC_OK;
}

/* Tiles of one level: 4^depth of them, which are a square. */
static void
widen_tile_box(mc_pmtiles_writer *writer, uint64_t id, int depth)
{
    int z;
    uint32_t x, y;
    if (!mc_tile_place(&z, &x, &y, id))
        return;
    uint32_t side = (uint32_t)1 << depth;
    x &= ~(side - 1);
    y &= ~(side - 1);
    if (z < writer->minzoom)
        writer->minzoom = z;
    if (z > writer->maxzoom) {
        writer->maxzoom = z;
        writer->box = (tile_box){ x, y, x + side - 1, y + side - 1 };
        return;
    }
    tile_box *box = &writer->box;
    box->minx = x < box->minx ? x : box->minx;
    box->miny = y < box->miny ? y : box->miny;
    box->maxx = x + side - 1 > box->maxx ? x + side - 1 : box->maxx;
    box->maxy = y + side - 1 > box->maxy ? y + side - 1 : box->maxy;
}

/* A run in as few squares as possible: it may be a whole level. */
static void
widen_tile_box_by_run(mc_pmtiles_writer *writer, uint64_t id, uint64_t run)
{
    while (run > 0) {
        int z, depth = 0;
        uint32_t x, y;
        if (!mc_tile_place(&z, &x, &y, id))
            return;
        uint64_t inside = id - mc_tile_first_id(z);
        while (depth < z && inside % ((uint64_t)4 << (2 * depth)) == 0 && (uint64_t)4 << (2 * depth) <= run)
            depth++;
        widen_tile_box(writer, id, depth);
        id += (uint64_t)1 << (2 * depth);
        run -= (uint64_t)1 << (2 * depth);
    }
}

mc_error *
mc_pmtiles_writer_add(mc_pmtiles_writer *writer, uint64_t id, uint32_t run, const void *data, size_t size,
                      apr_pool_t *pool)
{
    uint64_t offset;
    mc_pmtiles_entry *last = &writer->pending;
    MC_ASSERT(run > 0 && size > 0 && size <= UINT32_MAX);
    MC_ASSERT(last->length == 0 || id >= last->id + last->run);
    MC_TRY(place_content(&offset, writer, data, size, pool));
    writer->addressed += run;
    widen_tile_box_by_run(writer, id, run);
    if (last->length > 0 && last->offset == offset && last->id + last->run == id && run <= UINT32_MAX - last->run) {
        last->run += run;
        return MC_OK;
    }
    MC_TRY(store_pending_entry(writer, pool));
    *last = (mc_pmtiles_entry){ id, offset, (uint32_t)size, run };
    return MC_OK;
}

/* ---- directories */

static mc_error *
read_entries(mc_pmtiles_entry *entries, const mc_pmtiles_writer *writer, uint64_t first, size_t count, apr_pool_t *pool)
{
    size_t bytes = sizeof(*entries) * count;
    if (mc_files_read_at(writer->entry_file, first * sizeof(*entries), entries, bytes) != bytes)
        return writer_error(writer, "the list of the tiles of an archive cannot be read", pool);
    return MC_OK;
}

static mc_error *
pack_directory(mc_buf **packed, const mc_pmtiles_entry *entries, size_t count, apr_pool_t *pool)
{
    mc_buf *plain = mc_buf_attach(mc_buf_create(1024, 64 + count * 30), pool);
    MC_TRY(mc_pmtiles_encode_directory(plain, entries, count, pool));
    return mc_gzip(packed, plain->data, plain->size, MC_GZIP_GOOD, pool);
}

/* Leaves of `size` entries behind the tiles. *bytes: of all leaves. `roots` are the places of the leaves. */
static mc_error *
write_leaves(mc_pmtiles_entry *roots, uint64_t *bytes, const mc_pmtiles_writer *writer, size_t size, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    mc_error *error = MC_OK;
    mc_pmtiles_entry *entries = malloc(sizeof(*entries) * size);
    if (entries == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for the directories of an archive of tiles");
    apr_pool_create(&scratch, pool);
    *bytes = 0;
    for (uint64_t first = 0; first < writer->entry_count && error == MC_OK; first += size) {
        mc_buf *packed = NULL;
        size_t count = writer->entry_count - first < size ? (size_t)(writer->entry_count - first) : size;
        apr_pool_clear(scratch);
        error = read_entries(entries, writer, first, count, scratch);
        if (error == MC_OK)
            error = pack_directory(&packed, entries, count, scratch);
        if (error == MC_OK &&
            !mc_files_write_at(writer->file, writer->front + writer->size + *bytes, packed->data, packed->size))
            error = writer_error(writer, "the directories of an archive of tiles cannot be written", scratch);
        if (error != MC_OK)
            break;
        roots[first / size] = (mc_pmtiles_entry){ entries[0].id, *bytes, (uint32_t)packed->size, 0 };
        *bytes += packed->size;
    }
    error = mc_error_copy(error, pool);
    apr_pool_destroy(scratch);
    free(entries);
    return error;
}

/* A root of places of leaves that fits into the front: with larger leaves there are fewer places. */
static mc_error *
write_leaved_root(mc_buf **root, uint64_t *leaves, const mc_pmtiles_writer *writer, apr_pool_t *pool)
{
    size_t size = (size_t)(writer->entry_count / LEAVES_WANTED);
    for (size = size < ENTRIES_OF_LEAF ? ENTRIES_OF_LEAF : size; size <= MC_PMTILES_ENTRIES_MAX; size += size / 4) {
        size_t count = (size_t)((writer->entry_count + size - 1) / size);
        mc_pmtiles_entry *roots = apr_palloc(pool, sizeof(*roots) * count);
        MC_TRY(write_leaves(roots, leaves, writer, size, pool));
        MC_TRY(pack_directory(root, roots, count, pool));
        if ((*root)->size <= ROOT_MOST)
            return MC_OK;
    }
    return mc_error_create(pool, MC_ERR_LIMIT, "more tiles than an archive of two levels of directories can have");
}

static mc_error *
write_directories(mc_buf **root, uint64_t *leaves, const mc_pmtiles_writer *writer, apr_pool_t *pool)
{
    *leaves = 0;
    if (writer->entry_count <= ENTRIES_OF_ROOT) {
        mc_pmtiles_entry *entries = apr_palloc(pool, sizeof(*entries) * (size_t)writer->entry_count);
        MC_TRY(read_entries(entries, writer, 0, (size_t)writer->entry_count, pool));
        MC_TRY(pack_directory(root, entries, (size_t)writer->entry_count, pool));
        if ((*root)->size <= ROOT_MOST)
            return MC_OK;
    }
    return write_leaved_root(root, leaves, writer, pool);
}

/* ---- the front */

static double
longitude_of_column(uint32_t column, int z)
{
    return ldexp(column, -z) * 360 - 180;
}

static double
latitude_of_row(uint32_t row, int z)
{
    return atan(sinh(M_PI * (1 - 2 * ldexp(row, -z)))) * 180 / M_PI;
}

/* The metadata, with blanks up to the tiles. */
static mc_error *
write_padded_metadata(const mc_pmtiles_writer *writer, uint64_t offset, size_t total, apr_pool_t *pool)
{
    const mc_pmtiles_description *description = &writer->description;
    size_t room = mc_gzip_stored_room(total);
    MC_ASSERT(room >= description->metadata_size);
    uint8_t *text = apr_palloc(pool, room + 1), *packed = apr_palloc(pool, total);
    memcpy(text, description->metadata, description->metadata_size);
    memset(text + description->metadata_size, ' ', room - description->metadata_size);
    mc_gzip_stored(packed, total, text);
    if (!mc_files_write_at(writer->file, offset, packed, total))
        return writer_error(writer, "the metadata of an archive of tiles cannot be written", pool);
    return MC_OK;
}

static mc_error *
write_pmtiles_front(const mc_pmtiles_writer *writer, const mc_buf *root, uint64_t leaves, apr_pool_t *pool)
{
    const int z = writer->maxzoom;
    const tile_box *box = &writer->box;
    uint8_t bytes[MC_PMTILES_HEADER];
    mc_pmtiles_header header = {
        .root = { MC_PMTILES_HEADER, root->size },
        .metadata = { MC_PMTILES_HEADER + root->size, writer->front - MC_PMTILES_HEADER - root->size },
        .leaves = { writer->front + writer->size, leaves },
        .tiles = { writer->front, writer->size },
        .addressed = writer->addressed,
        .entries = writer->entry_count,
        .contents = writer->different,
        .clustered = true,
        .internal = MC_PMTILES_GZIP,
        .coding = writer->description.coding,
        .type = writer->description.type,
        .minzoom = writer->minzoom,
        .maxzoom = z,
        .centre_zoom = writer->minzoom,
        .west = longitude_of_column(box->minx, z),
        .south = latitude_of_row(box->maxy + 1, z),
        .east = longitude_of_column(box->maxx + 1, z),
        .north = latitude_of_row(box->miny, z),
    };
    header.centre_x = (header.west + header.east) / 2;
    header.centre_y = (header.south + header.north) / 2;
    mc_pmtiles_format_header(bytes, &header);
    MC_TRY(write_padded_metadata(writer, header.metadata.offset, (size_t)header.metadata.size, pool));
    if (!mc_files_write_at(writer->file, 0, bytes, sizeof(bytes)) ||
        !mc_files_write_at(writer->file, header.root.offset, root->data, root->size) ||
        ftruncate(writer->file, (off_t)(header.leaves.offset + leaves)) != 0)
        return writer_error(writer, "the header of an archive of tiles cannot be written", pool);
    return MC_OK;
}

/* The rights of the archive that is replaced stay, where we may give them. */
static mc_error *
put_archive_in_place(mc_pmtiles_writer *writer, apr_pool_t *pool)
{
    struct stat info;
    const char *slash = strrchr(writer->path, '/');
    if (stat(writer->path, &info) == 0 &&
        (fchown(writer->file, info.st_uid, info.st_gid) != 0 || fchmod(writer->file, info.st_mode & 0777) != 0))
        errno = 0;
    if (fsync(writer->file) != 0 || rename(writer->temporary, writer->path) != 0)
        return writer_error(writer, "an archive of tiles cannot be put in its place", pool);
    writer->temporary = NULL;
    int folder = open(slash == NULL ? "." : apr_pstrmemdup(pool, writer->path, (size_t)(slash - writer->path) + 1),
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        (void)fsync(folder);
        close(folder);
    }
    return MC_OK;
}

mc_error *
mc_pmtiles_writer_finish(mc_pmtiles_writer *writer, apr_pool_t *pool)
{
    mc_buf *root;
    uint64_t leaves;
    if (writer->pending.length == 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "there is no PMTiles archive without a tile");
    MC_TRY(store_pending_entry(writer, pool));
    writer->pending.length = 0;
    MC_TRY(flush_entries(writer, pool));
    MC_TRY(flush_tiles(writer, pool));
    MC_TRY(write_directories(&root, &leaves, writer, pool));
    MC_TRY(write_pmtiles_front(writer, root, leaves, pool));
    return put_archive_in_place(writer, pool);
}
