/* See quadtree.h. Numbers are little-endian here; files of the other order are made on no machine of today and refused.
 */
#include "vector/shapefile/quadtree.h"
#include "base/files.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEAD = 16,
    NODE = 4 + 32 + 4, /* distance, box, number of shapes */
    LITTLE_ENDIAN_FILE = 1,
    DEEPEST = 24,
    NUMBERS_AHEAD = 1 << 12,
    FEW_SHAPES = 8, /* a node with so many is not split */
};

/* A child covers a little more than half of its parent's side: shapes across the middle find a place in it. */
#define CHILD_SIDE 0.55

bool
mc_quadtree_fits(const mc_file *file, uint32_t count)
{
    uint8_t head[HEAD];
    return mc_file_read(file, 0, head, HEAD) == HEAD && memcmp(head, "SQT", 3) == 0 && head[3] == LITTLE_ENDIAN_FILE &&
           mc_little32(head + 8) == count;
}

typedef struct searching {
    uint64_t *bits;
    uint32_t count;
    const mc_extent *window;
    mc_file_view file;
    uint64_t at, nodes;
} searching;

static bool
node_box_meets(const uint8_t *box, const mc_extent *window)
{
    return mc_little_double(box) <= window->maxx && mc_little_double(box + 16) >= window->minx &&
           mc_little_double(box + 8) <= window->maxy && mc_little_double(box + 24) >= window->miny;
}

/* Sets the bits of the numbers that stand here. */
static bool
take_numbers(searching *s, uint32_t count)
{
    const uint8_t *numbers = mc_file_view_at(&s->file, s->at, (size_t)count * 4 + 4, NUMBERS_AHEAD);
    if (numbers == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = mc_little32(numbers + (size_t)i * 4);
        if (number >= s->count)
            return false;
        s->bits[number / 64] |= (uint64_t)1 << number % 64;
    }
    s->at += (uint64_t)count * 4;
    return true;
}

static bool
search_node(searching *s, int depth)
{
    const uint8_t *node = mc_file_view_at(&s->file, s->at, NODE, NUMBERS_AHEAD);
    if (node == NULL || depth > DEEPEST || s->nodes++ > (uint64_t)DEEPEST * s->count)
        return false;
    uint32_t distance = mc_little32(node), count = mc_little32(node + 36);
    if (count > s->count)
        return false;
    s->at += NODE;
    if (!node_box_meets(node + 4, s->window)) {
        s->at += (uint64_t)distance + (uint64_t)count * 4 + 4;
        return true;
    }
    if (!take_numbers(s, count))
        return false;
    const uint8_t *word = mc_file_view_at(&s->file, s->at, 4, NUMBERS_AHEAD);
    uint32_t children = word == NULL ? 0 : mc_little32(word);
    s->at += 4;
    for (uint32_t i = 0; i < children; i++)
        if (!search_node(s, depth + 1))
            return false;
    return word != NULL;
}

bool
mc_quadtree_search(uint64_t *bits, const mc_file *file, uint32_t count, const mc_extent *window)
{
    if (!mc_quadtree_fits(file, count))
        return false;
    searching s = { .bits = bits, .count = count, .window = window, .file = { .file = file }, .at = HEAD };
    bool searched = count == 0 || search_node(&s, 0);
    mc_file_view_free(&s.file);
    return searched;
}

/* --- making one ------------------------------------------------------------------------------------------------- */

typedef struct quadtree_making {
    const mc_extent *boxes;
    uint8_t *bytes;
    size_t size, room;
    bool failed;
} quadtree_making;

static void
put_bytes(quadtree_making *m, const void *bytes, size_t size)
{
    if (m->room - m->size < size) {
        size_t room = (m->room + size) * 2;
        uint8_t *grown = room > INT32_MAX ? NULL : realloc(m->bytes, room);
        if (grown == NULL) {
            m->failed = true;
            return;
        }
        m->bytes = grown;
        m->room = room;
    }
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static void
put_word(quadtree_making *m, uint32_t word)
{
    uint8_t bytes[4];
    (void)mc_store_little32(bytes, word);
    put_bytes(m, bytes, 4);
}

static void
put_double(quadtree_making *m, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    put_word(m, (uint32_t)bits);
    put_word(m, (uint32_t)(bits >> 32));
}

/* One of the four parts of a box: 0 left, 1 right; +0 lower, +2 upper. */
static mc_extent
quadrant_of_box(const mc_extent *box, int which)
{
    double width = (box->maxx - box->minx) * CHILD_SIDE, height = (box->maxy - box->miny) * CHILD_SIDE;
    mc_extent part = *box;
    if ((which & 1) != 0)
        part.minx = box->maxx - width;
    else
        part.maxx = box->minx + width;
    if ((which & 2) != 0)
        part.miny = box->maxy - height;
    else
        part.maxy = box->miny + height;
    return part;
}

static bool
extent_holds(const mc_extent *outer, const mc_extent *inner)
{
    return inner->minx >= outer->minx && inner->maxx <= outer->maxx && inner->miny >= outer->miny &&
           inner->maxy <= outer->maxy;
}

/* Moves those numbers to the front that fit into a box; how many they are. */
static uint32_t
gather_fitting_boxes(const quadtree_making *m, uint32_t *numbers, uint32_t count, const mc_extent *box)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        if (extent_holds(box, &m->boxes[numbers[i]])) {
            uint32_t swap = numbers[found];
            numbers[found++] = numbers[i];
            numbers[i] = swap;
        }
    return found;
}

static mc_extent
bounds_of_boxes(const quadtree_making *m, const uint32_t *numbers, uint32_t count)
{
    mc_extent all = count == 0 ? (mc_extent){ 0, 0, 0, 0 } : m->boxes[numbers[0]];
    for (uint32_t i = 1; i < count; i++)
        all = mc_extent_union(&all, &m->boxes[numbers[i]]);
    return all;
}

/* Writes a node and all below it: with the box of what it really holds, which is all that readers ask it for. The
 * node's own shapes are those that none of its parts holds. */
static void
put_node(quadtree_making *m, const mc_extent *box, uint32_t *numbers, uint32_t count, int depth)
{
    uint32_t counts[4] = { 0 }, given = 0, children = 0;
    for (int part = 0; part < 4 && count > FEW_SHAPES && depth > 0; part++) {
        mc_extent child = quadrant_of_box(box, part);
        counts[part] = gather_fitting_boxes(m, numbers + given, count - given, &child);
        given += counts[part];
        children += counts[part] > 0;
    }
    size_t begin = m->size;
    mc_extent held = bounds_of_boxes(m, numbers, count);
    put_word(m, 0);
    put_double(m, held.minx);
    put_double(m, held.miny);
    put_double(m, held.maxx);
    put_double(m, held.maxy);
    put_word(m, count - given);
    for (uint32_t i = given; i < count; i++)
        put_word(m, numbers[i]);
    put_word(m, children);
    size_t below = m->size;
    for (int part = 0; part < 4; numbers += counts[part++])
        if (counts[part] > 0) {
            mc_extent child = quadrant_of_box(box, part);
            put_node(m, &child, numbers, counts[part], depth - 1);
        }
    if (m->failed)
        return;
    (void)mc_store_little32(m->bytes + begin, (uint32_t)(m->size - below));
}

static int
depth_for(uint32_t count)
{
    int depth = 1;
    while (depth < 12 && (uint64_t)FEW_SHAPES << 2 * depth < count)
        depth++;
    return depth + 1;
}

static void
make_tree(quadtree_making *m, uint32_t *numbers, uint32_t count)
{
    static const uint8_t head[8] = { 'S', 'Q', 'T', LITTLE_ENDIAN_FILE, 1 };
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        if (m->boxes[i].minx <= m->boxes[i].maxx && m->boxes[i].miny <= m->boxes[i].maxy)
            numbers[found++] = i;
    mc_extent all = bounds_of_boxes(m, numbers, found);
    put_bytes(m, head, sizeof(head));
    put_word(m, count);
    put_word(m, (uint32_t)depth_for(count));
    put_node(m, &all, numbers, found, depth_for(count));
}

static mc_error *
quadtree_io_error(const char *path, apr_pool_t *pool)
{
    char text[128];
    return mc_error_create(pool, MC_ERR_IO, "%s: %s", path, strerror_r(errno, text, sizeof(text)));
}

static bool
write_and_sync(int fd, const uint8_t *bytes, size_t size)
{
    return mc_files_write(fd, bytes, size) && fchmod(fd, 0644) == 0 && fsync(fd) == 0;
}

static mc_error *
write_quadtree_file(const char *path, const uint8_t *bytes, size_t size, apr_pool_t *pool)
{
    char *name = apr_pstrcat(pool, path, ".XXXXXX", NULL);
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return quadtree_io_error(name, pool);
    mc_error *error = write_and_sync(fd, bytes, size) ? MC_OK : quadtree_io_error(name, pool);
    if (close(fd) != 0 && error == MC_OK)
        error = quadtree_io_error(name, pool);
    if (error == MC_OK && rename(name, path) != 0)
        error = quadtree_io_error(path, pool);
    if (error != MC_OK)
        unlink(name);
    return error;
}

mc_error *
mc_quadtree_write(const char *path, const mc_extent *boxes, uint32_t count, apr_pool_t *pool)
{
    quadtree_making m = { .boxes = boxes };
    uint32_t *numbers = malloc(sizeof(*numbers) * ((size_t)count + 1));
    if (numbers != NULL)
        make_tree(&m, numbers, count);
    mc_error *error = numbers == NULL || m.failed
                          ? mc_error_create(pool, MC_ERR_LIMIT, "%s would be larger than 2 GB", path)
                          : write_quadtree_file(path, m.bytes, m.size, pool);
    free(numbers);
    free(m.bytes);
    return error;
}
