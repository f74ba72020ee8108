/* Names of flights and locks: each metatile has one of its own, whatever its tileset, grid and values are called. */
#include <apr_strings.h>
#include <string.h>

#include "tileset/tileset_private.h"

/* A part of a name without the marks that stand between parts. */
static const char *
escape_lock_part(const char *part, apr_pool_t *pool)
{
    static const char marks[] = "%@/", digits[] = "0123456789ABCDEF";
    if (part[strcspn(part, marks)] == '\0')
        return part;
    char *escaped = apr_palloc(pool, 3 * strlen(part) + 1), *out = escaped;
    for (const char *at = part; *at != '\0'; at++)
        if (strchr(marks, *at) != NULL) {
            *out++ = '%';
            *out++ = digits[(unsigned char)*at >> 4];
            *out++ = digits[(unsigned char)*at & 15];
        } else {
            *out++ = *at;
        }
    *out = '\0';
    return escaped;
}

/* Z-MY-MX-tileset, "@" and the grid where there are several, "/" and the value of each dimension
 * (docs/reference/configuration.md 6.3). */
const char *
mc_tileset_lock_name(const mc_tileset *tileset, const mc_tile_key *key, apr_pool_t *pool)
{
    mc_metatile metatile = mc_tileset_metatile(tileset, key->grid, key->z, key->x, key->y);
    bool dense = key->grid->density > 0; /* its metatiles may be smaller ones */
    char *name = apr_psprintf(pool, "%d-%d-%d-%s", key->z, dense ? metatile.y : metatile.y / tileset->metatile_rows,
                              dense ? metatile.x : metatile.x / tileset->metatile_columns,
                              escape_lock_part(tileset->name, pool));
    if (tileset->link_count > 1 || dense)
        name = apr_pstrcat(pool, name, "@", escape_lock_part(key->grid->name, pool), NULL);
    for (int i = 0; i < key->dimension_count; i++)
        name = apr_pstrcat(pool, name, "/", escape_lock_part(key->dimensions[i].value, pool), NULL);
    return name;
}

/* Several configurations of a process may have tilesets of one name: who waits for a flight looks into the cache of its
 * own tileset afterwards. */
const char *
mc_tileset_flight_name(const mc_tileset *tileset, const char *lock_name, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%" APR_UINT64_T_FMT " %s", (apr_uint64_t)tileset->cache->serial, lock_name);
}
