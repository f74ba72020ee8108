/* dBASE III: a header, fields of fixed width, records of fixed width; with FoxPro's binary types. */
#include "vector/shapefile/dbf.h"

#include <apr_strings.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "text/calendar.h"
#include "text/text.h"

enum {
    HEAD = 32,
    FIELD = 32,
    NAME = 11,
    FIELDS_MAX = 2046,
    END_OF_FIELDS = 0x0D,
    DRIVER_AT = 29,
    DBASE_7 = 4,
    LEAST_AHEAD = 1 << 9,
    MOST_AHEAD = 1 << 16,
};

/* Types whose text lies in a .dbt or .fpt file, and the flags of FoxPro's nulls. */
static const char memo_types[] = "MGPBW0";

static mc_error *
broken_header(apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "the header of the table of attributes is broken");
}

/* FoxPro's B is a double, dBASE's a memo: the version says whose table it is. */
static bool
is_memo(char type, int version)
{
    bool foxpro = version == 0x30 || version == 0x31 || version == 0x32;
    return strchr(memo_types, type) != NULL && !(type == 'B' && foxpro);
}

static mc_error *
read_dbf_fields(mc_dbf *dbf, const uint8_t *header, apr_pool_t *pool)
{
    int at = 1, fields = 0; /* after the mark of deletion */
    mc_codepage page = { .name = dbf->codepage };
    dbf->fields = apr_pcalloc(pool, sizeof(*dbf->fields) * (size_t)(dbf->header / FIELD + 1));
    for (int begin = HEAD; begin + FIELD <= dbf->header && header[begin] != END_OF_FIELDS; begin += FIELD) {
        const uint8_t *bytes = header + begin;
        char type = (char)bytes[11];
        int width = bytes[16];
        if (++fields > FIELDS_MAX || at + width > dbf->record) {
            mc_codepage_close(&page);
            return mc_error_create(pool, MC_ERR_CORRUPT,
                                   "the fields of the table of attributes do not fit its records");
        }
        if (is_memo(type, header[0]))
            dbf->memo_count++;
        else
            dbf->fields[dbf->field_count++] =
                (mc_dbf_field){ mc_codepage_text(&page, (const char *)bytes, strnlen((const char *)bytes, NAME), pool),
                                type, at, width, bytes[17] };
        at += width;
    }
    mc_codepage_close(&page);
    return MC_OK;
}

mc_error *
mc_dbf_open(mc_dbf **dbf, const mc_file *file, const char *codepage, apr_pool_t *pool)
{
    uint8_t head[HEAD];
    mc_dbf *made = apr_pcalloc(pool, sizeof(*made));
    if (mc_file_read(file, 0, head, HEAD) < HEAD)
        return mc_error_create(pool, MC_ERR_CORRUPT, "the table of attributes ends inside of its header");
    if ((head[0] & 7) == DBASE_7)
        return mc_error_create(pool, MC_ERR_NOT_BUILT, "tables of attributes of dBASE 7 cannot be read");
    made->file = file;
    made->header = mc_little16(head + 8);
    made->record = mc_little16(head + 10);
    made->codepage = codepage != NULL ? codepage : mc_codepage_of_driver(head[DRIVER_AT]);
    if (made->header < HEAD + 1 || made->record < 1)
        return broken_header(pool);
    uint8_t *header = apr_palloc(pool, (size_t)made->header);
    if (mc_file_read(file, 0, header, (size_t)made->header) < (size_t)made->header)
        return broken_header(pool);
    MC_TRY(read_dbf_fields(made, header, pool));
    uint64_t room = (file->size - (uint64_t)made->header) / (uint64_t)made->record;
    uint32_t said = mc_little32(head + 4);
    made->count = said < room ? said : (uint32_t)room;
    made->whole = made->count == said;
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

void
mc_dbf_begin(mc_dbf_reader *reader, const mc_dbf *dbf)
{
    *reader = (mc_dbf_reader){ .dbf = dbf, .ahead = LEAST_AHEAD };
    if (dbf != NULL) {
        reader->view.file = dbf->file;
        reader->codepage.name = dbf->codepage;
    }
}

void
mc_dbf_end(mc_dbf_reader *reader)
{
    mc_file_view_free(&reader->view);
    mc_codepage_close(&reader->codepage);
}

bool
mc_dbf_row(mc_dbf_reader *reader, uint32_t record)
{
    const mc_dbf *dbf = reader->dbf;
    reader->row = NULL;
    if (dbf == NULL || record >= dbf->count)
        return true;
    uint64_t offset = (uint64_t)dbf->header + (uint64_t)record * (uint64_t)dbf->record;
    /* as much again where the rows follow each other */
    const mc_file_view *view = &reader->view;
    uint64_t end = view->begin + view->size;
    if (offset < view->begin || offset > end + reader->ahead)
        reader->ahead = LEAST_AHEAD;
    else if (offset + (uint64_t)dbf->record > end && reader->ahead < MOST_AHEAD)
        reader->ahead *= 2;
    reader->row = mc_file_view_at(&reader->view, offset, (size_t)dbf->record, reader->ahead);
    return reader->row == NULL || *reader->row != '*';
}

mc_error *
mc_dbf_check(const mc_dbf_reader *reader, apr_pool_t *pool)
{
    if (reader->view.refused)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "there is no memory for a row of the table of attributes");
    if (reader->view.cut)
        return mc_error_create(pool, MC_ERR_IO, "the .dbf is shorter than it was when it was opened, or unreadable");
    return MC_OK;
}

enum { JULIAN_EPOCH = 2440588 }; /* the Julian day number of 1970-01-01 */

/* Days since 4713-01-01 BC (the Julian day number) as a date of the Gregorian calendar. */
static const char *
julian_day(uint32_t day, apr_pool_t *pool)
{
    mc_calendar_date at = mc_calendar_date_of((int64_t)day - JULIAN_EPOCH);
    return apr_psprintf(pool, "%04d-%02d-%02d", at.year, at.month, at.day);
}

/* Values of FoxPro's types that are no text; NULL where the type is none of them. */
static const char *
binary_value(const mc_dbf_field *field, const uint8_t *bytes, apr_pool_t *pool)
{
    char text[40];
    if (field->type == 'I' && field->width == 4)
        return apr_psprintf(pool, "%d", (int)mc_little32(bytes));
    if (field->width != 8)
        return NULL;
    if (field->type == 'B') {
        double value = mc_little_double(bytes);
        return isfinite(value) ? mc_double_text('g', 15, value, pool) : NULL;
    }
    if (field->type == 'Y') {
        int64_t value = (int64_t)mc_little64(bytes);
        uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        snprintf(text, sizeof(text), "%s%" PRIu64 ".%04u", value < 0 ? "-" : "", size / 10000,
                 (unsigned)(size % 10000));
        return apr_pstrdup(pool, text);
    }
    uint32_t day = mc_little32(bytes), ms = mc_little32(bytes + 4);
    if (field->type != 'T' || day == 0 || day > 5373484 || ms > 86400000)
        return NULL;
    return apr_psprintf(pool, "%sT%02u:%02u:%02u", julian_day(day, pool), ms / 3600000, ms / 60000 % 60,
                        ms / 1000 % 60);
}

static bool
is_binary(char type)
{
    return type != '\0' && strchr("IBYT", type) != NULL;
}

static const char *
date_value(const char *bytes, size_t size, apr_pool_t *pool)
{
    if (size == 8 && memcmp(bytes, "00000000", 8) == 0)
        return NULL;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] < '0' || bytes[i] > '9')
            return apr_pstrmemdup(pool, bytes, size);
    return size != 8 ? apr_pstrmemdup(pool, bytes, size)
                     : apr_psprintf(pool, "%.4s-%.2s-%.2s", bytes, bytes + 4, bytes + 6);
}

const char *
mc_dbf_value(mc_dbf_reader *reader, int field, apr_pool_t *pool)
{
    if (reader->row == NULL || field < 0)
        return NULL;
    const mc_dbf_field *about = &reader->dbf->fields[field];
    const char *bytes = (const char *)reader->row + about->at;
    if (is_binary(about->type))
        return binary_value(about, reader->row + about->at, pool);
    size_t size = strnlen(bytes, (size_t)about->width);
    while (size > 0 && bytes[size - 1] == ' ')
        size--;
    while (size > 0 && *bytes == ' ') {
        bytes++;
        size--;
    }
    if (size == 0)
        return NULL;
    switch (about->type) {
    case 'N':
    case 'F':
        return *bytes == '*' ? NULL : mc_codepage_text(&reader->codepage, bytes, size, pool);
    case 'L':
        return strchr("TtYy", *bytes) != NULL ? "true" : strchr("FfNn", *bytes) != NULL ? "false" : NULL;
    case 'D':
        return date_value(bytes, size, pool);
    default:
        return mc_codepage_text(&reader->codepage, bytes, size, pool);
    }
}
