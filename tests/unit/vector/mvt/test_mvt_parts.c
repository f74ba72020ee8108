/* Encoded tiles as parts of others: what is taken, what is refused, and the budgets. */
#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "base/metrics.h"
#include "compress/gzip.h"
#include "vector/mvt/mvt.h"
#include "vector/mvt/mvt_parts.h"

/* A layer of the name "one" with a point; the parts of it that tests change are at these places. */
enum { LAYER_SIZE_AT = 1, VERSION_AT = 3, NAME_SIZE_AT = 5, NAME_AT = 6, FEATURE_SIZE_AT = 10, TYPE_AT = 11 };
static const uint8_t one[] = { 0x1A, 22,                                  /* a layer */
                               0x78, 2,                                   /* version */
                               0x0A, 3,    'o',  'n', 'e',                /* name */
                               0x12, 7,    0x18, 1,   0x22, 3, 9, 50, 34, /* a feature: a point, to 25 17 */
                               0x28, 0x80, 0x20,                          /* extent */
                               0x98, 0x06, 7 };                           /* field 99: an extension */

static const char *
add_to(mc_mvt_parts *parts, const void *bytes, size_t size)
{
    uint8_t *own = malloc(size + 1); /* so that a step over its end is seen */
    memcpy(own, bytes, size);
    const char *wrong = mc_mvt_parts_add(parts, own, size, pool);
    free(own);
    return wrong;
}

START_TEST(layers_are_taken_as_they_are)
{
    mc_mvt_parts parts = { 0 };
    uint8_t two[sizeof(one) + 3];
    ck_assert_int_eq(sizeof(one), 24);
    ck_assert_ptr_null(add_to(&parts, one, sizeof(one)));
    memcpy(two, one, sizeof(one));
    memcpy(two + NAME_AT, "two", 3);
    memcpy(two + sizeof(one), "\x08\x96\x01", 3); /* a field of the tile that nobody knows: left out */
    ck_assert_ptr_null(add_to(&parts, two, sizeof(two)));
    ck_assert_ptr_null(add_to(&parts, "", 0));
    ck_assert_uint_eq(parts.layers.size, 2 * sizeof(one));
    ck_assert_mem_eq(parts.layers.data, one, sizeof(one));
    ck_assert_mem_eq(parts.layers.data + sizeof(one), two, sizeof(one));
    ck_assert_int_eq(parts.features, 2);
    ck_assert(mc_mvt_parts_have(&parts, "one") && mc_mvt_parts_have(&parts, "two"));
    ck_assert(!mc_mvt_parts_have(&parts, "on") && !mc_mvt_parts_have(&parts, "ones"));
    mc_mvt_parts_free(&parts);
}
END_TEST

START_TEST(layers_without_features_are_left_out)
{
    static const uint8_t bare[] = { 0x1A, 5, 0x78, 2, 0x0A, 1, 'x' };
    mc_mvt_parts parts = { 0 };
    ck_assert_ptr_null(add_to(&parts, bare, sizeof(bare)));
    ck_assert_uint_eq(parts.layers.size, 0);
    ck_assert(!mc_mvt_parts_have(&parts, "x"));
    mc_mvt_parts_free(&parts);
}
END_TEST

/* Each of them has one byte of `one` changed. */
START_TEST(what_is_no_tile_is_refused)
{
    static const struct {
        int at;
        uint8_t byte;
        const char *wrong;
    } changes[] = {
        { 0, 0x18, "no message" },                      /* the layer is a number */
        { 0, 0x1B, "protocol buffers" },                /* a group */
        { 0, 0x02, "protocol buffers" },                /* field 0 */
        { LAYER_SIZE_AT, 23, "protocol buffers" },      /* longer than the tile */
        { LAYER_SIZE_AT, 21, "middle of a field" },     /* its last number has no end */
        { VERSION_AT, 3, "version" },                   /* of the future */
        { VERSION_AT, 0, "version" },                   /* of none */
        { VERSION_AT - 1, 0x70, "no version" },         /* field 14 */
        { NAME_SIZE_AT - 1, 0x08, "another type" },     /* the name is a number */
        { NAME_SIZE_AT, 0, "name" },                    /* empty */
        { NAME_AT, 0x80, "name" },                      /* no UTF-8 */
        { NAME_AT + 1, 0, "name" },                     /* a zero byte */
        { NAME_SIZE_AT - 1, 0x6A, "no name" },          /* field 13 */
        { FEATURE_SIZE_AT, 6, "feature" },              /* ends in its geometry */
        { TYPE_AT, 0x1A, "feature" },                   /* the type is a text */
        { TYPE_AT + 2, 0x20, "feature" },               /* the geometry is a number, then group 1 */
        { sizeof(one) - 6, 0x2A, "middle of a field" }, /* the extent is a text */
        { sizeof(one) - 4, 0, "extent" },               /* of nothing */
    };
    mc_mvt_parts parts = { 0 };
    ck_assert_ptr_null(add_to(&parts, one, sizeof(one)));
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        uint8_t changed[2 * sizeof(one)];
        memcpy(changed, one, sizeof(one)); /* a good one before it: nothing is added of both */
        memcpy(changed + NAME_AT, "two", 3);
        memcpy(changed + sizeof(one), one, sizeof(one));
        memcpy(changed + sizeof(one) + NAME_AT, "six", 3);
        changed[sizeof(one) + (size_t)changes[i].at] = changes[i].byte;
        const char *wrong = add_to(&parts, changed, sizeof(changed));
        ck_assert_msg(wrong != NULL && strstr(wrong, changes[i].wrong) != NULL, "%zu: %s", i, wrong);
        ck_assert_uint_eq(parts.layers.size, sizeof(one));
        ck_assert_int_eq(parts.features, 1);
    }
    for (size_t size = 1; size < sizeof(one); size++)
        ck_assert_msg(add_to(&parts, one, size) != NULL, "%zu bytes", size);
    ck_assert_ptr_nonnull(strstr(add_to(&parts, one, sizeof(one)), "layer \"one\" is there twice"));
    mc_mvt_parts_free(&parts);
}
END_TEST

START_TEST(a_tile_has_a_bounded_number_of_layers)
{
    mc_mvt_parts parts = { 0 };
    uint8_t other[sizeof(one)];
    memcpy(other, one, sizeof(one));
    for (int i = 0; i <= MC_MVT_LAYERS; i++) {
        memcpy(other + NAME_AT, apr_psprintf(pool, "%03d", i), 3);
        ck_assert_int_eq(add_to(&parts, other, sizeof(other)) == NULL, i < MC_MVT_LAYERS);
    }
    mc_mvt_parts_free(&parts);
}
END_TEST

static mc_error *
finish_first(mc_mvt_result *result, mc_mvt *mvt)
{
    return mc_mvt_finish(result, mvt, 0, 0, &ctx, pool);
}

/* A block with a layer "points" that has `count` points in its upper left tile. */
static mc_mvt *
block_with_points(const mc_mvt_options *options, int columns, int count)
{
    static const mc_field fields[] = { { "name", MC_FIELD_TEXT } };
    static const char *const values[] = { "n" };
    mc_geometry geometry = { 0 };
    mc_mvt *mvt = mc_mvt_create(options, columns, 1, 1, pool);
    mc_mvt_layer(mvt, "points", fields, 1, true);
    for (int i = 0; i < count; i++) {
        mc_geometry_clear(&geometry);
        mc_shape_add(&geometry.shapes[MC_SHAPE_POINTS], 20 + i % 10, 20 + i / 10);
        mc_shape_end_part(&geometry.shapes[MC_SHAPE_POINTS]);
        const mc_feature feature = { .id = i, .geometry = &geometry, .values = values };
        ck_ok(mc_mvt_visit(mvt, &feature, &ctx));
    }
    mc_geometry_free(&geometry);
    return mvt;
}

static const mc_mvt_options options = { .extent = 256,
                                        .buffer = 4,
                                        .simplification = 1,
                                        .max_features = 1000,
                                        .max_bytes = 600,
                                        .max_time = 10,
                                        .compression = 1 };

START_TEST(parts_stand_behind_the_own_layers_and_within_the_budget)
{
    mc_mvt_result alone, both;
    mc_buf *bytes;
    ck_ok(finish_first(&alone, block_with_points(&options, 1, 100)));
    mc_mvt *mvt = block_with_points(&options, 1, 100);
    ck_ok(mc_mvt_add_encoded(mvt, 0, 0, one, sizeof(one), pool));
    ck_ok(finish_first(&both, mvt));
    ck_assert_uint_le(alone.bytes, 600);
    ck_assert_uint_le(both.bytes, 600);
    ck_assert_int_gt(alone.dropped, 0);
    ck_assert_int_gt(both.dropped, alone.dropped);
    ck_assert_int_eq(both.features, 100 - both.dropped + 1);
    ck_ok(mc_gunzip(&bytes, both.packed->data, both.packed->size, 600, pool));
    ck_assert_uint_eq(bytes->size, both.bytes);
    ck_assert_mem_eq(bytes->data + bytes->size - sizeof(one), one, sizeof(one));
}
END_TEST

START_TEST(parts_above_the_budget_or_of_a_taken_name_are_refused)
{
    uint8_t other[sizeof(one) + 3];
    mc_mvt_result result;
    mc_mvt *mvt = block_with_points(&options, 1, 1);
    mc_error *error = MC_OK;
    memcpy(other, one, sizeof(one));
    int count = 0;
    for (; count < 100 && error == MC_OK; count++) {
        memcpy(other + NAME_AT, apr_psprintf(pool, "%03d", count), 3);
        error = mc_mvt_add_encoded(mvt, 0, 0, other, sizeof(one), pool);
    }
    ck_fails(UPSTREAM, error);
    ck_assert_int_eq(count, 600 / (int)sizeof(one) + 1);
    /* "points" in place of "one" */
    memcpy(other, one, NAME_AT);
    memcpy(other + NAME_AT, "points", 6);
    memcpy(other + NAME_AT + 6, one + NAME_AT + 3, sizeof(one) - NAME_AT - 3);
    other[LAYER_SIZE_AT] += 3;
    other[NAME_SIZE_AT] += 3;
    mvt = block_with_points(&options, 1, 1);
    ck_ok(mc_mvt_add_encoded(mvt, 0, 0, other, sizeof(other), pool));
    ck_fails(UPSTREAM, finish_first(&result, mvt));
    mvt = block_with_points(&options, 1, 0); /* its own layer has nothing, and is not in the tile */
    ck_ok(mc_mvt_add_encoded(mvt, 0, 0, other, sizeof(other), pool));
    ck_ok(finish_first(&result, mvt));
    ck_assert_uint_eq(result.bytes, sizeof(other));
}
END_TEST

START_TEST(parts_count_as_the_memory_of_a_block)
{
    uint8_t other[sizeof(one)];
    mc_mvt *mvt = block_with_points(&options, 64, 0);
    mc_error *error = MC_OK;
    memcpy(other, one, sizeof(one));
    for (int i = 0; error == MC_OK && i < 64 * 20; i++) {
        memcpy(other + NAME_AT, apr_psprintf(pool, "%03d", i / 64), 3);
        error = mc_mvt_add_encoded(mvt, i % 64, 0, other, sizeof(other), pool);
    }
    ck_assert_ptr_nonnull(error);
    ck_assert(mc_mvt_crowded(mvt));
    mc_error_ignore(error);
}
END_TEST

UNIT_MAIN("mvt_parts", layers_are_taken_as_they_are, layers_without_features_are_left_out, what_is_no_tile_is_refused,
          a_tile_has_a_bounded_number_of_layers, parts_stand_behind_the_own_layers_and_within_the_budget,
          parts_above_the_budget_or_of_a_taken_name_are_refused, parts_count_as_the_memory_of_a_block)
