/* Checks of the machine: file systems of stores, open files, huge pages. */
#include <apr_file_info.h>
#include <apr_hash.h>
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "doctor/doctor_private.h"
#include "mapcache/tileset.h"
#include "mapcache/upkeep.h"
#include "text/text.h"

enum { MOUNT_LINE_BYTES = 8192, MOST_MOUNTS = 10000, SPARE_FILES = 64 };

/* \040 and the like: blanks, tabs, line breaks and backslashes of a mount point. */
static void
unescape_mount_point(char *text)
{
    char *out = text;
    for (const char *in = text; *in != '\0'; in++)
        if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' && in[3] >= '0' &&
            in[3] <= '7') {
            *out++ = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + in[3] - '0');
            in += 3;
        } else
            *out++ = *in;
    *out = '\0';
}

static bool
lies_below(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    while (size > 0 && folder[size - 1] == '/')
        size--;
    return strncmp(path, folder, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

/* "36 35 98:0 /root /point options optional... - type device options": the point's length where the path is below it,
 * else 0. Later lines hide earlier ones. */
static size_t
read_mount_line(mc_doctor_mount *place, char *line, const char *path, apr_pool_t *pool)
{
    char *rest = NULL, *fields[6];
    char *type = strstr(line, " - ");
    for (int i = 0; i < 6; i++)
        if ((fields[i] = apr_strtok(i == 0 ? line : NULL, " ", &rest)) == NULL)
            return 0;
    unescape_mount_point(fields[4]);
    if (type == NULL || type < fields[5] || !lies_below(path, fields[4]))
        return 0;
    type += 3;
    *place = (mc_doctor_mount){ apr_pstrmemdup(pool, type, strcspn(type, " \n")), apr_pstrdup(pool, fields[5]) };
    return strlen(fields[4]);
}

mc_doctor_mount
mc_doctor_find_mount(FILE *mounts, const char *path, apr_pool_t *pool)
{
    mc_doctor_mount found = { "", "" };
    size_t longest = 0;
    char line[MOUNT_LINE_BYTES];
    for (int i = 0; i < MOST_MOUNTS && fgets(line, sizeof(line), mounts) != NULL; i++) {
        mc_doctor_mount place;
        size_t length = read_mount_line(&place, line, path, pool);
        if (length >= longest && length > 0) {
            longest = length;
            found = place;
        }
    }
    return found;
}

static mc_doctor_mount
find_mount_here(const char *path, apr_pool_t *pool)
{
    mc_doctor_mount found = { "", "" };
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (mounts != NULL) {
        found = mc_doctor_find_mount(mounts, path, pool);
        fclose(mounts);
    }
    return found;
}

static bool
is_one_of(const char *word, const char *const *words)
{
    while (*words != NULL && strcmp(*words, word) != 0)
        words++;
    return *words != NULL;
}

bool
mc_doctor_is_network(const char *type)
{
    static const char *const types[] = { "nfs",  "nfs4",   "cifs", "smb3",      "smbfs", "9p",
                                         "ceph", "lustre", "gfs2", "glusterfs", "afs",   NULL };
    return is_one_of(type, types) || strncmp(type, "fuse.", 5) == 0;
}

typedef struct store_search {
    mc_doctor *doctor;
    apr_hash_t *seen; /* caches */
    bool written;
} store_search;

static void
add_examined_store(void *baton, mc_cache *part)
{
    const store_search *search = baton;
    mc_doctor *doctor = search->doctor;
    bool single = false;
    const char *path = part->ops->place == NULL ? NULL : part->ops->place(&single, part, doctor->pool);
    char *full;
    if (path == NULL || apr_hash_get(search->seen, &part, sizeof(part)) != NULL)
        return;
    apr_hash_set(search->seen, apr_pmemdup(doctor->pool, &part, sizeof(part)), sizeof(part), part);
    if (apr_filepath_merge(&full, NULL, path, APR_FILEPATH_TRUENAME, doctor->pool) == APR_SUCCESS)
        path = full;
    mc_doctor_mount place = find_mount_here(path, doctor->pool);
    APR_ARRAY_PUSH(doctor->stores, mc_doctor_store) = (mc_doctor_store){ .cache = part,
                                                                         .path = path,
                                                                         .file_system = place.type,
                                                                         .mount_options = place.options,
                                                                         .single = single,
                                                                         .network = mc_doctor_is_network(place.type),
                                                                         .layered = strcmp(place.type, "overlay") == 0,
                                                                         .written = search->written };
}

void
mc_doctor_find_stores(mc_doctor *doctor)
{
    store_search search = { doctor, apr_hash_make(doctor->pool), false };
    for (int i = 0; i < doctor->config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(doctor->config->tilesets, i, const mc_tileset *);
        search.written = tileset->source != NULL;
        if (tileset->cache != NULL)
            mc_cache_parts(tileset->cache, add_examined_store, &search);
    }
}

static const char *
store_subject(const mc_doctor_store *store, apr_pool_t *pool)
{
    return apr_psprintf(pool, "cache \"%s\" (%s) in %s", store->cache->name, store->cache->ops->type, store->path);
}

void
mc_doctor_check_file_systems(mc_doctor *doctor, const mc_doctor_check *check)
{
    static const char *const locking[] = { "sqlite3", "mbtiles", "geopackage", "lmdb", "bdb", NULL };
    for (int i = 0; i < doctor->stores->nelts; i++) {
        const mc_doctor_store *store = &APR_ARRAY_IDX(doctor->stores, i, const mc_doctor_store);
        if ((!store->network && !store->layered) || !is_one_of(store->cache->ops->type, locking))
            continue;
        mc_doctor_find(
            doctor,
            &(mc_finding){
                .check = check,
                .subject = store_subject(store, doctor->pool),
                .found = apr_psprintf(doctor->pool, "the files stand on a file system of type %s", store->file_system),
                .why = store->network ? "locks and shared memory of such databases do not hold across machines, and "
                                        "each read of a tile waits for the network"
                                      : "the first write to a file copies the whole file into the upper layer, and the "
                                        "tiles are gone with the container",
                .todo = store->network ? "a local disk, or a cache that is made for many machines (docs/scaling.md)"
                                       : "a volume for the folder of the cache",
                .factor = 1 });
    }
}

void
mc_doctor_check_mount_options(mc_doctor *doctor, const mc_doctor_check *check)
{
    for (int i = 0; i < doctor->stores->nelts; i++) {
        const mc_doctor_store *store = &APR_ARRAY_IDX(doctor->stores, i, const mc_doctor_store);
        char *rest = NULL, *options = apr_pstrdup(doctor->pool, store->mount_options);
        bool sparing = false;
        for (char *one = apr_strtok(options, ",", &rest); one != NULL; one = apr_strtok(NULL, ",", &rest))
            sparing |= strcmp(one, "noatime") == 0 || strcmp(one, "relatime") == 0 || strcmp(one, "ro") == 0;
        if (sparing || *store->file_system == '\0')
            continue;
        mc_doctor_find(
            doctor, &(mc_finding){ .check = check,
                                   .subject = store_subject(store, doctor->pool),
                                   .found = apr_psprintf(doctor->pool, "mounted with %s: without relatime or noatime",
                                                         store->mount_options),
                                   .why = "each read of a file writes the time of the read",
                                   .todo = "add noatime to the options of the file system in /etc/fstab",
                                   .factor = 1 });
    }
}

void
mc_doctor_check_descriptors(mc_doctor *doctor, const mc_doctor_check *check)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        mc_doctor_miss(doctor, check, "the limit of open files cannot be read");
        return;
    }
    const mc_config *config = doctor->config;
    long connections = (long)doctor->databases->nelts * mc_config_connections(config, doctor->options->processes);
    long right = config->open_files + 3 * connections + doctor->options->clients + SPARE_FILES;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= (rlim_t)right)
        return;
    mc_doctor_find(
        doctor,
        &(mc_finding){
            .check = check,
            .subject = "RLIMIT_NOFILE",
            .found =
                apr_psprintf(doctor->pool,
                             "the limit here is %lu; a process may want %ld: %d for stores, %ld for connections to "
                             "databases, %d for clients, %d for others",
                             (unsigned long)limit.rlim_cur, right, config->open_files, 3 * connections,
                             doctor->options->clients, SPARE_FILES),
            .why = "a store that cannot be opened is an error for the client, or is opened and closed for each tile",
            .todo = apr_psprintf(doctor->pool,
                                 "LimitNOFILE=%ld in the unit of the web server, or ulimit -n; this check sees the "
                                 "limit of its own shell",
                                 right),
            .factor = 1,
            .fix = apr_psprintf(doctor->pool,
                                "# In a drop-in of the unit (systemctl edit UNIT):\n# [Service]\n# LimitNOFILE=%ld",
                                right) });
}

#define HUGE_PAGES "/sys/kernel/mm/transparent_hugepage/enabled"

void
mc_doctor_judge_huge_pages(mc_doctor *doctor, const mc_doctor_check *check, const char *modes)
{
    apr_int64_t memory = mc_config_memory(doctor->config);
    if (strstr(modes, "[never]") == NULL || memory < (apr_int64_t)256 << 20)
        return;
    mc_doctor_find(
        doctor,
        &(mc_finding){
            .check = check,
            .subject = HUGE_PAGES,
            .found = apr_psprintf(doctor->pool, "never, for a <memory_cache> of %" APR_INT64_T_FMT " MB", memory >> 20),
            .why = "the memory is then in pages of 4 kB, whose addresses the processor looks up "
                   "more often",
            .todo = "echo madvise > " HUGE_PAGES,
            .factor = 1,
            .fix = "echo madvise > " HUGE_PAGES });
}

void
mc_doctor_check_huge_pages(mc_doctor *doctor, const mc_doctor_check *check)
{
    char line[256] = "";
    FILE *file = fopen(HUGE_PAGES, "re");
    if (file == NULL || fgets(line, sizeof(line), file) == NULL)
        mc_doctor_miss(doctor, check, HUGE_PAGES " cannot be read");
    if (file != NULL)
        fclose(file);
    mc_doctor_judge_huge_pages(doctor, check, line);
}
