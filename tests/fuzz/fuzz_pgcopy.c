/*
 * Any bytes as rows of COPY's binary format: pieces of them, each as long as its first two bytes say, are what libpq
 * hands over. Every field lies inside of its row, and ends with a zero byte unless it is null.
 */
#include <stdlib.h>
#include <string.h>

#include "db/postgres/postgres_copy.c"

#include "fuzz_support.h"

enum { ROOM = 32, ROWS = 64 };

static void
check_field(const mc_postgres_field *field, const char *row, size_t size)
{
    if (field->size < 0) {
        MC_ASSERT(field->size == -1 && field->data[0] == '\0');
        return;
    }
    MC_ASSERT(field->data >= row && field->data + field->size <= row + size);
    MC_ASSERT(field->data[field->size] == '\0');
}

/* As libpq gives a row: with a zero byte behind it, and nothing behind that. */
static bool
read_one_row(const uint8_t *bytes, size_t size, bool first, apr_pool_t *pool)
{
    mc_postgres_field fields[ROOM];
    int count = 0;
    char *row = malloc(size + 1);
    MC_ASSERT(row != NULL);
    if (size > 0)
        memcpy(row, bytes, size);
    row[size] = '\0';
    mc_error *error = mc_pg_copy_fields(fields, &count, ROOM, row, (int)size, first, pool);
    MC_ASSERT(error != MC_OK || (count >= -1 && count <= ROOM));
    for (int i = 0; error == MC_OK && i < count; i++)
        check_field(&fields[i], row, size);
    free(row);
    return error == MC_OK && count >= 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    size_t at = 0;
    bool more = true;
    for (int row = 0; row < ROWS && more && size - at >= 2; row++) {
        size_t length = (size_t)data[at] << 8 | data[at + 1];
        at += 2;
        length = length < size - at ? length : size - at;
        more = read_one_row(data + at, length, row == 0, pool);
        at += length;
    }
    apr_pool_destroy(pool);
    return 0;
}
