/* See records.h. */
#include "vector/shapefile/records.h"

#include <apr_hash.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { FILE_MAX = 16 << 20, PROCESS_MAX = 64 << 20 };

typedef struct record {
    uint64_t offset;
    size_t size;
    uint8_t bytes[];
} record;

struct mc_records {
    pthread_mutex_t lock; /* of the rest */
    apr_hash_t *kept;     /* by offset */
    size_t size;
};

static atomic_size_t of_process;

static apr_status_t
destroy_records(void *data)
{
    mc_records *records = data;
    for (apr_hash_index_t *i = apr_hash_first(NULL, records->kept); i != NULL; i = apr_hash_next(i))
        free(apr_hash_this_val(i));
    atomic_fetch_sub(&of_process, records->size);
    pthread_mutex_destroy(&records->lock);
    return APR_SUCCESS;
}

mc_records *
mc_records_create(apr_pool_t *pool)
{
    mc_records *made = apr_pcalloc(pool, sizeof(*made));
    pthread_mutex_init(&made->lock, NULL);
    made->kept = apr_hash_make(pool);
    apr_pool_cleanup_register(pool, made, destroy_records, apr_pool_cleanup_null);
    return made;
}

static record *
read_record(const mc_file *file, uint64_t offset, size_t size)
{
    record *made = malloc(sizeof(*made) + size);
    if (made != NULL) {
        made->offset = offset;
        made->size = size;
    }
    if (made != NULL && mc_file_read(file, offset, made->bytes, size) == size)
        return made;
    free(made);
    return NULL;
}

const uint8_t *
mc_records_at(mc_records *records, const mc_file *file, uint64_t offset, size_t size)
{
    pthread_mutex_lock(&records->lock);
    record *found = apr_hash_get(records->kept, &offset, sizeof(offset));
    if (found == NULL && records->size + size <= FILE_MAX && atomic_load(&of_process) + size <= PROCESS_MAX) {
        found = read_record(file, offset, size);
        if (found != NULL) {
            apr_hash_set(records->kept, &found->offset, sizeof(found->offset), found);
            records->size += size;
            atomic_fetch_add(&of_process, size);
        }
    }
    pthread_mutex_unlock(&records->lock);
    return found == NULL || found->size < size ? NULL : found->bytes;
}
