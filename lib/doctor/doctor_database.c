/* The databases of a configuration: what the checks need to know of each. */
#include <apr_strings.h>
#include <string.h>

#include "changes/watch.h"
#include "doctor/doctor_private.h"
#include "mapcache/tileset.h"
#include "text/text.h"

/* "128 kB" of pg_settings in bytes: the setting times its unit ("8kB", "MB"); a number without a unit as it is. */
static double
read_setting(const char *setting, const char *unit)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = { { "B", 1 }, { "kB", 1024 }, { "MB", 1048576 }, { "GB", 1073741824 }, { "TB", 1099511627776.0 } };
    double value, times = 1;
    if (setting == NULL || !mc_parse_double(&value, setting))
        return -1;
    if (unit == NULL)
        return value;
    size_t digits = strspn(unit, "0123456789");
    if (digits > 0 && digits < 8) {
        char number[8] = "";
        memcpy(number, unit, digits);
        if (!mc_parse_double(&times, number))
            return -1;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit + digits, units[i].name) == 0)
            return value * times * units[i].bytes;
    return -1;
}

static void
take_setting(mc_doctor_settings *settings, const char *name, double value)
{
    const struct {
        const char *name;
        double *value;
    } known[] = { { "shared_buffers", &settings->shared_buffers },
                  { "work_mem", &settings->work_mem },
                  { "random_page_cost", &settings->random_page_cost },
                  { "max_connections", &settings->max_connections },
                  { "superuser_reserved_connections", &settings->reserved_connections } };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].name, name) == 0)
            *known[i].value = value;
}

static double
number_or(const char *text, double otherwise)
{
    double value;
    return text != NULL && mc_parse_double(&value, text) ? value : otherwise;
}

static mc_error *
read_database_facts(mc_doctor_database *database, mc_doctor *doctor)
{
    apr_array_header_t *rows;
    database->settings = (mc_doctor_settings){ -1, -1, -1, -1, 0 };
    MC_TRY(mc_doctor_ask(&rows, database,
                         "SELECT name, setting, unit FROM pg_catalog.pg_settings WHERE name IN ('shared_buffers', "
                         "'work_mem', 'random_page_cost', 'max_connections', 'superuser_reserved_connections')",
                         NULL, 0, doctor));
    for (int i = 0; i < rows->nelts; i++) {
        const char *const *row = APR_ARRAY_IDX(rows, i, const char *const *);
        if (row[0] != NULL)
            take_setting(&database->settings, row[0], read_setting(row[1], row[2]));
    }
    MC_TRY(mc_doctor_ask(
        &rows, database,
        "SELECT d.datname, d.blks_hit::float8, d.blks_read::float8, d.temp_files::float8, d.temp_bytes::float8,"
        " (SELECT sum(numbackends) FROM pg_catalog.pg_stat_database)::float8,"
        " CASE WHEN inet_server_addr() IS NULL OR inet_server_addr() = inet_client_addr() THEN 1 ELSE 0 END"
        " FROM pg_catalog.pg_stat_database d WHERE d.datname = current_database()",
        NULL, 0, doctor));
    if (rows->nelts == 0)
        return MC_OK;
    const char *const *row = APR_ARRAY_IDX(rows, 0, const char *const *);
    database->name = row[0] == NULL ? database->name : row[0];
    database->hits = number_or(row[1], 0);
    database->reads = number_or(row[2], 0);
    database->temporary_files = number_or(row[3], 0);
    database->temporary_bytes = number_or(row[4], 0);
    database->used_connections = number_or(row[5], 1) - 1; /* without this one */
    database->local = number_or(row[6], 0) > 0;
    return MC_OK;
}

static mc_doctor_database *
add_database(mc_doctor *doctor, const char *connection)
{
    for (int i = 0; i < doctor->databases->nelts; i++) {
        mc_doctor_database *known = APR_ARRAY_IDX(doctor->databases, i, mc_doctor_database *);
        if (strcmp(known->connection, connection) == 0)
            return known;
    }
    mc_doctor_database *database = apr_pcalloc(doctor->pool, sizeof(*database));
    database->number = doctor->databases->nelts + 1;
    database->connection = connection;
    database->name = apr_psprintf(doctor->pool, "number %d", database->number);
    database->tables = apr_array_make(doctor->pool, 4, sizeof(mc_doctor_table));
    APR_ARRAY_PUSH(doctor->databases, mc_doctor_database *) = database;
    return database;
}

static void
open_database(mc_doctor_database *database, mc_doctor *doctor)
{
    mc_error *error = mc_postgres_session_open(&database->session, doctor->ctx->process->postgres, database->connection,
                                               doctor->ctx, doctor->pool);
    if (error != MC_OK)
        database->session = NULL;
    else
        error = mc_doctor_begin(database, doctor);
    if (error == MC_OK)
        error = read_database_facts(database, doctor);
    if (error == MC_OK) {
        mc_doctor_read_tables(doctor, database);
        return;
    }
    mc_postgres_session_close(database->session);
    database->session = NULL;
    mc_doctor_miss(doctor, NULL, "database %s: %s", database->name, mc_error_chain(error, doctor->pool));
}

static void
add_shown_table(mc_doctor_database *database, const char *table)
{
    for (int i = 0; i < database->tables->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(database->tables, i, mc_doctor_table).shown, table) == 0)
            return;
    APR_ARRAY_PUSH(database->tables, mc_doctor_table) = (mc_doctor_table){ .shown = table };
}

void
mc_doctor_open_databases(mc_doctor *doctor)
{
    const mc_config *config = doctor->config;
    for (int i = 0; i < config->databases->nelts; i++)
        add_database(doctor, APR_ARRAY_IDX(config->databases, i, const char *));
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_watch *shown = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *)->shown;
        for (int j = 0; shown != NULL && j < shown->tables->nelts; j++) {
            const mc_watch_table *table = &APR_ARRAY_IDX(shown->tables, j, const mc_watch_table);
            if (table->connection != NULL)
                add_shown_table(add_database(doctor, table->connection), table->table);
        }
    }
    for (int i = 0; i < doctor->databases->nelts; i++)
        open_database(APR_ARRAY_IDX(doctor->databases, i, mc_doctor_database *), doctor);
}

/* The transactions end with the connections. */
void
mc_doctor_close_databases(mc_doctor *doctor)
{
    for (int i = 0; i < doctor->databases->nelts; i++)
        mc_postgres_session_close(APR_ARRAY_IDX(doctor->databases, i, mc_doctor_database *)->session);
}
