/* Files of overviews: what was written is read back, and a file with any byte changed or cut short is refused, or reads
 * as a file. */
#include "vector/levels/level_file.h"

#include <apr_strings.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit.h"
#include "vector/levels/level_writer.h"

enum { STYLE = 77 };

static char folder[] = "/tmp/mapcache-levels-XXXXXX";

static const mc_level_origin origin = { .files = { { 10, 5, 1, 2 }, { .size = -1 }, { 30, 6, 3, 4 } },
                                        .definition = 99,
                                        .content = 88 };

static void
remove_file(const char *path)
{
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else is left in it */
}

static const char *
make_level_folder(void)
{
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    return mc_level_file_path(apr_pstrcat(pool, folder, "/a", NULL), STYLE, pool);
}

static const char *
write_two_levels(void)
{
    static const mc_level_range fine = { 10, 20, 1 }, coarse = { 20, 40, 1 };
    const char *path = make_level_folder();
    mc_level_writer *writer;
    mc_level_spool *spools[3];
    ck_assert(mc_level_writer_open(&writer, path, pool) == MC_OK);
    for (int i = 0; i < 3; i++)
        ck_assert(mc_level_spool_create(&spools[i], writer) == MC_OK);
    for (int part = 2; part >= 0; part--) { /* parts fall while they are written */
        const mc_level_place place = { { part, 0, part + 1, 1 }, 0, 3, (uint32_t)part };
        ck_assert(mc_level_spool_add(spools[0], &place, "abc") == MC_OK);
        ck_assert(mc_level_spool_add(spools[1], &place, "given up") == MC_OK);
    }
    mc_level_spool_keep(spools[0], &fine, 1, 3);
    mc_level_spool_keep(spools[2], &coarse, 0, 0);
    ck_assert(mc_level_writer_finish(writer, STYLE, &origin) == MC_OK);
    return path;
}

START_TEST(what_was_written_is_read)
{
    mc_level_file *file;
    const char *path = write_two_levels();
    ck_assert(mc_level_file_open(&file, path, -1, pool) == MC_OK);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(file->count, 2);
    ck_assert_uint_eq(file->style, STYLE);
    ck_assert(mc_level_origin_untouched(&file->origin, &origin));
    ck_assert_uint_eq(file->origin.content, origin.content);
    ck_assert_uint_eq(file->block_counts[0], 3);
    ck_assert_uint_eq(file->block_counts[1], 0);
    for (uint32_t i = 0; i < 3; i++) {
        char bytes[3];
        ck_assert_uint_eq(file->places[0][i].part, i);
        ck_assert(file->places[0][i].box.minx == i);
        ck_assert_int_eq(pread(file->fd, bytes, 3, (off_t)file->places[0][i].begin), 3);
        ck_assert_mem_eq(bytes, "abc", 3);
    }
    remove_file(path);
    ck_assert(mc_level_file_open(&file, "/nowhere/at/all", -1, pool) == MC_OK);
    ck_assert_ptr_null(file);
}
END_TEST

/* Also where all blocks are of one window. */
START_TEST(deadlines_are_looked_at_before_each_block)
{
    const mc_feature_query query = { .box = { -1, 0, -.5, 1 } }, first = { .box = { 0, 0, .5, 1 } };
    mc_ctx ctx = { .pool = pool, .deadline = mc_clock_now() - 1 };
    mc_level_file *file;
    mc_level_reading r;
    const char *path = write_two_levels();
    ck_assert(mc_level_file_open(&file, path, -1, pool) == MC_OK);
    mc_feature_reading reading = { .layer = "l", .ctx = &ctx, .map = &query };
    mc_level_reading_begin(&r, &reading, false, pool);
    ck_assert(mc_level_file_read(&r, file, 0, &query.box, pool) == MC_OK); /* there is none */
    mc_error *error = mc_level_file_read(&r, file, 0, &first.box, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_UNAVAILABLE);
    mc_error_ignore(error);
    ctx.deadline = 0;
    error = mc_level_file_read(&r, file, 0, &first.box, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_CORRUPT); /* "abc" is no block */
    mc_error_ignore(error);
    mc_level_reading_end(&r);
    remove_file(path);
}
END_TEST

START_TEST(changed_and_short_files_are_bounded)
{
    static uint8_t bytes[1024];
    const char *path = write_two_levels();
    int fd = open(path, O_RDWR | O_CLOEXEC);
    const ssize_t size = read(fd, bytes, sizeof(bytes));
    ck_assert_int_eq(size, MC_LEVEL_FILE_HEAD + 2 * MC_LEVEL_FILE_LEVEL + 3 * (MC_LEVEL_FILE_BLOCK + 3));
    for (ssize_t i = 0; i < 2 * size; i++) {
        mc_level_file *file;
        apr_pool_t *own;
        const uint8_t wrong = (uint8_t)~bytes[i % size];
        apr_pool_create(&own, pool);
        if (i < size)
            ck_assert_int_eq(pwrite(fd, &wrong, 1, i), 1);
        else
            ck_assert_int_eq(ftruncate(fd, 2 * size - i - 1), 0);
        mc_error *error = mc_level_file_open(&file, path, -1, own);
        ck_assert(i < size || error != MC_OK);
        for (int level = 0; error == MC_OK && level < file->count; level++)
            for (uint32_t k = 0; k < file->block_counts[level]; k++)
                ck_assert_uint_le(file->places[level][k].begin + file->places[level][k].size, (uint64_t)size);
        mc_error_ignore(error);
        if (i < size)
            ck_assert_int_eq(pwrite(fd, &bytes[i], 1, i), 1);
        apr_pool_destroy(own);
    }
    close(fd);
    remove_file(path);
}
END_TEST

static void
write_whole_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* Refused before anything is read: the file is no file of overviews, and that is not what the error says. */
static void
expect_refusal(const char *path, int data, mc_error_kind kind, const char *reason)
{
    mc_level_file *file;
    mc_error *error = mc_level_file_open(&file, path, data, pool);
    ck_assert(error != MC_OK && error->kind == kind);
    ck_assert_ptr_null(file);
    ck_assert_ptr_nonnull(strstr(error->message, reason));
    mc_error_ignore(error);
}

START_TEST(what_is_no_trusted_file_is_not_read)
{
    enum { OTHER = 54321, OWNER = 54322 };
    const char *path = make_level_folder(), *data = apr_pstrcat(pool, folder, "/a.shp", NULL);
    ck_assert_int_eq(mkfifo(path, 0644), 0); /* nobody writes to it */
    expect_refusal(path, -1, MC_ERR_IO, "no file");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    expect_refusal(path, -1, MC_ERR_IO, "no file");
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(symlink("/dev/zero", path), 0);
    expect_refusal(path, -1, MC_ERR_IO, "a symbolic link");
    ck_assert_int_eq(unlink(path), 0);
    write_whole_file(path, "none");
    write_whole_file(data, "data");
    expect_refusal(path, -1, MC_ERR_CORRUPT, "is broken");
    int fd = open(data, O_RDONLY | O_CLOEXEC);
    if (geteuid() == 0) { /* who else can give files away */
        ck_assert_int_eq(chown(path, OTHER, (gid_t)-1), 0);
        expect_refusal(path, fd, MC_ERR_CORRUPT, "is broken");
        ck_assert_int_eq(chmod(folder, 01777), 0);
        expect_refusal(path, fd, MC_ERR_FORBIDDEN, "another user's");
        ck_assert_int_eq(chown(data, OWNER, (gid_t)-1), 0);
        expect_refusal(path, fd, MC_ERR_FORBIDDEN, "another user's");
        ck_assert_int_eq(chown(data, OTHER, (gid_t)-1), 0);
        expect_refusal(path, fd, MC_ERR_CORRUPT, "is broken");
    }
    close(fd);
    ck_assert_int_eq(unlink(data), 0);
    remove_file(path);
}
END_TEST

/* What a builder that was killed has left goes; what is there stays where the disk is full, and the error says that. */
START_TEST(full_disks_and_killed_builders_change_nothing)
{
    static const mc_level_range range = { 10, 20, 1 };
    static const struct rlimit none = { 0, RLIM_INFINITY }, full = { 64 << 10, RLIM_INFINITY };
    const char *path = make_level_folder(), *temporary = apr_pstrcat(pool, path, ".tmp", NULL);
    const char *spooled = apr_pstrcat(pool, temporary, ".spool", NULL);
    const mc_level_place place = { { 0, 0, 1, 1 }, 0, 100 << 10, 0 };
    static uint8_t block[100 << 10];
    struct stat status;
    signal(SIGXFSZ, SIG_IGN);
    for (int spooling = 0; spooling < 2; spooling++) {
        mc_level_writer *writer;
        mc_level_spool *spool;
        apr_pool_t *own;
        mc_error *error = MC_OK;
        apr_pool_create(&own, pool);
        write_whole_file(path, "old");
        write_whole_file(temporary, "of a killed builder");
        write_whole_file(spooled, "of a killed builder");
        ck_assert(mc_level_writer_open(&writer, path, own) == MC_OK);
        ck_assert_int_ne(stat(spooled, &status), 0);
        ck_assert(mc_level_spool_create(&spool, writer) == MC_OK);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, spooling ? &full : &none), 0);
        if (spooling)
            error = mc_level_spool_add(spool, &place, block);
        else
            ck_assert(mc_level_spool_add(spool, &(mc_level_place){ .size = 3 }, "abc") == MC_OK);
        mc_level_spool_keep(spool, &range, 1, 1);
        if (error == MC_OK)
            error = mc_level_writer_finish(writer, STYLE, &origin);
        ck_assert(error != MC_OK && error->kind == MC_ERR_IO);
        ck_assert_ptr_nonnull(strstr(error->message, "File too large"));
        mc_error_ignore(error);
        apr_pool_destroy(own);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }), 0);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_int_eq(status.st_size, 3);
        ck_assert_int_ne(stat(temporary, &status), 0);
    }
    remove_file(path);
}
END_TEST

START_TEST(files_are_told_apart_by_their_bytes)
{
    const char *path = make_level_folder();
    mc_ctx ctx = { .pool = pool };
    uint64_t first = 0, second = 0, third = 0;
    write_whole_file(path, "one");
    int files[MC_LEVEL_ORIGINS] = { open(path, O_RDONLY | O_CLOEXEC), -1, -1 };
    const mc_level_origin before = mc_level_origin_of(files, 7);
    const mc_level_origin other = mc_level_origin_of(files, 8);
    ck_assert(mc_level_origin_untouched(&before, &before));
    ck_assert(!mc_level_origin_untouched(&before, &other) && !mc_level_origin_alike(&before, &other));
    ck_assert(mc_level_origin_fresh(&before, apr_time_from_sec(1)));
    ck_assert(!mc_level_origin_fresh(&before, apr_time_now() + apr_time_from_sec(60)));
    ck_assert(mc_level_origin_digest(&first, &before, files, &ctx, pool) == MC_OK);
    write_whole_file(path, "two");
    const mc_level_origin after = mc_level_origin_of(files, 7);
    ck_assert(mc_level_origin_alike(&before, &after));
    ck_assert(mc_level_origin_digest(&second, &after, files, &ctx, pool) == MC_OK);
    ck_assert(first != second && first != 0 && second != 0);
    write_whole_file(path, "one");
    ck_assert(mc_level_origin_digest(&third, &before, files, &ctx, pool) == MC_OK);
    ck_assert_uint_eq(third, first);
    write_whole_file(path, "on");
    const mc_level_origin shorter = mc_level_origin_of(files, 7);
    ck_assert(!mc_level_origin_alike(&before, &shorter));
    mc_error *error = mc_level_origin_digest(&third, &before, files, &ctx, pool);
    ck_assert(error != MC_OK && error->kind == MC_ERR_IO);
    mc_error_ignore(error);
    close(files[0]);
    remove_file(path);
}
END_TEST

UNIT_MAIN("level_file", what_was_written_is_read, deadlines_are_looked_at_before_each_block,
          changed_and_short_files_are_bounded, full_disks_and_killed_builders_change_nothing,
          files_are_told_apart_by_their_bytes, what_is_no_trusted_file_is_not_read)
