/* The doctor's checks of file systems, pages and settings, by facts that the test gives: not by this machine. */
#include <apr_strings.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor_private.h"
#include "unit.h"

#define MEGABYTE 1048576.0

static mc_config config;
static mc_doctor_options options;
static mc_doctor_report report;
static mc_doctor doctor;
static mc_doctor_database database;
static const mc_doctor_check check = { .id = "check", .title = "a setting" };
static mc_cache_ops kind;
static mc_cache cache = { .name = "tiles", .ops = &kind };
static char folder[] = "/tmp/mapcache-doctor-XXXXXX";

static void
set_up_doctor(void)
{
    unit_setup();
    config = (mc_config){ .memory_cache = 1 << 30, .max_connections = 40 };
    options = (mc_doctor_options){ .processes = 4, .clients = 10, .seconds = 1 };
    report = (mc_doctor_report){ .findings = apr_array_make(pool, 4, sizeof(mc_finding)),
                                 .gaps = apr_array_make(pool, 4, sizeof(mc_doctor_gap)) };
    doctor = (mc_doctor){ .config = &config,
                          .options = &options,
                          .report = &report,
                          .databases = apr_array_make(pool, 1, sizeof(mc_doctor_database *)),
                          .stores = apr_array_make(pool, 1, sizeof(mc_doctor_store)),
                          .ctx = &ctx,
                          .pool = pool };
    database = (mc_doctor_database){ .number = 1,
                                     .name = "gis",
                                     .session = (mc_postgres_session *)&database, /* it answers; nothing asks here */
                                     .tables = apr_array_make(pool, 1, sizeof(mc_doctor_table)) };
    APR_ARRAY_PUSH(doctor.databases, mc_doctor_database *) = &database;
    kind.type = "sqlite3";
}

/* The one finding of a check, which is taken away; NULL: the check has found nothing. */
static const mc_finding *
finding_of(void (*run)(mc_doctor *on, const mc_doctor_check *by))
{
    run(&doctor, &check);
    ck_assert_int_le(report.findings->nelts, 1);
    return apr_array_pop(report.findings);
}

static mc_doctor_mount
mount_of(const char *lines, const char *path)
{
    FILE *mounts = fmemopen(apr_pstrdup(pool, lines), strlen(lines), "r");
    ck_assert_ptr_nonnull(mounts);
    mc_doctor_mount found = mc_doctor_find_mount(mounts, path, pool);
    fclose(mounts);
    return found;
}

START_TEST(a_path_is_on_the_longest_mount_point_above_it)
{
    static const char lines[] = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                                "30 22 0:40 / /srv rw,noatime - nfs4 host:/srv rw\n"
                                "31 30 8:2 / /srv/tiles rw,strictatime shared:3 master:1 - xfs /dev/sdb rw\n"
                                "32 22 8:3 / /with\\040a\\134blank rw - btrfs /dev/sdc rw\n"
                                "33 22 8:4 / /over rw - ext4 /dev/sdd rw\n34 33 0:50 / /over ro - overlay none rw\n"
                                "35 22 8:5 / /short\n36 22\n\nno line - at all\n";
    static const struct {
        const char *path, *type, *options;
    } wanted[] = { { "/var/tiles", "ext4", "rw,relatime" },   { "/srv/others", "nfs4", "rw,noatime" },
                   { "/srv/tiles", "xfs", "rw,strictatime" }, { "/srv/tiles/a/b", "xfs", "rw,strictatime" },
                   { "/srv/tilesets", "nfs4", "rw,noatime" }, { "/with a\\blank/x", "btrfs", "rw" },
                   { "/over/tiles", "overlay", "ro" },        { "/short/tiles", "ext4", "rw,relatime" } };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        mc_doctor_mount found = mount_of(lines, wanted[i].path);
        ck_assert_str_eq(found.type, wanted[i].type);
        ck_assert_str_eq(found.options, wanted[i].options);
    }
    ck_assert_str_eq(mount_of("30 22 0:40 / /srv rw - nfs4 host:/srv rw\n", "/var").type, "");
}
END_TEST

static mc_doctor_store *
store_on(const char *file_system, const char *mounted_with)
{
    apr_array_clear(doctor.stores);
    mc_doctor_store *store = apr_array_push(doctor.stores);
    *store = (mc_doctor_store){ .cache = &cache,
                                .path = "/srv/tiles",
                                .file_system = file_system,
                                .mount_options = mounted_with,
                                .network = mc_doctor_is_network(file_system),
                                .layered = strcmp(file_system, "overlay") == 0 };
    return store;
}

START_TEST(databases_in_files_belong_on_a_local_disk)
{
    static const char *const types[] = { "nfs", "nfs4", "cifs", "9p", "ceph", "fuse.sshfs", "glusterfs" };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        store_on(types[i], "rw");
        const mc_finding *found = finding_of(mc_doctor_check_file_systems);
        ck_assert(found != NULL && strstr(found->found, types[i]) != NULL && strstr(found->todo, "local disk") != NULL);
        ck_assert_str_eq(found->subject, "cache \"tiles\" (sqlite3) in /srv/tiles");
    }
    store_on("overlay", "rw");
    const mc_finding *found = finding_of(mc_doctor_check_file_systems);
    ck_assert(found != NULL && strstr(found->todo, "a volume") != NULL);
    store_on("ext4", "rw");
    ck_assert_ptr_null(finding_of(mc_doctor_check_file_systems));
    kind.type = "disk"; /* files of one tile need no locks */
    store_on("nfs4", "rw");
    ck_assert_ptr_null(finding_of(mc_doctor_check_file_systems));
}
END_TEST

START_TEST(reads_that_write_the_time_of_the_read_are_found)
{
    static const char *const sparing[] = { "rw,relatime", "rw,nosuid,noatime", "ro" };
    for (size_t i = 0; i < sizeof(sparing) / sizeof(sparing[0]); i++) {
        store_on("ext4", sparing[i]);
        ck_assert_ptr_null(finding_of(mc_doctor_check_mount_options));
    }
    store_on("", "");
    ck_assert_ptr_null(finding_of(mc_doctor_check_mount_options)); /* nothing is known */
    store_on("ext4", "rw,norelatime");
    const mc_finding *found = finding_of(mc_doctor_check_mount_options);
    ck_assert(found != NULL && strstr(found->found, "rw,norelatime") != NULL && strstr(found->todo, "noatime") != NULL);
}
END_TEST

static const char *kernel_says;

static void
judge_pages(mc_doctor *on, const mc_doctor_check *by)
{
    mc_doctor_judge_huge_pages(on, by, kernel_says);
}

START_TEST(a_large_memory_without_large_pages_is_found)
{
    kernel_says = "always madvise [never]\n";
    const mc_finding *found = finding_of(judge_pages);
    ck_assert(found != NULL && strstr(found->found, "1024 MB") != NULL && strstr(found->fix, "madvise") != NULL);
    config.memory_cache = 200 << 20;
    ck_assert_ptr_null(finding_of(judge_pages));
    config.memory_cache = 1 << 30;
    kernel_says = "always [madvise] never\n";
    ck_assert_ptr_null(finding_of(judge_pages));
    kernel_says = "";
    ck_assert_ptr_null(finding_of(judge_pages));
}
END_TEST

START_TEST(shared_buffers_are_as_large_as_the_tables_if_reads_miss_them)
{
    database.settings.shared_buffers = 128 * MEGABYTE;
    database.table_bytes = 800 * MEGABYTE;
    database.hits = 9000;
    database.reads = 1000;
    const mc_finding *found = finding_of(mc_doctor_check_shared_buffers);
    ck_assert(found != NULL && strstr(found->found, "10.0 %") != NULL && found->database == 1);
    ck_assert_str_eq(found->fix, "ALTER SYSTEM SET shared_buffers = '1001MB'; -- needs a restart");
    database.reads = 10; /* all is there */
    ck_assert_ptr_null(finding_of(mc_doctor_check_shared_buffers));
    database.reads = 1000;
    database.hits = -500; /* too few blocks to tell */
    ck_assert_ptr_null(finding_of(mc_doctor_check_shared_buffers));
    database.hits = 9000;
    database.settings.shared_buffers = 900 * MEGABYTE;
    ck_assert_ptr_null(finding_of(mc_doctor_check_shared_buffers));
    database.settings.shared_buffers = -1; /* not known */
    ck_assert_ptr_null(finding_of(mc_doctor_check_shared_buffers));
    database.settings.shared_buffers = 128 * MEGABYTE;
    database.session = NULL; /* it does not answer */
    ck_assert_ptr_null(finding_of(mc_doctor_check_shared_buffers));
}
END_TEST

START_TEST(work_mem_holds_what_was_written_to_temporary_files)
{
    database.settings.work_mem = 4 * MEGABYTE;
    ck_assert_ptr_null(finding_of(mc_doctor_check_work_mem));
    database.temporary_files = 10;
    database.temporary_bytes = 300 * MEGABYTE;
    const mc_finding *found = finding_of(mc_doctor_check_work_mem);
    ck_assert(found != NULL && strstr(found->found, "10 temporary files of 30720 kB") != NULL);
    ck_assert_str_eq(found->fix, "ALTER ROLE CURRENT_USER SET work_mem = '61MB';");
    database.temporary_bytes = 90000 * MEGABYTE; /* bounded */
    ck_assert_str_eq(finding_of(mc_doctor_check_work_mem)->fix, "ALTER ROLE CURRENT_USER SET work_mem = '257MB';");
    database.settings.work_mem = 256 * MEGABYTE;
    ck_assert_ptr_null(finding_of(mc_doctor_check_work_mem));
}
END_TEST

START_TEST(other_settings_of_a_database_are_checked)
{
    APR_ARRAY_PUSH(database.tables, mc_doctor_table) = (mc_doctor_table){ .shown = "roads" };
    database.settings.random_page_cost = 4;
    ck_assert_ptr_nonnull(finding_of(mc_doctor_check_page_cost));
    database.settings.random_page_cost = 1.1;
    ck_assert_ptr_null(finding_of(mc_doctor_check_page_cost));
    database.settings.max_connections = 100;
    database.settings.reserved_connections = 3;
    ck_assert_ptr_null(finding_of(mc_doctor_check_connections));
    database.used_connections = 70; /* and 40 of ours */
    const mc_finding *found = finding_of(mc_doctor_check_connections);
    ck_assert_ptr_nonnull(found);
    ck_assert_str_eq(found->fix, "ALTER SYSTEM SET max_connections = 113; -- needs a restart");
}
END_TEST

static const char *
make_tiles(const char *journal)
{
    const char *path = apr_pstrcat(pool, folder, "/", journal, ".sqlite3", NULL);
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  apr_psprintf(pool,
                                               "PRAGMA journal_mode = %s; CREATE TABLE tiles (x, y, z, data);"
                                               "CREATE INDEX place ON tiles (x, y, z)",
                                               journal),
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    return path;
}

START_TEST(the_journal_of_a_file_suits_those_who_write_and_its_file_system)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    static const struct {
        const char *journal, *todo; /* NULL: nothing is found */
        bool written, network;
    } cases[] = { { "delete", "PRAGMA journal_mode = WAL", true, false },
                  { "delete", NULL, false, false },
                  { "delete", NULL, true, true },
                  { "wal", NULL, true, false },
                  { "wal", "PRAGMA journal_mode = delete", false, true } };
    const char *deleting = make_tiles("delete"), *logging = make_tiles("wal");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mc_doctor_store *store = store_on("ext4", "rw");
        store->path = strcmp(cases[i].journal, "wal") == 0 ? logging : deleting;
        store->single = true;
        store->written = cases[i].written;
        store->network = cases[i].network;
        const mc_finding *found = finding_of(mc_doctor_check_sqlite);
        ck_assert_msg((found == NULL) == (cases[i].todo == NULL), "case %zu", i);
        if (found != NULL)
            ck_assert_str_eq(found->todo, cases[i].todo);
    }
    unlink(deleting);
    unlink(logging);
    rmdir(folder);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { a_path_is_on_the_longest_mount_point_above_it,
                                   databases_in_files_belong_on_a_local_disk,
                                   reads_that_write_the_time_of_the_read_are_found,
                                   a_large_memory_without_large_pages_is_found,
                                   shared_buffers_are_as_large_as_the_tables_if_reads_miss_them,
                                   work_mem_holds_what_was_written_to_temporary_files,
                                   other_settings_of_a_database_are_checked,
                                   the_journal_of_a_file_suits_those_who_write_and_its_file_system };
    return unit_run_between("doctor_checks", tests, (int)(sizeof(tests) / sizeof(tests[0])), set_up_doctor,
                            unit_teardown);
}
