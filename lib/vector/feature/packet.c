/* See packet.h. */
#include "vector/feature/packet.h"

#include "base/workers.h"

void
mc_packet_decoders_begin(mc_packet_decoders *decoders, int64_t skipped)
{
    *decoders = (mc_packet_decoders){ .skipped = skipped };
    pthread_mutex_init(&decoders->lock, NULL);
}

mc_packet_decoder *
mc_packet_decoders_take(mc_packet_decoders *decoders)
{
    pthread_mutex_lock(&decoders->lock);
    mc_packet_decoder *found = decoders->idle;
    if (found != NULL) {
        decoders->idle = found->next;
        found->reading.skipped = decoders->skipped;
    }
    pthread_mutex_unlock(&decoders->lock);
    return found;
}

mc_packet_decoder *
mc_packet_decoder_create(size_t size, const mc_feature_reading *reading)
{
    apr_pool_t *root = mc_task_pool_acquire();
    mc_packet_decoder *made = apr_pcalloc(root, size);
    made->root = root;
    made->reading = *reading;
    made->reading.geometry = (mc_geometry){ 0 };
    return made;
}

void
mc_packet_decoders_give(mc_packet_decoders *decoders, mc_packet_decoder *decoder, int64_t skipped)
{
    pthread_mutex_lock(&decoders->lock);
    decoders->skipped += skipped;
    decoder->next = decoders->idle;
    decoders->idle = decoder;
    pthread_mutex_unlock(&decoders->lock);
}

int64_t
mc_packet_decoders_end(mc_packet_decoders *decoders, void (*end)(mc_packet_decoder *decoder))
{
    for (mc_packet_decoder *at = decoders->idle, *next; at != NULL; at = next) {
        next = at->next;
        mc_geometry_free(&at->reading.geometry);
        if (end != NULL)
            end(at);
        mc_task_pool_release(at->root);
    }
    pthread_mutex_destroy(&decoders->lock);
    return decoders->skipped;
}
