/* Values of attributes: typed, encoded (MVT 2.1, 4.4), each one kept once. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "memory/scratch.h"
#include "text/text.h"
#include "text/utf8.h"
#include "vector/mvt/mvt_layer.h"

enum {
    STRING = 1,
    FLOAT = 2,
    DOUBLE = 3,
    UINT = 5,
    SINT = 6,
    BOOL = 7,
    FIRST_SLOTS = 64,
    MOST_SLOTS = 1 << 30,
    AT_ONCE = 16
};

/* Blocks from this size on come from the free list of the process: those of the tile before have their pages. */
#define SHARED_FROM ((size_t)64 << 10)

static void *
allocate_mvt_block(size_t size)
{
    return size < SHARED_FROM ? malloc(size) : mc_scratch_require(size);
}

static void
free_mvt_block(void *block, size_t size)
{
    if (size < SHARED_FROM)
        free(block);
    else
        mc_scratch_release(block);
}

void
mc_byte_buffer_free(mc_byte_buffer *bytes)
{
    free_mvt_block(bytes->data, bytes->room);
    *bytes = (mc_byte_buffer){ 0 };
}

static bool
move_to_block(mc_byte_buffer *bytes, size_t room)
{
    uint8_t *data = allocate_mvt_block(room);
    if (data == NULL)
        return false;
    if (bytes->size > 0)
        memcpy(data, bytes->data, bytes->size);
    free_mvt_block(bytes->data, bytes->room);
    bytes->data = data;
    bytes->room = room;
    return true;
}

uint8_t *
mc_byte_buffer_grown(mc_byte_buffer *bytes, size_t more)
{
    size_t needed = bytes->size + more + 256, twice = bytes->room * 2;
    bytes->failed = bytes->failed || !move_to_block(bytes, twice > needed ? twice : needed);
    return bytes->failed ? NULL : bytes->data + bytes->size;
}

static bool
is_ascii_text(const char *text, size_t size)
{
    uint64_t bits = 0, word;
    for (; size >= sizeof(word); text += sizeof(word), size -= sizeof(word)) {
        memcpy(&word, text, sizeof(word));
        bits |= word;
    }
    for (; size > 0; size--)
        bits |= (uint8_t)*text++;
    return (bits & UINT64_C(0x8080808080808080)) == 0;
}

/* Bytes of a text in which what is no character has become U+FFFD. */
static size_t
repaired_size(const char *text)
{
    size_t made = 0;
    for (size_t step; *text != '\0'; text += step == 0 ? 1 : step) {
        step = mc_utf8_size(text);
        made += step == 0 ? 3 : step;
    }
    return made;
}

/* Text as a string of protocol buffers, which is UTF-8. */
static void
add_text_value(mc_byte_buffer *out, const char *text)
{
    const size_t size = strlen(text), made = is_ascii_text(text, size) ? size : repaired_size(text);
    uint8_t *at = mc_byte_buffer_room(out, MC_MVT_HEAD + made);
    if (at == NULL)
        return;
    at = mc_mvt_head(at, STRING << 3 | 2, made);
    if (made == size) {
        memcpy(at, text, made);
        at += made;
    }
    for (size_t step; made != size && *text != '\0'; text += step == 0 ? 1 : step, at += step == 0 ? 3 : step) {
        step = mc_utf8_size(text);
        memcpy(at, step == 0 ? "\xEF\xBF\xBD" : text, step == 0 ? 3 : step);
    }
    out->size = (size_t)(at - out->data);
}

static void
add_number_value(mc_byte_buffer *out, double value)
{
    uint8_t bytes[9];
    float small = (float)value;
    bool exact = (double)small == value;
    uint64_t bits = 0;
    uint32_t small_bits;
    memcpy(&small_bits, &small, 4);
    memcpy(&bits, &value, 8);
    bits = exact ? small_bits : bits;
    size_t size = exact ? 4 : 8;
    bytes[0] = (uint8_t)(exact ? FLOAT << 3 | 5 : DOUBLE << 3 | 1);
    (void)mc_store_little64(bytes + 1, bits);
    mc_byte_buffer_add(out, bytes, 1 + size);
}

/* Of a text that has been encoded from `begin` on, two bytes at least. Texts that differ in the last character alone,
 * as numbered names do, lie beside each other in the table of values: in one line of the processor's cache. */
static uint32_t
hash_text_added(const mc_byte_buffer *out, size_t begin)
{
    enum { BESIDE = 15 };
    const size_t size = out->size - begin;
    if (out->failed)
        return 0;
    return ((uint32_t)mc_hash64(out->data + begin, size - 1, 0) & ~(uint32_t)BESIDE) |
           (out->data[out->size - 1] & BESIDE);
}

/* Numbers that follow each other, as those of features do, have hashes that do, and lie beside each other in the table.
 * Those whose lower halves are alike are told apart by what nobody outside knows. */
static uint32_t
hash_whole(uint64_t value)
{
    const uint64_t upper = value >> 32;
    return (uint32_t)value ^ (upper == 0 ? 0 : (uint32_t)mc_hash64(&upper, sizeof(upper), mc_hash_seed()));
}

static uint32_t
add_integer(mc_byte_buffer *out, int64_t value)
{
    uint8_t *at = mc_byte_buffer_room(out, 11), *begin = at;
    if (at == NULL)
        return 0;
    *at++ = (uint8_t)((value < 0 ? SINT : UINT) << 3);
    at = mc_varint(at, value < 0 ? (uint64_t)value << 1 ^ UINT64_MAX : (uint64_t)value);
    out->size += (size_t)(at - begin);
    return hash_whole((uint64_t)value);
}

/* Encodes a value behind the texts of the layer; what is no number after all is text. Returns its hash. */
static uint32_t
encode_mvt_value(mc_byte_buffer *out, mc_field_type type, const char *text)
{
    const size_t begin = out->size;
    int64_t integer;
    double number;
    if (type == MC_FIELD_BOOLEAN) {
        const uint8_t bytes[2] = { BOOL << 3, (uint8_t)(strchr("tTyY1", *text) != NULL && *text != '\0') };
        mc_byte_buffer_add(out, bytes, 2);
    } else if (type == MC_FIELD_INTEGER && mc_parse_int64(&integer, text, INT64_MIN, INT64_MAX)) {
        return add_integer(out, integer);
    } else if ((type == MC_FIELD_INTEGER || type == MC_FIELD_NUMBER) && mc_parse_double(&number, text)) {
        add_number_value(out, number);
    } else {
        add_text_value(out, text);
        return hash_text_added(out, begin);
    }
    return out->failed ? 0 : (uint32_t)mc_hash64(out->data + begin, out->size - begin, 0);
}

static mc_mvt_value *
value_at(const mc_mvt_layer_data *layer, uint32_t index)
{
    return (mc_mvt_value *)(void *)layer->values.data + index;
}

/* Of an encoded value. */
static inline bool
is_whole_mvt_value(const uint8_t *bytes)
{
    return *bytes == UINT << 3 || *bytes == SINT << 3;
}

/*
 * A table has twice as many slots as there are values of both tables, so that the index of a value, plus one, fits into
 * as many bits as there are that choose a slot. A slot has it there, and the other bits of the hash above: twice as
 * many fit into the cache as with both numbers whole, and what misses the processor's cache is what a value costs. 0:
 * free. Whole numbers have a table of their own, where those that follow each other leave no slot between them: others
 * would find none for long.
 */
static inline uint32_t
slot_of(uint32_t hash, size_t value, uint32_t mask)
{
    return (hash & ~mask) | (uint32_t)(value + 1);
}

/* From a slot that is taken to the next one to look at: the one beside it, and for whole numbers, which would find the
 * next ones there, one that is anywhere; odd, so that all slots come in turn. */
static inline uint32_t
step_to_next_slot(uint32_t hash, bool whole)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u; /* the fractional part of the golden ratio */
    return whole ? (uint32_t)(hash * odd >> 29) | 1 : 1;
}

static void
fill_value_table(const mc_mvt_table *table, const mc_mvt_layer_data *layer, bool whole)
{
    const uint32_t mask = (uint32_t)(table->slot_count - 1);
    const size_t count = layer->values.size / sizeof(mc_mvt_value);
    for (size_t i = 0; i < count; i++) {
        const mc_mvt_value *value = value_at(layer, (uint32_t)i);
        if (is_whole_mvt_value(layer->texts.data + value->at) != whole)
            continue;
        uint32_t slot = value->hash & mask;
        while (table->slots[slot] != 0)
            slot = (slot + step_to_next_slot(value->hash, whole)) & mask;
        table->slots[slot] = slot_of(value->hash, i, mask);
    }
}

/* Makes room for AT_ONCE more values. */
static bool
grow_value_table(mc_mvt_layer_data *layer, bool whole)
{
    mc_mvt_table *table = &layer->tables[whole], made = { .slot_count = FIRST_SLOTS };
    const size_t needed = (layer->values.size / sizeof(mc_mvt_value) + AT_ONCE) * 2;
    if (needed < table->slot_count)
        return true;
    while (made.slot_count <= needed)
        made.slot_count *= 2;
    if (made.slot_count <= MOST_SLOTS)
        made.slots = allocate_mvt_block(made.slot_count * sizeof(*made.slots));
    if (made.slots == NULL) {
        layer->failed = true;
        return false;
    }
    memset(made.slots, 0, made.slot_count * sizeof(*made.slots));
    fill_value_table(&made, layer, whole);
    free_mvt_block(table->slots, table->slot_count * sizeof(*table->slots));
    *table = made;
    return true;
}

static void
free_value_tables(mc_mvt_layer_data *layer)
{
    for (int i = 0; i < 2; i++) {
        free_mvt_block(layer->tables[i].slots, layer->tables[i].slot_count * sizeof(*layer->tables[i].slots));
        layer->tables[i] = (mc_mvt_table){ 0 };
    }
}

/* A value that stands encoded among the texts, not yet looked for. */
typedef struct candidate {
    mc_mvt_value value;
    uint32_t field;
    bool whole;
} candidate;

/* The index of a value; a new one is moved to the end of the texts that are kept, *end. */
static uint32_t
intern_mvt_value(mc_mvt_layer_data *layer, const mc_mvt_value *wanted, bool whole, size_t *end, uint32_t *cost)
{
    const uint8_t *bytes = layer->texts.data + wanted->at;
    const mc_mvt_table *table = &layer->tables[whole];
    const uint32_t mask = (uint32_t)(table->slot_count - 1);
    uint32_t slot = wanted->hash & mask;
    for (; table->slots[slot] != 0; slot = (slot + step_to_next_slot(wanted->hash, whole)) & mask) {
        if (((table->slots[slot] ^ wanted->hash) & ~mask) != 0)
            continue;
        const uint32_t index = (table->slots[slot] & mask) - 1;
        const mc_mvt_value *known = value_at(layer, index);
        if (known->hash == wanted->hash && known->size == wanted->size &&
            memcmp(layer->texts.data + known->at, bytes, wanted->size) == 0)
            return index;
    }
    const uint32_t index = (uint32_t)(layer->values.size / sizeof(mc_mvt_value));
    uint8_t *begin = layer->texts.data + *end, *at = mc_mvt_head(begin, MC_MVT_LAYER_VALUE, wanted->size);
    const mc_mvt_value made = { (size_t)(at - layer->texts.data), wanted->size, wanted->hash };
    memmove(at, bytes, wanted->size);
    *end = made.at + made.size;
    mc_byte_buffer_add(&layer->values, &made, sizeof(made));
    if (!layer->values.failed)
        table->slots[slot] = slot_of(wanted->hash, index, mask);
    *cost += wanted->size + 4;
    return index;
}

/* Encodes values from field `from` on, and has the places fetched at which they will be looked for. */
static int
encode_some(candidate *candidates, int *from, mc_mvt_layer_data *layer, const char *const *values,
            const int64_t *wholes)
{
    int count = 0;
    for (; *from < layer->field_count && count < AT_ONCE; ++*from) {
        if (values[*from] == NULL)
            continue;
        if (mc_byte_buffer_room(&layer->texts, MC_MVT_HEAD) == NULL) /* of what it becomes if it is new */
            return 0;
        size_t at = layer->texts.size += MC_MVT_HEAD;
        uint32_t hash = values[*from] == mc_value_is_whole
                            ? add_integer(&layer->texts, wholes[*from])
                            : encode_mvt_value(&layer->texts, layer->fields[*from].type, values[*from]);
        if (layer->texts.failed)
            return 0;
        const bool whole = is_whole_mvt_value(layer->texts.data + at);
        if (!grow_value_table(layer, whole))
            return 0;
        const mc_mvt_table *table = &layer->tables[whole];
        __builtin_prefetch(&table->slots[hash & (table->slot_count - 1)], 1);
        const mc_mvt_value value = { at, (uint32_t)(layer->texts.size - at), hash };
        candidates[count++] = (candidate){ value, (uint32_t)*from, whole };
    }
    return count;
}

uint32_t
mc_mvt_layer_tags(mc_mvt_layer_data *layer, const char *const *values, const int64_t *wholes)
{
    candidate candidates[AT_ONCE];
    uint32_t cost = 0;
    layer->tags.size = 0;
    for (int field = 0; field < layer->field_count && !layer->texts.failed && !layer->failed;) {
        size_t end = layer->texts.size;
        int count = encode_some(candidates, &field, layer, values, wholes);
        for (int i = 0; i < count; i++) {
            const candidate *c = &candidates[i];
            const uint32_t tag[2] = { c->field, intern_mvt_value(layer, &c->value, c->whole, &end, &cost) };
            mc_byte_buffer_add(&layer->tags, tag, sizeof(tag));
        }
        layer->texts.size = end;
        cost += 4 * (uint32_t)count;
    }
    return cost;
}

void
mc_mvt_layer_keep_values(mc_mvt_layer_data *layer, uint32_t *places)
{
    uint32_t count = (uint32_t)(layer->values.size / sizeof(mc_mvt_value)), kept = 0;
    size_t text = 0;
    for (uint32_t i = 0; i < count; i++) {
        mc_mvt_value value = *value_at(layer, i);
        if (places[i] == 0)
            continue;
        const size_t head = mc_mvt_head_size(value.size);
        memmove(layer->texts.data + text, layer->texts.data + value.at - head, head + value.size);
        value.at = text + head;
        text = value.at + value.size;
        *value_at(layer, kept) = value;
        places[i] = kept++;
    }
    layer->values.size = kept * sizeof(mc_mvt_value);
    layer->texts.size = text;
    free_value_tables(layer); /* the next value makes them anew */
}

void
mc_mvt_layer_free(mc_mvt_layer_data *layer)
{
    mc_byte_buffer_free(&layer->features);
    mc_byte_buffer_free(&layer->tags);
    mc_byte_buffer_free(&layer->records);
    mc_byte_buffer_free(&layer->values);
    mc_byte_buffer_free(&layer->texts);
    free_value_tables(layer);
    *layer = (mc_mvt_layer_data){ 0 };
}
