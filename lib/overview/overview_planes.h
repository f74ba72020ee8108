/* Which levels keep a feature (draw/paint/sieve.h). */
#ifndef MC_OVERVIEW_OVERVIEW_PLANES_H
#define MC_OVERVIEW_OVERVIEW_PLANES_H

#include "draw/paint/sieve.h"
#include "overview/overview_private.h"
#include "vector/geometry/geometry.h"

typedef struct mc_overview_planes mc_overview_planes;
struct mc_workers;

/* Workers that look at planes beside the caller, at most so many of them. They live as long as the planes. */
void mc_overview_planes_share(mc_overview_planes *planes, struct mc_workers *workers, int helpers);

/* Maps of one resolution. */
typedef struct mc_overview_plane {
    double resolution;
    mc_sieve *sieve;
    int width, height;
    mc_pixel_grid grid; /* on the lattice of the tileset's grid */
    mc_feature_query query;
    mc_geometry geometry;
    apr_pool_t *pool;    /* a root pool: planes are looked at on several threads */
    apr_pool_t *scratch; /* of a feature */
    uint8_t *seen;       /* for each feature of the batch: how it looks */
} mc_overview_plane;

/* For levels whose resolutions rise. Lives as long as `pool`. */
mc_error *mc_overview_planes_create(mc_overview_planes **planes, const mc_overview_level *levels, int count,
                                    const mc_overview_job *job, apr_pool_t *pool) MC_CHECKED;

/* For levels that are patched; `area`: of all that is laid over or opened. MC_ERR_LIMIT: it is too large
 * (mc_overview_plane_fits). */
mc_error *mc_overview_planes_of_area(mc_overview_planes **planes, const mc_overview_level *levels, int count,
                                     const mc_extent *area, const mc_overview_job *job, apr_pool_t *pool) MC_CHECKED;

/* The planes of all levels, of rising resolutions. */
int mc_overview_planes_count(const mc_overview_planes *planes);
mc_overview_plane *mc_overview_planes_at(mc_overview_planes *planes, int plane);

/* Whether what is seen in a plane is kept in a level. */
bool mc_overview_planes_serve(const mc_overview_planes *planes, int plane, int level);

/* By how many pixels of the level the symbols of any map that it serves can reach over their geometry. */
double mc_overview_planes_margin(const mc_overview_level *level, const mc_overview_job *job);

/* By how many pixels of a map of a resolution its symbols can reach over their geometry. */
int mc_overview_symbol_margin(const mc_overview_job *job, double resolution);

/* An area in pixels of a resolution, on the lattice of the grid: left, top, right, bottom. */
void mc_overview_lattice_box(double box[4], const mc_overview_job *job, double resolution, const mc_extent *area,
                             double margin);

/* Bounds in pixels of the level, on the lattice of the grid. */
mc_extent mc_overview_level_bounds(const mc_overview_level *level, const mc_overview_job *job, const mc_extent *bounds);

/*
 * Looks at a batch of rows, at most MC_OVERVIEW_BATCH, which come in reverse order: the one that is painted last is the
 * last one of the first batch. Each plane may be looked at on a thread of its own. The rows live until the next batch.
 */
enum { MC_OVERVIEW_BATCH = 2048 };
mc_error *mc_overview_planes_look(mc_overview_planes *planes, const mc_overview_row *rows, int count) MC_CHECKED;

/*
 * Which of the levels keep a row of the batch; those that were given up do not. *bounds: of its geometry, in units of
 * the CRS, where a level keeps it. *unreadable: maps leave it out, too.
 */
mc_error *mc_overview_planes_tell(bool *keeps, mc_extent *bounds, bool *unreadable, mc_overview_planes *planes,
                                  int row) MC_CHECKED;

/* Pixels of the box of all features on maps of a resolution. */
double mc_overview_pixels(const mc_overview_job *job, double resolution);

/* The scale denominator of maps of a resolution. */
double mc_overview_scale(const mc_overview_job *job, double resolution);

/* From which resolution on maps have many features in a pixel. */
double mc_overview_find_crowded(const mc_overview_job *job);

/* Whether maps of a resolution have many features in a pixel (job->crowded). */
bool mc_overview_is_crowded(const mc_overview_job *job, double resolution);

/* Whether features hide each other on maps of a resolution, by the style: else a level has all that any rule draws. */
bool mc_overview_hides(const mc_overview_job *job, double resolution);

/* Whether a plane of an area has few enough pixels. */
bool mc_overview_plane_fits(const mc_overview_job *job, double resolution, const mc_extent *area);

#endif
