/* The legend of a palette: a square of each colour, with its label or its number. */
#include <apr_strings.h>
#include <math.h>

#include "draw/label/legend.h"
#include "service/wms/wms.h"

/* Of a palette without labels, and with more colours than fit a screen, so many are shown. */
enum { SHOWN_MOST = 32, SHOWN_OF_MANY = 16 };

static void
add_color_rule(apr_array_header_t *rules, const mc_color_map *map, int number, apr_pool_t *pool)
{
    const uint8_t *rgba = map->rgba[number];
    mc_symbolizer *area = apr_pcalloc(pool, sizeof(*area));
    mc_rule_style *rule = apr_array_push(rules);
    *area = (mc_symbolizer){ .kind = MC_SYMBOL_POLYGON };
    area->fill.present = true;
    area->fill.color = (mc_color){ rgba[0], rgba[1], rgba[2], rgba[3] };
    *rule = (mc_rule_style){ .name = apr_itoa(pool, number),
                             .title = map->labels[number] != NULL ? map->labels[number] : apr_itoa(pool, number),
                             .max_scale = HUGE_VAL,
                             .symbolizers = area,
                             .symbolizer_count = 1 };
}

/* The numbers that a legend may show: those that have labels, or else those that can be seen. */
static apr_array_header_t *
list_legend_numbers(const mc_color_map *map, apr_pool_t *pool)
{
    apr_array_header_t *numbers = apr_array_make(pool, MC_COLOR_MAP_ENTRIES, sizeof(int));
    bool labelled = false;
    for (int i = 0; i < map->count; i++)
        labelled |= map->labels[i] != NULL;
    for (int i = 0; i < map->count; i++)
        if (map->listed[i] && (labelled ? map->labels[i] != NULL : map->rgba[i][3] != 0))
            APR_ARRAY_PUSH(numbers, int) = i;
    if (labelled || numbers->nelts <= SHOWN_MOST)
        return numbers;
    apr_array_header_t *some = apr_array_make(pool, SHOWN_OF_MANY, sizeof(int));
    for (int i = 0; i < SHOWN_OF_MANY; i++)
        APR_ARRAY_PUSH(some, int) = APR_ARRAY_IDX(numbers, i * (numbers->nelts - 1) / (SHOWN_OF_MANY - 1), int);
    return some;
}

void
mc_wms_add_palette_legend(mc_legend *legend, const mc_color_map *map, apr_pool_t *pool)
{
    const apr_array_header_t *numbers = list_legend_numbers(map, pool);
    apr_array_header_t *rules = apr_array_make(pool, numbers->nelts + 1, sizeof(mc_rule_style));
    for (int i = 0; i < numbers->nelts; i++)
        add_color_rule(rules, map, APR_ARRAY_IDX(numbers, i, int), pool);
    mc_style_pass *pass = apr_pcalloc(pool, sizeof(*pass));
    mc_style *style = apr_pcalloc(pool, sizeof(*style));
    *pass = (mc_style_pass){ .rules = (const mc_rule_style *)(const void *)rules->elts, .rule_count = rules->nelts };
    *style = (mc_style){ .name = map->name, .title = map->title, .passes = pass, .pass_count = 1 };
    mc_legend_add(legend, map->title, style);
}
