/*
 * JSON answers as one: collections and features of GeoJSON (RFC 7946) become one collection, anything else a list.
 * Values go over byte by byte, so that no number changes.
 */
#include <string.h>

#include "service/info_join.h"

enum { DEPTH_MAX = 512 };

typedef struct json_slice {
    const char *at, *end;
} json_slice;

typedef struct json_answer {
    json_slice whole, type, features, crs; /* NULL: none */
} json_answer;

static void
skip_json_space(json_slice *text)
{
    while (text->at < text->end && strchr(" \t\r\n", *text->at) != NULL && *text->at != '\0')
        text->at++;
}

/* Behind the string that begins here. */
static bool
skip_json_string(json_slice *text)
{
    if (text->at >= text->end || *text->at != '"')
        return false;
    for (text->at++; text->at < text->end && *text->at != '"'; text->at++)
        if (*text->at == '\\')
            text->at++;
    return text->at < text->end && *text->at++ == '"';
}

/* Behind a number or a word. */
static bool
skip_json_word(json_slice *text)
{
    const char *first = text->at;
    while (text->at < text->end && *text->at != '\0' && strchr(",:[]{}\" \t\r\n", *text->at) == NULL)
        text->at++;
    return text->at > first;
}

/* Behind the value that begins here; brackets match. */
static bool
skip_json_value(json_slice *text)
{
    char open[DEPTH_MAX];
    int depth = 0;
    do {
        skip_json_space(text);
        if (text->at >= text->end)
            return false;
        char c = *text->at;
        if (c == '"') {
            if (!skip_json_string(text))
                return false;
        } else if (c == '{' || c == '[') {
            if (depth == DEPTH_MAX)
                return false;
            open[depth++] = c == '{' ? '}' : ']';
            text->at++;
        } else if (c == '}' || c == ']') {
            if (depth == 0 || open[--depth] != c)
                return false;
            text->at++;
        } else if (c == ',' || c == ':') {
            if (depth == 0)
                return false;
            text->at++;
        } else if (!skip_json_word(text)) {
            return false;
        }
    } while (depth > 0);
    return true;
}

static bool
slice_says(const json_slice *slice, const char *text)
{
    size_t size = strlen(text);
    return slice->at != NULL && (size_t)(slice->end - slice->at) == size && memcmp(slice->at, text, size) == 0;
}

/* The members of an object that matter. */
static bool
read_json_members(json_answer *answer, json_slice text)
{
    const struct {
        const char *name;
        json_slice *slice;
    } members[] = { { "\"type\"", &answer->type }, { "\"features\"", &answer->features }, { "\"crs\"", &answer->crs } };
    text.at++;
    for (skip_json_space(&text); text.at < text.end && *text.at != '}'; skip_json_space(&text)) {
        json_slice name = { text.at, text.at };
        if (!skip_json_string(&text))
            return false;
        name.end = text.at;
        skip_json_space(&text);
        if (text.at >= text.end || *text.at++ != ':')
            return false;
        skip_json_space(&text);
        json_slice value = { text.at, text.at };
        if (!skip_json_value(&text))
            return false;
        value.end = text.at;
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
            if (slice_says(&name, members[i].name))
                *members[i].slice = value;
        skip_json_space(&text);
        if (text.at < text.end && *text.at == ',')
            text.at++;
    }
    return true;
}

static bool
read_json_answer(json_answer *answer, const mc_buf *part)
{
    json_slice text = { (const char *)part->data, (const char *)part->data + part->size };
    if (part->size >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0)
        text.at += 3;
    skip_json_space(&text);
    answer->whole.at = text.at;
    if (!skip_json_value(&text))
        return false;
    answer->whole.end = text.at;
    skip_json_space(&text);
    if (text.at != text.end)
        return false;
    return *answer->whole.at != '{' || read_json_members(answer, answer->whole);
}

/* The features of an answer, without brackets; false where it is no GeoJSON of features. */
static bool
find_features(json_slice *features, const json_answer *answer)
{
    if (slice_says(&answer->type, "\"Feature\"")) {
        *features = answer->whole;
        return true;
    }
    if (!slice_says(&answer->type, "\"FeatureCollection\"") || answer->features.at == NULL ||
        *answer->features.at != '[')
        return false;
    *features = (json_slice){ answer->features.at + 1, answer->features.end - 1 };
    skip_json_space(features);
    return true;
}

/* One coordinate system holds for a collection. */
static bool
same_crs(const json_answer *answers, int count)
{
    for (int i = 1; i < count; i++) {
        const json_slice *a = &answers[0].crs, *b = &answers[i].crs;
        size_t size = a->at == NULL ? 0 : (size_t)(a->end - a->at);
        if ((b->at == NULL ? 0 : (size_t)(b->end - b->at)) != size || (size > 0 && memcmp(a->at, b->at, size) != 0))
            return false;
    }
    return true;
}

static bool
are_all_features(const json_answer *answers, int count)
{
    json_slice features;
    for (int i = 0; i < count; i++)
        if (!find_features(&features, &answers[i]))
            return false;
    return same_crs(answers, count);
}

static mc_error *
append_slice(mc_buf *out, const json_slice *slice, bool *begun, apr_pool_t *pool)
{
    if (slice->at == slice->end)
        return MC_OK;
    if (*begun)
        MC_TRY(mc_buf_append(out, ",", 1, pool));
    *begun = true;
    return mc_buf_append(out, slice->at, (size_t)(slice->end - slice->at), pool);
}

static mc_error *
append_json_text(mc_buf *out, const char *text, apr_pool_t *pool)
{
    return mc_buf_append(out, text, strlen(text), pool);
}

static mc_error *
write_joined_json(mc_buf *out, const json_answer *answers, int count, apr_pool_t *pool)
{
    bool features = are_all_features(answers, count), begun = false;
    MC_TRY(append_json_text(out, features ? "{\"type\":\"FeatureCollection\"," : "[", pool));
    if (features && answers[0].crs.at != NULL) {
        MC_TRY(append_json_text(out, "\"crs\":", pool));
        MC_TRY(mc_buf_append(out, answers[0].crs.at, (size_t)(answers[0].crs.end - answers[0].crs.at), pool));
        MC_TRY(append_json_text(out, ",", pool));
    }
    if (features)
        MC_TRY(append_json_text(out, "\"features\":[", pool));
    for (int i = 0; i < count; i++) {
        json_slice slice = answers[i].whole;
        if (features)
            MC_ASSERT(find_features(&slice, &answers[i]));
        MC_TRY(append_slice(out, &slice, &begun, pool));
    }
    return append_json_text(out, features ? "]}\n" : "]\n", pool);
}

mc_error *
mc_info_join_json(mc_buf *out, mc_buf *const *parts, int count, apr_pool_t *pool)
{
    json_answer *answers = apr_pcalloc(pool, sizeof(*answers) * (size_t)count);
    for (int i = 0; i < count; i++)
        if (!read_json_answer(&answers[i], parts[i]))
            return mc_error_create(pool, MC_ERR_UPSTREAM, "the feature info of layer number %d is no JSON", i + 1);
    return write_joined_json(out, answers, count, pool);
}
