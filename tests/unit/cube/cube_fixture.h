/* Cubes from configuration text, in a folder of their own or in the program's database. */
#ifndef MC_UNIT_CUBE_FIXTURE_H
#define MC_UNIT_CUBE_FIXTURE_H

#include <apr_strings.h>
#include <string.h>
#include <unistd.h>

#include "base/workers.h"
#include "cube/store.h"
#include "db/sqlite/handles.h"
#include "unit.h"

static char cube_folder[] = "/tmp/mc-cube-XXXXXX";

/* What a process has that stores and ingestion need. */
__attribute__((unused)) static void
cube_process(void)
{
    ck_assert_ptr_nonnull(mkdtemp(strcpy(cube_folder, "/tmp/mc-cube-XXXXXX")));
    process.handles = mc_handles_create(16);
    ck_ok(mc_workers_create(&process.workers, 2, pool));
}

__attribute__((unused)) static void
cube_process_end(void)
{
    mc_workers_destroy(process.workers);
    mc_handles_destroy(process.handles);
    ck_assert_int_eq(system(apr_pstrcat(pool, "rm -rf ", cube_folder, NULL)), 0);
}

/* NULL: refused; the complaint is in *complaint. `where`: <dbfile> or <connection> and <table>. */
__attribute__((unused)) static const mc_cube *
cube_from(const char *type, const char *where, const char *shape, const char **complaint)
{
    mc_build build = { .pool = pool, .diagnostics = mc_diagnostics_create(pool) };
    mc_node *root;
    const char *text =
        apr_psprintf(pool, "<mapcache><cube name=\"c\" type=\"%s\">%s%s</cube></mapcache>", type, shape, where);
    ck_ok(mc_config_parse_text(&root, "test.xml", text, strlen(text), pool));
    const mc_cube *cube = mc_cube_from_config(mc_node_child(root, "cube"), &build);
    mc_error *error = mc_diagnostics_error(build.diagnostics, pool);
    if (complaint != NULL)
        *complaint = error == MC_OK ? "" : error->message;
    return cube;
}

#define CUBE_PLACE "<srs>EPSG:3857</srs><extent>0 0 60 50</extent><resolution>1</resolution>"

__attribute__((unused)) static const mc_cube *
cube_in_file(const char *shape)
{
    const mc_cube *cube =
        cube_from("sqlite3", apr_pstrcat(pool, "<dbfile>", cube_folder, "/cube.db</dbfile>", NULL), shape, NULL);
    ck_assert_ptr_nonnull(cube);
    return cube;
}

/* Times of tests: days from 1970. */
#define DAY(n) ((int64_t)(n)*86400 * APR_USEC_PER_SEC)

/* The planes of a window at all dates. */
__attribute__((unused)) static apr_array_header_t *
cube_planes(const mc_cube *cube, mc_cube_window window)
{
    apr_array_header_t *planes = NULL;
    ck_ok(mc_cube_read(&planes, cube, NULL, 0, INT32_MAX, &window, &ctx, pool));
    return planes;
}

#define CUBE_PLANE(planes_, i_) (&APR_ARRAY_IDX(planes_, i_, mc_cube_plane))

#endif
