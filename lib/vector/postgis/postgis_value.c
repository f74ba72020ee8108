/* Values of rows as they travel: see postgis.h. */
#include "base/bytes.h"
#include "vector/postgis/postgis.h"

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t
mc_postgis_unhex(uint8_t *out, const char *text, int size)
{
    size_t count = 0;
    for (int i = 0; i + 1 < size; i += 2) {
        int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
        if (high < 0 || low < 0)
            break;
        out[count++] = (uint8_t)(high << 4 | low);
    }
    return count;
}

int64_t
mc_postgis_whole(const mc_postgres_field *field)
{
    if (field->size >= 8)
        return (int64_t)__builtin_bswap64(mc_little64((const uint8_t *)field->data));
    return (int64_t)mc_big_number(field->data, field->size);
}
