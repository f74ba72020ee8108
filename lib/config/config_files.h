/*
 * The files that a configuration was read of: itself, and the styles, pictures, colour tables and other files whose
 * contents count as a part of it. Whoever reads such a file while a configuration is built says so here, before the
 * file is opened; so a file that could not be read is known as well, and its change is seen. Data do not count: sources
 * and stores look at their data themselves.
 */
#ifndef MC_CONFIG_CONFIG_FILES_H
#define MC_CONFIG_CONFIG_FILES_H

#include "mapcache/config.h"

typedef struct mc_config_files mc_config_files;

/* Nothing yet; in `pool`. */
mc_config_files *mc_config_files_create(apr_pool_t *pool);

/* A configuration is being read of the file `path`, which is about to be opened. A path that is known already stays as
 * it was found first. */
void mc_config_files_note(mc_config_files *files, const char *path);

/* The same list with everything in `pool`. */
mc_config_files *mc_config_files_copy(const mc_config_files *files, apr_pool_t *pool);

int mc_config_files_count(const mc_config_files *files);
const char *mc_config_files_path(const mc_config_files *files, int index);

/*
 * The path of the first file that is another one now than it was when it was noted: written, replaced, removed, made.
 * NULL: all are as they were. A file with new times and the same contents counts as the same, except the first one of
 * the list, the configuration itself: `touch` has it loaded again. Files that are no regular ones do not count.
 */
const char *mc_config_files_changed(mc_config_files *files);

/* A number that is another one as soon as one of the files is another one, by size, times and inode; for telling
 * whether somebody is still writing. Two lists of the same files have the same number. */
uint64_t mc_config_files_stamp(const mc_config_files *files);

#endif
