/* Numbers of the format, shared by the files that read shapefiles. */
#ifndef MC_VECTOR_SHAPEFILE_SHP_PRIVATE_H
#define MC_VECTOR_SHAPEFILE_SHP_PRIVATE_H

#include "vector/shapefile/shp.h"

enum {
    SHP_NULL = 0,
    SHP_POINT = 1,
    SHP_LINE = 3,
    SHP_POLYGON = 5,
    SHP_MULTIPOINT = 8,
    SHP_OTHER = -1, /* MultiPatch, or none that is known */
    BOX_AT = 4,
    PARTS_AT = 36,
    SHP_HEADER = 100,
    SHP_RECORD_HEADER = 8,
    SHP_SMALLEST_RECORD = 12,
    SHP_STREAM_AHEAD = 1 << 18, /* bytes that are read at once where all are */
    SHP_LOOKED_MOST = 1 << 20,  /* bytes between two looks at the deadline */
    SHP_LOOK_COST = 16,         /* of a record, in bytes */
};

/* What is kept of finding the records and their boxes, from one step to the next. */
typedef struct mc_shp_progress {
    apr_pool_t *pool; /* of the shapefile */
    const char *path;
    bool listed; /* in the .shx: the next four are not needed */
    bool scanned;
    uint64_t offset; /* of the next record */
    uint32_t room, seen;
    mc_shp_place *places; /* NULL: of no record so far */
    /* of the index of boxes: */
    mc_shp_reader reader;
    mc_small_box *boxes; /* NULL: not begun */
    mc_shp_place *indexed;
    uint64_t end; /* of the last record in the file */
} mc_shp_progress;

/* Where the .shx, or the scan, says that a record is. */
mc_shp_place mc_shp_record_place(mc_shp_reader *reader, uint32_t number);

/* A type without its Z and M (tens 1 and 2). */
static inline int
mc_shp_kind(uint32_t type)
{
    int kind = (int)(type % 10);
    bool known = kind == SHP_POINT || kind == SHP_LINE || kind == SHP_POLYGON || kind == SHP_MULTIPOINT;
    return type == 0 ? SHP_NULL : type < 30 && known ? kind : SHP_OTHER;
}

static inline int
shp_record_kind(const mc_shp_record *record)
{
    return record->size < 4 ? SHP_NULL : mc_shp_kind(mc_little32(record->content));
}

#endif
