/* Graphics behind labels, such as the shields of roads (GeoServer's <Graphic> in a <TextSymbolizer>). */
#ifndef MC_DRAW_LABEL_LABEL_SHIELD_H
#define MC_DRAW_LABEL_LABEL_SHIELD_H

#include "draw/label/label_private.h"

/* A graphic as resolved for one feature. The graphic outlives the feature. Labels share the graphic by counting
 * references; of one thread. */
typedef struct mc_label_shield mc_label_shield;

mc_label_shield *mc_label_shield_ref(mc_label_shield *shield); /* NULL gives NULL */
void mc_label_shield_unref(mc_label_shield *shield);           /* NULL is ignored */

/* The shields of a map, and the painter that draws the shields. */
typedef struct mc_label_shields mc_label_shields;

mc_label_shields *mc_label_shields_create(mc_canvas *canvas, apr_pool_t *pool);

/* The graphic of a symbol for a feature, for a text of that size (pixels), with a reference for the caller; NULL where
 * there is nothing to draw. */
mc_error *mc_label_shield_get(mc_label_shield **shield, mc_label_shields *shields, const mc_text_symbol *symbol,
                              const mc_feature *feature, double size, mc_ctx *ctx) MC_CHECKED;

/* Puts a shield behind the text of a spot. The spot gets one box more: its room is that of text and shield. */
void mc_label_shield_put(mc_label_spot *spot, const mc_label_shield *shield, const mc_label_layout *layout);

/* Draws a shield at the place of a spot. */
mc_error *mc_label_shield_draw(mc_label_shields *shields, const mc_label_shield *shield, const mc_label_spot *spot,
                               apr_pool_t *scratch) MC_CHECKED;

#endif
