/*
 * Painting a large layer on several threads. Features are painted as they come, as long as they are few or no worker of
 * the process is idle. From then on they are copied into batches, which workers paint while the caller reads on, in
 * bands of the map where the style allows it; packets of a reader are decoded by workers, too. The picture is the same
 * to the last bit.
 */
#ifndef MC_DRAW_PAINT_PARALLEL_PAINTER_H
#define MC_DRAW_PAINT_PARALLEL_PAINTER_H

#include "draw/paint/painter.h"
#include "vector/feature/packet.h"

typedef struct mc_parallel_painter mc_parallel_painter;

/*
 * For a painter whose pool, canvas and labels do not share their root pool with anything that the caller uses
 * meanwhile; `pool` is the caller's. The painter is not touched by others until the end.
 */
mc_parallel_painter *mc_parallel_painter_create(mc_painter *painter, mc_ctx *ctx, apr_pool_t *pool);

/* An mc_feature_visitor; the parallel painter is its baton. An error of any thread comes back from here or the end. */
mc_error *mc_parallel_painter_visit(void *parallel, const mc_feature *feature, mc_ctx *ctx) MC_CHECKED;

/* Who takes packets in place of features, in any order with visited ones; for mc_feature_query.taker. NULL: the process
 * has no workers. */
mc_packet_taker *mc_parallel_painter_taker(mc_parallel_painter *parallel);

/* Waits until all has been painted and all threads have ended; to be called in any case. `error`: that of the reading,
 * which comes back; then what is left is not painted. Before mc_painter_finish. */
mc_error *mc_parallel_painter_end(mc_parallel_painter *parallel, mc_error *error) MC_CHECKED;

#endif
