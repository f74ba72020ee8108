/* Cubes from configuration text, in a folder of their own or in the program's database. */
#ifndef MC_UNIT_CUBE_FIXTURE_H
#define MC_UNIT_CUBE_FIXTURE_H

#include <apr_strings.h>
#include <string.h>
#include <unistd.h>

#include "base/workers.h"
#include "config_text.h"
#include "cube/store.h"
#include "db/sqlite/handles.h"

extern char cube_folder[];

/* What a process has that stores and ingestion need. */
void cube_process(void);
void cube_process_end(void);

/* NULL: refused; the complaint is in *complaint. `where`: <dbfile> or <connection> and <table>. */
const mc_cube *cube_from(const char *type, const char *where, const char *shape, const char **complaint);

#define CUBE_PLACE "<srs>EPSG:3857</srs><extent>0 0 60 50</extent><resolution>1</resolution>"

const mc_cube *cube_in_file(const char *shape);

/* Times of tests: days from 1970. */
#define DAY(n) ((int64_t)(n)*86400 * APR_USEC_PER_SEC)

/* The planes of a window at all dates. */
apr_array_header_t *cube_planes(const mc_cube *cube, mc_cube_window window);

#define CUBE_PLANE(planes_, i_) (&APR_ARRAY_IDX(planes_, i_, mc_cube_plane))

#endif
