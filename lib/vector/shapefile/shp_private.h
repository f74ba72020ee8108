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
};

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
