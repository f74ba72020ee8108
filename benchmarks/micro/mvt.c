/* Milliseconds of processor time of the steps of a vector tile, the best of several rounds: `micro_mvt FILE.shp [tiles
 * [rounds]]`, the middle one of so many tiles along the longer side of the data. Each feature has its number as an
 * attribute and one of eight kinds. */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>

#include "steps.h"
#include "vector/mvt/mvt.h"
#include "vector/shapefile/shp.h"

enum { READ, TAKE, FINISH, STEPS };
static const char *const names[STEPS] = { "read", "simplify, clip, encode", "write and compress" };

/* A tile, and what it is made of. */
typedef struct tile_case {
    const mc_shp *file;
    mc_mvt_options options;
    mc_extent box; /* with the buffer */
    mc_pixel_grid pixel_grid;
} tile_case;

static tile_case
middle_tile(const mc_shp *file, int tiles)
{
    double side = fmax(file->box.maxx - file->box.minx, file->box.maxy - file->box.miny) / tiles;
    int column = (int)((file->box.maxx - file->box.minx) / side / 2),
        row = (int)((file->box.maxy - file->box.miny) / side / 2);
    double x = file->box.minx + column * side, y = file->box.maxy - row * side;
    tile_case t = { .file = file,
                    .options = { 4096, 64, 1, 100000, 8 << 20, 20, 0 },
                    .box = { x - side / 32, y - side - side / 32, x + side + side / 32, y + side / 32 } };
    t.pixel_grid = mc_mvt_pixel_grid(&t.options, file->box.minx, file->box.maxy, side, side, column, row);
    return t;
}

/* Reads all features, and gives them to the tile where there is one. */
static int
add_all_features(const tile_case *t, mc_mvt *mvt, apr_pool_t *scratch)
{
    mc_ctx ctx = { .pool = scratch };
    char number[16], kind[2] = "";
    const char *const values[] = { number, kind };
    mc_shp_record record;
    mc_shp_reader reader;
    mc_geometry geometry = { 0 };
    int count = 0;
    mc_shp_begin(&reader, t->file, &t->box, scratch);
    for (; mc_shp_next(&reader, &record); count++) {
        exit_on_error(mc_shp_geometry(&geometry, &record, &t->pixel_grid, scratch));
        apr_snprintf(number, sizeof(number), "%d", count);
        kind[0] = (char)('0' + count % 8);
        const mc_feature feature = { .id = count, .geometry = &geometry, .values = values };
        if (mvt != NULL)
            exit_on_error(mc_mvt_visit(mvt, &feature, &ctx));
    }
    mc_shp_end(&reader);
    mc_geometry_free(&geometry);
    return count;
}

static void
make_vector_tile(const tile_case *t, bool tell, apr_pool_t *scratch)
{
    static const mc_field fields[] = { { "gid", MC_FIELD_INTEGER }, { "kind", MC_FIELD_INTEGER } };
    mc_ctx ctx = { .pool = scratch };
    mc_mvt_result result;
    mc_mvt *mvt = mc_mvt_create(&t->options, 1, 1, 1, scratch);
    mc_mvt_layer(mvt, "layer", fields, 2, true);
    double begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    int count = add_all_features(t, mvt, scratch);
    note_step(TAKE, begin);
    double taken = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    exit_on_error(mc_mvt_finish(&result, mvt, 0, 0, &ctx, scratch));
    note_step(FINISH, taken);
    begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    (void)add_all_features(t, NULL, scratch);
    note_step(READ, begin);
    if (tell)
        printf("%d shapes, %ld features, %lu bytes, %lu compressed\n", count, (long)result.features,
               (unsigned long)result.bytes, (unsigned long)result.packed->size);
}

int
main(int argc, char **argv)
{
    mc_shp *file;
    apr_initialize();
    apr_pool_create(&pool, NULL);
    if (argc < 2)
        return fprintf(stderr, "usage: micro_mvt FILE.shp [tiles [rounds]]\n"), 1;
    exit_on_error(mc_shp_open(&file, argv[1], NULL, pool));
    mc_shp_prepare(file, pool);
    tile_case t = middle_tile(file, argc > 2 ? atoi(argv[2]) : 1);
    for (int i = 0, rounds = argc > 3 ? atoi(argv[3]) : 10; i < rounds; i++) {
        apr_pool_t *scratch;
        apr_pool_create(&scratch, pool);
        make_vector_tile(&t, i == 0, scratch);
        apr_pool_destroy(scratch);
    }
    best[TAKE] -= best[READ];
    print_steps(names, STEPS);
    return 0;
}
