/* See documents.h. A few slots under one mutex: bytes are shared, never copied. */
#include "service/documents.h"

#include <apr_strings.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "mapcache/tileset.h"
#include "service/document_address.h"

enum { DOCUMENT_SLOTS = 64, ADDRESS_SIZE = 64 };

typedef struct document_slot {
    uint64_t config; /* mc_config.serial */
    uint64_t file;   /* hash of mc_config.file */
    bool prepared;   /* it has the address of no client */
    char *key;       /* NULL: empty */
    mc_buf *text;
    uint64_t tag;
    uint64_t used; /* mc_documents.uses when it was asked for last */
} document_slot;

struct mc_documents {
    size_t most_bytes;
    char address[ADDRESS_SIZE]; /* where the client's address comes, without a slash at its end */
    pthread_mutex_t lock;       /* of all below; innermost */
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
    /* a host that no configuration writes by chance */
    const uint64_t seed = mc_hash_seed();
    snprintf(documents->address, ADDRESS_SIZE, "http://%016" PRIx64 "%016" PRIx64 ".invalid/m",
             mc_hash64("address", 7, seed), mc_hash64("host", 4, seed));
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

const char *
mc_documents_address(const mc_documents *documents)
{
    return documents->address;
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

/* Of those with a client's address the one that was not used for longest; without any, of all. NULL: all are empty. */
static document_slot *
oldest_slot(mc_documents *documents)
{
    document_slot *oldest = NULL;
    for (int i = 0; i < DOCUMENT_SLOTS; i++) {
        document_slot *slot = &documents->slots[i];
        if (slot->key == NULL)
            continue;
        if (oldest == NULL || slot->prepared < oldest->prepared ||
            (slot->prepared == oldest->prepared && slot->used < oldest->used))
            oldest = slot;
    }
    return oldest;
}

/* An empty slot, once `size` bytes fit. NULL: only what is dearer to write could give way. */
static document_slot *
make_room(mc_documents *documents, size_t size, bool prepared)
{
    for (;;) {
        document_slot *empty = NULL, *oldest = oldest_slot(documents);
        for (int i = 0; i < DOCUMENT_SLOTS && empty == NULL; i++)
            empty = documents->slots[i].key == NULL ? &documents->slots[i] : NULL;
        if (empty != NULL && documents->bytes + size <= documents->most_bytes)
            return empty;
        if (oldest == NULL || (oldest->prepared && !prepared))
            return NULL;
        empty_slot(documents, oldest);
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

/* The bytes of a slot, and their tag. NULL: there are none. */
static mc_buf *
recall_text(uint64_t *tag, mc_documents *documents, uint64_t config, const char *key)
{
    pthread_mutex_lock(&documents->lock);
    document_slot *slot = find_slot(documents, config, key);
    mc_buf *text = slot == NULL ? NULL : mc_buf_ref(slot->text);
    *tag = slot == NULL ? 0 : slot->tag;
    if (slot != NULL)
        slot->used = ++documents->uses;
    pthread_mutex_unlock(&documents->lock);
    return text;
}

/* Whether the call is for a document that is to have the address of no client. */
static bool
is_prepared_call(const mc_documents *documents, const mc_call *call)
{
    return strncmp(call->base, documents->address, strlen(documents->address)) == 0;
}

/* The document as it was prepared, with the client's address. NULL: none was, or that cannot be done. */
static mc_buf *
recall_prepared_text(mc_documents *documents, const char *key, const mc_call *call, apr_pool_t *pool)
{
    uint64_t tag;
    mc_buf *filled;
    if (!mc_address_is_plain(call->base) || is_prepared_call(documents, call))
        return NULL;
    const char *prepared_key =
        apr_pstrcat(pool, apr_pstrmemdup(pool, key, strlen(key) - strlen(call->base)), documents->address, "/", NULL);
    mc_buf *text = recall_text(&tag, documents, call->config->serial, prepared_key);
    if (text == NULL)
        return NULL;
    mc_error *error = mc_address_fill(&filled, text, documents->address, call, pool);
    mc_buf_unref(text);
    if (error == MC_OK)
        return filled;
    mc_error_ignore(error); /* no memory: the document is written in pieces */
    return NULL;
}

static void
drop_older_models(mc_documents *documents, uint64_t file, uint64_t config)
{
    for (int i = 0; i < DOCUMENT_SLOTS; i++)
        if (documents->slots[i].file == file && documents->slots[i].config < config)
            empty_slot(documents, &documents->slots[i]);
}

/* Keeps a text of which the tag is known. */
static void
keep_document_text(mc_documents *documents, const char *key, mc_buf *text, uint64_t tag, const mc_call *call)
{
    const mc_config *config = call->config;
    char *own_key = text->capacity > documents->most_bytes ? NULL : strdup(key);
    if (own_key == NULL)
        return;
    uint64_t file = config->file == NULL ? 0 : mc_hash64(config->file, strlen(config->file), 0);
    bool prepared = is_prepared_call(documents, call);
    pthread_mutex_lock(&documents->lock);
    drop_older_models(documents, file, config->serial);
    document_slot *slot = find_slot(documents, config->serial, key);
    if (slot != NULL)
        empty_slot(documents, slot);
    slot = make_room(documents, text->capacity, prepared);
    if (slot != NULL) {
        *slot = (document_slot){ .config = config->serial,
                                 .file = file,
                                 .prepared = prepared,
                                 .key = own_key,
                                 .text = mc_buf_ref(text),
                                 .tag = tag,
                                 .used = ++documents->uses };
        documents->bytes += text->capacity;
        own_key = NULL;
    }
    pthread_mutex_unlock(&documents->lock);
    free(own_key);
}

bool
mc_document_recall(mc_request *request, const char *key, const char *mime, const mc_call *call, mc_ctx *ctx,
                   apr_pool_t *pool)
{
    mc_documents *documents = ctx->process == NULL ? NULL : ctx->process->documents;
    uint64_t tag;
    if (documents == NULL || key == NULL)
        return false;
    mc_buf *text = recall_text(&tag, documents, call->config->serial, key);
    if (text != NULL)
        mc_buf_attach(text, pool);
    else if ((text = recall_prepared_text(documents, key, call, pool)) != NULL) {
        tag = mc_hash64(text->data, text->size, 0);
        keep_document_text(documents, key, text, tag, call);
    }
    if (text == NULL)
        return false;
    request->kind = MC_REQUEST_DOCUMENT;
    request->u.document.mime = mime;
    request->u.document.text = text;
    request->u.document.tag = tag;
    return true;
}

void
mc_document_keep(const mc_request *request, const char *key, const mc_call *call, mc_ctx *ctx)
{
    mc_documents *documents = ctx->process == NULL ? NULL : ctx->process->documents;
    mc_buf *text = request->u.document.text;
    if (documents == NULL || key == NULL ||
        (is_prepared_call(documents, call) && !mc_address_can_be_filled(text, documents->address)))
        return;
    if (text->capacity > text->size + text->size / 8) { /* it has grown while it was written */
        mc_error *error = mc_buf_duplicate(&text, text->data, text->size, ctx->pool);
        if (error != MC_OK) {
            mc_error_ignore(error);
            return;
        }
    }
    keep_document_text(documents, key, text, mc_hash64(text->data, text->size, 0), call);
}
