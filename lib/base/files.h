/* Files: folders of a path, and all bytes of a write or a read, also where a signal interrupts the call. */
#ifndef MC_BASE_FILES_H
#define MC_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Makes all folders of a file's path, mode 0777. 0, or errno of the first folder that is not there and could not be
 * made. */
int mc_files_make_folders(const char *path);

/* The number of the process, for names of files and for what is not meant for a forked process: as getpid(), without a
 * call of the kernel each time. */
pid_t mc_files_own_process(void);

/* Writes all bytes at the file's position. False with errno. */
bool mc_files_write(int file, const void *bytes, size_t size);

/* Writes all bytes at an offset. False with errno. */
bool mc_files_write_at(int file, uint64_t offset, const void *bytes, size_t size);

/* Reads at an offset. Returns how many bytes were read: fewer than `size` at the end of the file (errno is EIO then) or
 * after an error (with its errno). */
size_t mc_files_read_at(int file, uint64_t offset, void *buffer, size_t size);

/* Whether two looks at a name have found the same file, with nothing written into it between them. */
bool mc_files_same(const struct stat *a, const struct stat *b);

#endif
