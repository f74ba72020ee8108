/* Files of coverage: a head, the entries by identity, their coverages. In the byte order of the machine. */
#include "footprint/coverage_index.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"

enum {
    INDEXES_AT_MOST = 8, /* tilesets and grids; further ones have none */
    BYTES_AT_MOST = 16 << 20,
    LEAST_PRODUCTS = 64, /* fewer are not worth a file */
    NEW_SHARE = 8,       /* one of so many has to be new for a file to be written again */
};

typedef struct index_head {
    char magic[8];
    uint32_t order, count;
    uint64_t salt, size, sum; /* sum: of all behind the head */
} index_head;

/* The number at its end grows when coverages or identities are made in another way. */
static const char magic[8] = { 'M', 'C', 'C', 'O', 'V', 'E', 'R', '1' };
enum { BYTE_ORDER_MARK = 0x01020304 };

/* --- content ---------------------------------------------------------------------------------------------------- */

static uint64_t
sum_index(const index_head *head, const uint8_t *bytes, size_t size)
{
    return mc_hash64(bytes, size, head->salt + head->count);
}

bool
mc_index_read(mc_index_content *content, const uint8_t *bytes, size_t size)
{
    index_head head;
    if (size < sizeof(head) || size > BYTES_AT_MOST)
        return false;
    memcpy(&head, bytes, sizeof(head));
    if (memcmp(head.magic, magic, sizeof(magic)) != 0 || head.order != BYTE_ORDER_MARK || head.size != size ||
        head.count > (size - sizeof(head)) / sizeof(mc_index_entry) ||
        head.sum != sum_index(&head, bytes + sizeof(head), size - sizeof(head)))
        return false;
    *content = (mc_index_content){ head.salt, head.count, (const void *)(bytes + sizeof(head)), bytes };
    for (uint32_t i = 0; i < head.count; i++)
        if (content->entries[i].offset > size || content->entries[i].size > size - content->entries[i].offset)
            return false;
    return true;
}

static int
compare_index_entries(const void *a, const void *b)
{
    const mc_identity *one = &((const mc_index_entry *)a)->identity, *other = &((const mc_index_entry *)b)->identity;
    if (one->a != other->a)
        return one->a < other->a ? -1 : 1;
    return (one->b > other->b) - (one->b < other->b);
}

static const mc_index_entry *
find_index_entry(const mc_index_content *content, const mc_identity *identity)
{
    mc_index_entry wanted = { *identity, 0, 0 };
    return content->count == 0
               ? NULL
               : bsearch(&wanted, content->entries, content->count, sizeof(wanted), compare_index_entries);
}

mc_coverage *
mc_index_find(const mc_index_content *content, const mc_identity *identity)
{
    const mc_index_entry *found = find_index_entry(content, identity);
    return found == NULL ? NULL : mc_coverage_read(content->bytes + found->offset, found->size);
}

/* --- the files of a process ------------------------------------------------------------------------------------- */

typedef struct index_file {
    uint64_t name; /* of the tileset and grid; 0: this place is free */
    int recalled;  /* products of which it has told */
    int products;  /* that were kept last, after which `bytes` have served their purpose */
    uint8_t *bytes;
    mc_index_content content;
} index_file;

struct mc_coverage_index {
    pthread_mutex_t lock;
    char *folder;
    index_file files[INDEXES_AT_MOST];
};

mc_coverage_index *
mc_coverage_index_create(const char *folder)
{
    mc_coverage_index *index = calloc(1, sizeof(*index));
    MC_ASSERT(index != NULL);
    pthread_mutex_init(&index->lock, NULL);
    index->folder = folder == NULL ? NULL : strdup(folder);
    return index;
}

void
mc_coverage_index_destroy(mc_coverage_index *index)
{
    if (index == NULL)
        return;
    for (int i = 0; i < INDEXES_AT_MOST; i++)
        free(index->files[i].bytes);
    pthread_mutex_destroy(&index->lock);
    free(index->folder);
    free(index);
}

static uint64_t
name_of_index(const mc_batch_series *series)
{
    const mc_tile_key *key = series->key;
    uint64_t name = mc_hash64(key->tileset, strlen(key->tileset), series->how ^ series->paths);
    return mc_hash64(key->grid->name, strlen(key->grid->name), name ^ key->grid->definition) | 1;
}

static void
print_index_path(char path[MC_PATH_MAX], const mc_coverage_index *index, uint64_t name, const char *suffix)
{
    snprintf(path, MC_PATH_MAX, "%s/mapcache-coverage-%016llx%s", index->folder, (unsigned long long)name, suffix);
}

/* What others than this user or root may have written is not read. */
static bool
is_ours(const struct stat *info)
{
    return S_ISREG(info->st_mode) && (info->st_uid == geteuid() || info->st_uid == 0) &&
           (info->st_mode & (S_IWGRP | S_IWOTH)) == 0 && info->st_size > 0 && info->st_size <= BYTES_AT_MOST;
}

static void
load_index_file(index_file *into, const mc_coverage_index *index)
{
    char path[MC_PATH_MAX];
    struct stat info;
    into->recalled = 0;
    print_index_path(path, index, into->name, "");
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return;
    if (fstat(file, &info) == 0 && is_ours(&info)) {
        size_t size = (size_t)info.st_size;
        into->bytes = malloc(size);
        MC_ASSERT(into->bytes != NULL);
        if (mc_files_read_at(file, 0, into->bytes, size) != size || !mc_index_read(&into->content, into->bytes, size)) {
            free(into->bytes);
            into->bytes = NULL;
        }
    }
    close(file);
}

/* The file of a tileset and grid, read when it is asked for first; NULL: it has none. With the lock held. */
static index_file *
find_index_file(mc_coverage_index *index, const mc_batch_series *series)
{
    uint64_t name = name_of_index(series);
    for (int i = 0; i < INDEXES_AT_MOST; i++) {
        if (index->files[i].name == name)
            return &index->files[i];
        if (index->files[i].name == 0) {
            index->files[i].name = name;
            load_index_file(&index->files[i], index);
            return &index->files[i];
        }
    }
    return NULL;
}

static mc_identity
index_identity(uint64_t salt, const mc_batch_series *series, const mc_batch_file *file)
{
    mc_identity identity = mc_series_identity((mc_identity){ salt, ~salt }, series, file->path, 0);
    return mc_identity_of(&identity, &file->stamp, offsetof(mc_stamp, wal_size));
}

void
mc_coverage_index_want(mc_coverage_index *index, const mc_batch_series *series, int count)
{
    if (index == NULL || index->folder == NULL || series->coverage == NULL || series->key->renderable)
        return;
    pthread_mutex_lock(&index->lock);
    index_file *from = find_index_file(index, series);
    if (from != NULL && from->bytes == NULL && from->products > 0 && from->products < count / 2)
        load_index_file(from, index);
    pthread_mutex_unlock(&index->lock);
}

mc_file_facts *
mc_coverage_index_recall(mc_coverage_index *index, const mc_batch_series *series, const mc_batch_file *file)
{
    mc_coverage *coverage = NULL;
    if (index == NULL || index->folder == NULL || series->coverage == NULL || series->key->renderable)
        return NULL;
    pthread_mutex_lock(&index->lock);
    index_file *from = find_index_file(index, series);
    if (from != NULL && from->bytes != NULL) {
        mc_identity identity = index_identity(from->content.salt, series, file);
        coverage = mc_index_find(&from->content, &identity);
        from->recalled += coverage != NULL;
    }
    pthread_mutex_unlock(&index->lock);
    return coverage == NULL ? NULL : mc_file_facts_create(true, true, coverage);
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

typedef struct index_draft {
    mc_index_entry *entries;
    uint32_t count, fresh;
    uint8_t *bytes; /* of coverages */
    size_t size;
} index_draft;

static bool
is_known_product(const mc_footprints *batch, const mc_batch_series *series)
{
    const mc_file_facts *facts = series->first;
    return series->file >= 0 && batch->files[series->file].missing == 0 && mc_identity_valid(&series->identity) &&
           facts != NULL && facts->rollback && facts->coverage != NULL;
}

static void
add_to_draft(index_draft *draft, const mc_identity *identity, size_t size)
{
    draft->entries[draft->count++] = (mc_index_entry){ *identity, (uint32_t)draft->size, (uint32_t)size };
    draft->size += size;
}

/* The coverages of the batch, and those of the file before that are not among them. False: they are too many. */
static bool
fill_draft(index_draft *draft, uint64_t salt, const mc_footprints *batch, const mc_index_content *before)
{
    size_t most = (size_t)batch->series_count + before->count, bytes = 0;
    for (int i = 0; i < batch->series_count; i++)
        if (is_known_product(batch, &batch->series[i]))
            bytes += mc_coverage_write(NULL, batch->series[i].first->coverage);
    for (uint32_t i = 0; i < before->count; i++)
        bytes += before->entries[i].size;
    if (bytes + most * sizeof(mc_index_entry) + sizeof(index_head) > BYTES_AT_MOST)
        return false;
    draft->entries = malloc(sizeof(*draft->entries) * (most + 1));
    draft->bytes = malloc(bytes + 1);
    MC_ASSERT(draft->entries != NULL && draft->bytes != NULL);
    for (int i = 0; i < batch->series_count; i++) {
        const mc_batch_series *series = &batch->series[i];
        if (!is_known_product(batch, series))
            continue;
        mc_identity identity = index_identity(salt, series, &batch->files[series->file]);
        draft->fresh += find_index_entry(before, &identity) == NULL;
        add_to_draft(draft, &identity, mc_coverage_write(draft->bytes + draft->size, series->first->coverage));
    }
    mc_index_content own = { salt, draft->count, draft->entries, NULL };
    qsort(draft->entries, draft->count, sizeof(*draft->entries), compare_index_entries);
    for (uint32_t i = 0; i < before->count; i++)
        if (find_index_entry(&own, &before->entries[i].identity) == NULL) {
            memcpy(draft->bytes + draft->size, before->bytes + before->entries[i].offset, before->entries[i].size);
            add_to_draft(draft, &before->entries[i].identity, before->entries[i].size);
        }
    qsort(draft->entries, draft->count, sizeof(*draft->entries), compare_index_entries);
    return true;
}

/* All or nothing, under the name of the file. */
static void
write_index_file(const mc_coverage_index *index, uint64_t name, const uint8_t *bytes, size_t size)
{
    char path[MC_PATH_MAX], draft[MC_PATH_MAX], suffix[32];
    snprintf(suffix, sizeof(suffix), ".%ld", (long)mc_files_own_process());
    print_index_path(path, index, name, "");
    print_index_path(draft, index, name, suffix);
    int file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (file < 0 && errno == EEXIST && unlink(draft) == 0) /* of a process of the same number that was killed */
        file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (file < 0)
        return;
    bool written = mc_files_write(file, bytes, size);
    written = close(file) == 0 && written;
    if (!written || rename(draft, path) != 0)
        unlink(draft);
}

static void
write_draft(const mc_coverage_index *index, uint64_t name, uint64_t salt, const index_draft *draft)
{
    size_t table = sizeof(*draft->entries) * draft->count, size = sizeof(index_head) + table + draft->size;
    uint8_t *bytes = malloc(size);
    MC_ASSERT(bytes != NULL);
    for (uint32_t i = 0; i < draft->count; i++)
        draft->entries[i].offset += (uint32_t)(sizeof(index_head) + table);
    memcpy(bytes + sizeof(index_head), draft->entries, table);
    memcpy(bytes + sizeof(index_head) + table, draft->bytes, draft->size);
    index_head head = { .order = BYTE_ORDER_MARK, .count = draft->count, .salt = salt, .size = size };
    memcpy(head.magic, magic, sizeof(magic));
    head.sum = sum_index(&head, bytes + sizeof(head), size - sizeof(head));
    memcpy(bytes, &head, sizeof(head));
    write_index_file(index, name, bytes, size);
    free(bytes);
}

static void
write_known_products(const mc_coverage_index *index, const index_file *into, const mc_footprints *batch)
{
    static const mc_index_content nothing;
    const mc_index_content *before = into->bytes == NULL ? &nothing : &into->content;
    uint64_t salt = into->bytes == NULL ? mc_hash64(magic, sizeof(magic), mc_hash_seed()) : into->content.salt;
    index_draft draft = { 0 };
    bool fits = fill_draft(&draft, salt, batch, before);
    if (!fits && into->bytes != NULL) /* what is old makes room */
        fits = fill_draft(&draft, salt, batch, &nothing);
    if (fits && draft.fresh > (uint32_t)batch->series_count / NEW_SHARE)
        write_draft(index, into->name, salt, &draft);
    free(draft.entries);
    free(draft.bytes);
}

void
mc_coverage_index_keep(mc_coverage_index *index, const mc_footprints *batch)
{
    if (index == NULL || index->folder == NULL || batch->series_count < LEAST_PRODUCTS ||
        batch->series[0].coverage == NULL)
        return;
    pthread_mutex_lock(&index->lock);
    index_file *into = find_index_file(index, &batch->series[0]);
    if (into != NULL && into->products < batch->series_count / 2) {
        if (into->products > 0 && into->bytes == NULL)
            load_index_file(into, index);
        if (into->recalled < batch->series_count - batch->series_count / NEW_SHARE)
            write_known_products(index, into, batch);
        free(into->bytes);
        into->bytes = NULL;
        into->products = batch->series_count;
    }
    pthread_mutex_unlock(&index->lock);
}
