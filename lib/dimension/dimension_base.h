/* What the kinds of dimensions share: their common keys and helpers. */
#ifndef MC_DIMENSION_DIMENSION_BASE_H
#define MC_DIMENSION_DIMENSION_BASE_H

#include "dimension/dimension_kinds.h"

/* Attributes and children that every kind accepts. */
#define MC_DIMENSION_COMMON_KEYS                                                                                       \
    MC_KEY_TEXT("@name", offsetof(mc_dimension_common, name),                                                          \
                "The dimension's name as clients say it, matched in any case.", .flags = MC_KEY_REQUIRED),             \
        MC_KEY_TEXT("@type", offsetof(mc_dimension_common, type),                                                      \
                    "values, regex, sqlite, time, postgresql or elasticsearch.", .flags = MC_KEY_REQUIRED),            \
        MC_KEY_TEXT("@default", offsetof(mc_dimension_common, default_value),                                          \
                    "The value that stands for a request without one; it is resolved like any other.",                 \
                    .flags = MC_KEY_REQUIRED),                                                                         \
        MC_KEY_TEXT("@unit", offsetof(mc_dimension_common, unit), "Unit of measure, shown in capabilities."),          \
        MC_KEY_BOOL("@time", offsetof(mc_dimension_common, time),                                                      \
                    "Values are times: instants, ranges and lists of them.", .fallback = "false"),                     \
        MC_KEY_BOOL("nearest", offsetof(mc_dimension_common, nearest),                                                 \
                    "true: a WMS request for a number or a time that is not there gets the nearest listed one.",       \
                    .flags = MC_KEY_OURS, .fallback = "false"),                                                        \
        MC_KEY_BOOL("periods", offsetof(mc_dimension_common, periods),                                                 \
                    "true: capabilities list times with a regular distance as start/end/distance, one for each part "  \
                    "between gaps, instead of one by one.",                                                            \
                    .flags = MC_KEY_OURS, .fallback = "false"),                                                        \
        MC_KEY_TREE("wms_querybymap", offsetof(mc_dimension_common, wms_querybymap), mc_dimension_by_map_keys,         \
                    "true: ask the back end once for a whole WMS map instead of once for each tile.")

/* <wms_querybymap> */
extern const mc_key mc_dimension_by_map_keys[];

typedef struct mc_dimension_common {
    const char *name;
    const char *type;
    const char *default_value;
    const char *unit;
    bool time;
    bool nearest;
    bool periods;
    const mc_node *wms_querybymap;
} mc_dimension_common;

/* Reads the element into `config` and makes a dimension of `size` bytes, all zero. NULL after a complaint. */
void *mc_dimension_create(size_t size, void *config, const mc_key *keys, const mc_node *node, mc_build *build);

/* False after a complaint that refuses the file. */
bool mc_dimension_set_common(mc_dimension *dimension, const mc_dimension_common *common, mc_build *build);

#endif
