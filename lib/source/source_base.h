/*
 * The base of all source types: the common keys and the struct into which the keys are read.
 */
#ifndef MC_SOURCE_SOURCE_BASE_H
#define MC_SOURCE_SOURCE_BASE_H

#include "mapcache/source.h"
#include "source/source_kinds.h"

/* The first member of every type's own struct. */
typedef struct mc_source_base {
    mc_source source;
    const char *type;
    const apr_array_header_t *metadata; /* of const mc_node * */
} mc_source_base;

/* Rows of the common keys for a struct whose first member is `base`. `retries`: the default as text. */
#define MC_SOURCE_KEYS(type_, retries_)                                                                                \
    MC_KEY_TEXT("@name", offsetof(type_, base.source.name), "Name by which tilesets refer to the source; unique.",     \
                .flags = MC_KEY_REQUIRED),                                                                             \
        MC_KEY_TEXT("@type", offsetof(type_, base.type), "Kind of the source.", .flags = MC_KEY_REQUIRED),             \
        MC_KEY_TREE("metadata", offsetof(type_, base.metadata), NULL,                                                  \
                    "Free keys that describe the source; not used by the server.", .flags = MC_KEY_REPEATABLE),        \
        MC_KEY_INT("retries", offsetof(type_, base.source.retries), "How often a failed call is repeated.", .max = 10, \
                   .fallback = retries_),                                                                              \
        MC_KEY_NUMBER("retry_delay", offsetof(type_, base.source.retry_delay),                                         \
                      "Seconds before the first repetition; doubles with each further one.", .max = 3600,              \
                      .fallback = "0.1"),                                                                              \
        MC_KEY_NUMBER("deadline", offsetof(type_, base.source.deadline),                                               \
                      "Seconds after which a call of the source ends with an error, repetitions included.",            \
                      .flags = MC_KEY_OURS, .min = 0.001, .max = 86400, .fallback = "60")

/* Reads `node` by the keys of `ops` into `base` (a zeroed struct of the type) and fills in the common members. False if
 * anything was refused. */
bool mc_source_read(mc_source_base *base, const mc_source_ops *ops, const mc_node *node, mc_build *build);

#endif
