/* Trees of pages (sqlite.org/fileformat2.html, 1.6 and 2.1), read without trust. */
#include "db/sqlite/page_tree.h"

#include <string.h>

#include "base/bytes.h"

enum {
    INNER_INDEX = 2,
    INNER_TABLE = 5,
    LEAF_INDEX = 10,
    LEAF_TABLE = 13,
    FILE_HEADER = 100,
    DEEPEST = 20,
    MOST_PAGES = 256, /* of a walk */
    MOST_HEADER = 4096,
};

/* A page of a tree, within `end` bytes. */
typedef struct tree_page {
    const uint8_t *bytes;
    uint32_t end;
    int kind, cells;
    uint32_t cells_at; /* the offsets of the cells */
    uint32_t right;    /* of inner pages: the last child */
} tree_page;

/* A number of one to nine bytes; 0: it does not end before `end`. */
static uint32_t
read_tree_varint(uint64_t *number, const uint8_t *bytes, size_t at, size_t end)
{
    *number = 0;
    for (uint32_t i = 0; i < 9 && at + i < end; i++) {
        uint8_t byte = bytes[at + i];
        if (i == 8) {
            *number = *number << 8 | byte;
            return 9;
        }
        *number = *number << 7 | (byte & 0x7f);
        if ((byte & 0x80) == 0)
            return i + 1;
    }
    return 0;
}

static bool
read_tree_page(tree_page *page, mc_page_file *file, uint32_t number)
{
    page->bytes = mc_page_file_read(file, number);
    if (page->bytes == NULL)
        return false;
    uint32_t at = number == 1 ? FILE_HEADER : 0;
    page->end = mc_page_file_usable(file);
    page->kind = page->bytes[at];
    page->cells = (int)mc_big16(page->bytes + at + 3);
    bool inner = page->kind == INNER_INDEX || page->kind == INNER_TABLE;
    page->cells_at = at + (inner ? 12 : 8);
    page->right = inner ? mc_big32(page->bytes + at + 8) : 0;
    return page->cells_at + 2 * (uint32_t)page->cells <= page->end;
}

/* Where a cell begins, with four bytes there at least; 0: nowhere. */
static uint32_t
find_tree_cell(const tree_page *page, int index)
{
    uint32_t at = mc_big16(page->bytes + page->cells_at + 2 * (uint32_t)index);
    return at >= page->cells_at + 2 * (uint32_t)page->cells && at + 4 <= page->end ? at : 0;
}

/* How many bytes of a record are in its page. */
static size_t
local_size(uint64_t size, uint32_t usable, bool table)
{
    uint32_t least = (usable - 12) * 32 / 255 - 23;
    uint32_t most = table ? usable - 35 : (usable - 12) * 64 / 255 - 23;
    if (size <= most)
        return (size_t)size;
    uint64_t some = least + (size - least) % (usable - 4);
    return some <= most ? (size_t)some : least;
}

/* The record of a cell of a leaf or of an inner page of an index. */
static bool
read_tree_cell(mc_tree_row *row, int64_t *number, const tree_page *page, int index)
{
    bool table = page->kind == LEAF_TABLE;
    uint32_t at = find_tree_cell(page, index);
    uint64_t size, rowid = 0;
    if (at == 0)
        return false;
    at += page->kind == INNER_INDEX ? 4 : 0;
    uint32_t used = read_tree_varint(&size, page->bytes, at, page->end);
    at += used;
    uint32_t more = table && used > 0 ? read_tree_varint(&rowid, page->bytes, at, page->end) : 0;
    if (used == 0 || (table && more == 0) || size > INT32_MAX)
        return false;
    at += more;
    *number = (int64_t)rowid;
    row->record = page->bytes + at;
    row->size = (size_t)size;
    row->there = local_size(size, page->end, table);
    bool flows = row->there < row->size;
    if (at + row->there + (flows ? 4 : 0) > page->end)
        return false;
    row->overflow = flows ? mc_big32(row->record + row->there) : 0;
    return true;
}

/* A list of pages that are still to be visited, each once: one more than `most` is too many. */
typedef struct page_list {
    uint32_t numbers[MOST_PAGES];
    int count, most;
} page_list;

static bool
add_tree_page(page_list *list, uint32_t number)
{
    if (list->count >= list->most)
        return false;
    list->numbers[list->count++] = number;
    return true;
}

static bool
visit_page(page_list *list, const tree_page *page, bool table, mc_tree_visit *visit, void *baton)
{
    bool inner = page->kind == (table ? INNER_TABLE : INNER_INDEX);
    if (!inner && page->kind != (table ? LEAF_TABLE : LEAF_INDEX))
        return false;
    for (int i = 0; i < page->cells; i++) {
        mc_tree_row row;
        int64_t number;
        uint32_t at = find_tree_cell(page, i);
        if (at == 0 || (inner && !add_tree_page(list, mc_big32(page->bytes + at))))
            return false;
        if (inner && table)
            continue;
        if (!read_tree_cell(&row, &number, page, i) || row.there < row.size || !visit(baton, row.record, row.size))
            return false;
    }
    return !inner || add_tree_page(list, page->right);
}

bool
mc_tree_walk(mc_page_file *file, uint32_t root, bool table, int most_pages, mc_tree_visit *visit, void *baton)
{
    page_list list = { .count = 0, .most = most_pages < MOST_PAGES ? most_pages : MOST_PAGES };
    if (!add_tree_page(&list, root))
        return false;
    for (int i = 0; i < list.count; i++) {
        tree_page page;
        if (!read_tree_page(&page, file, list.numbers[i]) || !visit_page(&list, &page, table, visit, baton))
            return false;
    }
    return true;
}

/* The child with that row: of the first cell whose number is not less. 0: not known. */
static uint32_t
choose_child(const tree_page *page, int64_t number)
{
    int low = 0, high = page->cells;
    while (low < high) {
        int middle = low + (high - low) / 2;
        uint32_t at = find_tree_cell(page, middle);
        uint64_t key;
        if (at == 0 || read_tree_varint(&key, page->bytes, at + 4, page->end) == 0)
            return 0;
        if ((int64_t)key < number)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == page->cells)
        return page->right;
    uint32_t at = find_tree_cell(page, low);
    return at == 0 ? 0 : mc_big32(page->bytes + at);
}

static bool
find_in_leaf(mc_tree_row *row, const tree_page *page, int64_t number)
{
    int low = 0, high = page->cells;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int64_t key;
        if (!read_tree_cell(row, &key, page, middle))
            return false;
        if (key == number)
            return true;
        if (key < number)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool
mc_tree_find(mc_tree_row *row, mc_page_file *file, uint32_t root, int64_t number)
{
    for (int depth = 0; depth < DEEPEST; depth++) {
        tree_page page;
        if (!read_tree_page(&page, file, root))
            return false;
        if (page.kind == LEAF_TABLE)
            return find_in_leaf(row, &page, number);
        if (page.kind != INNER_TABLE)
            return false;
        root = choose_child(&page, number);
    }
    return false;
}

bool
mc_tree_copy(uint8_t *out, const mc_tree_row *row, mc_page_file *file, size_t at, size_t size)
{
    if (at > row->size || size > row->size - at)
        return false;
    uint32_t next = row->overflow;
    const uint8_t *bytes = row->record;
    size_t there = row->there, room = mc_page_file_usable(file) - 4;
    for (size_t first = 0, left = row->size - row->there; size > 0;) {
        if (at < first + there) {
            size_t part = first + there - at < size ? first + there - at : size;
            memcpy(out, bytes + (at - first), part);
            out += part;
            at += part;
            size -= part;
        }
        if (size == 0)
            return true;
        const uint8_t *page = left == 0 ? NULL : mc_page_file_read(file, next);
        if (page == NULL)
            return false;
        first += there;
        there = left < room ? left : room;
        left -= there;
        next = mc_big32(page);
        bytes = page + 4;
    }
    return true;
}

/* What a serial type stands for. False: one of those that are no value. */
static bool
describe_field(mc_record_field *field, uint64_t type)
{
    static const uint8_t sizes[] = { 0, 1, 2, 3, 4, 6, 8, 8, 0, 0 };
    if (type == 10 || type == 11 || type > INT32_MAX)
        return false;
    if (type >= 12) {
        field->kind = (type & 1) != 0 ? MC_FIELD_TEXT : MC_FIELD_BLOB;
        field->size = (size_t)(type - 12) / 2;
        return true;
    }
    field->kind = type == 0 ? MC_FIELD_NULL : type == 7 ? MC_FIELD_REAL : MC_FIELD_INTEGER;
    field->size = sizes[type];
    field->integer = type == 9 ? 1 : 0;
    return true;
}

static int64_t
read_integer(const uint8_t *bytes, size_t size)
{
    uint64_t number = (bytes[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | bytes[i];
    return (int64_t)number;
}

int
mc_record_read(mc_record_field *fields, int most, const uint8_t *record, size_t there, size_t size)
{
    uint64_t header, type;
    size_t type_at = read_tree_varint(&header, record, 0, there);
    if (type_at == 0 || header < type_at || header > there || header > MOST_HEADER)
        return -1;
    size_t at = (size_t)header;
    int count = 0;
    for (; count < most && type_at < header; count++) {
        mc_record_field *field = &fields[count];
        uint32_t used = read_tree_varint(&type, record, type_at, (size_t)header);
        if (used == 0 || !describe_field(field, type) || field->size > size - at)
            return -1;
        type_at += used;
        field->at = at;
        at += field->size;
        if (field->kind == MC_FIELD_INTEGER && field->size > 0) {
            if (at > there)
                return -1;
            field->integer = read_integer(record + field->at, field->size);
        }
    }
    return count;
}
