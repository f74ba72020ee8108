/* Reads lists of tiles, line by line, in constant memory. */
#include "seed_list.h"

#include <string.h>

#include "base/hash.h"
#include "text/text.h"

/* Metatiles of the last lines, by hash: lists name the tiles of a metatile close together. */
enum { RECENT = 4096, COMPLAINTS = 20 };

typedef struct recent {
    int z, x, y;
    bool used;
} recent;

/* Three whole numbers with anything of " ,/\t" between. */
static bool
read_numbers(int numbers[3], char *line)
{
    char *rest, *text = line;
    for (int i = 0; i < 3; i++, text = NULL) {
        const char *word = strtok_r(text, " ,/\t\r\n", &rest);
        if (word == NULL || !mc_parse_int(&numbers[i], word, 0, 1 << 30))
            return false;
    }
    return strtok_r(NULL, " \t\r\n", &rest) == NULL;
}

static bool
parse_listed_tile(int *z, int *x, int *y, char *line, mc_seed_list_kind kind, const mc_seed_area *area)
{
    int numbers[3];
    bool from_path = strchr(line, '/') != NULL;
    if (!read_numbers(numbers, line))
        return false;
    *z = from_path ? numbers[0] : numbers[2];
    *x = from_path ? numbers[1] : numbers[0];
    *y = from_path ? numbers[2] : numbers[1];
    const mc_grid *grid = area->grid;
    if (*z >= grid->level_count || *x >= grid->levels[*z].columns || *y >= grid->levels[*z].rows)
        return false;
    if (kind == MC_LIST_TILES) {
        *x = mc_grid_from_west(grid, *z, *x);
        *y = mc_grid_flip_y(grid, *z, *y);
    }
    return true;
}

static bool
was_recently_listed(recent *memory, int z, int x, int y)
{
    unsigned hash = ((unsigned)z * 31 + (unsigned)x) * 2654435761u ^ (unsigned)y * 40503u;
    recent *slot = &memory[hash % RECENT];
    if (slot->used && slot->z == z && slot->x == x && slot->y == y)
        return true;
    *slot = (recent){ z, x, y, true };
    return false;
}

static void
report_bad_list_line(const char *name, int64_t number, int64_t count, const mc_grid *grid)
{
    if (count <= COMPLAINTS)
        fprintf(stderr, "%s:%lld: this is no tile of grid %s\n", name, (long long)number, grid->name);
    if (count == COMPLAINTS)
        fprintf(stderr, "%s: further such lines are only counted\n", name);
}

/* The next line, whole. What is too long to be a tile, or no text, becomes something that is none. False at the end. */
static bool
read_list_line(char *line, size_t room, FILE *in)
{
    size_t size = 0;
    int next;
    while ((next = getc_unlocked(in)) != EOF && next != '\n') {
        if (size < room - 1)
            line[size] = next == '\0' ? '?' : (char)next;
        size++;
    }
    line[size < room ? size : room - 1] = '\0';
    if (size >= room && line[0] != '#')
        strcpy(line, "?");
    return size > 0 || next != EOF;
}

bool
mc_seed_list_visit(FILE *in, const char *name, mc_seed_list_kind kind, const mc_seed_area *area, mc_seed_visit *visit,
                   void *baton, int64_t *bad)
{
    static recent memory[RECENT];
    char line[256];
    int z, x, y;
    memset(memory, 0, sizeof(memory));
    for (int64_t number = 1; read_list_line(line, sizeof(line), in); number++) {
        if (line[strspn(line, " \t\r\n")] == '\0' || line[0] == '#')
            continue;
        if (!parse_listed_tile(&z, &x, &y, line, kind, area)) {
            report_bad_list_line(name, number, ++*bad, area->grid);
            continue;
        }
        if (kind == MC_LIST_FAILED)
            printf("from log: %d %d %d\n", x, y, z);
        if (z < area->minzoom || z > area->maxzoom)
            continue;
        x -= x % area->columns;
        y -= y % area->rows;
        if (!was_recently_listed(memory, z, x, y) && !visit(baton, z, x, y))
            return false;
    }
    return true;
}

bool
mc_seed_list_hash(uint64_t *hash, FILE *in)
{
    static char piece[65536];
    size_t size;
    while ((size = fread(piece, 1, sizeof(piece), in)) > 0)
        *hash = mc_hash64(piece, size, *hash);
    return !ferror(in) && fseek(in, 0, SEEK_SET) == 0;
}
