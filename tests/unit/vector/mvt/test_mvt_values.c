/* Values of attributes: each one once, whichever way it comes. */
#include "unit.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <string.h>

#include "text/text.h"
#include "vector/mvt/mvt_layer.h"

enum { FEATURES = 40000, NUMBER = 0, TEXT, ALIKE, FIELDS };

static const mc_field fields[FIELDS] = { { "number", MC_FIELD_INTEGER },
                                         { "text", MC_FIELD_TEXT },
                                         { "alike", MC_FIELD_NUMBER } };

/* Numbers that follow each other, that have the same lower bits, or the same lower half, or stand at the ends. */
static int64_t
number_of(int i)
{
    static const int64_t ends[] = { 0, -1, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, INT64_C(1) << 32 };
    const int64_t k = i / 5;
    switch (i % 5) {
    case 0:
        return k;
    case 1:
        return -k;
    case 2:
        return k << 20;
    case 3:
        return k * (INT64_C(1) << 32) + 7;
    default:
        return ends[k % 7];
    }
}

static const char *
text_of(int i)
{
    return i % 3 == 0 ? "same" : i % 3 == 1 ? apr_psprintf(pool, "Place %d", i) : apr_psprintf(pool, "%d", i % 1000);
}

/* The tags of all features, one after the other. */
static uint32_t *
add_all(mc_mvt_layer_data *layer, bool wholes)
{
    uint32_t *tags = apr_palloc(pool, sizeof(*tags) * FEATURES * FIELDS);
    for (int i = 0; i < FEATURES; i++) {
        mc_whole_text digits;
        const int64_t numbers[FIELDS] = { number_of(i) };
        const char *values[FIELDS] = { [TEXT] = text_of(i), [ALIKE] = i % 2 == 0 ? NULL : "2.5" };
        values[NUMBER] = wholes ? mc_value_is_whole : mc_write_whole(&digits, numbers[0]);
        (void)mc_mvt_layer_tags(layer, values, numbers);
        ck_assert(!mc_mvt_layer_has_failed(layer));
        const uint32_t *made = (const uint32_t *)(const void *)layer->tags.data;
        ck_assert_uint_eq(layer->tags.size / sizeof(*made), i % 2 == 0 ? 4 : 6);
        for (int tag = 0; tag < FIELDS; tag++) {
            tags[i * FIELDS + tag] = tag < 2 || i % 2 == 1 ? made[2 * tag + 1] : UINT32_MAX;
            ck_assert(tag == ALIKE || made[2 * tag] == (uint32_t)tag);
        }
    }
    return tags;
}

static void
check_number(const mc_mvt_layer_data *layer, uint32_t index, int64_t number)
{
    enum { UINT = 5 << 3, SINT = 6 << 3 };
    const mc_mvt_value *value = (const mc_mvt_value *)(const void *)layer->values.data + index;
    uint8_t wanted[16] = { number < 0 ? SINT : UINT };
    const uint8_t *end = mc_varint(wanted + 1, number < 0 ? (uint64_t)number << 1 ^ UINT64_MAX : (uint64_t)number);
    ck_assert_uint_eq(value->size, (size_t)(end - wanted));
    ck_assert_mem_eq(layer->texts.data + value->at, wanted, value->size);
}

static void
check_text(const mc_mvt_layer_data *layer, uint32_t index, const char *text)
{
    const mc_mvt_value *value = (const mc_mvt_value *)(const void *)layer->values.data + index;
    const size_t size = strlen(text);
    ck_assert_uint_eq(value->size, size + 2);
    ck_assert_uint_eq(layer->texts.data[value->at], 1 << 3 | 2);
    ck_assert_mem_eq(layer->texts.data + value->at + 2, text, size);
}

/* How many numbers there are, each counted once. */
static size_t
count_numbers(void)
{
    apr_hash_t *seen = apr_hash_make(pool);
    for (int i = 0; i < FEATURES; i++) {
        int64_t *key = apr_pmemdup(pool, &(int64_t){ number_of(i) }, sizeof(*key));
        apr_hash_set(seen, key, sizeof(*key), key);
    }
    return apr_hash_count(seen);
}

START_TEST(numbers_are_the_same_as_such_and_as_texts)
{
    mc_mvt_layer_data layers[2] = { { .fields = fields, .field_count = FIELDS },
                                    { .fields = fields, .field_count = FIELDS } };
    const uint32_t *tags[2] = { add_all(&layers[0], false), add_all(&layers[1], true) };
    ck_assert_mem_eq(tags[0], tags[1], sizeof(**tags) * FEATURES * FIELDS);
    ck_assert_uint_eq(layers[0].texts.size, layers[1].texts.size);
    ck_assert_mem_eq(layers[0].texts.data, layers[1].texts.data, layers[0].texts.size);
    for (int i = 0; i < FEATURES; i++) {
        check_number(&layers[1], tags[1][i * FIELDS + NUMBER], number_of(i));
        check_text(&layers[1], tags[1][i * FIELDS + TEXT], text_of(i));
    }
    const size_t texts = 1 + FEATURES / 3 + 1000; /* "same", places, numbers as texts; and 2.5 */
    ck_assert_uint_eq(layers[1].values.size / sizeof(mc_mvt_value), count_numbers() + texts + 1);
    for (int i = 0; i < 2; i++)
        mc_mvt_layer_free(&layers[i]);
}
END_TEST

START_TEST(values_that_are_kept_are_found_again)
{
    mc_mvt_layer_data layer = { .fields = fields, .field_count = FIELDS };
    const uint32_t *before = add_all(&layer, true);
    const size_t count = layer.values.size / sizeof(mc_mvt_value);
    uint32_t *places = apr_palloc(pool, sizeof(*places) * count);
    for (size_t i = 0; i < count; i++)
        places[i] = i % 2 == 0;
    mc_mvt_layer_keep_values(&layer, places);
    ck_assert_uint_eq(layer.values.size / sizeof(mc_mvt_value), (count + 1) / 2);
    const uint32_t *after = add_all(&layer, true);
    ck_assert_uint_eq(layer.values.size / sizeof(mc_mvt_value), count); /* what was gone has come back */
    for (int i = 0; i < FEATURES; i++) {
        check_number(&layer, after[i * FIELDS + NUMBER], number_of(i));
        const uint32_t index = before[i * FIELDS + TEXT];
        if (index % 2 == 0)
            ck_assert_uint_eq(after[i * FIELDS + TEXT], places[index]);
    }
    mc_mvt_layer_free(&layer);
}
END_TEST

UNIT_MAIN("mvt_values", numbers_are_the_same_as_such_and_as_texts, values_that_are_kept_are_found_again)
