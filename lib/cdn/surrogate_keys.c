/* See surrogate_keys.h. */
#include "cdn/surrogate_keys.h"

#include <apr_strings.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

/* Blocks of 8, 64 and 512 tiles a side, and how many of them cover a range at most. */
static const int block_shifts[] = { 3, 6, 9 };
enum { BLOCK_SIZES = 3, BLOCKS_MAX = 16 };

/* Bytes of an escaped name; of a longer one the beginning and a hash. */
enum { NAME_MAX_BYTES = 72, NAME_BEGINNING = 48 };

#define MAPS_KEY ":maps"

static bool
is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
}

/* Writes at most NAME_MAX_BYTES bytes, returns where they end. '~' stands in no escaped name. */
static char *
put_key_name(char *out, const char *name)
{
    static const char digits[] = "0123456789ABCDEF";
    char *to = out;
    for (const char *c = name; *c != '\0'; c++) {
        if (to - out > NAME_MAX_BYTES - 3)
            return out + NAME_BEGINNING +
                   snprintf(out + NAME_BEGINNING, NAME_MAX_BYTES - NAME_BEGINNING, "~%016" PRIx64,
                            mc_hash64(name, strlen(name), 0));
        if (is_plain(*c)) {
            *to++ = *c;
            continue;
        }
        *to++ = '%';
        *to++ = digits[(unsigned char)*c >> 4];
        *to++ = digits[(unsigned char)*c & 15];
    }
    return to;
}

static char *
put_key_number(char *to, int number)
{
    char digits[12];
    int count = 0;
    unsigned rest = number < 0 ? 0 : (unsigned)number;
    do
        digits[count++] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    while (count > 0)
        *to++ = digits[--count];
    return to;
}

/* What the keys of a level begin with. */
typedef struct level_key {
    char text[MC_SURROGATE_KEY_MAX];
    size_t tileset, size; /* bytes of the name of the tileset, and of all */
    int columns, rows;
} level_key;

static void
name_level(level_key *key, const char *tileset, const mc_grid *grid, int z)
{
    char *end = put_key_name(key->text, tileset);
    key->tileset = (size_t)(end - key->text);
    *end++ = ':';
    end = put_key_name(end, grid->name);
    *end++ = ':';
    end = put_key_number(end, z);
    key->size = (size_t)(end - key->text);
    key->columns = grid->levels[z].columns;
    key->rows = grid->levels[z].rows;
}

/* Whether blocks of that size are more than one: else the key of the level says the same. */
static bool
has_blocks(const level_key *key, int shift)
{
    return key->columns > 1 << shift || key->rows > 1 << shift;
}

/* Writes the key of a block; returns where it ends. */
static char *
put_block_key(char *to, const level_key *level, int shift, int column, int row)
{
    memcpy(to, level->text, level->size);
    to += level->size;
    *to++ = ':';
    *to++ = (char)('0' + shift);
    *to++ = ':';
    to = put_key_number(to, column);
    *to++ = ':';
    return put_key_number(to, row);
}

static mc_tile_range
blocks_of(const mc_tile_range *range, int shift)
{
    return (mc_tile_range){ range->minx >> shift, range->miny >> shift, ((range->maxx - 1) >> shift) + 1,
                            ((range->maxy - 1) >> shift) + 1 };
}

static int64_t
count_blocks(const mc_tile_range *blocks)
{
    return (int64_t)(blocks->maxx - blocks->minx) * (blocks->maxy - blocks->miny);
}

/* ---- of answers */

void
mc_surrogates_begin(mc_surrogates *keys)
{
    keys->overflown = false;
    memcpy(keys->text, MC_SURROGATE_ALL, sizeof(MC_SURROGATE_ALL) - 1);
    keys->size = sizeof(MC_SURROGATE_ALL) - 1;
}

/* Where the next key is to be written; NULL: there is no room for any key. */
static char *
begin_key(mc_surrogates *keys)
{
    keys->overflown = keys->overflown || keys->size + MC_SURROGATE_KEY_MAX + 1 > sizeof(keys->text);
    if (keys->overflown)
        return NULL;
    keys->text[keys->size] = ' ';
    return keys->text + keys->size + 1;
}

static void
append_key(mc_surrogates *keys, const char *key, size_t size)
{
    char *to = begin_key(keys);
    if (to == NULL)
        return;
    memcpy(to, key, size);
    keys->size += size + 1;
}

static void
append_block(mc_surrogates *keys, const level_key *level, int shift, int column, int row)
{
    char *to = begin_key(keys);
    if (to != NULL)
        keys->size = (size_t)(put_block_key(to, level, shift, column, row) - keys->text);
}

void
mc_surrogates_add_tile(mc_surrogates *keys, const char *tileset, const mc_grid *grid, int z, int x, int y)
{
    level_key level;
    name_level(&level, tileset, grid, z);
    append_key(keys, level.text, level.tileset);
    append_key(keys, level.text, level.size);
    for (int i = 0; i < BLOCK_SIZES && has_blocks(&level, block_shifts[i]); i++)
        append_block(keys, &level, block_shifts[i], x >> block_shifts[i], y >> block_shifts[i]);
}

static void
append_blocks(mc_surrogates *keys, const level_key *level, int shift, const mc_tile_range *blocks)
{
    for (int row = blocks->miny; row < blocks->maxy; row++)
        for (int column = blocks->minx; column < blocks->maxx; column++)
            append_block(keys, level, shift, column, row);
}

void
mc_surrogates_add_range(mc_surrogates *keys, const char *tileset, const mc_grid *grid, int z,
                        const mc_tile_range *range)
{
    level_key level;
    const mc_tile_range smallest = blocks_of(range, block_shifts[0]);
    if (count_blocks(&smallest) > BLOCKS_MAX) {
        mc_surrogates_add_map(keys, tileset);
        return;
    }
    name_level(&level, tileset, grid, z);
    append_key(keys, level.text, level.tileset);
    append_key(keys, level.text, level.size);
    for (int i = 0; i < BLOCK_SIZES && has_blocks(&level, block_shifts[i]); i++) {
        const mc_tile_range blocks = blocks_of(range, block_shifts[i]);
        append_blocks(keys, &level, block_shifts[i], &blocks);
    }
}

void
mc_surrogates_add_map(mc_surrogates *keys, const char *tileset)
{
    char key[MC_SURROGATE_KEY_MAX];
    char *end = put_key_name(key, tileset);
    append_key(keys, key, (size_t)(end - key));
    memcpy(end, MAPS_KEY, sizeof(MAPS_KEY) - 1);
    append_key(keys, key, (size_t)(end - key) + sizeof(MAPS_KEY) - 1);
}

const char *
mc_surrogates_end(mc_surrogates *keys, char separator, apr_pool_t *pool)
{
    static const char unnamed[] = MC_SURROGATE_ALL " " MAPS_KEY;
    char *text = keys->overflown ? apr_pstrdup(pool, unnamed) : apr_pstrmemdup(pool, keys->text, keys->size);
    for (char *c = text; separator != ' ' && *c != '\0'; c++)
        if (*c == ' ')
            *c = separator;
    return text;
}

/* ---- of purges */

/* Those of the blocks of the smallest size of which few cover the range; false: not even the largest does. */
static bool
visit_cover(const level_key *level, const mc_tile_range *range, mc_surrogate_visit *visit, void *baton)
{
    char key[MC_SURROGATE_KEY_MAX];
    for (int i = 0; i < BLOCK_SIZES && has_blocks(level, block_shifts[i]); i++) {
        const mc_tile_range blocks = blocks_of(range, block_shifts[i]);
        if (count_blocks(&blocks) > BLOCKS_MAX)
            continue;
        for (int row = blocks.miny; row < blocks.maxy; row++)
            for (int column = blocks.minx; column < blocks.maxx; column++) {
                *put_block_key(key, level, block_shifts[i], column, row) = '\0';
                visit(baton, key);
            }
        return true;
    }
    return false;
}

void
mc_surrogates_of_changed(const char *tileset, const mc_grid *grid, int z, const mc_tile_range *range,
                         mc_surrogate_visit *visit, void *baton)
{
    level_key level;
    if (range->minx >= range->maxx || range->miny >= range->maxy)
        return;
    name_level(&level, tileset, grid, z);
    level.text[level.size] = '\0';
    if (!visit_cover(&level, range, visit, baton))
        visit(baton, level.text);
    memcpy(level.text + level.tileset, MAPS_KEY, sizeof(MAPS_KEY));
    visit(baton, level.text);
    visit(baton, MAPS_KEY);
}

bool
mc_surrogate_tileset(char *tileset, const char *key)
{
    const size_t size = strcspn(key, ":");
    if (size == 0 || size >= MC_SURROGATE_KEY_MAX)
        return false;
    memcpy(tileset, key, size);
    tileset[size] = '\0';
    return true;
}
