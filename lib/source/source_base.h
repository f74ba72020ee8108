/*
 * What the source types share with the front: the common keys and the struct they are read into.
 */
#ifndef MC_SOURCE_SOURCE_BASE_H
#define MC_SOURCE_SOURCE_BASE_H

#include "mapcache/source.h"

/* The first member of every type's own struct. */
typedef struct mc_source_base {
    mc_source source;
    const char *type;
    const apr_array_header_t *metadata; /* of const mc_node * */
} mc_source_base;

/* Rows of the common keys for a struct whose first member is `base`. `retries`: the default as text. */
#define MC_SOURCE_KEYS(type_, retries_)                                                                                   \
    { "@name",                                                                                                            \
      MC_TEXT,                                                                                                            \
      MC_KEY_REQUIRED,                                                                                                    \
      0,                                                                                                                  \
      0,                                                                                                                  \
      NULL,                                                                                                               \
      NULL,                                                                                                               \
      offsetof(type_, base.source.name),                                                                                  \
      NULL,                                                                                                               \
      "Name by which tilesets refer to the source; unique." },                                                            \
        { "@type", MC_TEXT, MC_KEY_REQUIRED, 0, 0, NULL, NULL, offsetof(type_, base.type), NULL, "Kind of the source." }, \
        { "metadata",                                                                                                     \
          MC_TREE,                                                                                                        \
          MC_KEY_REPEATABLE,                                                                                              \
          0,                                                                                                              \
          0,                                                                                                              \
          NULL,                                                                                                           \
          NULL,                                                                                                           \
          offsetof(type_, base.metadata),                                                                                 \
          NULL,                                                                                                           \
          "Free keys that describe the source; not used by the server." },                                                \
        { "retries", MC_INT,                                                                                              \
          0,         0,                                                                                                   \
          10,        NULL,                                                                                                \
          retries_,  offsetof(type_, base.source.retries),                                                                \
          NULL,      "How often a failed call is repeated." },                                                            \
        { "retry_delay",                                                                                                  \
          MC_NUMBER,                                                                                                      \
          0,                                                                                                              \
          0,                                                                                                              \
          3600,                                                                                                           \
          NULL,                                                                                                           \
          "0.1",                                                                                                          \
          offsetof(type_, base.source.retry_delay),                                                                       \
          NULL,                                                                                                           \
          "Seconds before the first repetition; doubles with each further one." },                                        \
    {                                                                                                                     \
        "deadline", MC_NUMBER, MC_KEY_OURS, 0.001, 86400, NULL, "60", offsetof(type_, base.source.deadline), NULL,        \
            "Seconds after which a call of the source ends with an error, repetitions included."                          \
    }

/* Reads `node` by the keys of `ops` into `base` (a zeroed struct of the type) and fills in what all sources have.
 * False if anything was refused. */
bool mc_source_read(mc_source_base *base, const mc_source_ops *ops, const mc_node *node, mc_build *build);

extern const mc_source_ops mc_source_wms;
extern const mc_source_ops mc_source_mapserver;
extern const mc_source_ops mc_source_gdal;
extern const mc_source_ops mc_source_dummy;
extern const mc_source_ops mc_source_fallback;
extern const mc_source_ops mc_source_shapefile;
extern const mc_source_ops mc_source_postgis;
extern const mc_source_ops mc_source_cube;

#endif
