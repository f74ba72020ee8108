/* Checks of SQLite files of tiles. A file's head is read as bytes; SQLite opens it for reading only, and as immutable
 * where no log stands beside it, so that no file is made. */
#include <apr_strings.h>
#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/doctor_private.h"
#include "mapcache/upkeep.h"
#include "text/text.h"

enum { MOST_FILES = 32, MOST_ENTRIES = 5000, MOST_DEPTH = 8, SMALL_PAGE = 4096, HEAD_BYTES = 100 };

typedef struct file_search {
    mc_doctor *doctor;
    const mc_doctor_check *check;
    const mc_doctor_store *store;
    int files, entries; /* looked at */
} file_search;

static void
find_in_file(const file_search *search, const char *path, const char *found, const char *why, const char *todo,
             double factor, const char *fix)
{
    mc_doctor_find(search->doctor, &(mc_finding){ .check = search->check,
                                                  .subject = path,
                                                  .found = found,
                                                  .why = why,
                                                  .todo = todo,
                                                  .factor = factor,
                                                  .fix = fix });
}

/* `sqlite3 FILE 'SQL'` for a shell; NULL where the path cannot be written. */
static const char *
sqlite_command(const char *path, const char *sql, apr_pool_t *pool)
{
    const char *word = mc_doctor_shell_word(path, pool), *statement = mc_doctor_shell_word(sql, pool);
    return word == NULL || statement == NULL ? NULL : apr_psprintf(pool, "sqlite3 %s %s", word, statement);
}

/* The page size is at byte 16, big-endian, 1 for 65536; the version for writing at byte 18 is 2 with a log (SQLite's
 * file format 1.3). */
static void
check_file_head(const file_search *search, const char *path, const unsigned char *head)
{
    apr_pool_t *pool = search->doctor->pool;
    int page = head[16] << 8 | head[17];
    bool log = head[18] == 2;
    page = page == 1 ? 65536 : page;
    if (page < SMALL_PAGE)
        find_in_file(search, path, apr_psprintf(pool, "the page size is %d bytes", page),
                     apr_psprintf(pool, "a tile of 16 kB is read from %d pages instead of 4", 16384 / (page | 1) + 1),
                     "PRAGMA page_size = 4096; VACUUM; while nobody uses the file", (double)SMALL_PAGE / (page | 1),
                     sqlite_command(path, "PRAGMA journal_mode = delete; PRAGMA page_size = 4096; VACUUM;", pool));
    if (log && search->store->network)
        find_in_file(search, path, "the journal mode is WAL, on a file system of a network",
                     "WAL needs memory that all processes share: machines do not see each other's tiles, and the file "
                     "may be damaged",
                     "PRAGMA journal_mode = delete", 1, sqlite_command(path, "PRAGMA journal_mode = delete;", pool));
    if (!log && search->store->single && search->store->written && !search->store->network)
        find_in_file(search, path, "tiles are stored while clients read, and the journal mode is not WAL",
                     "clients wait while a tile is stored", "PRAGMA journal_mode = WAL", 1,
                     sqlite_command(path, "PRAGMA journal_mode = WAL;", pool));
}

static const char *
percent_encode_path(const char *path, apr_pool_t *pool)
{
    return mc_url_encode(path, "/", true, false, pool);
}

static sqlite3 *
open_for_reading(const char *path, apr_pool_t *pool)
{
    sqlite3 *db = NULL;
    bool logs = access(apr_pstrcat(pool, path, "-wal", NULL), F_OK) == 0;
    const char *uri =
        apr_pstrcat(pool, "file:", percent_encode_path(path, pool), logs ? "?mode=ro" : "?mode=ro&immutable=1", NULL);
    if (sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) == SQLITE_OK)
        return db;
    sqlite3_close(db);
    return NULL;
}

/* Names of the columns by which a tile is found, as caches of types sqlite3, mbtiles and geopackage have them. */
static const char *
key_columns_of(const char *type)
{
    return strcmp(type, "sqlite3") == 0 ? "x,y,z" : "zoom_level,tile_column,tile_row";
}

/* Whether SQLite would read all of a table for one tile. */
static bool
scans_for_tile(sqlite3 *db, const char *type)
{
    const char *sql = strcmp(type, "sqlite3") == 0
                          ? "EXPLAIN QUERY PLAN SELECT * FROM tiles WHERE x = 1 AND y = 1 AND z = 1"
                          : "EXPLAIN QUERY PLAN SELECT * FROM tiles WHERE zoom_level = 1 AND tile_column = 1 AND "
                            "tile_row = 1";
    sqlite3_stmt *statement = NULL;
    bool scans = false;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        return false; /* another schema */
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *detail = (const char *)sqlite3_column_text(statement, 3);
        scans |= detail != NULL && strncmp(detail, "SCAN", 4) == 0 && strstr(detail, "USING") == NULL;
    }
    sqlite3_finalize(statement);
    return scans;
}

static void
check_index_of_file(const file_search *search, const char *path, int64_t bytes)
{
    apr_pool_t *pool = search->doctor->pool;
    const char *type = search->store->cache->ops->type, *columns = key_columns_of(type);
    sqlite3 *db = strcmp(type, "geopackage") == 0 ? NULL : open_for_reading(path, pool);
    bool scans = db != NULL && scans_for_tile(db, type);
    sqlite3_close(db);
    if (!scans)
        return;
    double blocks = (double)bytes / SMALL_PAGE;
    const char *sql = apr_psprintf(pool, "CREATE INDEX tile_index ON tiles (%s);", columns);
    find_in_file(
        search, path,
        apr_psprintf(pool, "the table tiles has no index on %s; the file has %.1f MB", columns, (double)bytes / 1e6),
        "each tile is looked for in the whole table", apr_psprintf(pool, "CREATE INDEX ON tiles (%s)", columns),
        blocks > 8 ? blocks / 8 : 1, sqlite_command(path, sql, pool));
}

static void
check_file(file_search *search, const char *path, int64_t bytes)
{
    unsigned char head[HEAD_BYTES] = { 0 };
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t size = file < 0 ? -1 : read(file, head, sizeof(head));
    if (file >= 0)
        close(file); /* before SQLite has the file open, so that no lock is lost */
    if (file < 0)
        mc_doctor_miss(search->doctor, search->check, "%s: the file cannot be read", path);
    if (size != HEAD_BYTES || memcmp(head, "SQLite format 3", 16) != 0)
        return;
    search->files++;
    check_file_head(search, path, head);
    check_index_of_file(search, path, bytes);
}

/* Without links: a few files of the store stand for all of them. */
static void
look_through_folder(file_search *search, const char *folder, int depth)
{
    DIR *list = opendir(folder);
    const struct dirent *entry;
    if (list == NULL)
        return;
    while (search->files < MOST_FILES && search->entries++ < MOST_ENTRIES && (entry = readdir(list)) != NULL) {
        struct stat status;
        if (*entry->d_name == '.')
            continue;
        const char *path = apr_pstrcat(search->doctor->pool, folder, "/", entry->d_name, NULL);
        if (lstat(path, &status) != 0)
            continue;
        if (S_ISDIR(status.st_mode) && depth < MOST_DEPTH)
            look_through_folder(search, path, depth + 1);
        else if (S_ISREG(status.st_mode))
            check_file(search, path, status.st_size);
    }
    closedir(list);
}

void
mc_doctor_check_sqlite(mc_doctor *doctor, const mc_doctor_check *check)
{
    for (int i = 0; i < doctor->stores->nelts; i++) {
        const mc_doctor_store *store = &APR_ARRAY_IDX(doctor->stores, i, const mc_doctor_store);
        const char *type = store->cache->ops->type;
        file_search search = { doctor, check, store, 0, 0 };
        struct stat status;
        if (strcmp(type, "sqlite3") != 0 && strcmp(type, "mbtiles") != 0 && strcmp(type, "geopackage") != 0)
            continue;
        if (!store->single)
            look_through_folder(&search, store->path, 0);
        else if (stat(store->path, &status) == 0 && S_ISREG(status.st_mode))
            check_file(&search, store->path, status.st_size);
    }
}
