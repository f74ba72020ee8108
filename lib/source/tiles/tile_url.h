/* Templates of the addresses of tiles: {z}, {x}, {y}, {-y}, {q}, {s}, and the names that WMTS gives them. */
#ifndef MC_SOURCE_TILES_TILE_URL_H
#define MC_SOURCE_TILES_TILE_URL_H

#include "mapcache/tile.h"

typedef struct mc_tile_url mc_tile_url;

/* What a template is filled in with. */
typedef struct mc_tile_place {
    int z;              /* {z}: level, as the server counts */
    int column;         /* {x}, {TileCol}: from the west */
    int row;            /* {y}, {TileRow}: from the north */
    int row_from_south; /* {-y} */
    const char *matrix; /* {TileMatrix} */
    int dimension_count;
    const mc_dimension_value *dimensions; /* {dim:NAME}; of WMTS also {NAME} */
} mc_tile_place;

/* Rules of one kind of source. */
typedef struct mc_tile_url_rules {
    const char *const *subdomains; /* for {s}, ended by NULL; NULL: there are none */
    bool dimension_names;          /* other names in braces are those of dimensions */
    bool append_dimensions;        /* dimensions follow as parameters of the query */
} mc_tile_url_rules;

/* NULL after a complaint at `at`: the text is no address of http or https, has a token that does not exist, or does not
 * tell tiles apart. The rules live as long as the template. */
mc_tile_url *mc_tile_url_compile(const char *text, const mc_tile_url_rules *rules, const mc_node *at, mc_build *build);

/* The address of one tile. MC_ERR_CONFIG for a dimension that the tileset does not have, MC_ERR_INVALID_DIMENSION for a
 * value that would lead to another folder. */
mc_error *mc_tile_url_expand(const char **url, const mc_tile_url *template, const mc_tile_place *place,
                             apr_pool_t *pool) MC_CHECKED;

#endif
