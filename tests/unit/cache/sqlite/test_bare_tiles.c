/* Small files without SQLite's machine: what SQLite itself finds in them is found, and what is not certain is left to
 * SQLite. */
#include "cache_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cache/sqlite/bare_tiles.h"

#define TABLE                                                                                                          \
    "create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime"
#define PLAIN TABLE "); create unique index xyz on tiles(x, y, z);"
#define KEYED TABLE ", primary key(tileset, grid, x, y, z, dim));"
#define GET "select data from tiles where x=:x and y=:y and z=:z"
#define GET_KEYED                                                                                                      \
    "select data, strftime('%s', ctime) from tiles where tileset=:tileset and grid=:grid and x=:x and y=:y and z=:z"   \
    " and dim=:dim"
#define ONE "insert into tiles values('ts', 'G', 1, 2, 3, x'aabb', '', '2026-01-31 23:59:59');"

static mc_plain_get plain;

static const char *
bare_path(void)
{
    return apr_pstrcat(pool, cache_folder, "/bare.db", NULL);
}

static void
run_bare_sql(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        ck_abort_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static sqlite3 *
make_bare_file(const char *sql)
{
    sqlite3 *db;
    (void)unlink(bare_path());
    (void)unlink(apr_pstrcat(pool, bare_path(), "-journal", NULL));
    ck_assert_int_eq(sqlite3_open(bare_path(), &db), SQLITE_OK);
    run_bare_sql(db, sql);
    return db;
}

static mc_bare_tiles *
open_bare(const char *get, const mc_tile_key *key)
{
    ck_assert(mc_plain_get_read(&plain, get));
    return mc_bare_tiles_open(bare_path(), &plain, key, pool);
}

/* Whether a file that is made by these statements is read here. */
static bool
is_bare(const char *sql, const char *get)
{
    mc_tile_key key = key_at(3, 1, 2);
    sqlite3_close(make_bare_file(sql));
    mc_bare_tiles *bare = open_bare(get, &key);
    mc_tile *tile = NULL;
    bool known = bare != NULL && mc_bare_tiles_get(&tile, bare, &key, pool);
    mc_bare_tiles_close(bare);
    if (known) {
        ck_assert_ptr_nonnull(tile);
        ck_assert_uint_eq(tile->data->size, 2);
        ck_assert_int_eq(tile->data->data[1], 0xbb);
    }
    return known;
}

START_TEST(usual_tables_are_read)
{
    ck_assert(is_bare(PLAIN ONE, GET));
    ck_assert(is_bare(KEYED ONE, GET_KEYED));
    ck_assert(is_bare("create table Tiles(CTIME, Z int not null, Y int, X int, DATA blob, unique(Z, Y, X));"
                      "insert into tiles values(0, 3, 2, 1, x'aabb');",
                      GET));
    ck_assert(is_bare(PLAIN "create index more on tiles(ctime desc); create table other(a, b);"
                            "create trigger t after delete on tiles begin select 1; end;" ONE,
                      GET));
}
END_TEST

START_TEST(what_is_not_certain_is_left_to_sqlite)
{
    static const char *const refused[] = {
        TABLE ");" ONE, /* without an index */
        KEYED ONE,      /* whose index does not serve this statement */
        TABLE "); create unique index xyz on tiles(x desc, y, z);" ONE,
        TABLE "); create index xyz on tiles(x, y, z) where x = 1;" ONE,
        TABLE "); create index xyz on tiles(x, y, z + 0);" ONE,
        TABLE "); create index xyz on tiles(x collate nocase, y, z);" ONE,
        TABLE "); create index xyz on tiles(x, y, z, dim);" ONE,
        "create table tiles(x, y, z, data collate nocase, unique(x, y, z)); insert into tiles values(1, 2, 3, "
        "x'aabb');",
        "create table tiles(x, y, z, data default 1, unique(x, y, z)); insert into tiles values(1, 2, 3, x'aabb');",
        "create table tiles(x int, y int, z int, data, primary key(x, y, z)) without rowid;"
        "insert into tiles values(1, 2, 3, x'aabb');",
        "create table t(x, y, z, data); create view tiles as select * from t; insert into t values(1, 2, 3, x'aabb');",
        "create table tiles(x text, y, z, data, unique(x, y, z)); insert into tiles values('1', 2, 3, x'aabb');",
        "create table tiles(x, y, z, data, unique(x, y, z)); insert into tiles values(1.5, 2, 3, x'aabb');",
        "create table tiles(x, y, z, data, unique(x, y, z)); insert into tiles values(1, 2, 3, 'text');",
        "create table tiles(x, y, z, data, unique(x, y, z)); insert into tiles values(1, 2, 3, x'');",
        "create table tiles(x, y, z); create index xyz on tiles(x, y, z); insert into tiles values(1, 2, 3);"
        "alter table tiles add column data blob default x'aabb';",
        "create table tiles(x, y, z, data); create index xyz on tiles(x, y, z);"
        "insert into tiles values(1, 2, 3, x'aabb'), (1, 2, 3, x'aacc');",
        "pragma encoding='UTF-16le';" PLAIN ONE,
        "pragma journal_mode=wal;" PLAIN ONE,
        "pragma journal_mode=persist;" PLAIN ONE,
        "create table other(x);",
        "",
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        ck_assert_msg(!is_bare(refused[i], GET), "%s", refused[i]);
    ck_assert(!is_bare(PLAIN ONE, "select data from tiles not indexed where x=:x and y=:y and z=:z"));
    ck_assert(!is_bare(PLAIN ONE, "select data, ctime from tiles where x=:x and y=:y and z=:z"));
    ck_assert(!is_bare(KEYED "insert into tiles values('ts', 'G', 1, 2, 3, x'aabb', '', 'yesterday');", GET_KEYED));
    ck_assert(!is_bare(KEYED "insert into tiles values('ts', 'G', 1, 2, 3, x'aabb', NULL, 1);", GET_KEYED));
}
END_TEST

/* Deterministic, in [0, below). */
static unsigned
draw_number(unsigned below)
{
    static uint64_t state = 17;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static void
insert_tile(sqlite3 *db, const char *tileset, int x, int y, unsigned size)
{
    static uint8_t bytes[200000];
    sqlite3_stmt *statement;
    for (unsigned i = 0; i < size; i++)
        bytes[i] = (uint8_t)draw_number(256);
    ck_assert_int_eq(sqlite3_prepare_v2(db,
                                        "replace into tiles values(?, 'G', ?, ?, 5, ?, '',"
                                        " datetime(1700000000 + abs(random() % 100000000), 'unixepoch'))",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(statement, 1, tileset, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 2, x);
    sqlite3_bind_int(statement, 3, y);
    sqlite3_bind_blob(statement, 4, bytes, (int)size, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
}

static void
compare_tile(sqlite3_stmt *statement, mc_bare_tiles *bare, const mc_coverage *coverage, int x, int y)
{
    mc_tile_key key = key_at(5, x, y);
    mc_tile *tile;
    sqlite3_bind_int(statement, 1, x);
    sqlite3_bind_int(statement, 2, y);
    bool there = sqlite3_step(statement) == SQLITE_ROW;
    ck_assert(mc_bare_tiles_get(&tile, bare, &key, pool));
    ck_assert_int_eq(tile != NULL, there);
    ck_assert_int_eq(mc_coverage_may_have(coverage, 5, x, y), there);
    if (there) {
        ck_assert_int_eq((int)tile->data->size, sqlite3_column_bytes(statement, 0));
        ck_assert(memcmp(tile->data->data, sqlite3_column_blob(statement, 0), tile->data->size) == 0);
        ck_assert_int_eq(apr_time_sec(tile->mtime), sqlite3_column_int64(statement, 1));
    }
    sqlite3_reset(statement);
}

static void
compare_file(sqlite3 *db, int columns, int rows)
{
    mc_tile_key key = key_at(5, 0, 0);
    sqlite3_stmt *statement;
    mc_bare_tiles *bare = open_bare(GET_KEYED, &key);
    ck_assert_ptr_nonnull(bare);
    mc_coverage *coverage = mc_bare_tiles_coverage(bare);
    const char *sql = "select data, strftime('%s', ctime) from tiles where tileset='ts' and z=5 and x=? and y=?";
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    for (int x = 0; x < columns; x++)
        for (int y = 0; y < rows; y++)
            compare_tile(statement, bare, coverage, x, y);
    sqlite3_finalize(statement);
    free(coverage);
    mc_bare_tiles_close(bare);
}

/* Trees of one page to three levels, tiles in their page and over many, rows that were removed and replaced, another
 * tileset's tiles among them, pages with bytes that are not used. */
START_TEST(tiles_are_those_that_sqlite_finds)
{
    static const int sizes[] = { 512, 1024, 4096, 65536 };
    for (int i = 0; i < 12; i++) {
        const char *head = apr_psprintf(pool, "pragma page_size=%d; pragma auto_vacuum=%d;", sizes[i % 4], i % 3);
        sqlite3 *db = make_bare_file(apr_pstrcat(pool, head, KEYED "begin;", NULL));
        int reserve = i % 2 * 32, columns = sizes[i % 4] == 512 ? 10 : 3 + i * 2, rows = 10;
        run_bare_sql(db, "rollback; drop table tiles; vacuum;");
        sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve);
        run_bare_sql(db, "vacuum;" KEYED "begin;");
        for (int x = 0; x < columns; x++)
            for (int y = 0; y < rows; y++)
                if (draw_number(4) != 0)
                    insert_tile(db, draw_number(9) == 0 ? "other" : "ts", x, y,
                                1 + draw_number(draw_number(20) == 0 ? 199999 : 3000));
        run_bare_sql(db, "delete from tiles where (x + y) % 7 = 0; commit;");
        compare_file(db, columns, rows);
        for (int j = 0; j < 20; j++)
            insert_tile(db, "ts", (int)draw_number((unsigned)columns), (int)draw_number((unsigned)rows),
                        1 + draw_number(9000));
        compare_file(db, columns, rows);
        sqlite3_close(db);
    }
}
END_TEST

START_TEST(large_files_are_left_to_sqlite)
{
    mc_tile_key key = key_at(5, 0, 0);
    sqlite3 *db = make_bare_file(PLAIN "with recursive n(i) as (select 0 union all select i + 1 from n where i < 1099)"
                                       "insert into tiles select 'ts', 'G', i, 0, 11, x'aabb', '', '' from n;");
    ck_assert_ptr_null(open_bare(GET, &key));
    run_bare_sql(db, "delete from tiles where x >= 1000");
    mc_bare_tiles *bare = open_bare(GET, &key);
    ck_assert_ptr_nonnull(bare);
    mc_bare_tiles_close(bare);
    sqlite3_close(db);
}
END_TEST

/* A reader who is here keeps writers away, those of this process and of others; and closing takes no lock of others. */
START_TEST(locks_are_those_of_sqlite)
{
    mc_tile_key key = key_at(3, 1, 2);
    sqlite3 *db = make_bare_file(PLAIN ONE), *reader;
    ck_assert_int_eq(sqlite3_open(bare_path(), &reader), SQLITE_OK);
    mc_bare_tiles *bare = open_bare(GET, &key);
    ck_assert_ptr_nonnull(bare);
    ck_assert_int_eq(sqlite3_exec(db, "begin exclusive", NULL, NULL, NULL), SQLITE_BUSY);
    mc_bare_tiles_close(bare);
    run_bare_sql(db, "begin exclusive");
    ck_assert_ptr_null(open_bare(GET, &key));
    run_bare_sql(db, "rollback");
    run_bare_sql(reader, "begin; select * from tiles");
    mc_bare_tiles_close(open_bare(GET, &key));
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *other;
        int code = sqlite3_open(bare_path(), &other);
        code = code == SQLITE_OK ? sqlite3_exec(other, "begin exclusive", NULL, NULL, NULL) : code;
        _exit(code == SQLITE_BUSY ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    sqlite3_close(reader);
    sqlite3_close(db);
}
END_TEST

/* Half of a commit is never seen: what stands in the journal must go back first. */
START_TEST(a_journal_is_left_to_sqlite)
{
    mc_tile_key key = key_at(3, 1, 2);
    const char *journal = apr_pstrcat(pool, bare_path(), "-journal", NULL);
    sqlite3_close(make_bare_file(PLAIN ONE));
    FILE *file = fopen(journal, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    mc_bare_tiles *bare = open_bare(GET, &key); /* an empty one is none */
    ck_assert_ptr_nonnull(bare);
    mc_bare_tiles_close(bare);
    file = fopen(journal, "w");
    ck_assert_int_ge(fputs("x", file), 0);
    fclose(file);
    ck_assert_ptr_null(open_bare(GET, &key));
    ck_assert_int_eq(unlink(journal), 0);
}
END_TEST

enum { VERSIONED = 20, VERSION_BYTES = 9000, WHOLE_READS = 30 };

/* All tiles in one transaction, again and again, until it is killed. */
static void
write_versions(const char *mode)
{
    sqlite3 *db;
    if (sqlite3_open(bare_path(), &db) != SQLITE_OK)
        _exit(1);
    sqlite3_busy_timeout(db, 60000);
    run_bare_sql(db, mode);
    for (int version = 2;; version++) {
        run_bare_sql(db, "begin immediate");
        run_bare_sql(db, apr_psprintf(pool, "update tiles set data = replace(hex(zeroblob(%d)), '00', char(%d)) || x''",
                                      VERSION_BYTES, 'a' + version % 20));
        run_bare_sql(db, "update tiles set data = cast(data as blob); commit");
        apr_pool_clear(pool);
        usleep(500);
    }
}

/* Each transaction sees one version. */
static void
read_version(mc_bare_tiles *bare, apr_pool_t *scratch)
{
    int version = 0;
    for (int i = 0; i < VERSIONED; i++) {
        mc_tile_key key = key_at(5, i, 0);
        mc_tile *tile;
        ck_assert(mc_bare_tiles_get(&tile, bare, &key, scratch));
        ck_assert_uint_eq(tile->data->size, VERSION_BYTES);
        version = i == 0 ? tile->data->data[0] : version;
        for (int j = 0; j < VERSION_BYTES; j++)
            ck_assert_int_eq(tile->data->data[j], version);
    }
}

START_TEST(beside_a_writer_all_is_of_one_commit)
{
    static const char *const modes[] = { "pragma journal_mode=delete; pragma cache_size=5",
                                         "pragma journal_mode=truncate", "pragma journal_mode=memory" };
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        sqlite3 *db = make_bare_file(PLAIN);
        for (int x = 0; x < VERSIONED; x++)
            insert_tile(db, "ts", x, 0, VERSION_BYTES);
        run_bare_sql(db, "update tiles set data = cast(replace(hex(zeroblob(9000)), '00', 'a') as blob)");
        sqlite3_close(db);
        pid_t writer = fork();
        if (writer == 0)
            write_versions(modes[i]);
        apr_pool_t *scratch;
        apr_pool_create(&scratch, pool);
        mc_tile_key key = key_at(5, 0, 0);
        for (int whole = 0; whole < WHOLE_READS; apr_pool_clear(scratch)) {
            mc_bare_tiles *bare = open_bare(GET, &key);
            if (bare == NULL)
                continue; /* it is at work */
            read_version(bare, scratch);
            mc_bare_tiles_close(bare);
            whole++;
            usleep(300);
        }
        kill(writer, SIGKILL);
        int status;
        ck_assert_int_eq(waitpid(writer, &status, 0), writer);
        ck_assert_msg(WIFSIGNALED(status), "the writer failed: %d", status);
    }
}
END_TEST

/* Whatever stands in the file: no crash, and an end. */
START_TEST(broken_files_do_no_harm)
{
    mc_tile_key key = key_at(5, 1, 2);
    sqlite3 *db = make_bare_file("pragma page_size=512;" KEYED);
    for (int i = 0; i < 60; i++)
        insert_tile(db, "ts", i % 8, i / 8, 20 + draw_number(900));
    sqlite3_close(db);
    int file = open(bare_path(), O_RDWR);
    struct stat info;
    ck_assert_int_eq(fstat(file, &info), 0);
    uint8_t *bytes = apr_palloc(pool, (size_t)info.st_size);
    ck_assert_int_eq(pread(file, bytes, (size_t)info.st_size, 0), info.st_size);
    int read = 0;
    for (int i = 0; i < 4000; i++) {
        off_t at = i < 1600 ? i : (off_t)draw_number((unsigned)info.st_size);
        uint8_t wrong = (uint8_t)draw_number(256);
        ck_assert_int_eq(pwrite(file, &wrong, 1, at), 1);
        mc_bare_tiles *bare = open_bare(GET_KEYED, &key);
        for (int x = 0; bare != NULL && x < 8; x++) {
            mc_tile *tile;
            mc_tile_key wanted = key_at(5, x, 3);
            read += mc_bare_tiles_get(&tile, bare, &wanted, pool);
        }
        mc_bare_tiles_close(bare);
        ck_assert_int_eq(pwrite(file, bytes + at, 1, at), 1);
    }
    close(file);
    ck_assert_int_gt(read, 4000); /* most bytes are of other tiles */
}
END_TEST

CACHE_MAIN("bare_tiles", usual_tables_are_read, what_is_not_certain_is_left_to_sqlite,
           tiles_are_those_that_sqlite_finds, large_files_are_left_to_sqlite, locks_are_those_of_sqlite,
           a_journal_is_left_to_sqlite, beside_a_writer_all_is_of_one_commit, broken_files_do_no_harm)
