/* Rows of premultiplied pixels over and under each other. */
#ifndef MC_IMAGE_BLEND_H
#define MC_IMAGE_BLEND_H

#include <stdbool.h>
#include <stdint.h>

/* `count` pixels of source over target: t = s + t * (255 - s.alpha) / 255, rounded. */
void mc_blend_over(uint8_t *target, const uint8_t *source, int count);

/* mc_blend_over, one channel at a time: the reference of the tests. */
void mc_blend_over_reference(uint8_t *target, const uint8_t *source, int count);

/* `count` pixels of source under target: t = t + s * (255 - t.alpha) / 255, rounded. True if all of them are opaque
 * now. */
bool mc_blend_under(uint8_t *target, const uint8_t *source, int count);
bool mc_blend_under_reference(uint8_t *target, const uint8_t *source, int count);

/* The same where the processor has AVX2, for the first pixels, a multiple of eight. Both return the number of pixels.
 * *opaque: whether all of these pixels are opaque. */
bool mc_blend_has_avx2(void);
int mc_blend_over_avx2(uint8_t *target, const uint8_t *source, int count);
int mc_blend_under_avx2(uint8_t *target, const uint8_t *source, int count, bool *opaque);

#endif
