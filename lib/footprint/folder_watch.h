/*
 * Folders whose changes the kernel reports (inotify), so that one look at what was reported answers for all their
 * files. A write is reported before its system call returns: who asks afterwards is told of it.
 *
 * Not reported is what comes by another way than through the folder: writes through memory mappings, through another
 * hard link, from other machines. So only file systems of this machine are watched, who uses a watch asks for files
 * that have one name and are no links (mc_stamp_take_sole), and looks at each of them now and then.
 */
#ifndef MC_FOOTPRINT_FOLDER_WATCH_H
#define MC_FOOTPRINT_FOLDER_WATCH_H

#include "mapcache/ctx.h"

/* Used by any thread of the process that has created them; in a process that is forked later they tell nothing. */
typedef struct mc_folder_watches mc_folder_watches;

mc_folder_watches *mc_folder_watches_create(void);
void mc_folder_watches_destroy(mc_folder_watches *watches); /* NULL is ignored */

/* The number of a folder's watch, which is made now unless there is one; 0: it cannot be watched. That the system has
 * no more watches is said once in the log. */
int mc_folder_watch(mc_folder_watches *watches, const char *folder, mc_ctx *ctx);

/* Whether `folder` (still) leads to what the watch is on. *device: what stat() says of it. */
bool mc_folder_is_watched(mc_folder_watches *watches, int watch, const char *folder, uint64_t *device);

/* Takes what the kernel has reported. Returns how many changes there were so far, more than 0; 0: nothing is known. */
uint64_t mc_folder_watches_take(mc_folder_watches *watches);

/* What a change was of: the hash of a watch and of a file's name in its folder. */
uint64_t mc_folder_change_of(int watch, const char *name);

/* The changes behind the first `from` up to `to`, as taken, at most `most`. Returns how many; -1: too many, or it is
 * not known any more what they were of, or a watch has ended. */
int mc_folder_changes(mc_folder_watches *watches, uint64_t *changes, int most, uint64_t from, uint64_t to);

#endif
