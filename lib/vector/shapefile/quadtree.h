/*
 * Spatial indexes beside shapefiles (.qix), in the form that MapServer, GDAL and QGIS read and write: a quadtree in
 * preorder, each node has its box, the numbers of the node's own shapes, and the length of the subtree, which a search
 * that wants nothing below the node skips.
 */
#ifndef MC_VECTOR_SHAPEFILE_QUADTREE_H
#define MC_VECTOR_SHAPEFILE_QUADTREE_H

#include <stdbool.h>

#include "mapcache/grid.h"
#include "vector/shapefile/file.h"

/* Sets the bit of each shape whose node meets the window: a superset of the shapes whose box meets the window. `bits`
 * has a bit for each shape, all zero before. False where the file is broken or made for another number of shapes;
 * `bits` may then hold anything. */
bool mc_quadtree_search(uint64_t *bits, const mc_file *file, uint32_t count, const mc_extent *window);

/* Whether the file has the head of an index for `count` shapes. */
bool mc_quadtree_fits(const mc_file *file, uint32_t count);

/*
 * Makes the index of `count` boxes (those with a minimum above their maximum are left out) in the file `path`: under
 * another name, brought to disk, and renamed once the file is complete. MC_ERR_IO where the file cannot be written,
 * MC_ERR_LIMIT where the index would be larger than 2 GB.
 */
mc_error *mc_quadtree_write(const char *path, const mc_extent *boxes, uint32_t count, apr_pool_t *pool) MC_CHECKED;

#endif
