/*
 * Where a tile lies in the layouts of the cache "disk": those of MapCache (docs/reference/configuration.md 5.5), and
 * those of other programs, whose files are read and written in place. MapProxy counts from the corner where its grid
 * begins, GeoWebCache from the lower left corner.
 */
#include <stdio.h>
#include <string.h>

#include "cache/disk/disk_base.h"

static const char *const layout_names[LAYOUT_COUNT] = {
    [TILECACHE] = "tilecache",
    [ARCGIS] = "arcgis",
    [WORLDWIND] = "worldwind",
    [TEMPLATE] = "template",
    [MAPPROXY_TC] = "mapproxy-tc",
    [MAPPROXY_MP] = "mapproxy-mp",
    [MAPPROXY_ARCGIS] = "mapproxy-arcgis",
    [QUADKEY] = "quadkey",
    [GEOWEBCACHE] = "geowebcache",
};

const char *
mc_disk_layout_name(layout layout)
{
    return layout_names[layout];
}

void
mc_disk_put_folder(mc_text_out *out, const disk_cache *cache, const mc_tile_key *key)
{
    mc_text_put_string(out, cache->root);
    mc_text_put(out, "/", 1);
    mc_text_put_tileset(out, key);
    mc_text_put(out, "/", 1);
    mc_text_put_string(out, key->grid->name);
}

/* A digit of two bits for each level, that of the column the lower one. */
static void
print_quadkey(char *place, int z, int x, int y)
{
    *place++ = '/';
    for (int bit = z - 1; bit >= 0; bit--) /* both numbers are of 31 bits at most */
        *place++ = bit > 30 ? '0' : (char)('0' + ((x >> bit) & 1) + 2 * ((y >> bit) & 1));
    *place++ = '.';
    *place = '\0';
}

/* A byte, and a number from 0 of at least so many digits, at most 20. */
static size_t
print_padded(char *out, char before, int number, int digits)
{
    char text[24];
    size_t size = 0;
    for (; number > 0 || (int)size < digits; number /= 10)
        text[size++] = (char)('0' + number % 10);
    *out = before;
    for (size_t i = 0; i < size; i++)
        out[1 + i] = text[size - 1 - i];
    return size + 1;
}

/* Folders of 2^(z/2+1) tiles a side. The folder's numbers have as many digits as that number, those of tiles twice as
 * many, each filled up by zeros. */
static void
print_geowebcache(char *place, size_t size, const mc_tile_key *key)
{
    int x = mc_grid_from_west(key->grid, key->z, key->x), y = mc_grid_tms_y(key->grid, key->z, key->y);
    int side = 2 << (key->z / 2 > 29 ? 29 : key->z / 2); /* beyond, all columns and rows are in the first folder */
    int digits = 1;
    for (int rest = side; side > 10 && rest >= 10; rest /= 10)
        digits++;
    size_t length = (size_t)snprintf(place, size, "_%02d", key->z);
    length += print_padded(place + length, '/', x / side, digits);
    length += print_padded(place + length, '_', y / side, digits);
    length += print_padded(place + length, '/', x, 2 * digits);
    length += print_padded(place + length, '_', y, 2 * digits);
    memcpy(place + length, ".", 2);
}

static void
print_place(char *place, size_t size, layout layout, const mc_tile_key *key)
{
    int z = key->z, x = key->x, y = key->y;
    if (layout == WORLDWIND)
        snprintf(place, size, "/%d/%04d/%04d_%04d.", z, y, y, x);
    else if (layout == ARCGIS || layout == MAPPROXY_ARCGIS)
        snprintf(place, size, "/L%02d/R%08x/C%08x.", z, (unsigned)y, (unsigned)x);
    else if (layout == MAPPROXY_MP)
        snprintf(place, size, "/%02d/%04d/%04d/%04d/%04d.", z, x / 10000, x % 10000, y / 10000, y % 10000);
    else if (layout == QUADKEY)
        print_quadkey(place, z, x, y);
    else if (layout == GEOWEBCACHE)
        print_geowebcache(place, size, key);
    else
        snprintf(place, size, "/%02d/%03d/%03d/%03d/%03d/%03d/%03d.", z, x / 1000000, x / 1000 % 1000, x % 1000,
                 y / 1000000, y / 1000 % 1000, y % 1000);
}

mc_error *
mc_disk_tile_path(char *path, const disk_cache *cache, const mc_tile_key *tile, apr_pool_t *pool)
{
    char place[512]; /* a quadkey has a digit for each of 256 levels */
    mc_tile_key key = *tile;
    if (cache->extension != NULL)
        key.extension = cache->extension;
    if (cache->layout == TEMPLATE)
        return mc_template_expand(path, cache->template, &key, pool);
    mc_text_out out = { .out = path };
    if (cache->layout > TEMPLATE) {
        MC_TRY(mc_template_expand(path, cache->template, &key, pool));
        out.length = strlen(path);
    } else if (cache->layout == WORLDWIND) {
        mc_text_put_string(&out, cache->root);
    } else {
        mc_disk_put_folder(&out, cache, &key);
        for (int i = key.dimension_count - 1; i >= 0; i--) {
            mc_text_put(&out, "/", 1);
            mc_text_put_dimension(&out, key.dimensions[i].value, false);
        }
    }
    print_place(place, sizeof(place), cache->layout, &key);
    mc_text_put_string(&out, place);
    mc_text_put_string(&out, key.extension);
    return mc_text_check(&out, &key, pool);
}
