/* YAML (1.1, yaml.org) as a tree. The parser is in a module that is loaded at first use (mapcache-yaml.so). */
#ifndef MC_ADOPT_YAML_H
#define MC_ADOPT_YAML_H

#include "adopt/branch.h"

/*
 * The first document of a text. Anchors, aliases and merge keys (<<) are followed. `file` is the name that branches and
 * messages say; `*room` is how many more values there may be. An empty text is an empty map. MC_ERR_CONFIG with
 * "FILE:LINE: ...": no YAML, values that nest more deeply than MC_BRANCH_DEPTH, more values than there is room for, or
 * an alias of what it stands in.
 */
mc_error *mc_yaml_parse(mc_branch **root, const char *file, const char *bytes, size_t size, int *room,
                        apr_pool_t *pool) MC_CHECKED;

/* What the module offers. */
typedef struct mc_yaml_ops {
    mc_error *(*parse)(mc_branch **root, const char *file, const char *bytes, size_t size, int *room, apr_pool_t *pool);
} mc_yaml_ops;

#define MC_YAML_SYMBOL "mc_yaml_libyaml_ops"
extern const mc_yaml_ops mc_yaml_libyaml_ops;

#endif
