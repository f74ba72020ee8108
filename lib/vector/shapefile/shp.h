/*
 * Shapefiles (ESRI Shapefile Technical Description, July 1998): .shp, .shx, .dbf, .cpg, .prj, and the spatial index
 * .qix. Files are read by position, never mapped: a file that is overwritten meanwhile gives broken shapes, one that is
 * cut short meanwhile ends the reading.
 */
#ifndef MC_VECTOR_SHAPEFILE_SHP_H
#define MC_VECTOR_SHAPEFILE_SHP_H

#include "mapcache/ctx.h"
#include "vector/geometry/geometry.h"
#include "vector/shapefile/box_index.h"
#include "vector/shapefile/dbf.h"
#include "vector/shapefile/records.h"

/* The place of a record, in words of two bytes; size 0: there is no record. */
typedef struct mc_shp_place {
    uint32_t offset, size;
} mc_shp_place;

/* The way to find the records of a window. */
typedef enum mc_shp_search {
    MC_SHP_SCAN,      /* by reading each record's own box */
    MC_SHP_TREE,      /* .qix */
    MC_SHP_IN_MEMORY, /* by an index of the boxes, which were read when the file was opened */
} mc_shp_search;

typedef struct mc_shp {
    mc_file main, entries, table, tree; /* .shp, .shx, .dbf, .qix */
    mc_dbf *attributes;                 /* NULL: there is no .dbf, or it cannot be read */
    mc_error *table_error;              /* why the .dbf cannot be read, or NULL */
    const char *projection;             /* content of the .prj; NULL: there is none */
    int type;                           /* of the shapes */
    mc_extent box;                      /* around all shapes, in units of the file */
    uint32_t count;                     /* of records */
    const mc_shp_place *places;         /* of the records; NULL: they are read from the .shx */
    mc_shp_search search;
    mc_box_index *boxes; /* IN_MEMORY */
    mc_records *large;   /* records that windows have asked for */
    bool stale_tree;     /* the .qix is older than the .shp or of another number of shapes: left alone */
    uint32_t broken;     /* records that mc_shp_prepare() could not read */
    bool unlisted;       /* mc_shp_prepare() found that the .shx ends before the .shp does */
    struct mc_shp_progress *progress;
} mc_shp;

/*
 * Opens `path` (of the .shp) and the files beside the .shp, until `pool` is cleared. Without a .shx the .shp is scanned
 * for the records. encoding: the code page of the table where the .cpg is wrong or missing; or NULL. MC_ERR_IO where
 * the file is not there, MC_ERR_CORRUPT where the file is no shapefile, MC_ERR_NOT_BUILT for MultiPatch, MC_ERR_CONFIG
 * for an unknown encoding.
 */
mc_error *mc_shp_open(mc_shp **shp, const char *path, const char *encoding, apr_pool_t *pool) MC_CHECKED;

/* Whether one of the files has fewer bytes than its head says, and was changed in the last ten seconds: somebody copies
 * it to its place. */
bool mc_shp_is_growing(const mc_shp *shp, apr_time_t now);

/* Prepares the search by windows: by the .qix, else by an index in memory of the boxes of all records (up to a
 * million). Where there is no .qix, reads the whole file and counts the records that cannot be read. */
void mc_shp_prepare(mc_shp *shp, apr_pool_t *pool);

/*
 * The same in steps, for those who have a deadline: opens the files; then finds the records and prepares the search,
 * until the deadline of `ctx` or its client ends that (errors of mc_ctx_check). The next call goes on from there, and
 * each gets on by some megabyte at least. Errors are made in `pool`; one thread at a time.
 */
mc_error *mc_shp_begin_opening(mc_shp **shp, const char *path, const char *encoding, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_shp_go_on_opening(mc_shp *shp, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Writes the .qix of `path`. Errors as of mc_shp_open and mc_quadtree_write. */
mc_error *mc_shp_write_tree(uint32_t *count, const char *path, apr_pool_t *pool) MC_CHECKED;

typedef struct mc_shp_record {
    uint32_t number; /* from 0 on: the record's row in the table */
    const uint8_t *content;
    size_t size;   /* 0: the file does not have the record */
    mc_extent box; /* of a point the point itself */
    bool has_box;  /* false: a null shape, or broken */
} mc_shp_record;

/* Goes through the records whose box meets a window, in the order of the file; of one thread. */
typedef struct mc_shp_reader {
    const mc_shp *shp;
    mc_file_view content, entries;
    uint64_t *wanted; /* a bit for each record; NULL: all */
    mc_extent box;
    bool boxed;
    uint32_t at, end; /* records from `at` on, before `end` */
    size_t ahead;
    size_t most;     /* bytes of a record that are wanted */
    mc_ctx *ctx;     /* whose deadline ends the reading; NULL, as at first: nobody's */
    uint64_t looked; /* bytes, since the deadline was looked at */
    bool stopped;    /* before the last record */
} mc_shp_reader;

/* `box` NULL: all records, null shapes too. */
void mc_shp_begin(mc_shp_reader *reader, const mc_shp *shp, const mc_extent *box, apr_pool_t *pool);
bool mc_shp_next(mc_shp_reader *reader, mc_shp_record *record);

/* Why mc_shp_next has come to its end before the last record: errors of mc_ctx_check, MC_ERR_NO_MEMORY, MC_ERR_IO (the
 * files are shorter than they were, or cannot be read any more). MC_OK: it has not. */
mc_error *mc_shp_check(const mc_shp_reader *reader, apr_pool_t *pool) MC_CHECKED;
void mc_shp_end(mc_shp_reader *reader);

/* Begins a reader, perhaps of another thread, of the next records of `whole`, which goes past them: about so many, or
 * so many bytes, but one at least. False: there are no more. `whole` is ended after its parts. */
bool mc_shp_begin_part(mc_shp_reader *part, mc_shp_reader *whole, uint32_t records, size_t bytes);

/* Reads a record's shape; Z and M are passed over. MC_ERR_CORRUPT for counts that do not fit the record,
 * MC_ERR_NOT_BUILT for other kinds of shapes. */
mc_error *mc_shp_geometry(mc_geometry *geometry, const mc_shp_record *record, const mc_pixel_grid *pixel_grid,
                          apr_pool_t *pool) MC_CHECKED;

#endif
