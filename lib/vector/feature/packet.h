/*
 * Pieces of a layer that have been read and not decoded. Where somebody takes packets (mc_feature_query.taker), a
 * reader hands them over in place of features: they are decoded on several threads, and their features are seen as if
 * the reader had visited each of them.
 */
#ifndef MC_VECTOR_FEATURE_PACKET_H
#define MC_VECTOR_FEATURE_PACKET_H

#include <pthread.h>

#include "vector/feature/reading.h"

typedef struct mc_feature_packet mc_feature_packet;

typedef struct mc_packet_ops {
    /* Visits the features of the packet in their order, once; any thread, several packets at once. `pool`: of an error.
     */
    mc_error *(*decode)(const mc_feature_packet *packet, mc_feature_visitor *visit, void *baton, mc_ctx *ctx,
                        apr_pool_t *pool);
    /* A copy that lives until it is released; NULL: the process has no memory for it. */
    mc_feature_packet *(*keep)(const mc_feature_packet *packet);
    void (*release)(mc_feature_packet *copy);
    /* Whether the packet can be decoded now, which it can once all packets before it have been; NULL: at any time. */
    bool (*is_free)(const mc_feature_packet *packet);
} mc_packet_ops;

/* First member of every reader's own struct. */
struct mc_feature_packet {
    const mc_packet_ops *ops;
    const mc_feature_query *query; /* that the features will have */
};

typedef struct mc_packet_taker mc_packet_taker;

struct mc_packet_taker {
    /* Takes the next packet, which lives during the call; what is visited or taken later is seen after it. Errors of
     * any packet come back from here or from `settle`. */
    mc_error *(*take)(mc_packet_taker *taker, const mc_feature_packet *packet, mc_ctx *ctx);
    /* Waits until all packets have been decoded; to be called in any case before anything ends that packets need.
     * `error`: that of the reading, which comes back; then what is not decoded yet never is. */
    mc_error *(*settle)(mc_packet_taker *taker, mc_error *error);
};

/* ---- For readers: what each thread needs that decodes */

/* First member of a reader's own struct, in a root pool of its own. */
typedef struct mc_packet_decoder {
    struct mc_packet_decoder *next;
    apr_pool_t *root;
    mc_feature_reading reading; /* of this thread; to be freed with its decoder */
} mc_packet_decoder;

/* Those of one world of a reading: as many as have decoded at once. */
typedef struct mc_packet_decoders {
    pthread_mutex_t lock; /* of the rest */
    mc_packet_decoder *idle;
    int64_t skipped; /* features whose geometry could not be read */
} mc_packet_decoders;

/* `skipped`: by the reader so far. */
void mc_packet_decoders_begin(mc_packet_decoders *decoders, int64_t skipped);

/* An idle one, NULL: there is none, and the caller makes one. Its count of skipped features begins with that of all. */
mc_packet_decoder *mc_packet_decoders_take(mc_packet_decoders *decoders);

/* A decoder of `size` bytes: zeros behind a copy of the reading, which has a geometry of its own. */
mc_packet_decoder *mc_packet_decoder_create(size_t size, const mc_feature_reading *reading);

/* Gives it back. `skipped`: what this packet has added; 0 where the packet failed. */
void mc_packet_decoders_give(mc_packet_decoders *decoders, mc_packet_decoder *decoder, int64_t skipped);

/* After `settle`: ends all decoders; `end` (or NULL) is called for each before it goes. Returns what was skipped. */
int64_t mc_packet_decoders_end(mc_packet_decoders *decoders, void (*end)(mc_packet_decoder *decoder));

#endif
