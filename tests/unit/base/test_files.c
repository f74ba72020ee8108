#include "unit.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"

static const char *
temporary_folder(void)
{
    char *folder = apr_pstrdup(pool, "/tmp/mc-files-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    return folder;
}

START_TEST(folders_are_made_once)
{
    const char *folder = temporary_folder(), *path = apr_pstrcat(pool, folder, "/a/b/file", NULL);
    struct stat info;
    ck_assert_int_eq(mc_files_make_folders(path), 0);
    ck_assert_int_eq(mc_files_make_folders(path), 0);
    ck_assert(stat(apr_pstrcat(pool, folder, "/a/b", NULL), &info) == 0 && S_ISDIR(info.st_mode));
    ck_assert(stat(path, &info) != 0 && errno == ENOENT);
    ck_assert_int_eq(mc_files_make_folders("file"), 0);
    ck_assert_int_eq(mc_files_make_folders(""), 0);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(file, 0);
    close(file);
    ck_assert_int_eq(mc_files_make_folders(apr_pstrcat(pool, path, "/c/d", NULL)), ENOTDIR);
    unlink(path);
    const char *deep = apr_pstrcat(pool, folder, "/a/b/c//d/e/file", NULL);
    ck_assert_int_eq(mc_files_make_folders(deep), 0);
    ck_assert(stat(apr_pstrcat(pool, folder, "/a/b/c/d/e", NULL), &info) == 0 && S_ISDIR(info.st_mode));
    rmdir(apr_pstrcat(pool, folder, "/a/b/c/d/e", NULL));
    rmdir(apr_pstrcat(pool, folder, "/a/b/c/d", NULL));
    ck_assert_int_eq(symlink("nowhere", apr_pstrcat(pool, folder, "/a/b/c/d", NULL)), 0);
    ck_assert_int_ne(mc_files_make_folders(deep), 0);
    unlink(apr_pstrcat(pool, folder, "/a/b/c/d", NULL));
    rmdir(apr_pstrcat(pool, folder, "/a/b/c", NULL));
    rmdir(apr_pstrcat(pool, folder, "/a/b", NULL));
    rmdir(apr_pstrcat(pool, folder, "/a", NULL));
    rmdir(folder);
}
END_TEST

START_TEST(all_bytes_are_moved)
{
    const char *folder = temporary_folder(), *path = apr_pstrcat(pool, folder, "/file", NULL);
    uint8_t bytes[10000], back[sizeof(bytes)];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(file, 0);
    ck_assert(mc_files_write(file, bytes, 1000) && mc_files_write(file, bytes + 1000, 500));
    ck_assert(mc_files_write(file, NULL, 0));
    ck_assert(mc_files_write_at(file, 1500, bytes + 1500, sizeof(bytes) - 1500));
    ck_assert_uint_eq(mc_files_read_at(file, 0, back, sizeof(back)), sizeof(back));
    ck_assert_mem_eq(back, bytes, sizeof(bytes));
    ck_assert_uint_eq(mc_files_read_at(file, 9990, back, 100), 10);
    ck_assert_int_eq(errno, EIO);
    close(file);
    ck_assert(!mc_files_write(file, bytes, 1) && errno == EBADF);
    ck_assert(!mc_files_write_at(file, 0, bytes, 1) && errno == EBADF);
    ck_assert(mc_files_read_at(file, 0, back, 1) == 0 && errno == EBADF);
    unlink(path);
    rmdir(folder);
}
END_TEST

START_TEST(a_file_that_was_written_or_replaced_is_another)
{
    const char *folder = temporary_folder(), *path = apr_pstrcat(pool, folder, "/file", NULL);
    const char *other = apr_pstrcat(pool, folder, "/other", NULL);
    struct stat before, now;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert(mc_files_write(file, "text", 4) && fstat(file, &before) == 0 && stat(path, &now) == 0);
    ck_assert(mc_files_same(&before, &now));
    ck_assert(mc_files_write(file, "more", 4) && stat(path, &now) == 0 && !mc_files_same(&before, &now));
    const struct timespec times[] = { before.st_atim, before.st_mtim };
    ck_assert(ftruncate(file, 4) == 0 && futimens(file, times) == 0);
    do /* size and time of the text are as before: until the clock has moved on, so is that of the change */
        ck_assert(fchmod(file, 0600) == 0 && stat(path, &now) == 0);
    while (now.st_ctim.tv_sec == before.st_ctim.tv_sec && now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
    ck_assert(!mc_files_same(&before, &now));
    close(file);
    file = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert(file >= 0 && rename(other, path) == 0 && stat(path, &before) == 0 && !mc_files_same(&before, &now));
    close(file);
    unlink(path);
    rmdir(folder);
}
END_TEST

START_TEST(a_forked_process_knows_its_own_number)
{
    ck_assert_int_eq(mc_files_own_process(), getpid());
    pid_t child = fork();
    if (child == 0)
        _exit(mc_files_own_process() == getpid() ? 0 : 1);
    int status = 1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(mc_files_own_process(), getpid());
}
END_TEST

UNIT_MAIN("files", folders_are_made_once, all_bytes_are_moved, a_file_that_was_written_or_replaced_is_another,
          a_forked_process_knows_its_own_number)
