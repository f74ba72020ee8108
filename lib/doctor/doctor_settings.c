/* Checks of PostgreSQL's settings. */
#include <apr_strings.h>

#include "base/budget.h"
#include "doctor/doctor_private.h"

#define MEGABYTE 1048576.0

typedef void database_check(mc_doctor *doctor, const mc_doctor_check *check, const mc_doctor_database *database);

/* Those that answer. */
static void
check_each_database(mc_doctor *doctor, const mc_doctor_check *check, database_check *run)
{
    for (int i = 0; i < doctor->databases->nelts; i++) {
        const mc_doctor_database *database = APR_ARRAY_IDX(doctor->databases, i, const mc_doctor_database *);
        if (database->session != NULL)
            run(doctor, check, database);
    }
}

static const char *
subject_of(const mc_doctor_check *check, const mc_doctor_database *database, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%s of database %s", check->title, database->name);
}

static void
check_room_for_connections(mc_doctor *doctor, const mc_doctor_check *check, const mc_doctor_database *database)
{
    const mc_config *config = doctor->config;
    int processes = doctor->options->processes, each = mc_config_connections(config, processes);
    int wanted = processes * each + (config->changes != NULL ? 2 * processes : 0);
    double room = database->settings.max_connections - database->settings.reserved_connections;
    if (database->settings.max_connections < 0 || wanted + database->used_connections <= room)
        return;
    int right = (int)(wanted + database->used_connections + database->settings.reserved_connections);
    apr_pool_t *pool = doctor->pool;
    mc_doctor_find(
        doctor,
        &(mc_finding){
            .check = check,
            .subject = subject_of(check, database, pool),
            .found = apr_psprintf(pool,
                                  "%d connections may be wanted (processes: %d, for each: %d%s), others have %.0f; "
                                  "there is room for %.0f",
                                  wanted, processes, each, config->changes != NULL ? ", 2 for changes" : "",
                                  database->used_connections, room),
            .why = "a request that gets no connection waits, and then fails",
            .todo = apr_psprintf(pool, "max_connections = %d (a restart of PostgreSQL), or a smaller <connection_pool>",
                                 right),
            .factor = 1,
            .fix = apr_psprintf(pool, "ALTER SYSTEM SET max_connections = %d; -- needs a restart", right),
            .database = database->number });
}

void
mc_doctor_check_connections(mc_doctor *doctor, const mc_doctor_check *check)
{
    check_each_database(doctor, check, check_room_for_connections);
}

/* As large as the tables, up to a quarter of the memory, which is what PostgreSQL's manual starts from. */
static void
check_shared_memory(mc_doctor *doctor, const mc_doctor_check *check, const mc_doctor_database *database)
{
    double has = database->settings.shared_buffers, right = database->table_bytes * 1.25;
    double most = database->local ? (double)mc_machine_memory() / 4 : right;
    double all = database->hits + database->reads;
    right = right < most ? right : most;
    if (has < 0 || has >= right * 0.8 || all < 1000 || database->reads < all / 100)
        return;
    apr_pool_t *pool = doctor->pool;
    long megabytes = (long)(right / MEGABYTE) + 1;
    mc_doctor_find(
        doctor,
        &(mc_finding){
            .check = check,
            .subject = subject_of(check, database, pool),
            .found = apr_psprintf(pool,
                                  "shared_buffers has %.0f MB, the shown tables and their indexes %.0f MB; "
                                  "measured by PostgreSQL: %.1f %% of the blocks were not in it",
                                  has / MEGABYTE, database->table_bytes / MEGABYTE, 100 * database->reads / all),
            .why = "a block that is not there is read from the system or the disk, for each map again",
            .todo = apr_psprintf(pool, "shared_buffers = %ldMB (a restart of PostgreSQL)%s", megabytes,
                                 database->local ? ""
                                                 : ", at most a quarter of the memory of its machine, which "
                                                   "cannot be seen from here"),
            .factor = 1,
            .fix = apr_psprintf(pool, "ALTER SYSTEM SET shared_buffers = '%ldMB'; -- needs a restart", megabytes),
            .database = database->number });
}

void
mc_doctor_check_shared_buffers(mc_doctor *doctor, const mc_doctor_check *check)
{
    check_each_database(doctor, check, check_shared_memory);
}

static void
check_temporary_files(mc_doctor *doctor, const mc_doctor_check *check, const mc_doctor_database *database)
{
    double has = database->settings.work_mem;
    if (has < 0 || database->temporary_files < 1)
        return;
    apr_pool_t *pool = doctor->pool;
    double each = database->temporary_bytes / database->temporary_files;
    double right = has * 2 > each * 2 ? has * 2 : each * 2; /* sorted rows take more room in memory than in a file */
    right = right < 256 * MEGABYTE ? right : 256 * MEGABYTE;
    if (right <= has)
        return;
    long megabytes = (long)(right / MEGABYTE) + 1;
    mc_doctor_find(
        doctor, &(mc_finding){ .check = check,
                               .subject = subject_of(check, database, pool),
                               .found = apr_psprintf(pool,
                                                     "work_mem has %.0f kB; measured by PostgreSQL: %.0f temporary "
                                                     "files of %.0f kB each on average, of all programs",
                                                     has / 1024, database->temporary_files, each / 1024),
                               .why = "a statement whose sorting or joining does not fit in work_mem writes files",
                               .todo = apr_psprintf(pool, "work_mem = %ldMB for the role of the servers", megabytes),
                               .factor = 1,
                               .fix = apr_psprintf(pool, "ALTER ROLE CURRENT_USER SET work_mem = '%ldMB';", megabytes),
                               .database = database->number });
}

void
mc_doctor_check_work_mem(mc_doctor *doctor, const mc_doctor_check *check)
{
    check_each_database(doctor, check, check_temporary_files);
}

static void
check_cost_of_pages(mc_doctor *doctor, const mc_doctor_check *check, const mc_doctor_database *database)
{
    double has = database->settings.random_page_cost, all = database->hits + database->reads;
    if (has < 2.5 || database->tables->nelts == 0)
        return;
    apr_pool_t *pool = doctor->pool;
    mc_doctor_find(
        doctor,
        &(mc_finding){ .check = check,
                       .subject = subject_of(check, database, pool),
                       .found = apr_psprintf(pool,
                                             "random_page_cost is %.1f; measured by PostgreSQL: %.1f %% of all blocks "
                                             "were in memory",
                                             has, all > 0 ? 100 * database->hits / all : 0.0),
                       .why = "4 is for a rotating disk; with it PostgreSQL may read a whole table where its spatial "
                              "index would be faster",
                       .todo = "random_page_cost = 1.1 for the role of the servers, unless the tables stand on "
                               "rotating disks",
                       .factor = 1,
                       .fix = "ALTER ROLE CURRENT_USER SET random_page_cost = 1.1;",
                       .database = database->number });
}

void
mc_doctor_check_page_cost(mc_doctor *doctor, const mc_doctor_check *check)
{
    check_each_database(doctor, check, check_cost_of_pages);
}
