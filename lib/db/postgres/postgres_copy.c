/* Rows of COPY ... TO STDOUT (FORMAT binary). */
#include <string.h>

#include "base/bytes.h"
#include "db/postgres/postgres_private.h"

/* "PGCOPY\n\377\r\n\0", four bytes of flags, the length of what may follow them. */
#define SIGNATURE "PGCOPY\n\377\r\n"
enum { SIGNATURE_SIZE = 11, HEAD_SIZE = SIGNATURE_SIZE + 8 };

typedef struct cursor {
    char *at, *end;
} cursor;

static bool
read_copy_number(int *number, cursor *in, int bytes)
{
    if (in->end - in->at < bytes)
        return false;
    uint32_t value = (uint32_t)mc_big_number(in->at, bytes);
    in->at += bytes;
    *number = bytes == 2 ? (int16_t)value : (int32_t)value;
    return true;
}

static bool
pass_head(cursor *in)
{
    int extension;
    if (in->end - in->at < HEAD_SIZE || memcmp(in->at, SIGNATURE, SIGNATURE_SIZE) != 0)
        return false;
    in->at += HEAD_SIZE - 4;
    if (!read_copy_number(&extension, in, 4) || extension < 0 || extension > in->end - in->at)
        return false;
    in->at += extension;
    return true;
}

static bool
read_copy_fields(mc_postgres_field *fields, int count, cursor *in)
{
    static const char nothing[] = "";
    char *behind = NULL; /* the byte after the field before, which is that of a length until that has been read */
    for (int i = 0; i < count; i++) {
        int size;
        if (!read_copy_number(&size, in, 4) || size > in->end - in->at)
            return false;
        if (behind != NULL)
            *behind = '\0';
        fields[i] = (mc_postgres_field){ .data = size < 0 ? nothing : in->at, .size = size < 0 ? -1 : size };
        behind = size < 0 ? NULL : in->at + size;
        in->at += size < 0 ? 0 : size;
    }
    return true; /* libpq ends the row with a zero byte of its own */
}

mc_error *
mc_pg_copy_fields(mc_postgres_field *fields, int *count, int room, char *row, int size, bool first, apr_pool_t *pool)
{
    cursor in = { row, row + size };
    if ((first && !pass_head(&in)) || !read_copy_number(count, &in, 2) || *count < -1 || *count > room ||
        (*count > 0 && !read_copy_fields(fields, *count, &in)) || in.at != in.end)
        return mc_error_create(pool, MC_ERR_UPSTREAM, "the database sent something that is no row of a COPY");
    return MC_OK;
}
