/* The table of checks, and what runs them. */
#include "doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "doctor/doctor_private.h"

static const mc_doctor_check doctor_checks[] = {
    { "spatial-index", "Spatial index of a table", mc_doctor_check_spatial_index,
      "A table that maps show has no spatial index on its column, so that every map reads the whole table." },
    { "clustering", "Order of a table", mc_doctor_check_clustering,
      "Rows that lie beside each other on the map lie in blocks far apart: measured by the blocks that the rows of a "
      "few boxes stand in." },
    { "statistics", "Statistics of a table", mc_doctor_check_statistics,
      "PostgreSQL has no statistics of a table, or more than a fifth of the rows have changed since." },
    { "dead-rows", "Dead rows of a table", mc_doctor_check_dead_rows,
      "More than a fifth of the rows of a table are dead, and are read with the others." },
    { "overviews", "Overviews", mc_doctor_check_overviews,
      "A table or shapefile of 100,000 rows or more has no overviews for the maps of a tileset, or none that maps are "
      "read from." },
    { "connections", "max_connections", mc_doctor_check_connections,
      "The server's processes may want more connections than PostgreSQL has room for." },
    { "shared-buffers", "shared_buffers", mc_doctor_check_shared_buffers,
      "The tables that maps show do not fit in shared_buffers, and reads miss it." },
    { "work-mem", "work_mem", mc_doctor_check_work_mem, "Statements of the database have written temporary files." },
    { "random-page-cost", "random_page_cost", mc_doctor_check_page_cost,
      "random_page_cost is that of rotating disks, which keeps PostgreSQL from using spatial indexes." },
    { "sqlite", "SQLite files", mc_doctor_check_sqlite,
      "A file of tiles has small pages, no index that finds a tile, or a journal that makes readers wait." },
    { "file-systems", "File systems of stores", mc_doctor_check_file_systems,
      "SQLite, LMDB or Berkeley DB files stand on a file system of a network or of layers." },
    { "mount-options", "Mount options", mc_doctor_check_mount_options,
      "Each read of a stored tile writes the time of the read (strictatime)." },
    { "memory", "memory_cache", mc_doctor_check_memory,
      "With --access-log: another size of <memory_cache> would answer more requests, or as many with less memory." },
    { "metatile", "Size of metatiles", mc_doctor_check_drawing,
      "With --draw: metatiles of another size would cost less for each tile; measured by drawing some." },
    { "descriptors", "Open files", mc_doctor_check_descriptors,
      "The limit of open files is below what stores, connections and clients of a process may need." },
    { "huge-pages", "Huge pages", mc_doctor_check_huge_pages,
      "The kernel gives no large pages to a large <memory_cache>." },
    { .id = NULL },
};

const mc_doctor_check *
mc_doctor_list(void)
{
    return doctor_checks;
}

/* The largest factor first; those of one factor in the order of the table. */
static int
compare_findings(const void *a, const void *b)
{
    const mc_finding *left = a, *right = b;
    if (left->factor > right->factor || left->factor < right->factor)
        return left->factor > right->factor ? -1 : 1;
    if (left->check != right->check)
        return left->check < right->check ? -1 : 1;
    return strcmp(left->subject, right->subject);
}

mc_error *
mc_doctor_examine(mc_doctor_report **report, const mc_config *config, const mc_doctor_options *options,
                  const mc_log *log, apr_pool_t *pool)
{
    mc_runtime *runtime;
    MC_TRY(mc_runtime_create(&runtime, config, options->processes, false, log, pool));
    mc_ctx ctx = { .pool = pool,
                   .process = mc_runtime_process(runtime),
                   .log = log,
                   .deadline = mc_clock_now() + (apr_time_t)(options->seconds * APR_USEC_PER_SEC) };
    *report = apr_pcalloc(pool, sizeof(**report));
    (*report)->findings = apr_array_make(pool, 8, sizeof(mc_finding));
    (*report)->gaps = apr_array_make(pool, 8, sizeof(mc_doctor_gap));
    (*report)->costs = apr_array_make(pool, 8, sizeof(mc_doctor_cost));
    (*report)->sizes = apr_array_make(pool, 8, sizeof(mc_doctor_size));
    mc_doctor doctor = { .config = config,
                         .options = options,
                         .report = *report,
                         .databases = apr_array_make(pool, 4, sizeof(mc_doctor_database *)),
                         .stores = apr_array_make(pool, 4, sizeof(mc_doctor_store)),
                         .ctx = &ctx,
                         .pool = pool };
    mc_doctor_find_stores(&doctor);
    mc_doctor_open_databases(&doctor);
    for (const mc_doctor_check *check = doctor_checks; check->id != NULL; check++)
        check->run(&doctor, check);
    mc_doctor_close_databases(&doctor);
    mc_runtime_destroy(runtime);
    apr_array_header_t *findings = (*report)->findings;
    if (findings->nelts > 0)
        qsort(findings->elts, (size_t)findings->nelts, sizeof(mc_finding), compare_findings);
    return doctor.failed;
}
