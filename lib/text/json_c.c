/* The module mapcache-json.so: JSON by json-c. */
#include <apr_strings.h>
#include <apr_tables.h>
#include <json-c/json_object.h>
#include <json-c/json_object_iterator.h>
#include <json-c/json_tokener.h> /* not <json-c/json.h>: its <json-c/debug.h> has an mc_error of its own */
#include <limits.h>
#include <string.h>

#include "text/json.h"

/* How deeply an answer may nest; the recursion of the walk is bounded by the path. */
enum { DEPTH = 64, STEPS_MAX = 32 };

/* The whole of `bytes` as one value; *value is the caller's (json_object_put). A reason, or NULL. */
static const char *
parse_json_text(json_object **value, const char *bytes, size_t size)
{
    *value = NULL;
    if (size > INT_MAX)
        return "it is too long";
    json_tokener *tokener = json_tokener_new_ex(DEPTH);
    MC_ASSERT(tokener != NULL);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    *value = json_tokener_parse_ex(tokener, bytes, (int)size);
    enum json_tokener_error code = json_tokener_get_error(tokener);
    size_t end = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    const char *reason = code == json_tokener_continue  ? "it ends too early"
                         : code != json_tokener_success ? json_tokener_error_desc(code)
                                                        : NULL;
    for (; reason == NULL && end < size; end++)
        if (strchr(" \t\r\n", bytes[end]) == NULL || bytes[end] == '\0')
            reason = "something follows the value";
    if (reason != NULL) {
        json_object_put(*value);
        *value = NULL;
    }
    return reason;
}

static mc_error *
read_steps(mc_json_path *path, json_object *list, apr_pool_t *pool)
{
    if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) == 0 ||
        json_object_array_length(list) > STEPS_MAX)
        return mc_error_create(pool, MC_ERR_CONFIG, "a JSON list of 1 to %d names and numbers is needed", STEPS_MAX);
    path->count = (int)json_object_array_length(list);
    mc_json_step *steps = apr_pcalloc(pool, sizeof(*steps) * (size_t)path->count);
    path->steps = steps;
    for (int i = 0; i < path->count; i++) {
        json_object *item = json_object_array_get_idx(list, (size_t)i);
        int64_t number = json_object_get_int64(item);
        if (json_object_is_type(item, json_type_string))
            steps[i].member = apr_pstrdup(pool, json_object_get_string(item));
        else if (json_object_is_type(item, json_type_int) && number >= 0 && number <= INT_MAX)
            steps[i].item = (int)number;
        else
            return mc_error_create(pool, MC_ERR_CONFIG, "item %d is neither a string nor a number from 0", i + 1);
    }
    return MC_OK;
}

static mc_error *
parse_path(mc_json_path *path, const char *text, apr_pool_t *pool)
{
    json_object *list;
    const char *reason = parse_json_text(&list, text, strlen(text));
    if (reason != NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "it is no JSON: %s", reason);
    mc_error *error = read_steps(path, list, pool);
    json_object_put(list);
    return error;
}

/* ---- the walk */

typedef struct json_walk {
    const mc_json_path *path;
    mc_json_take *take;
    void *baton;
    apr_pool_t *pool;
} json_walk;

static mc_error *
other_shape(const json_walk *w, int step, const char *found)
{
    return mc_error_create(w->pool, MC_ERR_UPSTREAM, "step %d of the path leads nowhere in the answer: %s there",
                           step + 1, found);
}

static mc_error *
take_scalar(const json_walk *w, json_object *value)
{
    if (value == NULL)
        return MC_OK;
    if (json_object_is_type(value, json_type_object) || json_object_is_type(value, json_type_array))
        return other_shape(w, w->path->count, "a value is expected, an object or a list is");
    const char *text = json_object_get_string(value);
    size_t size =
        json_object_is_type(value, json_type_string) ? (size_t)json_object_get_string_len(value) : strlen(text);
    if (strnlen(text, size) < size)
        return other_shape(w, w->path->count, "a text with a zero byte is");
    return w->take(w->baton, text, size);
}

static mc_error *
take_end(const json_walk *w, json_object *value)
{
    if (!json_object_is_type(value, json_type_array))
        return take_scalar(w, value);
    for (size_t i = 0; i < json_object_array_length(value); i++)
        MC_TRY(take_scalar(w, json_object_array_get_idx(value, i)));
    return MC_OK;
}

static bool
is_list_of_lists(json_object *list)
{
    return json_object_array_length(list) > 0 &&
           json_object_is_type(json_object_array_get_idx(list, 0), json_type_array);
}

/* What one step makes of a list: a new list that holds references of its own. */
static mc_error *
step_over_list(json_object **next, const json_walk *w, json_object *list, int step)
{
    const char *member = w->path->steps[step].member;
    size_t item = (size_t)w->path->steps[step].item;
    *next = json_object_new_array();
    MC_ASSERT(*next != NULL);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *element = json_object_array_get_idx(list, i);
        json_object *found = NULL;
        if (element == NULL) /* null */
            continue;
        if (member != NULL ? !json_object_is_type(element, json_type_object)
                           : !json_object_is_type(element, json_type_array)) {
            json_object_put(*next);
            *next = NULL;
            return other_shape(w, step,
                               member != NULL ? "an element that is no object is" : "an element that is no list is");
        }
        if (member != NULL ? json_object_object_get_ex(element, member, &found)
                           : (found = json_object_array_get_idx(element, item)) != NULL)
            json_object_array_add(*next, json_object_get(found));
    }
    return MC_OK;
}

/* One step; *next is a reference of its own. */
static mc_error *
take_step(json_object **next, const json_walk *w, json_object *value, int step)
{
    const mc_json_step *wanted = &w->path->steps[step];
    *next = NULL;
    if (json_object_is_type(value, json_type_array)) {
        if (wanted->member != NULL || is_list_of_lists(value))
            return step_over_list(next, w, value, step);
        if ((size_t)wanted->item >= json_object_array_length(value))
            return other_shape(w, step, "a shorter list is");
        *next = json_object_get(json_object_array_get_idx(value, (size_t)wanted->item));
        return MC_OK;
    }
    json_object *found;
    if (!json_object_is_type(value, json_type_object) || wanted->member == NULL)
        return other_shape(w, step, wanted->member == NULL ? "no list is" : "neither an object nor a list is");
    if (!json_object_object_get_ex(value, wanted->member, &found))
        return other_shape(w, step, "no such member is");
    *next = json_object_get(found);
    return MC_OK;
}

static mc_error *
walk_answer(const char *bytes, size_t size, const mc_json_path *path, mc_json_take *take, void *baton, apr_pool_t *pool)
{
    json_walk w = { path, take, baton, pool };
    json_object *value;
    const char *reason = parse_json_text(&value, bytes, size);
    if (reason != NULL)
        return mc_error_create(pool, MC_ERR_UPSTREAM, "the answer is no JSON: %s", reason);
    mc_error *error = MC_OK;
    for (int step = 0; step < path->count && error == MC_OK; step++) {
        json_object *next;
        error = take_step(&next, &w, value, step);
        json_object_put(value);
        value = next;
    }
    if (error == MC_OK)
        error = take_end(&w, value);
    json_object_put(value);
    return error;
}

/* ---- fields */

typedef struct field_reader {
    mc_json_field *take;
    void *baton;
    apr_pool_t *pool;
} field_reader;

/* A text, a number, true or false; *text NULL where it is none of them. */
static mc_error *
scalar_text(const char **text, json_object *value, const char *name, apr_pool_t *pool)
{
    *text = NULL;
    if (json_object_is_type(value, json_type_object) || json_object_is_type(value, json_type_array))
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "%s is nested too deeply", name);
    *text = json_object_get_string(value);
    if (json_object_is_type(value, json_type_string) && strlen(*text) != (size_t)json_object_get_string_len(value))
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "%s has a zero byte", name);
    return MC_OK;
}

static mc_error *
take_list(const field_reader *reader, const char *name, json_object *list)
{
    apr_array_header_t *texts = apr_array_make(reader->pool, 4, sizeof(const char *));
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *item = json_object_array_get_idx(list, i);
        if (item == NULL)
            return mc_error_create(reader->pool, MC_ERR_BAD_REQUEST, "a list has a null: %s", name);
        const char *text;
        MC_TRY(scalar_text(&text, item, name, reader->pool));
        APR_ARRAY_PUSH(texts, const char *) = text;
    }
    return reader->take(reader->baton, name, apr_array_pstrcat(reader->pool, texts, ','));
}

static mc_error *
visit_json_fields(const field_reader *reader, const char *prefix, json_object *object)
{
    struct json_object_iterator at = json_object_iter_begin(object), end = json_object_iter_end(object);
    for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
        const char *name = apr_pstrcat(reader->pool, prefix, json_object_iter_peek_name(&at), NULL), *text;
        json_object *value = json_object_iter_peek_value(&at);
        if (value == NULL)
            continue;
        if (json_object_is_type(value, json_type_object) && *prefix == '\0') {
            MC_TRY(visit_json_fields(reader, apr_pstrcat(reader->pool, name, ".", NULL), value));
        } else if (json_object_is_type(value, json_type_array)) {
            MC_TRY(take_list(reader, name, value));
        } else {
            MC_TRY(scalar_text(&text, value, name, reader->pool));
            MC_TRY(reader->take(reader->baton, name, text));
        }
    }
    return MC_OK;
}

static mc_error *
read_json_fields(const char *bytes, size_t size, mc_json_field *take, void *baton, apr_pool_t *pool)
{
    json_object *value;
    field_reader reader = { take, baton, pool };
    const char *reason = parse_json_text(&value, bytes, size);
    if (reason == NULL && !json_object_is_type(value, json_type_object))
        reason = "it is another value";
    mc_error *error = reason == NULL
                          ? visit_json_fields(&reader, "", value)
                          : mc_error_create(pool, MC_ERR_BAD_REQUEST, "a JSON object is expected: %s", reason);
    json_object_put(value);
    return error;
}

static mc_error *
visit_json_items(const field_reader *reader, json_object *whole, const char *member)
{
    json_object *list;
    if (!json_object_is_type(whole, json_type_object) || !json_object_object_get_ex(whole, member, &list) ||
        list == NULL)
        return MC_OK;
    for (size_t i = 0; json_object_is_type(list, json_type_array) && i < json_object_array_length(list); i++) {
        json_object *item = json_object_array_get_idx(list, i);
        if (!json_object_is_type(item, json_type_object))
            return mc_error_create(reader->pool, MC_ERR_BAD_REQUEST, "item %lu of \"%s\" is no object",
                                   (unsigned long)i, member);
        MC_TRY(reader->take(reader->baton, NULL, NULL));
        MC_TRY(visit_json_fields(reader, "", item));
    }
    return MC_OK;
}

static mc_error *
read_json_items(const char *bytes, size_t size, const char *member, mc_json_field *take, void *baton, apr_pool_t *pool)
{
    json_object *value;
    field_reader reader = { take, baton, pool };
    const char *reason = parse_json_text(&value, bytes, size);
    mc_error *error = reason == NULL ? visit_json_items(&reader, value, member)
                                     : mc_error_create(pool, MC_ERR_BAD_REQUEST, "it is no JSON: %s", reason);
    json_object_put(value);
    return error;
}

const mc_json_ops mc_json_c_ops = {
    .parse_path = parse_path, .walk = walk_answer, .fields = read_json_fields, .items = read_json_items
};
