/* What the checks of the doctor share. */
#ifndef MC_DOCTOR_DOCTOR_PRIVATE_H
#define MC_DOCTOR_DOCTOR_PRIVATE_H

#include <stdio.h>

#include "db/postgres/postgres.h"
#include "doctor/doctor.h"

/* A setting of a database; bytes where it has a unit of bytes. */
typedef struct mc_doctor_settings {
    double shared_buffers, work_mem, random_page_cost, max_connections, reserved_connections;
} mc_doctor_settings;

/* A table that the configuration shows, with one of its spatial columns. */
typedef struct mc_doctor_table {
    const char *shown;                          /* as configured, for messages */
    const char *schema, *name, *column, *index; /* as they are, unquoted; index NULL: none on the column */
    const char *kind;                           /* pg_class.relkind */
    bool geography, readable, has_statistics;
    double rows, blocks; /* rows as PostgreSQL estimates them, -1: not known; blocks of the files */
    double live, dead, modified;
} mc_doctor_table;

/* One of the databases of the configuration. */
typedef struct mc_doctor_database {
    int number; /* from 1 */
    const char *connection, *name;
    mc_postgres_session *session; /* NULL: no connection; a read-only transaction is open */
    mc_doctor_settings settings;
    double hits, reads, temporary_bytes, temporary_files, used_connections;
    double table_bytes;         /* of the shown tables, with their indexes */
    bool local;                 /* the server runs on this machine */
    apr_array_header_t *tables; /* of mc_doctor_table */
} mc_doctor_database;

/* A cache that holds tiles in files. */
typedef struct mc_doctor_store {
    const mc_cache *cache;
    const char *path, *file_system, *mount_options;
    bool single, network, layered; /* one file; on a file system of a network, of layers */
    bool written;                  /* tiles are stored while clients ask */
} mc_doctor_store;

struct mc_doctor {
    const mc_config *config;
    const mc_doctor_options *options;
    mc_doctor_report *report;
    apr_array_header_t *databases; /* of mc_doctor_database * */
    apr_array_header_t *stores;    /* of mc_doctor_store */
    mc_ctx *ctx;
    apr_pool_t *pool;
    mc_error *failed; /* of the access log */
};

/* Adds a finding, whose texts are made harmless. */
void mc_doctor_find(mc_doctor *doctor, const mc_finding *finding);
void mc_doctor_miss(mc_doctor *doctor, const mc_doctor_check *check, const char *format, ...) MC_PRINTF(3, 4);

/* Opens the databases and reads what the checks need of them; what does not answer is a gap. */
void mc_doctor_open_databases(mc_doctor *doctor);
void mc_doctor_close_databases(mc_doctor *doctor);

/* Begins the transaction of a session: read-only, five seconds for each statement. */
mc_error *mc_doctor_begin(const mc_doctor_database *database, mc_doctor *doctor) MC_CHECKED;

/* Rows as arrays of texts (const char *const *; NULL: null), at most 1,000. After an error the transaction is a new
 * one. */
mc_error *mc_doctor_ask(apr_array_header_t **rows, const mc_doctor_database *database, const char *sql,
                        const char *const *params, int count, mc_doctor *doctor) MC_CHECKED;

/* The tables of all databases, without which there is nothing to be checked. */
void mc_doctor_read_tables(mc_doctor *doctor, mc_doctor_database *database);

/* Stores in files, with their file systems. */
void mc_doctor_find_stores(mc_doctor *doctor);

/* Where a path is mounted; "" where that is not known. */
typedef struct mc_doctor_mount {
    const char *type, *options;
} mc_doctor_mount;

/* Of lines as /proc/self/mountinfo has them (proc(5)): the longest mount point that the path is below. */
mc_doctor_mount mc_doctor_find_mount(FILE *mounts, const char *path, apr_pool_t *pool);

/* Whether a type of file system is one of a network. */
bool mc_doctor_is_network(const char *type);

/* mc_doctor_check_huge_pages by what the kernel says: "always madvise [never]". */
void mc_doctor_judge_huge_pages(mc_doctor *doctor, const mc_doctor_check *check, const char *modes);

/* A word for a shell, in quotes; NULL where it cannot be written on one line. */
const char *mc_doctor_shell_word(const char *text, apr_pool_t *pool);

void mc_doctor_check_descriptors(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_file_systems(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_mount_options(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_huge_pages(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_connections(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_shared_buffers(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_work_mem(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_page_cost(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_spatial_index(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_clustering(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_statistics(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_dead_rows(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_overviews(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_sqlite(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_drawing(mc_doctor *doctor, const mc_doctor_check *check);
void mc_doctor_check_memory(mc_doctor *doctor, const mc_doctor_check *check);

#endif
