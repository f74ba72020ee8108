/* Files of overviews: what was written is read back, and a file with any byte changed or cut short is refused, or reads
 * as a file. */
#include "vector/levels/level_file.h"

#include <apr_strings.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"
#include "vector/levels/level_writer.h"

enum { STYLE = 77 };

static char folder[] = "/tmp/mapcache-levels-XXXXXX";

static const mc_level_origin origin = { { 10, -1, 30 }, { 1, 0, 3 }, 99 };

static void
remove_file(const char *path)
{
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else is left in it */
}

static const char *
write_two_levels(void)
{
    static const mc_level_range fine = { 10, 20, 1 }, coarse = { 20, 40, 1 };
    const char *path;
    mc_level_writer *writer;
    mc_level_spool *spools[3];
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    path = mc_level_file_path(apr_pstrcat(pool, folder, "/a", NULL), STYLE, pool);
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
    ck_assert(mc_level_file_open(&file, path, pool) == MC_OK);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(file->count, 2);
    ck_assert_uint_eq(file->style, STYLE);
    ck_assert(mc_level_origin_equal(&file->origin, &origin));
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
    ck_assert(mc_level_file_open(&file, "/nowhere/at/all", pool) == MC_OK);
    ck_assert_ptr_null(file);
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
        mc_error *error = mc_level_file_open(&file, path, own);
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

UNIT_MAIN("level_file", what_was_written_is_read, changed_and_short_files_are_bounded)
