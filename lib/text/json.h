/*
 * Answers in JSON, walked along a path. The parser is in a module that is loaded at first use (mapcache-json.so).
 */
#ifndef MC_TEXT_JSON_H
#define MC_TEXT_JSON_H

#include <stddef.h>

#include "mapcache/error.h"

/* One step: into a member of an object, or to an item of a list. */
typedef struct mc_json_step {
    const char *member; /* NULL: the item */
    int item;           /* from 0 */
} mc_json_step;

typedef struct mc_json_path {
    const mc_json_step *steps;
    int count;
} mc_json_path;

/* A JSON list of strings and whole numbers, e.g. ["hits", "hits", "_id"]. MC_ERR_CONFIG where it is none. */
mc_error *mc_json_path_parse(mc_json_path *path, const char *text, apr_pool_t *pool) MC_CHECKED;

/* Takes one value as text, without zero bytes; an error ends the walk. */
typedef mc_error *mc_json_take(void *baton, const char *text, size_t size);

/*
 * Hands over what is at the end of the path, in order. A member of a list is that member of each of its elements (those
 * without it are passed over); an item of a list of lists is that item of each; a lone value is a list of one. Numbers
 * come as they are written; null is passed over. MC_ERR_UPSTREAM: no JSON, nested too deeply, or of another shape.
 */
mc_error *mc_json_walk(const char *bytes, size_t size, const mc_json_path *path, mc_json_take *take, void *baton,
                       apr_pool_t *pool) MC_CHECKED;

/* Takes a field of an object; an error ends the reading. */
typedef mc_error *mc_json_field(void *baton, const char *name, const char *text);

/*
 * Hands over the fields of an object, in order: texts and numbers as they are written, true and false as such words, a
 * list of those joined by commas, those of an object inside as "name.member"; null is passed over. MC_ERR_BAD_REQUEST:
 * no JSON object, nested more deeply, a text with a zero byte.
 */
mc_error *mc_json_fields(const char *bytes, size_t size, mc_json_field *take, void *baton, apr_pool_t *pool) MC_CHECKED;

/* Hands over the fields of each object of a list, which is the member of that name of an object, as mc_json_fields
 * does; before those of each one a call with the name NULL. Nothing where there is no such member. */
mc_error *mc_json_items(const char *bytes, size_t size, const char *member, mc_json_field *take, void *baton,
                        apr_pool_t *pool) MC_CHECKED;

/* What the module offers. */
typedef struct mc_json_ops {
    mc_error *(*parse_path)(mc_json_path *path, const char *text, apr_pool_t *pool);
    mc_error *(*walk)(const char *bytes, size_t size, const mc_json_path *path, mc_json_take *take, void *baton,
                      apr_pool_t *pool);
    mc_error *(*fields)(const char *bytes, size_t size, mc_json_field *take, void *baton, apr_pool_t *pool);
    mc_error *(*items)(const char *bytes, size_t size, const char *member, mc_json_field *take, void *baton,
                       apr_pool_t *pool);
} mc_json_ops;

#define MC_JSON_SYMBOL "mc_json_c_ops"
extern const mc_json_ops mc_json_c_ops;

#endif
