/*
 * Gathering the sub-tiles of tiles. Each tile walks through its sub-tiles from the front to the back as far as they are
 * known; what the walks stop at is fetched in one batch by all workers, and they go on. How far a batch looks ahead
 * depends on what has been met: sub-tiles that fill their tile end the walk soon, small ones never do.
 */
#include "tileset/assembly.h"

#include <apr_strings.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/workers.h"
#include "footprint/footprint.h"
#include "footprint/region.h"
#include "mapcache/trace.h"
#include "tileset/assembly_look.h"
#include "tileset/combine.h"
#include "tileset/tileset_private.h"

/* Tiles whose sub-tiles are looked at together: bounds the memory of a request. */
#define TILES_AT_ONCE 64

/* Sub-tiles of one file that one job fetches: they share the handle and a read transaction. */
#define FETCHES_OF_A_JOB 32

/* About what one fetch from a file costs; below so much work nobody is woken (docs/reference/design.md 3.6). */
#define FETCH_COST 60
#define WORTH_A_HELPER 200

/* What the parts of a tile may hold, in tiles, before they are drawn. */
#define PARTS_AREA 4

/* A tile on its way through its sub-tiles. */
typedef struct assembly_walk {
    mc_assembled *tile;
    int first, count; /* of the wants: front to back */
    int asked;        /* combinations: the wants, and those that certainly have no tile */
    int at;           /* the next one */
    int ahead;        /* how many to fetch at once */
    bool done;
    apr_int64_t held; /* pixels of its parts */
    apr_array_header_t *parts;
    mc_region open; /* what may still be seen */
} assembly_walk;

typedef struct assembly_gathering {
    const mc_assembly_order *order;
    mc_assembly *assembly;
    mc_combiner *combiner;
    apr_pool_t *pool; /* of the results */
    assembly_walk *walks;
    int walk_count;
    mc_footprint_want *wants;
    bool *tried;         /* by want: fetching it has failed, or it has been rendered */
    double *provisional; /* by want: of the tile that was rendered */
    int want_count;
    mc_footprints *batch;
    bool renderable;
} assembly_gathering;

static apr_status_t
release_assembly(void *data)
{
    mc_assembly *assembly = data;
    for (int i = 0; i < assembly->count; i++) {
        for (int j = 0; j < assembly->tiles[i].count; j++)
            mc_footprint_unref(assembly->tiles[i].parts[j].footprint);
        mc_pixels_unref(assembly->tiles[i].drawn);
    }
    return APR_SUCCESS;
}

/* Draws what a walk holds and goes on with that instead. */
static mc_error *
draw_parts(assembly_gathering *all, assembly_walk *at)
{
    const mc_grid *grid = all->order->link->grid;
    if (at->tile->drawn == NULL)
        MC_TRY(mc_pixels_create(&at->tile->drawn, grid->tile_width, grid->tile_height, true, all->pool));
    for (int i = 0; i < at->parts->nelts; i++) {
        mc_footprint *footprint = APR_ARRAY_IDX(at->parts, i, mc_assembly_part).footprint;
        mc_pixels pixels = mc_footprint_view(footprint);
        at->done = mc_pixels_under(at->tile->drawn, footprint->left, footprint->top, &pixels) || at->done;
        mc_footprint_unref(footprint);
    }
    at->parts->nelts = 0;
    return MC_OK;
}

static void
describe_footprint(mc_assembled *tile, const mc_footprint *footprint, int frame)
{
    uint64_t seen[2] = { footprint->tag, (uint64_t)frame };
    tile->tag = mc_hash64(seen, sizeof(seen), tile->tag);
    if (footprint->mtime == 0)
        return;
    tile->newest = footprint->mtime > tile->newest ? footprint->mtime : tile->newest;
    tile->oldest = tile->oldest == 0 || footprint->mtime < tile->oldest ? footprint->mtime : tile->oldest;
}

/* All frames of an animation are needed at once. */
static mc_error *
check_frames(const assembly_gathering *all, const assembly_walk *at)
{
    if (at->held <= MC_FRAMES_PIXELS)
        return MC_OK;
    return mc_error_create(all->pool, MC_ERR_LIMIT, "an animated tile of layer %s has more than %d pixels in all",
                           all->order->tileset->name, MC_FRAMES_PIXELS);
}

/* A sub-tile that is there takes its place behind those that the walk has met. */
static mc_error *
meet_footprint(assembly_gathering *all, assembly_walk *at, const mc_footprint_want *want)
{
    mc_footprint *footprint = want->footprint;
    const mc_grid *grid = all->order->link->grid;
    mc_rect box = { footprint->left, footprint->top, footprint->left + footprint->width,
                    footprint->top + footprint->height };
    int area = footprint->width * footprint->height, whole = grid->tile_width * grid->tile_height;
    if (all->order->tileset->assembly == MC_ASSEMBLE_STACK && area > whole / 4)
        at->ahead = 1;
    if (at->tile->found++ == 0) {
        at->tile->only = want->key.dimensions;
        at->tile->tag = footprint->tag;
    }
    if (area == 0 || footprint->opacity == MC_EMPTY || !mc_region_touches(&at->open, &box))
        return MC_OK;
    int place = at->count - at->at;
    bool animated = all->order->tileset->assembly == MC_ASSEMBLE_ANIMATE;
    describe_footprint(at->tile, footprint, animated ? place : 0);
    APR_ARRAY_PUSH(at->parts, mc_assembly_part) =
        (mc_assembly_part){ mc_footprint_ref(footprint), want->key.dimensions, place };
    at->held += area;
    if (animated)
        return check_frames(all, at);
    if (footprint->opacity == MC_OPAQUE && area > whole / 64) {
        mc_region_subtract(&at->open, &box);
        at->done = at->open.count == 0;
    }
    if (at->tile->drawn != NULL || (at->held > (apr_int64_t)PARTS_AREA * whole && !at->done))
        return draw_parts(all, at);
    return MC_OK;
}

/* A missing or expired sub-tile is made by the source and takes the place of what memory or store had. */
static bool
must_render(const assembly_gathering *all, int index, const mc_ctx *ctx)
{
    const mc_footprint_want *want = &all->wants[index];
    if (!all->renderable || all->tried[index])
        return false;
    return want->footprint == NULL ||
           mc_tileset_freshness(all->order->tileset, &want->key, want->footprint->mtime, ctx) != MC_FRESH;
}

/* Goes on until something is missing. */
static mc_error *
walk_on(assembly_gathering *all, assembly_walk *at, mc_ctx *ctx)
{
    while (!at->done && at->at < at->count) {
        int index = at->first + at->at;
        const mc_footprint_want *want = &all->wants[index];
        if (!want->known && all->tried[index])
            MC_TRY(mc_footprints_fetch(all->batch, index, ctx)); /* for its error */
        if (!want->known || must_render(all, index, ctx))
            return MC_OK;
        at->at++;
        mc_take_provisional(&at->tile->provisional, all->provisional[index]);
        if (want->footprint != NULL)
            MC_TRY(meet_footprint(all, at, want));
    }
    at->done = true;
    return MC_OK;
}

/* One batch: which wants, by file, and where the jobs begin. */
typedef struct fetching {
    assembly_gathering *all;
    int *wants;
    int count;
    int *jobs; /* where each begins; one more at the end */
    int job_count;
    unsigned first; /* the job that is begun with */
} fetching;

/* Errors stay where they are: a sub-tile that turns out to be hidden has none. */
static mc_error *
fetch_some(void *baton, int index, mc_ctx *ctx)
{
    fetching *fetch = baton;
    int job = (int)(((uint64_t)index + fetch->first) % (unsigned)fetch->job_count);
    int first = fetch->jobs[job], end = fetch->jobs[job + 1];
    mc_cache_reads_begin(ctx); /* also for one: where it is absent, the file is asked for what it has */
    for (int i = first; i < end; i++) {
        int want = fetch->wants[i];
        if (mc_footprints_fetch(fetch->all->batch, want, ctx) != MC_OK)
            fetch->all->tried[want] = true;
    }
    mc_cache_reads_end(ctx);
    return MC_OK;
}

static void
list_wants(fetching *fetch, assembly_gathering *all, apr_pool_t *pool)
{
    *fetch = (fetching){ .all = all, .wants = apr_palloc(pool, sizeof(int) * (size_t)(all->want_count + 1)) };
    for (int i = 0; i < all->walk_count; i++) {
        assembly_walk *at = &all->walks[i];
        int taken = 0;
        for (int j = at->at; j < at->count && !at->done && taken < at->ahead; j++)
            if (!all->wants[at->first + j].known && !all->tried[at->first + j]) {
                fetch->wants[fetch->count++] = at->first + j;
                taken++;
            }
        at->ahead = at->ahead < at->count ? at->ahead * 8 : at->ahead;
    }
}

static int
by_file(const void *a, const void *b, void *baton)
{
    const mc_footprint_want *wants = baton;
    int one = *(const int *)a, other = *(const int *)b;
    int file = wants[one].file, other_file = wants[other].file;
    return file != other_file ? (file > other_file) - (file < other_file) : (one > other) - (one < other);
}

/*
 * Jobs of one file each, small enough for all threads to end together. Batches begin at different files: requests that
 * come at once for the same files would otherwise all open the same one at the same time, and each would find out for
 * itself what the first of them is about to learn.
 */
static void
make_jobs(fetching *fetch, int threads, apr_pool_t *pool)
{
    const mc_footprint_want *wants = fetch->all->wants;
    int most = fetch->count / (8 * threads) + 1;
    most = most > FETCHES_OF_A_JOB ? FETCHES_OF_A_JOB : most;
    qsort_r(fetch->wants, (size_t)fetch->count, sizeof(int), by_file, (void *)(uintptr_t)wants);
    fetch->jobs = apr_palloc(pool, sizeof(int) * (size_t)(fetch->count + 1));
    for (int i = 0; i < fetch->count; i++) {
        bool begins = fetch->job_count == 0 || i - fetch->jobs[fetch->job_count - 1] >= most ||
                      wants[fetch->wants[i]].file != wants[fetch->wants[i - 1]].file;
        if (begins)
            fetch->jobs[fetch->job_count++] = i;
    }
    fetch->jobs[fetch->job_count] = fetch->count;
    static atomic_uint batches;
    unsigned number = atomic_fetch_add_explicit(&batches, 1, memory_order_relaxed);
    fetch->first = (unsigned)mc_hash64(&number, sizeof(number), 0);
}

static int
count_assembly_helpers(const assembly_gathering *all, int fetches, const mc_ctx *ctx)
{
    const struct mc_workers *workers = ctx->process->workers;
    if (all->order->threaded == 0 || workers == NULL || fetches < 2)
        return 0;
    if (all->order->threaded == 1)
        return mc_workers_count(workers);
    return fetches * FETCH_COST < WORTH_A_HELPER ? 0 : mc_workers_spare(workers);
}

/* Fetches what the walks have stopped at. *nothing: none of them waits for the store. */
static mc_error *
fetch_batch(assembly_gathering *all, bool *nothing, mc_ctx *ctx)
{
    fetching fetch;
    apr_pool_t *pool;
    apr_pool_create(&pool, ctx->pool);
    list_wants(&fetch, all, pool);
    *nothing = fetch.count == 0;
    int helpers = count_assembly_helpers(all, fetch.count, ctx);
    make_jobs(&fetch, helpers + 1, pool);
    mc_error *error = mc_error_copy(
        mc_workers_run(ctx->process->workers, fetch_some, &fetch, fetch.job_count, helpers, ctx, pool), ctx->pool);
    apr_pool_destroy(pool);
    return error;
}

/* Renders the sub-tiles that the walks have stopped at, on the I/O lane where there are several. */
typedef struct rendering {
    assembly_gathering *all;
    int *wants;
    int count;
} rendering;

static mc_error *
render_one(void *baton, int index, mc_ctx *ctx)
{
    rendering *render = baton;
    assembly_gathering *all = render->all;
    mc_footprint_want *want = &all->wants[render->wants[index]];
    mc_tile *tile = NULL;
    MC_TRY(mc_ctx_check(ctx, ctx->pool)); /* before what may be waited for */
    MC_TRY(mc_tileset_get_sub(&tile, all->order->tileset, &want->key, ctx, ctx->pool));
    all->provisional[render->wants[index]] = tile->provisional;
    want->footprint = NULL; /* the batch keeps its own reference */
    if (tile->no_data || tile->raw)
        return MC_OK;
    mc_pixels *pixels;
    MC_TRY(mc_tile_decode(&pixels, tile, want->key.grid, ctx, ctx->pool));
    want->footprint = mc_footprint_create(pixels, tile);
    mc_pixels_unref(pixels);
    return MC_OK;
}

static apr_status_t
unref_footprint(void *data)
{
    mc_footprint_unref(data);
    return APR_SUCCESS;
}

static mc_error *
render_batch(assembly_gathering *all, bool *nothing, mc_ctx *ctx, apr_pool_t *pool)
{
    rendering render = { all, apr_palloc(pool, sizeof(int) * (size_t)(all->walk_count + 1)), 0 };
    for (int i = 0; i < all->walk_count && all->renderable; i++) {
        const assembly_walk *at = &all->walks[i];
        if (!at->done && at->at < at->count && all->wants[at->first + at->at].known)
            render.wants[render.count++] = at->first + at->at;
    }
    *nothing = render.count == 0;
    int helpers = all->order->threaded == 0 || render.count < 2 ? 0 : mc_workers_count(ctx->process->io);
    mc_error *error = mc_workers_run(ctx->process->io, render_one, &render, render.count, helpers, ctx, pool);
    for (int i = 0; i < render.count; i++) {
        mc_footprint *made = all->wants[render.wants[i]].footprint;
        all->tried[render.wants[i]] = true;
        if (made != NULL)
            apr_pool_cleanup_register(pool, made, unref_footprint, apr_pool_cleanup_null);
    }
    return error;
}

static mc_error *
gather_footprints(assembly_gathering *all, mc_ctx *ctx, apr_pool_t *pool)
{
    bool fetched = false, rendered = false;
    while (!fetched || !rendered) {
        MC_TRY(mc_ctx_check(ctx, all->pool));
        for (int i = 0; i < all->walk_count; i++)
            MC_TRY(walk_on(all, &all->walks[i], ctx));
        MC_TRY(render_batch(all, &rendered, ctx, pool));
        MC_TRY(fetch_batch(all, &fetched, ctx));
    }
    return MC_OK;
}

static bool
is_requested(const assembly_gathering *all, const mc_dimension_value *dimensions)
{
    const mc_tileset *tileset = all->order->tileset;
    for (int i = 0; i < tileset->dimension_count; i++) {
        const char *value = all->order->values == NULL ? NULL : all->order->values[i];
        if (strcmp(dimensions[i].value, value == NULL ? tileset->dimensions[i]->default_value : value) != 0)
            return false;
    }
    return true;
}

/* What the walk has met becomes the tile's. */
static void
finish_assembled_tile(assembly_gathering *all, assembly_walk *at)
{
    mc_assembled *tile = at->tile;
    tile->parts = (mc_assembly_part *)(void *)at->parts->elts;
    tile->count = at->parts->nelts;
    tile->frames = all->order->tileset->assembly == MC_ASSEMBLE_ANIMATE ? at->count : 0;
    if (tile->found == 0)
        return;
    if (tile->drawn != NULL || tile->count > 1 || tile->frames > 1) {
        tile->only = NULL;
    } else if (tile->count == 1) {
        tile->only = tile->parts[0].dimensions;
        tile->tag = tile->parts[0].footprint->tag;
    }
    if (tile->tag == 0)
        tile->tag = 1;
    tile->only_is_requested = at->asked == 1 && is_requested(all, all->wants[at->first].key.dimensions);
}

static mc_error *
combine_tile_dimensions(mc_combinations *lists, assembly_gathering *all, int first, int count, mc_ctx *ctx)
{
    const mc_assembly_order *order = all->order;
    mc_extent extents[TILES_AT_ONCE] = { { 0 } };
    for (int i = 0; i < count; i++) {
        const mc_assembled *tile = &all->assembly->tiles[first + i];
        extents[i] = mc_grid_tile_extent(order->link->grid, order->z, tile->x, tile->y);
    }
    return mc_combine(lists, all->combiner, order->link->grid, order->z, extents, count, ctx);
}

/* Gathers as many of the tiles from `first` on as are looked at together; returns how many in *count. */
static mc_error *
gather_some(assembly_gathering *all, int first, int *count, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_assembly_order *order = all->order;
    mc_assembly *assembly = all->assembly;
    mc_combinations lists[TILES_AT_ONCE];
    mc_assembly_wants wants;
    int taken = assembly->count - first < TILES_AT_ONCE ? assembly->count - first : TILES_AT_ONCE;
    *count = taken;
    MC_TRY(combine_tile_dimensions(lists, all, first, taken, ctx));
    MC_TRY(mc_assembly_look(&wants, order, &assembly->tiles[first], lists, taken, ctx, pool));
    all->batch = wants.batch;
    all->wants = wants.list;
    all->want_count = wants.count;
    all->tried = apr_pcalloc(pool, sizeof(*all->tried) * (size_t)(wants.count + 1));
    all->provisional = apr_pcalloc(pool, sizeof(*all->provisional) * (size_t)(wants.count + 1));
    all->walks = apr_palloc(pool, sizeof(assembly_walk) * (size_t)taken);
    all->walk_count = taken;
    for (int i = 0; i < taken; i++) {
        assembly_walk *at = &all->walks[i];
        *at = (assembly_walk){ .tile = &assembly->tiles[first + i], .ahead = 1, .first = wants.first[i] };
        at->count = wants.first[i + 1] - at->first;
        at->asked = lists[i].count;
        at->parts = apr_array_make(all->pool, 8, sizeof(mc_assembly_part));
        mc_region_set(&at->open, order->link->grid->tile_width, order->link->grid->tile_height);
    }
    mc_error *error = gather_footprints(all, ctx, pool);
    for (int i = 0; i < taken; i++)
        finish_assembled_tile(all, &all->walks[i]);
    return error;
}

static void
list_assembly_tiles(mc_assembly *assembly, const mc_tile_range *range)
{
    mc_assembled *tile = assembly->tiles;
    for (int y = range->miny; y < range->maxy; y++)
        for (int x = range->minx; x < range->maxx; x++, tile++) {
            tile->x = x;
            tile->y = y;
        }
}

mc_error *
mc_assembly_gather(mc_assembly **assembly, const mc_assembly_order *order, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_tileset_tile_set_get_with_subdimensions");
    int columns = order->range.maxx - order->range.minx, rows = order->range.maxy - order->range.miny;
    mc_assembly *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_assembly){ order->tileset, order->link, order->z, columns * rows, NULL };
    made->tiles = apr_pcalloc(pool, sizeof(*made->tiles) * (size_t)(made->count + 1));
    list_assembly_tiles(made, &order->range);
    apr_pool_cleanup_register(pool, made, release_assembly, apr_pool_cleanup_null);
    assembly_gathering all = { .order = order, .assembly = made, .pool = pool };
    all.combiner = mc_combiner_create(order->tileset, order->values, order->map, pool);
    all.renderable = mc_tileset_renders(order->tileset) && !order->tileset->subdimensions_read_only;
    int count = 0;
    mc_error *error = MC_OK;
    for (int first = 0; first < made->count && error == MC_OK; first += count) {
        apr_pool_t *scratch;
        apr_pool_create(&scratch, pool);
        if (!all.renderable)
            mc_workers_enter(ctx->process->workers);
        error = mc_error_copy(gather_some(&all, first, &count, ctx, scratch), pool);
        if (!all.renderable)
            mc_workers_leave(ctx->process->workers);
        apr_pool_destroy(scratch);
    }
    *assembly = made;
    return error;
}
