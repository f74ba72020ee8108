/* See documents.h. A few slots under one mutex: bytes are shared, never copied. */
#include "service/documents.h"

#include <apr_strings.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "mapcache/tileset.h"

enum { DOCUMENT_SLOTS = 16 };

typedef struct document_slot {
    uint64_t config; /* mc_config.serial */
    char *key;       /* NULL: empty */
    mc_buf *text;
    uint64_t tag;
    uint64_t used; /* mc_documents.uses when it was asked for last */
} document_slot;

struct mc_documents {
    size_t most_bytes;
    pthread_mutex_t lock; /* of all below; innermost */
    size_t bytes;
    uint64_t uses;
    document_slot slots[DOCUMENT_SLOTS];
};

mc_documents *
mc_documents_create(size_t bytes)
{
    mc_documents *documents = bytes == 0 ? NULL : calloc(1, sizeof(*documents));
    if (documents == NULL)
        return NULL;
    documents->most_bytes = bytes;
    pthread_mutex_init(&documents->lock, NULL);
    return documents;
}

/* With the lock held, as the next ones. */
static void
empty_slot(mc_documents *documents, document_slot *slot)
{
    if (slot->key == NULL)
        return;
    documents->bytes -= slot->text->capacity;
    mc_buf_unref(slot->text);
    free(slot->key);
    *slot = (document_slot){ 0 };
}

void
mc_documents_destroy(mc_documents *documents)
{
    if (documents == NULL)
        return;
    for (int i = 0; i < DOCUMENT_SLOTS; i++)
        empty_slot(documents, &documents->slots[i]);
    pthread_mutex_destroy(&documents->lock);
    free(documents);
}

static document_slot *
find_slot(mc_documents *documents, uint64_t config, const char *key)
{
    for (int i = 0; i < DOCUMENT_SLOTS; i++) {
        document_slot *slot = &documents->slots[i];
        if (slot->key != NULL && slot->config == config && strcmp(slot->key, key) == 0)
            return slot;
    }
    return NULL;
}

/* An empty slot, once `size` bytes fit: what was not used for longest goes. */
static document_slot *
make_room(mc_documents *documents, size_t size)
{
    for (;;) {
        document_slot *empty = NULL, *oldest = NULL;
        for (int i = 0; i < DOCUMENT_SLOTS; i++) {
            document_slot *slot = &documents->slots[i];
            if (slot->key == NULL)
                empty = slot;
            else if (oldest == NULL || slot->used < oldest->used)
                oldest = slot;
        }
        if (empty != NULL && documents->bytes + size <= documents->most_bytes)
            return empty;
        empty_slot(documents, oldest); /* there is one: all slots are full, or some bytes are taken */
    }
}

/* Where the data of all tilesets lie, as far as they were asked. */
static uint64_t
hash_places(const apr_array_header_t *tilesets)
{
    uint64_t hash = 0;
    for (int i = 0; i < tilesets->nelts; i++) {
        mc_extent degrees;
        if (mc_tileset_data_box(&degrees, APR_ARRAY_IDX(tilesets, i, const mc_tileset *)))
            hash = mc_hash64(&degrees, sizeof(degrees), hash + (uint64_t)i);
    }
    return hash;
}

const char *
mc_document_key(const mc_call *call, const char *form, const char *sequence, apr_pool_t *pool)
{
    if (sequence == NULL)
        return NULL;
    return apr_psprintf(pool, "%s %s %s %" PRIx64 " %s", call->service->ops->type, form, sequence,
                        hash_places(call->config->tilesets), call->base);
}

bool
mc_document_recall(mc_request *request, const char *key, const char *mime, const mc_call *call, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    mc_documents *documents = ctx->process == NULL ? NULL : ctx->process->documents;
    if (documents == NULL || key == NULL)
        return false;
    pthread_mutex_lock(&documents->lock);
    document_slot *slot = find_slot(documents, call->config->serial, key);
    mc_buf *text = slot == NULL ? NULL : mc_buf_ref(slot->text);
    uint64_t tag = slot == NULL ? 0 : slot->tag;
    if (slot != NULL)
        slot->used = ++documents->uses;
    pthread_mutex_unlock(&documents->lock);
    if (text == NULL)
        return false;
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document.mime = mime;
    request->u.document.text = mc_buf_attach(text, pool);
    request->u.document.tag = tag;
    return true;
}

void
mc_document_keep(const mc_request *request, const char *key, const mc_call *call, mc_ctx *ctx)
{
    mc_documents *documents = ctx->process == NULL ? NULL : ctx->process->documents;
    mc_buf *text = request->u.document.text;
    if (documents == NULL || key == NULL || text->capacity > documents->most_bytes)
        return;
    char *own_key = strdup(key);
    if (own_key == NULL)
        return;
    uint64_t config = call->config->serial, tag = mc_hash64(text->data, text->size, 0);
    pthread_mutex_lock(&documents->lock);
    for (int i = 0; i < DOCUMENT_SLOTS; i++)
        if (documents->slots[i].config < config)
            empty_slot(documents, &documents->slots[i]);
    document_slot *slot = find_slot(documents, config, key);
    if (slot != NULL)
        empty_slot(documents, slot);
    slot = make_room(documents, text->capacity);
    *slot = (document_slot){ config, own_key, mc_buf_ref(text), tag, ++documents->uses };
    documents->bytes += text->capacity;
    pthread_mutex_unlock(&documents->lock);
}
