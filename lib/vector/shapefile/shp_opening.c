/* Opening shapefiles: the records and the boxes around them are found by going through whole files, in steps that end
 * with a deadline. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vector/shapefile/quadtree.h"
#include "vector/shapefile/shp_private.h"

enum {
    SCANNED_MAX = 1 << 24, /* records of a file without .shx: 8 bytes each */
    INDEXED_MAX = 1 << 20, /* boxes and places in memory: 28 bytes each */
};

/* What reading the head of a record costs where all heads are read: no more than what is read at once. */
static uint64_t
cost_of_head(uint64_t record)
{
    return SHP_LOOK_COST + (record < SHP_STREAM_AHEAD ? record : SHP_STREAM_AHEAD);
}

/* Of several records with one number the last one counts: it was appended when it had grown. */
static void
note_scanned_place(mc_shp *shp, uint32_t number, uint32_t size, uint64_t most)
{
    mc_shp_progress *scan = shp->progress;
    if (number > scan->room) {
        uint32_t grown = number * 2 < most ? number * 2 : (uint32_t)most;
        mc_shp_place *moved = apr_pcalloc(scan->pool, sizeof(*moved) * grown);
        if (scan->room > 0)
            memcpy(moved, scan->places, sizeof(*moved) * scan->room);
        scan->places = moved;
        scan->room = grown;
    }
    scan->places[number - 1] = (mc_shp_place){ (uint32_t)(scan->offset / 2), size };
    shp->count = number > shp->count ? number : shp->count;
}

/* Goes from record to record. */
static mc_error *
scan_shp(mc_shp *shp, mc_file_view *view, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_shp_progress *scan = shp->progress;
    const uint64_t whole = shp->main.size / SHP_SMALLEST_RECORD, most = whole < SCANNED_MAX ? whole : SCANNED_MAX;
    const uint8_t *header;
    uint64_t looked = 0;
    while ((header = mc_file_view_at(view, scan->offset, SHP_RECORD_HEADER, SHP_STREAM_AHEAD)) != NULL) {
        const uint32_t number = mc_big32(header), size = mc_big32(header + 4);
        if (number > SCANNED_MAX || scan->seen++ > SCANNED_MAX)
            return mc_error_create(pool, MC_ERR_LIMIT, "%s has more than %d shapes and no .shx", scan->path,
                                   SCANNED_MAX);
        if (number == 0 || number > most || (uint64_t)size * 2 > shp->main.size - scan->offset - SHP_RECORD_HEADER)
            break;
        note_scanned_place(shp, number, size, most);
        scan->offset += SHP_RECORD_HEADER + (uint64_t)size * 2;
        looked += cost_of_head((uint64_t)size * 2);
        if (looked >= SHP_LOOKED_MOST && ctx != NULL)
            MC_TRY(mc_ctx_check(ctx, pool));
        looked = looked >= SHP_LOOKED_MOST ? 0 : looked;
    }
    if (header == NULL && view->refused)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "there is no memory for looking through %s", scan->path);
    if (header == NULL && view->cut && scan->offset + SHP_RECORD_HEADER <= shp->main.size)
        return mc_error_create(pool, MC_ERR_IO, "%s is shorter than it was when it was opened, or unreadable",
                               scan->path);
    scan->scanned = true;
    return MC_OK;
}

static mc_error *
find_places(mc_shp *shp, mc_ctx *ctx, apr_pool_t *pool)
{
    static const mc_shp_place none = { 0, 0 };
    mc_file_view view = { .file = &shp->main };
    mc_error *error = scan_shp(shp, &view, ctx, pool);
    mc_file_view_free(&view);
    shp->places = shp->progress->places != NULL ? shp->progress->places : &none;
    return error;
}

/* A .qix that is older than its .shp describes other shapes. */
static void
look_at_tree(mc_shp *shp)
{
    struct stat of_shapes, of_tree;
    if (shp->tree.fd < 0 || fstat(shp->main.fd, &of_shapes) != 0 || fstat(shp->tree.fd, &of_tree) != 0)
        return;
    shp->stale_tree =
        of_tree.st_mtim.tv_sec < of_shapes.st_mtim.tv_sec ||
        (of_tree.st_mtim.tv_sec == of_shapes.st_mtim.tv_sec && of_tree.st_mtim.tv_nsec < of_shapes.st_mtim.tv_nsec) ||
        !mc_quadtree_fits(&shp->tree, shp->count);
}

static mc_error *
find_shp_records(mc_shp *shp, mc_ctx *ctx, apr_pool_t *pool)
{
    if (!shp->progress->listed && !shp->progress->scanned)
        MC_TRY(find_places(shp, ctx, pool));
    look_at_tree(shp);
    return MC_OK;
}

mc_error *
mc_shp_open(mc_shp **shp, const char *path, const char *encoding, apr_pool_t *pool)
{
    MC_TRY(mc_shp_begin_opening(shp, path, encoding, pool));
    return find_shp_records(*shp, NULL, pool);
}

static void
begin_box_index(mc_shp *shp)
{
    mc_shp_progress *made = shp->progress;
    made->boxes = apr_palloc(made->pool, sizeof(*made->boxes) * ((size_t)shp->count + 1));
    made->indexed = apr_palloc(made->pool, sizeof(*made->indexed) * ((size_t)shp->count + 1));
    made->end = SHP_HEADER;
    mc_shp_begin(&made->reader, shp, NULL, made->pool);
    made->reader.most = PARTS_AT;
}

static void
note_record_box(mc_shp *shp, const mc_shp_record *record)
{
    static const mc_small_box none = { 1, 1, 0, 0 };
    mc_shp_progress *made = shp->progress;
    const mc_shp_place place = mc_shp_record_place(&made->reader, record->number);
    const uint64_t size = (uint64_t)place.size * 2, end = (uint64_t)place.offset * 2 + SHP_RECORD_HEADER + size;
    const bool null_shape = place.size == 0 || (record->size >= 4 && shp_record_kind(record) == SHP_NULL);
    made->boxes[record->number] = record->has_box ? mc_small_box_of(&record->box) : none;
    made->indexed[record->number] = place;
    made->end = place.size > 0 && end > made->end ? end : made->end;
    made->reader.looked += cost_of_head(size);
    shp->broken += !record->has_box && !null_shape;
}

/* Without memory there is no index, and so far none after an error: the boxes of the other records are not known. */
static mc_error *
index_boxes(mc_shp *shp, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_shp_progress *made = shp->progress;
    mc_shp_record record;
    if (made->boxes == NULL)
        begin_box_index(shp);
    made->reader.ctx = ctx;
    made->reader.looked = 0;
    made->reader.stopped = false;
    while (mc_shp_next(&made->reader, &record))
        note_record_box(shp, &record);
    mc_error *error = mc_shp_check(&made->reader, pool);
    mc_shp_end(&made->reader);
    made->reader.ctx = NULL;
    if (error != MC_OK && error->kind == MC_ERR_NO_MEMORY) {
        mc_error_ignore(error);
        return MC_OK;
    }
    if (error != MC_OK)
        return error;
    shp->unlisted = made->end + SHP_SMALLEST_RECORD <= shp->main.size;
    shp->places = made->indexed;
    shp->boxes = mc_box_index_create(made->boxes, shp->count, made->pool);
    shp->search = MC_SHP_IN_MEMORY;
    return MC_OK;
}

static mc_error *
prepare_search(mc_shp *shp, mc_ctx *ctx, apr_pool_t *pool)
{
    if (shp->tree.fd >= 0 && !shp->stale_tree)
        shp->search = MC_SHP_TREE;
    else if (shp->count <= INDEXED_MAX)
        return index_boxes(shp, ctx, pool);
    return MC_OK;
}

void
mc_shp_prepare(mc_shp *shp, apr_pool_t *pool)
{
    mc_error_ignore(prepare_search(shp, NULL, pool)); /* without an index, then */
}

mc_error *
mc_shp_go_on_opening(mc_shp *shp, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(find_shp_records(shp, ctx, pool));
    return prepare_search(shp, ctx, pool);
}

mc_error *
mc_shp_write_tree(uint32_t *count, const char *path, apr_pool_t *pool)
{
    mc_shp *shp;
    mc_shp_reader reader;
    mc_shp_record record;
    MC_TRY(mc_shp_open(&shp, path, NULL, pool));
    mc_extent *boxes = malloc(sizeof(*boxes) * ((size_t)shp->count + 1));
    if (boxes == NULL)
        return mc_error_create(pool, MC_ERR_LIMIT, "%s has too many shapes", path);
    for (uint32_t i = 0; i < shp->count; i++)
        boxes[i] = (mc_extent){ 1, 1, 0, 0 };
    mc_shp_begin(&reader, shp, NULL, pool);
    reader.most = PARTS_AT;
    while (mc_shp_next(&reader, &record))
        if (record.has_box)
            boxes[record.number] = record.box;
    mc_shp_end(&reader);
    *count = shp->count;
    const char *base = apr_pstrmemdup(pool, path, strlen(path) - 4);
    mc_error *error = mc_shp_check(&reader, pool);
    if (error == MC_OK)
        error = mc_quadtree_write(apr_pstrcat(pool, base, ".qix", NULL), boxes, shp->count, pool);
    free(boxes);
    return error;
}
