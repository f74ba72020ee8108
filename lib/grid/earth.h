/* Constants of the earth and of web Mercator. */
#ifndef MC_GRID_EARTH_H
#define MC_GRID_EARTH_H

/* Metres: the equatorial radius of WGS 84, and the radius of the sphere of web Mercator. */
#define MC_EARTH_RADIUS 6378137.0

/* Metres of a degree at the equator, as MapCache counts them. */
#define MC_METRES_PER_DEGREE (MC_EARTH_RADIUS * 2 * 3.14159265358979323846 / 360)

/* Metres: half of the equator of web Mercator. */
#define MC_WEB_MERCATOR_HALF 20037508.342789244
/* The same length, rounded another way: the edge of the builtin grids, as MapCache has it. */
#define MC_WEB_MERCATOR_EDGE 20037508.3427892480

/* Metres: the width of the standardised rendering pixel, to which scale denominators refer (OGC 05-078r4, 10.2). */
#define MC_PIXEL_METRES 0.00028

#endif
