/* `mapcache invalidate --sql [TABLE ...]`: prints the SQL that makes or drops the change log and the triggers of
 * tables. `--expire-list`: invalidate_list.c. */
#include <apr_strings.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "changes/install_sql.h"
#include "changes/watch.h"
#include "cli/commands.h"
#include "cli/common/help.h"
#include "cli/common/json_line.h"
#include "invalidate.h"
#include "mapcache/server.h"

#define AT(field) offsetof(mc_invalidate_options, field)

static const mc_cli_option invalidate_rows[] = {
    MC_OPTION_HEADING("Changes in PostgreSQL"),
    MC_OPTION_FLAG("sql", 0, AT(sql), "print the SQL"),
    MC_OPTION_TEXT("config", 'c', "FILE", AT(config), "configuration: without a TABLE, all tables that its maps show"),
    MC_OPTION_FLAG("drop", 0, AT(drop), "what drops the triggers; without tables, the whole log with all triggers"),
    MC_OPTION_TEXT("geometry", 0, "COLUMN", AT(geometry),
                   "the column whose boxes are logged; default: all spatial ones"),
    MC_OPTION_TEXT("role", 0, "NAME", AT(role), "role of the servers that read the log, if it is not the log's owner"),
    MC_OPTION_HEADING("Expire lists"),
    MC_OPTION_TEXT("expire-list", 0, "FILE", AT(list),
                   "mark the tiles that lines z/x/y of osm2pgsql or imposm name as old; - reads standard input"),
    MC_OPTION_TEXT("tileset", 't', "NAME", AT(tileset), "only of that tileset; default: all that are drawn"),
    MC_OPTION_TEXT("grid", 'g', "NAME", AT(grid), "only of that grid; default: all of them"),
    MC_OPTION_VALUE("zoom", 'z', "MIN[,MAX]", AT(zooms), mc_seed_parse_zooms,
                    "only these levels, whatever levels the list names; default: all"),
    MC_OPTION_DRY_RUN(AT(dry_run), "say how many tiles would be marked, mark none"),
    MC_OPTION_VERBOSE(AT(verbose)),
    MC_OPTION_HEADING("General"),
    MC_OPTION_JSON(AT(json), "an object for each database, with its tables and its SQL; or for each tileset"),
    MC_OPTION_END,
};

const mc_cli_option_table mc_invalidate_option_table = { invalidate_rows, sizeof(mc_invalidate_options), NULL };

const char *
mc_check_invalidate_options(mc_cli_call *call)
{
    const mc_invalidate_options *options = call->options;
    bool tables = call->arguments->nelts > 0;
    if (options->sql == (options->list != NULL))
        return "one of --sql and --expire-list is needed";
    if (options->list != NULL)
        return mc_check_expire_options(call);
    if (options->tileset != NULL || options->grid != NULL || options->zooms.has_zoom || options->dry_run)
        return "--tileset, --grid, --zoom and --dry-run are for --expire-list";
    if (tables && options->config != NULL)
        return "a TABLE and --config say both which tables are meant";
    if (!tables && options->config == NULL && !options->drop)
        return "no TABLE is named, and no --config that shows one";
    if (options->geometry != NULL && (call->arguments->nelts != 1 || options->drop))
        return "--geometry is for one TABLE";
    for (int i = 0; i < call->arguments->nelts; i++)
        if (*APR_ARRAY_IDX(call->arguments, i, const char *) == '\0')
            return "the name of a TABLE is an empty text";
    return NULL;
}

/* A database of the configuration and those of its tables that maps show. */
typedef struct shown_database {
    const char *connection;
    apr_array_header_t *tables; /* of const char * */
} shown_database;

static apr_array_header_t *
tables_of_database(apr_array_header_t *databases, const char *connection, apr_pool_t *pool)
{
    for (int i = 0; i < databases->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(databases, i, shown_database).connection, connection) == 0)
            return APR_ARRAY_IDX(databases, i, shown_database).tables;
    apr_array_header_t *tables = apr_array_make(pool, 4, sizeof(const char *));
    APR_ARRAY_PUSH(databases, shown_database) = (shown_database){ connection, tables };
    return tables;
}

static void
add_shown_tables(apr_array_header_t *databases, const mc_watch *watch, apr_pool_t *pool)
{
    for (int i = 0; i < watch->tables->nelts; i++) {
        const mc_watch_table *table = &APR_ARRAY_IDX(watch->tables, i, const mc_watch_table);
        apr_array_header_t *tables = tables_of_database(databases, table->connection, pool);
        bool known = false;
        for (int j = 0; j < tables->nelts && !known; j++)
            known = strcmp(APR_ARRAY_IDX(tables, j, const char *), table->table) == 0;
        if (!known)
            APR_ARRAY_PUSH(tables, const char *) = table->table;
    }
}

static void
print_script(const apr_array_header_t *tables, const mc_invalidate_options *options, apr_pool_t *pool)
{
    const mc_changes_script script = { tables, options->geometry, options->role, options->drop };
    const char *sql = mc_changes_write_script(&script, pool);
    if (!options->json) {
        fputs(sql, stdout);
        return;
    }
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_open_array(line.json, "tables");
    for (int i = 0; i < tables->nelts; i++)
        mc_json_string(line.json, NULL, APR_ARRAY_IDX(tables, i, const char *));
    mc_json_close(line.json);
    mc_json_string(line.json, "sql", sql);
    mc_cli_json_line_end(&line);
}

/* All tables that the maps of a configuration show. */
static int
print_configured(const mc_cli_call *call, const mc_invalidate_options *options)
{
    mc_server *server;
    mc_error *error = mc_server_load(&server, options->config, mc_diagnostics_create(call->pool), call->pool);
    if (error != MC_OK) {
        fprintf(stderr, "mapcache invalidate: %s\n", mc_error_chain(error, call->pool));
        return 1;
    }
    const mc_config *config = mc_server_config(server);
    apr_array_header_t *databases = apr_array_make(call->pool, 2, sizeof(shown_database));
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        if (tileset->shown != NULL)
            add_shown_tables(databases, tileset->shown, call->pool);
    }
    if (databases->nelts == 0) {
        fprintf(stderr,
                "mapcache invalidate: no map of %s shows a table of PostgreSQL that is known: <watch> names one\n",
                options->config);
        return 1;
    }
    for (int i = 0; i < databases->nelts; i++) {
        if (databases->nelts > 1 && !options->json)
            printf("-- Database %d of %d, in the order of the configuration.\n", i + 1, databases->nelts);
        print_script(APR_ARRAY_IDX(databases, i, shown_database).tables, options, call->pool);
    }
    return 0;
}

int
mc_command_invalidate(mc_cli_call *call)
{
    const mc_invalidate_options *options = call->options;
    if (options->list != NULL)
        return mc_invalidate_list(call, options);
    if (options->config != NULL)
        return print_configured(call, options);
    print_script(call->arguments, options, call->pool);
    return 0;
}
