#include "cube_fixture.h"

char cube_folder[] = "/tmp/mc-cube-XXXXXX";

void
cube_process(void)
{
    ck_assert_ptr_nonnull(mkdtemp(strcpy(cube_folder, "/tmp/mc-cube-XXXXXX")));
    process.handles = mc_handles_create(16);
    ck_ok(mc_workers_create(&process.workers, 2, pool));
}

void
cube_process_end(void)
{
    mc_workers_destroy(process.workers);
    mc_handles_destroy(process.handles);
    ck_assert_int_eq(system(apr_pstrcat(pool, "rm -rf ", cube_folder, NULL)), 0);
}

const mc_cube *
cube_from(const char *type, const char *where, const char *shape, const char **complaint)
{
    mc_build build = { .pool = pool, .diagnostics = mc_diagnostics_create(pool) };
    const char *text = apr_psprintf(pool, "<cube name=\"c\" type=\"%s\">%s%s</cube>", type, shape, where);
    const mc_cube *cube = mc_cube_from_config(config_elements(text), &build);
    mc_error *error = mc_diagnostics_error(build.diagnostics, pool);
    if (complaint != NULL)
        *complaint = error == MC_OK ? "" : error->message;
    return cube;
}

const mc_cube *
cube_in_file(const char *shape)
{
    const mc_cube *cube =
        cube_from("sqlite3", apr_pstrcat(pool, "<dbfile>", cube_folder, "/cube.db</dbfile>", NULL), shape, NULL);
    ck_assert_ptr_nonnull(cube);
    return cube;
}

apr_array_header_t *
cube_planes(const mc_cube *cube, mc_cube_window window)
{
    apr_array_header_t *planes = NULL;
    ck_ok(mc_cube_read(&planes, cube, NULL, 0, INT32_MAX, &window, &ctx, pool));
    return planes;
}
