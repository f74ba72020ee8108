/*
 * The thread of a process that takes expire lists out of folders (<changes><folder>): what they name is marked as old
 * in the stores, then the file is removed. One process of all that watch a folder does it, the one that holds the lock
 * of a file in it.
 */
#ifndef MC_SERVER_EXPIRE_FOLDER_H
#define MC_SERVER_EXPIRE_FOLDER_H

#include "mapcache/server.h"

typedef struct mc_expire_folders mc_expire_folders;

/* `process` and `log` live longer. The thread starts when there is a folder. */
mc_expire_folders *mc_expire_folders_create(mc_process *process, const mc_log *log);

/* Ends the thread; a list that is being worked on stays. NULL is ignored. */
void mc_expire_folders_destroy(mc_expire_folders *folders);

/* Watches the folder of a configuration, instead of that of an earlier one of the same file; `owner` keeps the
 * configuration. */
void mc_expire_folders_watch(mc_expire_folders *folders, const mc_config *config, const mc_owner *owner);

#endif
