/* Some of a layer's features go, and with them the values that no other one has: tags are written anew, which never
 * need more bytes than before, since values keep their order. */
#include <stdlib.h>
#include <string.h>

#include "vector/mvt/mvt_layer.h"

/* An encoded feature: `tags` and `tags_end` are where its tags begin and end, all the same where it has none. */
typedef struct mvt_message {
    const uint8_t *id, *tags_head, *tags, *tags_end, *end;
} mvt_message;

/* A number of our own encoding. */
static uint64_t
take_varint(const uint8_t **at)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return value;
    }
}

static mvt_message
take_feature_message(const uint8_t *at, size_t bytes)
{
    mvt_message found = { .end = at + bytes };
    at++;
    (void)take_varint(&at);
    found.id = at;
    if (*at == MC_MVT_FEATURE_ID) {
        at++;
        (void)take_varint(&at);
    }
    found.tags_head = at;
    if (*at == MC_MVT_FEATURE_TAGS) {
        at++;
        const size_t size = (size_t)take_varint(&at);
        found.tags = at;
        found.tags_end = at + size;
    } else {
        found.tags = found.tags_end = at;
    }
    return found;
}

/* Marks the values of a feature. */
static void
mark_values(uint32_t *places, const mvt_message *message)
{
    for (const uint8_t *at = message->tags; at < message->tags_end;) {
        (void)take_varint(&at);
        places[take_varint(&at)] = 1;
    }
}

static size_t
renumbered_size(const uint32_t *places, const mvt_message *message)
{
    size_t size = 0;
    for (const uint8_t *at = message->tags; at < message->tags_end;) {
        size += mc_varint_size(take_varint(&at));
        size += mc_varint_size(places[take_varint(&at)]);
    }
    return size;
}

static uint8_t *
move_bytes(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
    memmove(to, from, (size_t)(end - from));
    return to + (end - from);
}

/* Writes a feature to `to`, which is not behind where it stands; returns the place behind it. */
static uint8_t *
move_message(uint8_t *to, const mvt_message *message, const uint32_t *places)
{
    const size_t size = renumbered_size(places, message), before = (size_t)(message->tags_end - message->tags_head);
    const size_t tags = size == 0 ? 0 : mc_mvt_head_size(size) + size;
    to = mc_mvt_head(to, MC_MVT_LAYER_FEATURE, (size_t)(message->end - message->id) - before + tags);
    to = move_bytes(to, message->id, message->tags_head);
    if (size > 0)
        to = mc_mvt_head(to, MC_MVT_FEATURE_TAGS, size);
    for (const uint8_t *at = message->tags; at < message->tags_end;) {
        to = mc_varint(to, take_varint(&at));
        to = mc_varint(to, places[take_varint(&at)]);
    }
    return move_bytes(to, message->tags_end, message->end);
}

static void
keep_features(mc_mvt_layer_data *layer, const bool *keep, const uint32_t *places)
{
    mc_mvt_record *records = (mc_mvt_record *)(void *)layer->records.data;
    uint8_t *from = layer->features.data, *to = from;
    int count = mc_mvt_record_count(layer), kept = 0;
    for (int i = 0; i < count; i++) {
        mc_mvt_record record = records[i];
        if (keep[i]) {
            const mvt_message message = take_feature_message(from, record.bytes);
            uint8_t *end = move_message(to, &message, places);
            records[kept] = record;
            records[kept++].bytes = (uint32_t)(end - to);
            to = end;
        }
        from += record.bytes;
    }
    layer->records.size = (size_t)kept * sizeof(*records);
    layer->features.size = (size_t)(to - layer->features.data);
}

void
mc_mvt_layer_keep(mc_mvt_layer_data *layer, const bool *keep)
{
    const mc_mvt_record *records = (const mc_mvt_record *)(const void *)layer->records.data;
    const uint8_t *at = layer->features.data;
    uint32_t *places = calloc(layer->values.size / sizeof(mc_mvt_value) + 1, sizeof(*places));
    if (places == NULL) {
        layer->failed = true;
        return;
    }
    for (int i = 0; i < mc_mvt_record_count(layer); at += records[i++].bytes)
        if (keep[i]) {
            const mvt_message message = take_feature_message(at, records[i].bytes);
            mark_values(places, &message);
        }
    mc_mvt_layer_keep_values(layer, places);
    keep_features(layer, keep, places);
    free(places);
}
