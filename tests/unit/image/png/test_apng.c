/* Animations are read back frame by frame: each one's image data is put into a PNG of its own and drawn in its place.
 */
#include "images.h"
#include "unit.h"

#include <apr_strings.h>
#include <stdio.h>

#include "base/workers.h"
#include "image/png/apng.h"
#include "image/png/png.h"
#include "samples.h"

enum { WIDTH = 61, HEIGHT = 47, SHOWN_MAX = 16 };

static mc_pixels *
copy_of(const mc_pixels *pixels)
{
    mc_pixels *copy = clear_image(pixels->width, pixels->height);
    mc_pixels_copy(copy, 0, 0, pixels);
    return copy;
}

/* What a viewer has after each frame. */
typedef struct shown {
    uint32_t count, loops, sequence;
    int frames, delays[SHOWN_MAX];
    mc_changed places[SHOWN_MAX];
    mc_pixels *canvas, *after[SHOWN_MAX];
    const uint8_t *header;
} shown;

static mc_pixels *
decode_frame(const shown *s, const mc_changed *place, const uint8_t *data, size_t size)
{
    mc_png_header header = {
        .width = (uint32_t)place->width, .height = (uint32_t)place->height, .depth = s->header[8], .color = s->header[9]
    };
    mc_buf *png = mc_buf_attach(mc_buf_create(0, INT32_MAX), pool);
    ck_ok(mc_png_begin(png, &header, pool));
    ck_ok(mc_png_chunk(png, "IDAT", data, size, pool));
    ck_ok(mc_png_end(png, pool));
    mc_pixels *pixels;
    ck_ok(mc_image_decode(&pixels, png->data, png->size, &ctx, pool));
    return mc_pixels_attach(pixels, pool);
}

static void
draw_frame(shown *s, const uint8_t *data, size_t size)
{
    const mc_changed *place = &s->places[s->frames - 1];
    mc_pixels_copy(s->canvas, place->left, place->top, decode_frame(s, place, data, size));
    s->after[s->frames - 1] = copy_of(s->canvas);
}

static void
read_control(shown *s, const uint8_t *body)
{
    ck_assert_uint_eq(mc_big32(body), s->sequence++);
    s->places[s->frames] = (mc_changed){ (int)mc_big32(body + 12), (int)mc_big32(body + 16), (int)mc_big32(body + 4),
                                         (int)mc_big32(body + 8) };
    ck_assert_int_eq(body[22] << 8 | body[23], 1000);
    ck_assert_int_eq(body[24], 0);
    ck_assert_int_eq(body[25], 0);
    s->delays[s->frames++] = body[20] << 8 | body[21];
}

static shown
read_back(const mc_buf *file)
{
    shown s = { .canvas = clear_image(WIDTH, HEIGHT) };
    for (size_t at = 8; at < file->size;) {
        const uint8_t *body = file->data + at + 8;
        uint32_t size = mc_big32(file->data + at);
        const char *type = (const char *)file->data + at + 4;
        if (memcmp(type, "IHDR", 4) == 0)
            s.header = body;
        else if (memcmp(type, "acTL", 4) == 0)
            s.count = mc_big32(body), s.loops = mc_big32(body + 4);
        else if (memcmp(type, "fcTL", 4) == 0)
            read_control(&s, body);
        else if (memcmp(type, "IDAT", 4) == 0)
            draw_frame(&s, body, size);
        else if (memcmp(type, "fdAT", 4) == 0) {
            ck_assert_uint_eq(mc_big32(body), s.sequence++);
            draw_frame(&s, body + 4, size - 4);
        }
        at += 12 + size;
    }
    return s;
}

static mc_buf *
encode(mc_pixels *const *frames, int count, int delay, int loops, mc_purpose purpose)
{
    mc_buf *bytes;
    mc_animation animation = { frames, count, delay, loops };
    ck_ok(mc_apng_encode(&bytes, &animation, purpose, &ctx, pool));
    return bytes;
}

/* A base, two changes at different places, no change, and all of it gone. */
static void
make_frames(mc_pixels *frames[5], bool opaque)
{
    frames[0] = clear_image(WIDTH, HEIGHT);
    if (opaque)
        sample_map(frames[0], 0);
    frames[1] = copy_of(frames[0]);
    for (int i = 0; i < 30; i++)
        sample_set(frames[1], 11 + i % 6, 20 + i / 6, 200, 10, 10, opaque ? 255 : 128);
    frames[2] = copy_of(frames[1]);
    sample_set(frames[2], WIDTH - 1, HEIGHT - 1, 0, 0, 255, 255);
    sample_set(frames[2], 50, 0, 0, 0, 255, 255);
    frames[3] = copy_of(frames[2]);
    frames[4] = copy_of(frames[0]);
    for (int i = 0; i < 5; i++)
        frames[i]->opacity = MC_OPACITY_UNKNOWN;
}

static void
check_frames(const mc_buf *file, mc_pixels *const *frames)
{
    shown s = read_back(file);
    ck_assert_uint_eq(s.count, 5);
    ck_assert_int_eq(s.frames, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_msg(sample_difference(s.after[i], frames[i]) == 0, "frame %d", i);
}

START_TEST(frames_come_back_without_loss)
{
    mc_pixels *frames[5];
    for (int opaque = 0; opaque < 2; opaque++) {
        make_frames(frames, opaque == 1);
        check_frames(encode(frames, 5, 100, 0, MC_ON_THE_FLY), frames);
        const mc_buf *stored = encode(frames, 5, 100, 0, MC_FOR_STORE);
        check_frames(stored, frames);
        ck_assert_int_eq(read_back(stored).header[9], opaque ? MC_PNG_RGB : MC_PNG_RGBA);
    }
}
END_TEST

START_TEST(only_what_changed_is_stored)
{
    mc_pixels *frames[5];
    make_frames(frames, true);
    shown s = read_back(encode(frames, 5, 40, 3, MC_ON_THE_FLY));
    ck_assert_uint_eq(s.loops, 3);
    static const mc_changed expected[] = {
        { 0, 0, WIDTH, HEIGHT }, { 11, 20, 6, 5 }, { 50, 0, 11, HEIGHT }, { 0, 0, 1, 1 }, { 11, 0, 50, HEIGHT }
    };
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(s.delays[i], 40);
        ck_assert_mem_eq(&s.places[i], &expected[i], sizeof(mc_changed));
    }
}
END_TEST

START_TEST(a_single_frame_is_a_png)
{
    mc_pixels *frame = clear_image(WIDTH, HEIGHT), *decoded;
    sample_photo(frame);
    const mc_buf *file = encode(&frame, 1, 65535, 0, MC_ON_THE_FLY);
    ck_assert_int_eq(read_back(file).delays[0], 65535);
    ck_ok(mc_image_decode(&decoded, file->data, file->size, &ctx, pool));
    ck_assert_int_eq(sample_difference(decoded, frame), 0);
    mc_pixels_unref(decoded);
}
END_TEST

START_TEST(workers_make_the_same_bytes)
{
    mc_pixels *frames[5];
    make_frames(frames, false);
    const mc_buf *alone = encode(frames, 5, 100, 0, MC_ON_THE_FLY);
    ck_ok(mc_workers_create(&process.workers, 3, pool));
    const mc_buf *helped = encode(frames, 5, 100, 0, MC_ON_THE_FLY);
    mc_workers_destroy(process.workers);
    ck_assert_uint_eq(alone->size, helped->size);
    ck_assert_mem_eq(alone->data, helped->data, alone->size);
}
END_TEST

START_TEST(too_many_frames_are_refused)
{
    mc_pixels *frame = clear_image(1, 1), *frames[mc_frames_max + 1];
    for (int i = 0; i <= mc_frames_max; i++)
        frames[i] = frame;
    mc_buf *bytes;
    mc_animation animation = { frames, mc_frames_max + 1, 1, 0 };
    ck_fails(LIMIT, mc_apng_encode(&bytes, &animation, MC_ON_THE_FLY, &ctx, pool));
}
END_TEST

START_TEST(changed_rectangles_are_the_smallest)
{
    for (int round = 0; round < 500; round++) {
        int width = 1 + (int)(sample_random() % 40), height = 1 + (int)(sample_random() % 20);
        mc_pixels *before = clear_image(width, height), *after = clear_image(width, height);
        int left = width, top = height, right = 0, bottom = 0;
        for (unsigned i = sample_random() % 5; i > 0; i--) {
            int x = (int)sample_random() % width, y = (int)sample_random() % height;
            after->data[(size_t)y * after->stride + (size_t)x * 4 + sample_random() % 4] = 1;
            left = x < left ? x : left, right = x + 1 > right ? x + 1 : right;
            top = y < top ? y : top, bottom = y + 1 > bottom ? y + 1 : bottom;
        }
        mc_changed found = mc_pixels_changed(before, after), none = { 0 };
        mc_changed expected = { left, top, right - left, bottom - top };
        ck_assert_mem_eq(&found, right == 0 ? &none : &expected, sizeof(found));
    }
}
END_TEST

/* For other programs' eyes: MAPCACHE_APNG names a folder for the animation and, as plain PNG, each of its frames. */
START_TEST(files_for_other_readers)
{
    const char *folder = getenv("MAPCACHE_APNG");
    if (folder == NULL)
        return;
    mc_pixels *frames[5];
    make_frames(frames, false);
    for (int i = -1; i < 5; i++) {
        const mc_buf *bytes =
            i < 0 ? encode(frames, 5, 120, 2, MC_ON_THE_FLY) : encode(&frames[i], 1, 0, 0, MC_FOR_STORE);
        const char *name =
            i < 0 ? apr_psprintf(pool, "%s/all.png", folder) : apr_psprintf(pool, "%s/%d.png", folder, i);
        FILE *file = fopen(name, "wb");
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(fwrite(bytes->data, 1, bytes->size, file), bytes->size);
        ck_assert_int_eq(fclose(file), 0);
    }
}
END_TEST

UNIT_MAIN("apng", frames_come_back_without_loss, only_what_changed_is_stored, a_single_frame_is_a_png,
          workers_make_the_same_bytes, too_many_frames_are_refused, changed_rectangles_are_the_smallest,
          files_for_other_readers)
