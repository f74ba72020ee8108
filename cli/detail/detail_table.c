/* See detail_table.h. */
#include "detail_table.h"

#include <inttypes.h>

#include "cli/common/style.h"
#include "cli/common/words.h"

static double
share_of_stored(const mc_detail_tiles *tiles)
{
    return tiles->most == 0 ? 0 : 100.0 * (double)tiles->stored / (double)tiles->most;
}

/* Nothing that is missing is rounded away: 99.96 % is no 100 %. */
static double
round_share(const mc_detail_tiles *tiles)
{
    double share = share_of_stored(tiles);
    return tiles->stored < tiles->most && share > 99.9 ? 99.9 : share;
}

static void
print_detail_bar(FILE *out, const mc_detail_tiles *tiles)
{
    enum { WIDTH = 20 };
    static const char full[WIDTH + 1] = "####################", empty[WIDTH + 1] = "....................";
    int filled = (int)(share_of_stored(tiles) / 100 * WIDTH);
    if (!mc_cli_is_screen(out))
        return;
    fprintf(out, "  %s%.*s%s%.*s%s", mc_cli_ink_of(out, MC_INK_GOOD), filled, full, mc_cli_ink_of(out, MC_INK_FAINT),
            WIDTH - filled, empty, mc_cli_ink_of(out, MC_INK_END));
}

static void
print_detail_row(FILE *out, const char *name, const mc_detail_tiles *tiles)
{
    bool complete = tiles->stored == tiles->most && tiles->most > 0;
    fprintf(out, "%6s %16" PRId64 " %16" PRId64 " %16" PRId64 "  %s%5.1f %%%s", name, tiles->most, tiles->stored,
            tiles->most - tiles->stored, mc_cli_ink_of(out, complete ? MC_INK_GOOD : MC_INK_END), round_share(tiles),
            mc_cli_ink_of(out, MC_INK_END));
    print_detail_bar(out, tiles);
    fputs("\n", out);
}

void
mc_detail_print_table(FILE *out, const mc_detail_summary *summary, apr_pool_t *pool)
{
    fprintf(out, "%stileset %s, grid %s%s\n\n", mc_cli_ink_of(out, MC_INK_HEADING), summary->tileset, summary->grid,
            mc_cli_ink_of(out, MC_INK_END));
    fprintf(out, "%6s %16s %16s %16s  %7s\n", "level", "tiles", "stored", "missing", "covered");
    for (int i = 0; i < summary->levels->nelts; i++) {
        const mc_detail_level *level = &APR_ARRAY_IDX(summary->levels, i, const mc_detail_level);
        char name[16];
        snprintf(name, sizeof(name), "%d", level->z);
        print_detail_row(out, name, &level->tiles);
    }
    print_detail_row(out, "all", &summary->tiles);
    if (summary->left_out >= 0)
        fprintf(out, "\nlevels %d to %d are not counted: too many tiles and files could be there; --zoom counts them\n",
                summary->left_out, summary->last);
    for (int i = 0; i < summary->stores->nelts; i++)
        fprintf(out, "%s%s\n", i == 0 ? "\n" : "", APR_ARRAY_IDX(summary->stores, i, const char *));
    if (summary->file_tiles == 0)
        return;
    double mean = (double)summary->bytes / (double)summary->file_tiles;
    fprintf(out, "\nstores: %s in %s, %s a tile", mc_cli_count_words(summary->file_tiles, "tile", pool),
            mc_cli_size_words((double)summary->bytes, pool), mc_cli_size_words(mean, pool));
    if (summary->tiles.most > summary->tiles.stored)
        fprintf(out, "; those that are missing would take about %s",
                mc_cli_size_words(mean * (double)(summary->tiles.most - summary->tiles.stored), pool));
    fputs("\n", out);
}
