/* The tables of databases that vector sources draw from, and how far around a feature a map changes with it. */
#include "source/vector/vector.h"

/* Pixels beyond what symbols reach: edges are painted with the pixels beside them. */
#define EDGE_PIXELS 2

static double
reach_of_layer(const void *data, double scale)
{
    const mc_vector_layer *layer = data;
    return mc_vector_layer_shows(layer, scale) ? mc_painter_margin(layer->style, scale) + EDGE_PIXELS : -1;
}

void
mc_vector_tables(mc_source *source, void (*visit)(void *baton, const mc_source_table *table), void *baton)
{
    const mc_vector_source *vector = (const mc_vector_source *)source;
    for (int i = 0; i < vector->layer_count; i++) {
        const mc_vector_layer *layer = vector->layers[i];
        mc_feature_table table = { 0 };
        if (layer->data->ops->table == NULL)
            continue;
        layer->data->ops->table(&table, layer->data);
        visit(baton, &(mc_source_table){ .connection = table.connection,
                                         .table = table.table,
                                         .srid = table.srid,
                                         .reach = reach_of_layer,
                                         .layer = layer });
    }
}
