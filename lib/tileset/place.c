/* Where the data of a tileset lie: asked of the source when a document or a seeder wants to know, and remembered. */
#include <math.h>
#include <pthread.h>

#include "base/clock.h"
#include "db/postgres/postgres.h"
#include "mapcache/trace.h"
#include "tileset/tileset_private.h"
#include "vector/crs/projection.h"

/* Microseconds: one question, all of a document, and how long an answer counts. */
#define ASK_TIME (2 * APR_USEC_PER_SEC)
#define ASK_ALL_TIME (3 * APR_USEC_PER_SEC)
#define KNOWN_TIME (60 * APR_USEC_PER_SEC)
#define UNKNOWN_TIME (10 * APR_USEC_PER_SEC)

/* Tiles that symbols at the edge of the data reach into. */
#define MARGIN 0.25

typedef struct mc_tileset_place {
    pthread_mutex_t lock; /* guards the rest; not held while the data are asked */
    bool known;
    mc_extent degrees;
    apr_time_t ask_again; /* by mc_clock_now(); 0: never asked */
} mc_tileset_place;

void
mc_tileset_place_init(mc_tileset *tileset, apr_pool_t *pool)
{
    bool restricted = tileset->box_configured;
    for (int i = 0; i < tileset->link_count; i++)
        restricted = restricted || tileset->links[i]->restricted;
    if (restricted || tileset->source == NULL || tileset->source->ops->place == NULL)
        return;
    tileset->place = apr_pcalloc(pool, sizeof(*tileset->place));
    pthread_mutex_init(&tileset->place->lock, NULL);
}

/* Whether the way back from degrees leads to all of the box: not where the box goes on beyond the antimeridian, whose
 * other side has other degrees. */
static bool
covers_place(const mc_extent *degrees, const mc_place *place, apr_pool_t *pool)
{
    mc_projection *back;
    mc_extent box = *degrees;
    const double slack =
        0.01 * (place->box.maxx - place->box.minx) + 1e-6 * (fabs(place->box.minx) + fabs(place->box.maxx));
    mc_error *error = mc_projection_open(&back, "CRS:84", place->srs, pool);
    if (error != MC_OK || (back != NULL && !mc_projection_box(&box, back, false)))
        return false;
    return box.minx <= place->box.minx + slack && box.maxx >= place->box.maxx - slack;
}

/* False: that box says nothing. One of no size, as of one point, is made a small one; one across the antimeridian goes
 * all around the world, since clients take west < east for granted. */
static bool
turn_into_degrees(mc_extent *degrees, const mc_place *place, apr_pool_t *pool)
{
    mc_projection *projection;
    const double least = 0.0005;
    *degrees = place->box;
    mc_error *error = mc_projection_open(&projection, place->srs, "CRS:84", pool);
    if (error != MC_OK || (projection != NULL && !mc_projection_box(degrees, projection, false)))
        return false;
    if (degrees->minx < -180 || degrees->maxx > 180 || degrees->minx > degrees->maxx ||
        !covers_place(degrees, place, pool))
        *degrees = (mc_extent){ -180, degrees->miny, 180, degrees->maxy };
    *degrees = (mc_extent){ fmax(degrees->minx, -180), fmax(degrees->miny, -90), fmin(degrees->maxx, 180),
                            fmin(degrees->maxy, 90) };
    if (!(degrees->minx <= degrees->maxx) || !(degrees->miny <= degrees->maxy))
        return false;
    double x = fmax(0, least - (degrees->maxx - degrees->minx)), y = fmax(0, least - (degrees->maxy - degrees->miny));
    *degrees = (mc_extent){ degrees->minx - x, degrees->miny - y, degrees->maxx + x, degrees->maxy + y };
    return true;
}

static void
ask_data(const mc_tileset *tileset, mc_ctx *ctx)
{
    apr_pool_t *scratch;
    mc_place place = { 0 };
    mc_extent degrees = { 0 };
    mc_ctx own = *ctx;
    apr_pool_create(&scratch, ctx->pool);
    own.pool = scratch;
    own.deadline = mc_clock_now() + mc_ctx_remaining(ctx, ASK_TIME);
    mc_error *error = tileset->source->ops->place(&place, tileset->source, &own, scratch);
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_INFO, error);
    bool known = error == MC_OK && place.known && turn_into_degrees(&degrees, &place, scratch);
    if (error == MC_OK && place.known && !known)
        mc_log_write(ctx, MC_LOG_WARN,
                     "tileset \"%s\": where its data lie is not known: their box in %.200s is none in degrees",
                     tileset->name, place.srs);
    apr_pool_destroy(scratch);
    pthread_mutex_lock(&tileset->place->lock);
    if (known)
        tileset->place->degrees = degrees;
    if (known || error == MC_OK) /* a database that is away has not lost its tables */
        tileset->place->known = known;
    tileset->place->ask_again = mc_clock_now() + (known ? KNOWN_TIME : UNKNOWN_TIME);
    pthread_mutex_unlock(&tileset->place->lock);
}

void
mc_tileset_ask_place(const mc_tileset *tileset, mc_ctx *ctx)
{
    if (tileset->place == NULL || tileset->not_built != NULL)
        return;
    pthread_mutex_lock(&tileset->place->lock);
    bool again = mc_clock_now() >= tileset->place->ask_again;
    if (again && tileset->place->ask_again != 0) /* the others have the old answer meanwhile */
        tileset->place->ask_again = mc_clock_now() + ASK_TIME;
    pthread_mutex_unlock(&tileset->place->lock);
    if (!again)
        return;
    MC_SLOW(ctx);
    ask_data(tileset, ctx);
}

void
mc_tileset_ask_place_alone(const mc_tileset *tileset, apr_pool_t *pool)
{
    mc_process process = { .postgres = mc_postgres_create(1, 1, 0, false) };
    mc_ctx ctx = { .pool = pool, .process = &process };
    mc_tileset_ask_place(tileset, &ctx);
    mc_postgres_destroy(process.postgres);
}

void
mc_tilesets_ask_places(const apr_array_header_t *tilesets, mc_ctx *ctx)
{
    apr_time_t until = mc_clock_now() + ASK_ALL_TIME;
    for (int i = 0; i < tilesets->nelts && mc_clock_now() < until; i++)
        mc_tileset_ask_place(APR_ARRAY_IDX(tilesets, i, const mc_tileset *), ctx);
}

bool
mc_tileset_data_box(mc_extent *degrees, const mc_tileset *tileset)
{
    if (tileset->place == NULL)
        return false;
    pthread_mutex_lock(&tileset->place->lock);
    bool known = tileset->place->known;
    *degrees = tileset->place->degrees;
    pthread_mutex_unlock(&tileset->place->lock);
    return known;
}

/* The box of the data in the CRS of a grid. */
static bool
place_on_grid(mc_extent *box, const mc_tileset *tileset, const mc_grid *grid, apr_pool_t *pool)
{
    mc_projection *projection;
    if (!mc_tileset_data_box(box, tileset))
        return false;
    mc_error *error = mc_projection_open(&projection, "CRS:84", grid->srs, pool);
    return error == MC_OK && (projection == NULL || mc_projection_box(box, projection, false)) && mc_extent_valid(box);
}

bool
mc_tileset_data_extent(mc_extent *extent, const mc_tileset *tileset, const mc_grid_link *link, apr_pool_t *pool)
{
    mc_extent box;
    if (!place_on_grid(&box, tileset, link->grid, pool))
        return false;
    box = mc_extent_intersection(&box, &link->extent);
    if (!mc_extent_valid(&box))
        return false;
    *extent = box;
    return true;
}

const mc_tile_range *
mc_tileset_data_limits(const mc_tileset *tileset, const mc_grid_link *link, apr_pool_t *pool)
{
    mc_extent box;
    const mc_grid *grid = link->grid;
    if (!place_on_grid(&box, tileset, grid, pool))
        return NULL;
    mc_tile_range *limits = apr_pcalloc(pool, sizeof(*limits) * (size_t)grid->level_count);
    for (int z = 0; z < grid->level_count; z++) {
        double x = grid->levels[z].resolution * grid->tile_width * MARGIN,
               y = grid->levels[z].resolution * grid->tile_height * MARGIN;
        const mc_extent wide = { box.minx - x, box.miny - y, box.maxx + x, box.maxy + y };
        if (!mc_grid_link_tiles(link, &wide, z, &limits[z]))
            limits[z] = (mc_tile_range){ 0, 0, 0, 0 };
    }
    return limits;
}
