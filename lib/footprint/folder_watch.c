/* Watches of folders: a table by the kernel's numbers, and a ring of the last changes. */
#include "footprint/folder_watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "mapcache/error.h"

enum {
    FOLDERS_AT_MOST = 64,
    CHANGES_KEPT = 1024,
    READS_AT_ONCE = 64, /* of the kernel's queue; a folder that is written to all the time has no end */
};

/* Whatever may make the stamp of a file another one, or another file stand under its name. */
#define EVENTS                                                                                                         \
    (IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |   \
     IN_MOVE_SELF)

typedef struct folder_with_watch {
    int watch; /* the kernel's number; 0: free */
    dev_t device;
    ino_t inode;
} folder_with_watch;

struct mc_folder_watches {
    pthread_mutex_t lock;
    pid_t owner;
    int queue;   /* inotify; -1: not open */
    bool failed; /* and it was said */
    folder_with_watch folders[FOLDERS_AT_MOST];
    int next;       /* folder that gives way when there are too many */
    uint64_t taken; /* number of changes */
    uint64_t last[CHANGES_KEPT];
};

/* File systems of this machine that report all that is written to them by name. */
static const unsigned reporting_file_systems[] = {
    0xef53,     /* ext4 */
    0x58465342, /* xfs */
    0x9123683e, /* btrfs */
    0x01021994, /* tmpfs */
};

mc_folder_watches *
mc_folder_watches_create(void)
{
    mc_folder_watches *watches = calloc(1, sizeof(*watches));
    MC_ASSERT(watches != NULL);
    pthread_mutex_init(&watches->lock, NULL);
    watches->owner = mc_files_own_process();
    watches->queue = -1;
    watches->taken = 1;
    return watches;
}

void
mc_folder_watches_destroy(mc_folder_watches *watches)
{
    if (watches == NULL)
        return;
    if (watches->queue >= 0)
        close(watches->queue);
    pthread_mutex_destroy(&watches->lock);
    free(watches);
}

static bool
reports_changes(const char *folder)
{
    struct statfs info;
    if (statfs(folder, &info) != 0)
        return false;
    for (size_t i = 0; i < sizeof(reporting_file_systems) / sizeof(reporting_file_systems[0]); i++)
        if ((unsigned)info.f_type == reporting_file_systems[i])
            return true;
    return false;
}

/* Whoever knows less than this does not know what has changed. */
static void
lose_count(mc_folder_watches *watches)
{
    watches->taken += CHANGES_KEPT + 1;
}

static void
tell_no_watch(mc_folder_watches *watches, const char *folder, mc_ctx *ctx)
{
    char text[128];
    if (!watches->failed)
        mc_log_write(ctx, MC_LOG_NOTICE,
                     "folders of product files cannot be watched, each map looks at each file: %s: %s", folder,
                     strerror_r(errno, text, sizeof(text)));
    watches->failed = true;
}

static folder_with_watch *
find_watched_folder(mc_folder_watches *watches, dev_t device, ino_t inode)
{
    for (int i = 0; i < FOLDERS_AT_MOST; i++)
        if (watches->folders[i].watch != 0 && watches->folders[i].device == device &&
            watches->folders[i].inode == inode)
            return &watches->folders[i];
    return NULL;
}

/* A place in the table; who has had the watch that stood there looks at each file again. */
static folder_with_watch *
take_watched_place(mc_folder_watches *watches)
{
    for (int i = 0; i < FOLDERS_AT_MOST; i++)
        if (watches->folders[i].watch == 0)
            return &watches->folders[i];
    folder_with_watch *place = &watches->folders[watches->next++ % FOLDERS_AT_MOST];
    inotify_rm_watch(watches->queue, place->watch);
    place->watch = 0;
    return place;
}

/* With the lock held. */
static int
add_folder_watch(mc_folder_watches *watches, const char *folder, const struct stat *before, mc_ctx *ctx)
{
    struct stat after;
    if (watches->failed || !reports_changes(folder))
        return 0;
    if (watches->queue < 0)
        watches->queue = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    int watch = watches->queue < 0 ? -1 : inotify_add_watch(watches->queue, folder, EVENTS | IN_ONLYDIR);
    if (watch < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOSPC || errno == ENOMEM)
            tell_no_watch(watches, folder, ctx);
        return 0;
    }
    if (stat(folder, &after) != 0 || after.st_dev != before->st_dev || after.st_ino != before->st_ino) {
        inotify_rm_watch(watches->queue, watch); /* it was moved meanwhile: what is watched is not certain */
        return 0;
    }
    *take_watched_place(watches) = (folder_with_watch){ watch, after.st_dev, after.st_ino };
    return watch;
}

int
mc_folder_watch(mc_folder_watches *watches, const char *folder, mc_ctx *ctx)
{
    struct stat info;
    if (watches->owner != mc_files_own_process() || stat(folder, &info) != 0)
        return 0;
    pthread_mutex_lock(&watches->lock);
    const folder_with_watch *known = find_watched_folder(watches, info.st_dev, info.st_ino);
    int watch = known != NULL ? known->watch : add_folder_watch(watches, folder, &info, ctx);
    pthread_mutex_unlock(&watches->lock);
    return watch;
}

bool
mc_folder_is_watched(mc_folder_watches *watches, int watch, const char *folder, uint64_t *device)
{
    struct stat info;
    if (stat(folder, &info) != 0)
        return false;
    pthread_mutex_lock(&watches->lock);
    const folder_with_watch *known = find_watched_folder(watches, info.st_dev, info.st_ino);
    bool same = known != NULL && known->watch == watch;
    pthread_mutex_unlock(&watches->lock);
    *device = info.st_dev;
    return same;
}

uint64_t
mc_folder_change_of(int watch, const char *name)
{
    return mc_hash64(name, strlen(name), mc_hash_seed() + (unsigned)watch);
}

/* With the lock held. */
static void
take_folder_event(mc_folder_watches *watches, const struct inotify_event *event)
{
    if (event->len > 0 && (event->mask & IN_Q_OVERFLOW) == 0) {
        watches->last[watches->taken++ % CHANGES_KEPT] = mc_folder_change_of(event->wd, event->name);
        return;
    }
    if ((event->mask & (IN_Q_OVERFLOW | IN_UNMOUNT | IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) != 0)
        lose_count(watches); /* of the folder's own times nothing is made */
    for (int i = 0; i < FOLDERS_AT_MOST && (event->mask & (IN_IGNORED | IN_UNMOUNT)) != 0; i++)
        if (watches->folders[i].watch == event->wd)
            watches->folders[i].watch = 0;
}

/* With the lock held. False: there may be more. */
static bool
read_folder_events(mc_folder_watches *watches)
{
    _Alignas(struct inotify_event) char buffer[16384];
    ssize_t size = read(watches->queue, buffer, sizeof(buffer));
    for (ssize_t at = 0; at < size;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)(buffer + at);
        take_folder_event(watches, event);
        at += (ssize_t)(sizeof(*event) + event->len);
    }
    return size < 0 && errno == EAGAIN;
}

uint64_t
mc_folder_watches_take(mc_folder_watches *watches)
{
    if (watches->owner != mc_files_own_process())
        return 0;
    pthread_mutex_lock(&watches->lock);
    bool all = watches->queue < 0;
    for (int i = 0; i < READS_AT_ONCE && !all; i++)
        all = read_folder_events(watches);
    if (!all)
        lose_count(watches);
    uint64_t taken = watches->taken;
    pthread_mutex_unlock(&watches->lock);
    return taken;
}

int
mc_folder_changes(mc_folder_watches *watches, uint64_t *changes, int most, uint64_t from, uint64_t to)
{
    int count = 0;
    pthread_mutex_lock(&watches->lock);
    if (to - from > (uint64_t)most || watches->taken - from > CHANGES_KEPT)
        count = -1;
    for (uint64_t at = from; count >= 0 && at < to; at++)
        changes[count++] = watches->last[at % CHANGES_KEPT];
    pthread_mutex_unlock(&watches->lock);
    return count;
}
