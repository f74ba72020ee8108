/* The fixed Huffman tables: small enough files, a code for whatever pixels give, and maps of tiles with other tables.
 */
#include "images.h"
#include "unit.h"

#include "image/codec.h"
#include "image/jpeg/jpeg_tables.h"
#include "samples.h"

/* What libjpeg alone would write. */
typedef struct plain_options {
    int quality;
    bool rgb, optimized, markers;
} plain_options;

static mc_buf *
encode_plain(const mc_pixels *pixels, plain_options options)
{
    struct jpeg_compress_struct writer;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long size = 0;
    writer.err = jpeg_std_error(&errors);
    jpeg_create_compress(&writer);
    jpeg_mem_dest(&writer, &data, &size);
    writer.image_width = (JDIMENSION)pixels->width;
    writer.image_height = (JDIMENSION)pixels->height;
    writer.input_components = 4;
    writer.in_color_space = JCS_EXT_BGRX;
    jpeg_set_defaults(&writer);
    if (options.rgb)
        jpeg_set_colorspace(&writer, JCS_RGB);
    jpeg_set_quality(&writer, options.quality, TRUE);
    writer.optimize_coding = options.optimized;
    writer.restart_in_rows = options.markers ? 1 : 0;
    jpeg_start_compress(&writer, TRUE);
    while (writer.next_scanline < writer.image_height) {
        JSAMPROW row = pixels->data + writer.next_scanline * pixels->stride;
        jpeg_write_scanlines(&writer, &row, 1);
    }
    jpeg_finish_compress(&writer);
    mc_buf *bytes = mc_buf_attach(mc_buf_copy(data, size), pool);
    free(data);
    jpeg_destroy_compress(&writer);
    return bytes;
}

static mc_buf *
encode_ours(mc_pixels *pixels, int quality, bool rgb)
{
    apr_hash_t *formats = apr_hash_make(pool);
    mc_format_builtins(formats, pool);
    mc_format format = *(mc_format *)apr_hash_get(formats, "JPEG", APR_HASH_KEY_STRING);
    format.quality = quality;
    format.photometric = rgb;
    mc_buf *bytes;
    ck_ok(mc_format_encode(&bytes, &format, pixels, MC_FOR_STORE, &ctx, pool));
    return bytes;
}

/* A file's coefficients, and how many there are. */
static JCOEF *
read_coefficients(size_t *count, const mc_buf *bytes)
{
    struct jpeg_decompress_struct reader;
    struct jpeg_error_mgr errors;
    reader.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&reader);
    jpeg_mem_src(&reader, bytes->data, bytes->size);
    jpeg_read_header(&reader, TRUE);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&reader);
    size_t room = (size_t)reader.image_width * reader.image_height * 3 + 65536;
    JCOEF *all = apr_palloc(pool, room * sizeof(*all));
    *count = 0;
    for (int c = 0; c < reader.num_components; c++) {
        const jpeg_component_info *component = &reader.comp_info[c];
        for (JDIMENSION y = 0; y < component->height_in_blocks; y++) {
            JBLOCKARRAY row = reader.mem->access_virt_barray((j_common_ptr)&reader, arrays[c], y, 1, FALSE);
            size_t size = (size_t)component->width_in_blocks * DCTSIZE2;
            ck_assert_uint_le(*count + size, room);
            memcpy(all + *count, row[0], size * sizeof(*all));
            *count += size;
        }
    }
    jpeg_finish_decompress(&reader);
    ck_assert_int_eq((int)errors.num_warnings, 0);
    jpeg_destroy_decompress(&reader);
    return all;
}

static bool
same_coefficients(const mc_buf *a, const mc_buf *b)
{
    size_t count, other_count;
    const JCOEF *all = read_coefficients(&count, a), *other = read_coefficients(&other_count, b);
    return count == other_count && memcmp(all, other, count * sizeof(*all)) == 0;
}

/* Fixed, smooth noise: -1..1 at whole numbers, in between interpolated. */
static double
lattice_noise(int x, int y, int seed)
{
    uint32_t h = (uint32_t)x * 374761393u + (uint32_t)y * 668265263u + (uint32_t)seed * 2246822519u;
    h = (h ^ (h >> 13)) * 1274126177u;
    return (double)((h ^ (h >> 16)) & 0xffff) / 32767.5 - 1;
}

static double
smooth_noise(double x, double y, int seed)
{
    int left = (int)floor(x), top = (int)floor(y);
    double u = x - left, v = y - top;
    u = u * u * (3 - 2 * u);
    v = v * v * (3 - 2 * v);
    double upper = lattice_noise(left, top, seed) * (1 - u) + lattice_noise(left + 1, top, seed) * u;
    double lower = lattice_noise(left, top + 1, seed) * (1 - u) + lattice_noise(left + 1, top + 1, seed) * u;
    return upper * (1 - v) + lower * v;
}

static double
terrain_height(double x, double y, int seed)
{
    double sum = 0, size = 1;
    for (int octave = 0; octave < 7; octave++, size *= 0.55)
        sum += size * smooth_noise(x * pow(2, octave) / 90, y * pow(2, octave) / 90, seed + octave);
    return sum;
}

static unsigned
byte_of(double value)
{
    return value < 0 ? 0 : value > 255 ? 255 : (unsigned)value;
}

/* As aerial images: hills in the sun, in the colours of their height, with grain. */
static void
draw_hills(mc_pixels *pixels, int seed, double relief, double grain)
{
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++) {
            double h = terrain_height(x, y, seed), slope = h - terrain_height(x + 1, y + 1, seed);
            double light = 0.8 + relief * slope, more = grain * lattice_noise(x, y, seed + 50);
            sample_set(pixels, x, y, byte_of((110 + 50 * h) * light + more), byte_of((120 + 25 * h) * light + more),
                       byte_of((85 + 45 * h) * light + more), 255);
        }
    pixels->opacity = MC_OPACITY_UNKNOWN;
}

static void
draw_terrain(mc_pixels *pixels, int seed)
{
    draw_hills(pixels, seed, 5, 8);
}

/* With little detail: a tile of 10 KB. */
static void
draw_calm_terrain(mc_pixels *pixels, int seed)
{
    draw_hills(pixels, seed, 2.5, 3);
}

/* How much of a pixel is inside a band of lines where a field is near to one of its steps. */
static double
cover_line(double field, double step, double width, double gradient)
{
    double off = fabs(field / step - floor(field / step) - 0.5) * step / gradient;
    return off < width ? 1 : off < width + 1 ? width + 1 - off : 0;
}

/* As street maps: flat areas, streets with edges, and blocks of houses and letters in between. */
static void
draw_streets(mc_pixels *pixels, int seed)
{
    static const double areas[4][3] = { { 242, 239, 233 }, { 205, 235, 176 }, { 170, 211, 223 }, { 224, 223, 223 } };
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++) {
            double wood = smooth_noise(x / 70.0, y / 70.0, seed), turn = 0.4 + 0.1 * (seed % 5);
            const double *area = areas[wood > 0.3 ? 1 : wood < -0.4 ? 2 : 0];
            double across = x * cos(turn) + y * sin(turn) + 6 * smooth_noise(x / 60.0, y / 60.0, seed + 1);
            double along = y * cos(turn) - x * sin(turn) + 6 * smooth_noise(x / 50.0, y / 50.0, seed + 2);
            double street = fmax(cover_line(across, 61, 3, 1), cover_line(along, 83, 5, 1));
            double edge = fmax(cover_line(across, 61, 4.2, 1), cover_line(along, 83, 6.2, 1));
            bool house = wood <= 0.3 && wood >= -0.4 && ((int)across / 11 + (int)along / 13) % 3 == 0;
            bool letter = fabs(across - 90) < 5 && lattice_noise(x / 2, y / 3, seed + 3) > 0.2;
            for (int c = 0; c < 3; c++) {
                double value = house ? 208 - 8 * c : area[c];
                value += (170 - 20 * c - value) * edge;
                value += (254 - value) * street;
                pixels->data[(size_t)y * pixels->stride + (size_t)x * 4 + (size_t)(2 - c)] =
                    (uint8_t)byte_of(letter ? 50 : value);
            }
            pixels->data[(size_t)y * pixels->stride + (size_t)x * 4 + 3] = 255;
        }
    pixels->opacity = MC_OPACITY_UNKNOWN;
}

/* As products over a map: turned rectangles of one image over the other. */
static void
draw_products(mc_pixels *pixels, int seed)
{
    mc_pixels *product = clear_image(pixels->width, pixels->height);
    draw_streets(pixels, seed);
    draw_terrain(product, seed + 7);
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++) {
            double u = (x - 100 - 9 * seed) * 0.96 + (y - 120) * 0.28,
                   v = (y - 120) * 0.96 - (x - 100 - 9 * seed) * 0.28;
            if (fabs(u) < 70 && fabs(v) < 90)
                memcpy(pixels->data + (size_t)y * pixels->stride + (size_t)x * 4,
                       product->data + (size_t)y * product->stride + (size_t)x * 4, 4);
        }
}

/* At most three percent above tables that are made for each image, four where there is little to code; the pixels are
 * the same. */
START_TEST(test_sizes)
{
    static const struct {
        void (*draw)(mc_pixels *pixels, int seed);
        size_t percent;
    } kinds[] = { { draw_streets, 103 }, { draw_products, 103 }, { draw_terrain, 103 }, { draw_calm_terrain, 104 } };
    static const int qualities[] = { 75, 85, 90, 95 };
    for (int k = 0; k < 4 * 4; k++) {
        int kind = k / 4, quality = qualities[k % 4];
        size_t ours = 0, best = 0;
        for (int seed = 0; seed < 4; seed++) {
            mc_pixels *tile = clear_image(256, 256);
            kinds[kind].draw(tile, seed * 11);
            mc_buf *made = encode_ours(tile, quality, false);
            mc_buf *optimized = encode_plain(tile, (plain_options){ .quality = quality, .optimized = true });
            ours += made->size;
            best += optimized->size;
            ck_assert(same_coefficients(made, optimized));
        }
        ck_assert_msg(ours * 100 <= best * kinds[kind].percent, "kind %d, quality %d: %lu bytes, %lu optimised", kind,
                      quality, (unsigned long)ours, (unsigned long)best);
    }
}
END_TEST

/* Blocks with the largest coefficients: waves of full strength, and their signs, in both directions. */
static void
draw_extremes(mc_pixels *pixels, int block)
{
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++) {
            int number = y / block * (pixels->width / block) + x / block, u = number % 8, v = number / 8 % 8;
            double wave = cos((2 * (x % block * 8 / block) + 1) * u * acos(-1) / 16) *
                          cos((2 * (y % block * 8 / block) + 1) * v * acos(-1) / 16);
            if (number / 64 % 2 == 1)
                wave = wave >= 0 ? 1 : -1;
            if (number / 128 % 2 == 1)
                wave = -wave;
            unsigned value = (unsigned)(127.5 + 127.4 * wave), other = number / 256 % 2 == 1 ? 255 - value : value;
            sample_set(pixels, x, y, other, number / 512 % 2 == 1 ? 255 - value : value, value, 255);
        }
    pixels->opacity = MC_OPACITY_UNKNOWN;
}

static void
draw_noise(mc_pixels *pixels)
{
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++)
            sample_set(pixels, x, y, sample_random() % 2 * 255, sample_random() % 2 * 255, sample_random() % 2 * 255,
                       255);
    pixels->opacity = MC_OPACITY_UNKNOWN;
}

/* Whatever the pixels are, no code is missing, at any quality. */
START_TEST(test_all_codes)
{
    for (int quality = 1; quality <= 100; quality++)
        for (int k = 0; k < 6; k++) {
            apr_pool_t *outer = pool;
            apr_pool_create(&pool, outer);
            ctx.pool = pool;
            mc_pixels *tile = clear_image(256, k / 2 == 1 ? 1024 : 512);
            if (k / 2 == 2)
                draw_noise(tile);
            else
                draw_extremes(tile, k / 2 == 0 ? 8 : 16);
            mc_buf *made = encode_ours(tile, quality, k % 2 == 1);
            mc_buf *standard = encode_plain(tile, (plain_options){ .quality = quality, .rgb = k % 2 == 1 });
            ck_assert_msg(same_coefficients(made, standard), "quality %d, image %d", quality, k);
            apr_pool_destroy(pool);
            pool = ctx.pool = outer;
        }
}
END_TEST

/* A file of the same quantisation with a coefficient that no pixels give. */
static mc_buf *
make_overshot(const mc_buf *model)
{
    struct jpeg_decompress_struct reader;
    struct jpeg_compress_struct writer;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long size = 0;
    reader.err = writer.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&reader);
    jpeg_create_compress(&writer);
    jpeg_mem_src(&reader, model->data, model->size);
    jpeg_read_header(&reader, TRUE);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&reader);
    JBLOCKARRAY row = reader.mem->access_virt_barray((j_common_ptr)&reader, arrays[0], 1, 1, TRUE);
    row[0][1][63] = 900;
    jpeg_mem_dest(&writer, &data, &size);
    jpeg_copy_critical_parameters(&reader, &writer);
    jpeg_write_coefficients(&writer, arrays);
    jpeg_finish_compress(&writer);
    jpeg_finish_decompress(&reader);
    mc_buf *bytes = mc_buf_attach(mc_buf_copy(data, size), pool);
    free(data);
    jpeg_destroy_compress(&writer);
    jpeg_destroy_decompress(&reader);
    return bytes;
}

/* Whether each tile of 64 x 64 is in the map with its very coefficients. */
static void
check_joined(mc_buf *const *tiles, int columns, int rows, const char *what)
{
    mc_buf *joined;
    ck_ok(mc_jpeg_join(&joined, tiles, columns, rows, (const uint8_t[]){ 1, 2, 3 }, &ctx, pool));
    ck_assert_msg(joined != NULL, "%s: not joined", what);
    size_t count, part;
    const JCOEF *all = read_coefficients(&count, joined);
    size_t blocks[3] = { 8, 4, 4 }, offset = 0, tile_offset = 0;
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < columns * rows; i++) {
            if (tiles[i] == NULL)
                continue;
            const JCOEF *own = read_coefficients(&part, tiles[i]) + tile_offset;
            for (size_t y = 0; y < blocks[c]; y++) {
                size_t line = ((size_t)(i / columns) * blocks[c] + y) * (size_t)columns + (size_t)(i % columns);
                ck_assert_msg(memcmp(all + offset + line * blocks[c] * 64, own + y * blocks[c] * 64,
                                     blocks[c] * 64 * sizeof(JCOEF)) == 0,
                              "%s: tile %d, component %d, row %lu", what, i, c, (unsigned long)y);
            }
        }
        offset += blocks[c] * blocks[c] * 64 * (size_t)(columns * rows);
        tile_offset += blocks[c] * blocks[c] * 64;
    }
}

/* Tiles that were stored with standard tables, ours, others' and missing ones in one map, whichever is the first. */
START_TEST(test_join_of_tables)
{
    static const int qualities[] = { 30, 75, 85, 95, 100 };
    mc_pixels *picture = clear_image(64, 64);
    for (int k = 0; k < 5; k++) {
        int quality = qualities[k];
        mc_buf *kinds[4], *tiles[6];
        for (int i = 0; i < 4; i++) {
            draw_products(picture, i);
            kinds[i] = i == 0   ? encode_ours(picture, quality, false)
                       : i == 1 ? encode_plain(picture, (plain_options){ .quality = quality, .markers = true })
                       : i == 2 ? encode_plain(picture, (plain_options){ .quality = quality, .optimized = true })
                                : NULL;
        }
        for (int first = 0; first < 4; first++) {
            for (int i = 0; i < 6; i++)
                tiles[i] = kinds[(first + i) % 4];
            check_joined(tiles, 3, 2, "mixed tables");
        }
        for (int i = 0; i < 6; i++)
            tiles[i] = kinds[1];
        check_joined(tiles, 3, 2, "standard tables");
        if (quality > 50) {
            tiles[2] = make_overshot(kinds[0]);
            tiles[4] = kinds[0];
            check_joined(tiles, 3, 2, "overshot");
            tiles[0] = tiles[2];
            check_joined(tiles, 3, 2, "overshot first");
        }
    }
}
END_TEST

/* A tile of ours has only the codes that it needs. */
static void
draw_almost_nothing(mc_pixels *pixels, int seed)
{
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++)
            sample_set(pixels, x, y, 240, 240, x + y == seed ? 200 : 235, 255);
    pixels->opacity = MC_OPACITY_UNKNOWN;
}

static bool
contains(const mc_buf *bytes, const uint8_t *part, size_t size)
{
    for (size_t i = 0; i + size <= bytes->size; i++)
        if (memcmp(bytes->data + i, part, size) == 0)
            return true;
    return false;
}

/* Tiles that lack different codes are joined as they are, whichever is the first, and the background has its codes. */
START_TEST(test_join_of_codes_left_out)
{
    static void (*const kinds[3])(mc_pixels * pixels, int seed) = { draw_almost_nothing, draw_products, draw_terrain };
    static const uint8_t background[] = { 250, 3, 40 };
    mc_pixels *picture = clear_image(64, 64), *map;
    mc_buf *tiles[4], *joined;
    for (int first = 0; first < 4; first++) {
        mc_jpeg_parts parts[4];
        for (int i = 0; i < 4; i++) {
            int kind = (i + first) % 4;
            tiles[i] = NULL;
            if (kind == 3)
                continue;
            kinds[kind](picture, 40 + kind);
            tiles[i] = encode_ours(picture, 75, false);
            ck_assert(mc_jpeg_parse(&parts[kind], tiles[i]->data, tiles[i]->size));
        }
        ck_assert_uint_lt(parts[0].scan + 50, parts[1].scan);
        ck_ok(mc_jpeg_join(&joined, tiles, 2, 2, background, &ctx, pool));
        ck_assert_ptr_nonnull(joined);
        for (int i = 0; i < 3; i++) { /* the first row of MCUs */
            size_t offsets[5];
            ck_assert(mc_jpeg_segments(offsets, 4, &parts[i]));
            ck_assert(contains(joined, parts[i].data + offsets[0], offsets[1] - 2 - offsets[0]));
        }
        check_joined(tiles, 2, 2, "codes left out");
        ck_ok(mc_jpeg_decode(&map, joined->data, joined->size, pool));
        int missing = 3 - first;
        const uint8_t *pixel =
            map->data + (size_t)(missing / 2 * 64 + 32) * map->stride + (size_t)(missing % 2 * 64 + 32) * 4;
        for (int c = 0; c < 3; c++)
            ck_assert_int_le(abs(pixel[2 - c] - background[c]), 8);
        mc_pixels_unref(map);
    }
}
END_TEST

UNIT_MAIN("jpeg_tables", test_sizes, test_all_codes, test_join_of_tables, test_join_of_codes_left_out)
