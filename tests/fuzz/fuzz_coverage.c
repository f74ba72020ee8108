/*
 * Any get statement. Where one is said to tell which tiles a file has, SQLite is asked whether that is so: over rows of
 * all kinds, each tile that the statement finds must be in the coverage. Input: a byte that chooses the rows, then the
 * statement.
 */
#include <apr_strings.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "cache/sqlite/coverage.h"
#include "fuzz_support.h"
#include "mapcache/error.h"

static const char rows[] =
    "CREATE TABLE other(data);"
    "CREATE TABLE tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime);"
    "INSERT INTO tiles VALUES('t', 'g', 1, 2, 3, x'aa', 'd', ''), ('t', 'g', '2', '2', '3', x'bb', 'e', NULL),"
    " ('u', 'g', 1.0, 1.5, 2, x'cc', 'd', 'now'), (NULL, 'h', 1, NULL, 0, x'dd', NULL, ''),"
    " ('t', 'g', 'x', x'31', 1, NULL, 'd', '');";
static const char texts[] =
    "CREATE TABLE tiles(tileset, grid, x text collate nocase, y text, z text, data, dim collate rtrim, ctime);"
    "INSERT INTO tiles VALUES('t', 'g', '1', '2', '3', 'a', 'd ', ''), ('T', 'g', '01', ' 2', '3 ', 'b', 'd', '');";

static void
bind_tile(sqlite3_stmt *statement, int x, int y, int z)
{
    static const char *const names[] = { ":x", ":y", ":z" };
    static const char *const words[] = { ":tileset", ":grid", ":dim" };
    static const char *const values[] = { "t", "g", "d" };
    int numbers[] = { x, y, z };
    for (int i = 0; i < 3; i++) {
        int at = sqlite3_bind_parameter_index(statement, names[i]);
        if (at > 0)
            sqlite3_bind_int(statement, at, numbers[i]);
        at = sqlite3_bind_parameter_index(statement, words[i]);
        if (at > 0)
            sqlite3_bind_text(statement, at, values[i], -1, SQLITE_STATIC);
    }
}

/* NULL where a number is no tile's, as lib/cache/sqlite/sqlite_read.c has it. */
static mc_coverage *
learn(sqlite3 *db, const char *sql)
{
    mc_coverage_tile tiles[64];
    int count = 0;
    sqlite3_stmt *statement;
    MC_ASSERT(sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK);
    bind_tile(statement, 0, 0, 0);
    while (sqlite3_step(statement) == SQLITE_ROW && count < 64)
        tiles[count++] =
            (mc_coverage_tile){ (int)sqlite3_column_int64(statement, 0), (int)sqlite3_column_int64(statement, 1),
                                (int)sqlite3_column_int64(statement, 2) };
    sqlite3_finalize(statement);
    return mc_coverage_create(tiles, count);
}

static void
compare(sqlite3 *db, const char *get, const char *sql)
{
    mc_coverage *coverage = learn(db, sql);
    sqlite3_stmt *statement;
    if (coverage == NULL)
        return;
    MC_ASSERT(sqlite3_prepare_v2(db, get, -1, &statement, NULL) == SQLITE_OK);
    for (int z = 0; z < 5; z++)
        for (int x = 0; x < 4; x++)
            for (int y = 0; y < 4; y++) {
                bind_tile(statement, x, y, z);
                if (sqlite3_step(statement) == SQLITE_ROW)
                    MC_ASSERT(mc_coverage_may_have(coverage, z, x, y));
                sqlite3_reset(statement);
            }
    sqlite3_finalize(statement);
    free(coverage);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static apr_pool_t *root;
    if (root == NULL) {
        apr_pool_create(&root, NULL);
    }
    if (size < 1 || size > 500)
        return 0;
    apr_pool_t *pool;
    apr_pool_create(&pool, root);
    const char *get = apr_pstrndup(pool, (const char *)data + 1, size - 1);
    const char *sql = mc_coverage_statement(get, pool);
    if (sql != NULL) {
        sqlite3 *db;
        MC_ASSERT(sqlite3_open(":memory:", &db) == SQLITE_OK);
        MC_ASSERT(sqlite3_exec(db, (data[0] & 1) != 0 ? rows : texts, NULL, NULL, NULL) == SQLITE_OK);
        compare(db, get, sql);
        sqlite3_close(db);
    }
    apr_pool_destroy(pool);
    return 0;
}
