/* What names that which is remembered: of a series, and of the products of a catalogue. */
#include <string.h>

#include "footprint/footprint_private.h"

/* A text with its end, so that neighbours cannot be confused. What has grown too large is hashed away. */
static size_t
add_identity_text(mc_identity *identity, char *bytes, size_t size, const char *text)
{
    size_t length = strlen(text) + 1;
    if (size + length > MC_PATH_MAX) {
        *identity = mc_identity_of(identity, bytes, size);
        size = 0;
    }
    if (length > MC_PATH_MAX) {
        *identity = mc_identity_of(identity, text, length);
        return size;
    }
    memcpy(bytes + size, text, length);
    return size + length;
}

mc_identity
mc_series_identity(mc_identity base, const mc_batch_series *series, const char *path, unsigned generation)
{
    const mc_tile_key *key = series->key;
    const mc_level *level = &key->grid->levels[key->grid->level_count - 1];
    uint64_t head[4] = { series->how, (uint64_t)generation << 32 | (unsigned)key->dimension_count,
                         (uint64_t)(unsigned)level->columns << 32 | (unsigned)level->rows, key->grid->definition };
    char bytes[MC_PATH_MAX];
    mc_identity identity = base;
    memcpy(bytes, head, sizeof(head));
    size_t size = add_identity_text(&identity, bytes, sizeof(head), path);
    size = add_identity_text(&identity, bytes, size, key->tileset);
    size = add_identity_text(&identity, bytes, size, key->grid->name);
    for (int i = 0; i < key->dimension_count; i++)
        size = add_identity_text(&identity, bytes, size, key->dimensions[i].value);
    return mc_identity_of(&identity, bytes, size);
}

mc_identity
mc_roster_identity(const mc_batch_series *series, const mc_dimension_value *const *dimensions, int count)
{
    mc_identity identity = mc_series_identity(mc_identity_first(), series, "", 0);
    uint64_t head[2] = { series->paths, (unsigned)count };
    char bytes[MC_PATH_MAX];
    memcpy(bytes, head, sizeof(head));
    size_t size = sizeof(head);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < series->key->dimension_count; j++)
            size = add_identity_text(&identity, bytes, size, dimensions[i][j].value);
    return mc_identity_of(&identity, bytes, size);
}
