/* dBASE III: a header, fields of fixed width, records of fixed width. */
#include "feature/dbf.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

enum { HEAD = 32, FIELD = 32, NAME = 11, FIELDS_MAX = 2046, END_OF_FIELDS = 0x0D };

static bool
is_latin1(const char *codepage, uint8_t driver)
{
    static const char *const names[] = { "1252",       "CP1252", "ANSI 1252", "WINDOWS-1252", "ISO-8859-1",
                                         "ISO 8859-1", "88591",  "8859-1",    "LATIN1",       "ISO88591" };
    for (size_t i = 0; codepage != NULL && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(codepage, names[i]) == 0)
            return true;
    return codepage == NULL && (driver == 0x03 || driver == 0x57 || driver == 0x58); /* Windows ANSI */
}

mc_error *
mc_dbf_open(mc_dbf **dbf, const mc_mapped *file, const char *codepage, apr_pool_t *pool)
{
    mc_dbf *made = apr_pcalloc(pool, sizeof(*made));
    if (file->size < HEAD + 1)
        return mc_error_create(pool, MC_ERR_CORRUPT, "the table of attributes ends inside of its header");
    made->file = file;
    made->header = mc_little16(file->bytes + 8);
    made->record = mc_little16(file->bytes + 10);
    made->latin1 = is_latin1(codepage, file->bytes[29]);
    if (made->header < HEAD + 1 || (size_t)made->header > file->size || made->record < 1)
        return mc_error_create(pool, MC_ERR_CORRUPT, "the header of the table of attributes is broken");
    made->fields = apr_pcalloc(pool, sizeof(*made->fields) * FIELDS_MAX);
    int at = 1; /* after the mark of deletion */
    for (int begin = HEAD; begin + FIELD <= made->header && file->bytes[begin] != END_OF_FIELDS; begin += FIELD) {
        const uint8_t *bytes = file->bytes + begin;
        mc_dbf_field *field = &made->fields[made->field_count];
        *field = (mc_dbf_field){ apr_pstrmemdup(pool, (const char *)bytes, strnlen((const char *)bytes, NAME)),
                                 (char)bytes[11], at, bytes[16], bytes[17] };
        at += field->width;
        if (made->field_count == FIELDS_MAX - 1 || at > made->record)
            return mc_error_create(pool, MC_ERR_CORRUPT,
                                   "the fields of the table of attributes do not fit its records");
        made->field_count++;
    }
    size_t room = (file->size - (size_t)made->header) / (size_t)made->record;
    uint32_t said = mc_little32(file->bytes + 4);
    made->count = said < room ? said : (uint32_t)room;
    *dbf = made;
    return MC_OK;
}

int
mc_dbf_find(const mc_dbf *dbf, const char *name)
{
    for (int i = 0; i < dbf->field_count; i++)
        if (strcasecmp(dbf->fields[i].name, name) == 0)
            return i;
    return -1;
}

static const char *
from_latin1(const char *bytes, size_t size, apr_pool_t *pool)
{
    char *text = apr_palloc(pool, size * 2 + 1), *out = text;
    for (size_t i = 0; i < size; i++) {
        uint8_t c = (uint8_t)bytes[i];
        if (c < 0x80) {
            *out++ = (char)c;
        } else {
            *out++ = (char)(0xC0 | c >> 6);
            *out++ = (char)(0x80 | (c & 0x3F));
        }
    }
    *out = '\0';
    return text;
}

const char *
mc_dbf_value(const mc_dbf *dbf, uint32_t record, int field, apr_pool_t *pool)
{
    if (record >= dbf->count || field < 0)
        return NULL;
    const mc_dbf_field *about = &dbf->fields[field];
    const char *bytes = (const char *)dbf->file->bytes + dbf->header + (size_t)record * (size_t)dbf->record + about->at;
    size_t size = strnlen(bytes, (size_t)about->width);
    while (size > 0 && bytes[size - 1] == ' ')
        size--;
    while (size > 0 && *bytes == ' ') {
        bytes++;
        size--;
    }
    bool null_number = (about->type == 'N' || about->type == 'F') && size > 0 && *bytes == '*';
    if (size == 0 || null_number)
        return NULL;
    return dbf->latin1 ? from_latin1(bytes, size, pool) : apr_pstrmemdup(pool, bytes, size);
}
