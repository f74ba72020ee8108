/* The files of a shapefile, and going through their records: see shp.h. */
#include "vector/shapefile/shp.h"

#include <apr_strings.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "vector/shapefile/quadtree.h"
#include "vector/shapefile/shp_private.h"

/* A file that is being written is changed again within such a time. */
#define LATELY (10 * APR_USEC_PER_SEC)

enum {
    MAGIC = 9994,
    TYPE_AT = 32,
    LENGTH_AT = 24, /* of the file, in words of two bytes */
    EXTENT_AT = 36,
    PROJECTION_MAX = 1 << 16,
    LISTED_LEAST = 1 << 24, /* records that a .shx may have, however short the .shp is */
};

/* The file of that ending, in small or large letters. */
static mc_error *
open_beside(mc_file *file, const char *path, const char *ending, apr_pool_t *pool)
{
    const char *base = apr_pstrmemdup(pool, path, strlen(path) - 4);
    MC_TRY(mc_file_open(file, apr_pstrcat(pool, base, ending, NULL), pool));
    if (file->fd >= 0)
        return MC_OK;
    char *large = apr_pstrdup(pool, ending);
    for (char *at = large; *at != '\0'; at++)
        *at = (char)toupper((unsigned char)*at);
    return mc_file_open(file, apr_pstrcat(pool, base, large, NULL), pool);
}

/* A small file as text without the blanks around it; NULL where there is none, or nothing in it. */
static mc_error *
text_beside(const char **text, const char *path, const char *ending, apr_pool_t *pool)
{
    mc_file file;
    *text = NULL;
    MC_TRY(open_beside(&file, path, ending, pool));
    size_t size = file.size < PROJECTION_MAX ? (size_t)file.size : PROJECTION_MAX;
    char *bytes = apr_pcalloc(pool, size + 1);
    bytes[mc_file_read(&file, 0, bytes, size)] = '\0';
    if (strncmp(bytes, "\xEF\xBB\xBF", 3) == 0)
        bytes += 3;
    bytes += strspn(bytes, " \t\r\n");
    for (size = strlen(bytes); size > 0 && isspace((unsigned char)bytes[size - 1]); size--)
        bytes[size - 1] = '\0';
    *text = *bytes == '\0' ? NULL : bytes;
    return MC_OK;
}

static mc_extent
box_at(const uint8_t *bytes)
{
    return (mc_extent){ mc_little_double(bytes), mc_little_double(bytes + 8), mc_little_double(bytes + 16),
                        mc_little_double(bytes + 24) };
}

static mc_error *
read_shp_header(mc_shp *shp, const char *path, apr_pool_t *pool)
{
    uint8_t header[SHP_HEADER];
    MC_TRY(mc_file_open(&shp->main, path, pool));
    if (shp->main.fd < 0)
        return mc_error_create(pool, MC_ERR_IO, "there is no %s", path);
    if (mc_file_read(&shp->main, 0, header, SHP_HEADER) < SHP_HEADER || mc_big32(header) != MAGIC)
        return mc_error_create(pool, MC_ERR_CORRUPT, "%s is no shapefile", path);
    uint32_t type = mc_little32(header + TYPE_AT);
    if (mc_shp_kind(type) == SHP_OTHER)
        return mc_error_create(pool, MC_ERR_NOT_BUILT, "%s: shapes of type %u%s cannot be painted", path, type,
                               type == 31 ? " (MultiPatch)" : "");
    shp->type = (int)type;
    shp->box = box_at(header + EXTENT_AT);
    return MC_OK;
}

/* A table that cannot be read leaves a layer without attributes. */
static mc_error *
open_table(mc_shp *shp, const char *path, const char *encoding, apr_pool_t *pool)
{
    const char *said = NULL, *codepage = NULL;
    MC_TRY(open_beside(&shp->table, path, ".dbf", pool));
    MC_TRY(text_beside(&said, path, ".cpg", pool));
    if (encoding != NULL && (codepage = mc_codepage_name(encoding, pool)) == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "the encoding \"%s\" is not known here", encoding);
    if (codepage == NULL && said != NULL)
        codepage = mc_codepage_name(said, pool);
    if (shp->table.fd >= 0)
        shp->table_error = mc_dbf_open(&shp->attributes, &shp->table, codepage, pool);
    return MC_OK;
}

static mc_error *
open_entries(mc_shp *shp, const char *path, apr_pool_t *pool)
{
    uint8_t magic[4];
    MC_TRY(open_beside(&shp->entries, path, ".shx", pool));
    bool usable = shp->entries.fd >= 0 && shp->entries.size >= SHP_HEADER &&
                  shp->entries.size / SHP_RECORD_HEADER <= UINT32_MAX &&
                  mc_file_read(&shp->entries, 0, magic, 4) == 4 && mc_big32(magic) == MAGIC;
    shp->progress->listed = usable;
    if (!usable)
        return MC_OK; /* the .shp is gone through for them */
    const uint64_t most = shp->main.size / SHP_SMALLEST_RECORD,
                   listed = (shp->entries.size - SHP_HEADER) / SHP_RECORD_HEADER;
    shp->count =
        (uint32_t)(listed > most && listed > LISTED_LEAST ? (most > LISTED_LEAST ? most : LISTED_LEAST) : listed);
    return MC_OK;
}

mc_error *
mc_shp_begin_opening(mc_shp **shp, const char *path, const char *encoding, apr_pool_t *pool)
{
    mc_shp *made = apr_pcalloc(pool, sizeof(*made));
    size_t length = strlen(path);
    if (length < 5 || strcasecmp(path + length - 4, ".shp") != 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s does not end in .shp", path);
    made->entries.fd = made->table.fd = made->tree.fd = -1;
    made->large = mc_records_create(pool);
    made->progress = apr_pcalloc(pool, sizeof(*made->progress));
    *made->progress = (mc_shp_progress){ .pool = pool, .path = apr_pstrdup(pool, path), .offset = SHP_HEADER };
    MC_TRY(read_shp_header(made, path, pool));
    MC_TRY(open_entries(made, path, pool));
    MC_TRY(open_table(made, path, encoding, pool));
    MC_TRY(text_beside(&made->projection, path, ".prj", pool));
    MC_TRY(open_beside(&made->tree, path, ".qix", pool));
    *shp = made;
    return MC_OK;
}

/* Of a .shp or a .shx. */
static bool
has_all_bytes(const mc_file *file)
{
    uint8_t length[4];
    return file->fd < 0 || mc_file_read(file, LENGTH_AT, length, sizeof(length)) < sizeof(length) ||
           (uint64_t)mc_big32(length) * 2 <= file->size;
}

static bool
was_changed_lately(const mc_file *file, apr_time_t now)
{
    struct stat status;
    if (file->fd < 0 || fstat(file->fd, &status) != 0)
        return false;
    const apr_time_t changed = apr_time_from_sec(status.st_mtim.tv_sec);
    return changed > now - LATELY && changed < now + LATELY;
}

bool
mc_shp_is_growing(const mc_shp *shp, apr_time_t now)
{
    return (!has_all_bytes(&shp->main) && was_changed_lately(&shp->main, now)) ||
           (!has_all_bytes(&shp->entries) && was_changed_lately(&shp->entries, now)) ||
           (shp->attributes != NULL && !shp->attributes->whole && was_changed_lately(&shp->table, now));
}

/* --- going through records -------------------------------------------------------------------------------------- */

enum {
    FIRST_AHEAD = 1 << 12,
    MOST_AHEAD_OF_SOME = 1 << 14,
    LEAST_AHEAD = 1 << 9,
    ENTRIES_AHEAD = 1 << 15,
    FEW_ENTRIES_AHEAD = 1 << 9
};

static bool
extent_covers(const mc_extent *outer, const mc_extent *inner)
{
    return outer->minx <= inner->minx && outer->maxx >= inner->maxx && outer->miny <= inner->miny &&
           outer->maxy >= inner->maxy;
}

static bool
extents_meet(const mc_extent *a, const mc_extent *b)
{
    return a->minx <= b->maxx && a->maxx >= b->minx && a->miny <= b->maxy && a->maxy >= b->miny;
}

/* The bits of the records to look at; NULL: all. */
static uint64_t *
search_shp_records(const mc_shp *shp, const mc_extent *box, apr_pool_t *pool)
{
    if (shp->search == MC_SHP_SCAN)
        return NULL;
    uint64_t *bits = apr_pcalloc(pool, sizeof(*bits) * ((size_t)shp->count / 64 + 1));
    if (shp->search == MC_SHP_TREE)
        return mc_quadtree_search(bits, &shp->tree, shp->count, box) ? bits : NULL;
    mc_box_index_search(bits, shp->boxes, box);
    return bits;
}

void
mc_shp_begin(mc_shp_reader *reader, const mc_shp *shp, const mc_extent *box, apr_pool_t *pool)
{
    *reader = (mc_shp_reader){ .shp = shp, .content = { .file = &shp->main }, .entries = { .file = &shp->entries } };
    reader->ahead = SHP_STREAM_AHEAD;
    reader->most = SIZE_MAX;
    reader->end = shp->count;
    if (box == NULL)
        return;
    reader->box = *box;
    reader->boxed = true;
    if (!extent_covers(box, &shp->box))
        reader->wanted = search_shp_records(shp, box, pool);
    if (reader->wanted != NULL)
        reader->ahead = FIRST_AHEAD;
}

void
mc_shp_end(mc_shp_reader *reader)
{
    mc_file_view_free(&reader->content);
    mc_file_view_free(&reader->entries);
}

/* Moves to the next record that is wanted. */
static bool
move_on(mc_shp_reader *reader)
{
    uint32_t count = reader->end;
    if (reader->wanted == NULL)
        return reader->at < count;
    while (reader->at < count) {
        uint64_t bits = reader->wanted[reader->at / 64] >> reader->at % 64;
        if (bits != 0) {
            reader->at += (uint32_t)__builtin_ctzll(bits);
            return reader->at < count;
        }
        reader->at = (reader->at / 64 + 1) * 64;
    }
    return false;
}

mc_shp_place
mc_shp_record_place(mc_shp_reader *reader, uint32_t number)
{
    if (reader->shp->places != NULL)
        return reader->shp->places[number];
    const uint8_t *entry =
        mc_file_view_at(&reader->entries, SHP_HEADER + (uint64_t)number * SHP_RECORD_HEADER, SHP_RECORD_HEADER,
                        reader->wanted == NULL ? ENTRIES_AHEAD : FEW_ENTRIES_AHEAD);
    return entry == NULL ? (mc_shp_place){ 0, 0 } : (mc_shp_place){ mc_big32(entry), mc_big32(entry + 4) };
}

static bool
is_in_shp(const mc_shp *shp, mc_shp_place place)
{
    return (uint64_t)place.offset * 2 + SHP_RECORD_HEADER + (uint64_t)place.size * 2 <= shp->main.size;
}

/* So many bytes of a record. How much is read beyond them follows from whether that was of use last time: whether the
 * record begins in what was read. No more than 16 KB, since a large record, which is kept, may come next. */
static const uint8_t *
content_of(mc_shp_reader *reader, mc_shp_place place, size_t wanted)
{
    uint64_t begin = (uint64_t)place.offset * 2;
    size_t size = SHP_RECORD_HEADER + wanted;
    mc_file_view *view = &reader->content;
    if (reader->wanted != NULL && size >= MC_LARGE_RECORD) {
        const uint8_t *kept = mc_records_at(reader->shp->large, &reader->shp->main, begin, size);
        if (kept != NULL)
            return kept + SHP_RECORD_HEADER;
    }
    if (begin < view->begin || begin > view->begin + view->size + reader->ahead)
        reader->ahead = reader->ahead > LEAST_AHEAD ? reader->ahead / 2 : LEAST_AHEAD;
    else if (begin <= view->begin + view->size && begin + size > view->begin + view->size &&
             reader->ahead < MOST_AHEAD_OF_SOME)
        reader->ahead *= 2;
    const uint8_t *bytes = mc_file_view_at(view, begin, size, reader->ahead);
    return bytes == NULL ? NULL : bytes + SHP_RECORD_HEADER;
}

static void
read_record_box(mc_shp_record *record)
{
    int kind = shp_record_kind(record);
    if (kind == SHP_POINT && record->size >= 20) {
        double x = mc_little_double(record->content + 4), y = mc_little_double(record->content + 12);
        record->box = (mc_extent){ x, y, x, y };
        record->has_box = true;
    } else if (kind != SHP_NULL && kind != SHP_OTHER && record->size >= PARTS_AT) {
        record->box = box_at(record->content + BOX_AT);
        record->has_box = true;
    }
}

/* Also of records that nobody is told of, and of large ones. */
static bool
is_reading_over(mc_shp_reader *reader)
{
    if (reader->looked >= SHP_LOOKED_MOST) {
        reader->looked = 0;
        reader->stopped = reader->ctx != NULL &&
                          (mc_ctx_abandoned(reader->ctx) || mc_ctx_remaining(reader->ctx, APR_USEC_PER_SEC) == 0);
    }
    return reader->stopped;
}

/* Of the record, or of its entry in the .shx. */
static bool
is_memory_refused(const mc_shp_reader *reader)
{
    return reader->content.refused || reader->entries.refused;
}

/* A record that cannot be had for another reason than that the file has never had it. */
static bool
is_reading_broken(const mc_shp_reader *reader)
{
    return is_memory_refused(reader) || reader->content.cut || reader->entries.cut;
}

bool
mc_shp_next(mc_shp_reader *reader, mc_shp_record *record)
{
    for (; move_on(reader) && !is_reading_over(reader); reader->at++) {
        mc_shp_place place = mc_shp_record_place(reader, reader->at);
        const size_t whole = (size_t)place.size * 2, wanted = whole < reader->most ? whole : reader->most;
        *record = (mc_shp_record){ .number = reader->at };
        record->content = wanted > 0 && is_in_shp(reader->shp, place) ? content_of(reader, place, wanted) : NULL;
        record->size = record->content == NULL ? 0 : wanted;
        reader->looked += record->size + SHP_LOOK_COST;
        reader->stopped = record->content == NULL && is_reading_broken(reader);
        if (reader->stopped)
            return false;
        read_record_box(record);
        bool null_shape = place.size == 0 || (record->size >= 4 && shp_record_kind(record) == SHP_NULL);
        if (reader->boxed && (null_shape || (record->has_box && !extents_meet(&record->box, &reader->box))))
            continue;
        reader->at++;
        return true;
    }
    return false;
}

mc_error *
mc_shp_check(const mc_shp_reader *reader, apr_pool_t *pool)
{
    if (!reader->stopped)
        return MC_OK;
    if (is_memory_refused(reader))
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "there is no memory for shape %u", reader->at + 1);
    if (is_reading_broken(reader))
        return mc_error_create(pool, MC_ERR_IO,
                               "shape %u cannot be read: the files are shorter than they were when they were opened, "
                               "or unreadable",
                               reader->at + 1);
    MC_TRY(mc_ctx_check(reader->ctx, pool));
    return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the request has reached its deadline");
}

bool
mc_shp_begin_part(mc_shp_reader *part, mc_shp_reader *whole, uint32_t records, size_t bytes)
{
    *part = *whole;
    part->content = (mc_file_view){ .file = &whole->shp->main };
    part->entries = (mc_file_view){ .file = &whole->shp->entries };
    part->ctx = NULL;
    size_t size = 0;
    uint32_t count = 0;
    for (; count < records && size < bytes && move_on(whole); whole->at++, count++)
        size += (size_t)mc_shp_record_place(whole, whole->at).size * 2;
    part->end = whole->at < whole->end ? whole->at : whole->end;
    return count > 0;
}
