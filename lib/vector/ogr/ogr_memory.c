/* Part of the module mapcache-gdal.so: see ogr_memory.h. */
#include "vector/ogr/ogr_memory.h"

#include <apr_strings.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "vector/geometry/geometry.h"

enum { FILES = 64 /* that are remembered, also as too large */ };

typedef enum memory_state { BEING_MADE, READY, TOO_LARGE } memory_state;

typedef struct memory_row {
    int64_t id;
    mc_extent box;
    size_t at, size; /* of the WKB in `bytes`; behind it the values: 0, or 1 and a text with its NUL */
} memory_row;

struct mc_ogr_memory {
    apr_pool_t *pool; /* a root pool of its own */
    mc_idle_key key;
    mc_ogr_about about;
    memory_row *rows;
    size_t row_count, row_room;
    char *bytes;
    size_t size, room;
    bool too_large;             /* of whoever makes it */
    memory_state state;         /* this and the next two: under the lock */
    int references;             /* one of them is that of the list */
    struct mc_ogr_memory *next; /* in the list */
};

static pthread_mutex_t memories_lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static mc_ogr_memory *memories;                                   /* the last one that was asked for first */

/* --- the list ----------------------------------------------------------------------------------------------------- */

static size_t
memory_bytes(const mc_ogr_memory *memory)
{
    return memory->room + memory->row_room * sizeof(memory_row);
}

static void
destroy_memory(mc_ogr_memory *memory)
{
    free(memory->rows);
    free(memory->bytes);
    apr_pool_destroy(memory->pool);
}

/* Under the lock. Gives a reference back; what nobody has any more is put in front of `dead`. */
static void
drop_reference(mc_ogr_memory *memory, mc_ogr_memory **dead)
{
    if (--memory->references > 0)
        return;
    memory->next = *dead;
    *dead = memory;
}

static void
destroy_memories(mc_ogr_memory *dead)
{
    while (dead != NULL) {
        mc_ogr_memory *next = dead->next;
        destroy_memory(dead);
        dead = next;
    }
}

/* Under the lock: takes what `at` points to out of the list. */
static void
unlist_memory(mc_ogr_memory **at, mc_ogr_memory **dead)
{
    mc_ogr_memory *memory = *at;
    *at = memory->next;
    drop_reference(memory, dead);
}

/* Under the lock: what is over the bounds, the longest unused first. */
static void
trim_memories(mc_ogr_memory **dead)
{
    size_t bytes = 0;
    int count = 0;
    for (mc_ogr_memory **at = &memories; *at != NULL;) {
        bool made = (*at)->state != BEING_MADE;
        bytes += made ? memory_bytes(*at) : 0;
        if (made && (++count > FILES || bytes > MC_OGR_MEMORY_ALL)) {
            bytes -= memory_bytes(*at);
            unlist_memory(at, dead);
        } else {
            at = &(*at)->next;
        }
    }
}

/* Under the lock: the file's entry, moved to the front; older states of the file are forgotten. */
static mc_ogr_memory *
look_up_memory(const mc_idle_key *key, mc_ogr_memory **dead)
{
    mc_ogr_memory *found = NULL;
    for (mc_ogr_memory **at = &memories; *at != NULL;) {
        mc_ogr_memory *memory = *at;
        if (strcmp(memory->key.text, key->text) != 0) {
            at = &memory->next;
        } else if (mc_stamp_equal(&memory->key.stamp, &key->stamp)) {
            found = memory;
            *at = memory->next;
        } else if (memory->state == BEING_MADE) {
            at = &memory->next;
        } else {
            unlist_memory(at, dead);
        }
    }
    if (found != NULL) {
        found->next = memories;
        memories = found;
    }
    return found;
}

mc_ogr_memory *
mc_ogr_memory_find(const mc_idle_key *key)
{
    mc_ogr_memory *dead = NULL;
    pthread_mutex_lock(&memories_lock);
    mc_ogr_memory *found = look_up_memory(key, &dead);
    if (found != NULL && found->state != READY)
        found = NULL;
    if (found != NULL)
        found->references++;
    pthread_mutex_unlock(&memories_lock);
    destroy_memories(dead);
    return found;
}

void
mc_ogr_memory_release(mc_ogr_memory *memory)
{
    mc_ogr_memory *dead = NULL;
    pthread_mutex_lock(&memories_lock);
    drop_reference(memory, &dead);
    pthread_mutex_unlock(&memories_lock);
    destroy_memories(dead);
}

const mc_ogr_about *
mc_ogr_memory_about(const mc_ogr_memory *memory)
{
    return &memory->about;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

/* Room for `more` bytes; false: that is too large. */
static bool
reserve_memory(mc_ogr_memory *m, size_t more)
{
    if (more > MC_OGR_MEMORY_FILE || m->size + more + (m->row_count + 1) * sizeof(memory_row) > MC_OGR_MEMORY_FILE)
        return false;
    if (m->size + more > m->room) {
        size_t room = (m->size + more) * 3 / 2;
        char *grown = realloc(m->bytes, room);
        if (grown == NULL)
            return false;
        m->bytes = grown;
        m->room = room;
    }
    if (m->row_count == m->row_room) {
        size_t room = m->row_room * 3 / 2 + 64;
        memory_row *grown = realloc(m->rows, room * sizeof(*grown));
        if (grown == NULL)
            return false;
        m->rows = grown;
        m->row_room = room;
    }
    return true;
}

static mc_error *
keep_feature(void *baton, int64_t id, const void *wkb, size_t size, const char *const *values)
{
    mc_ogr_memory *m = baton;
    size_t more = size;
    if (m->too_large)
        return MC_OK;
    for (int i = 0; i < m->about.field_count; i++)
        more += values[i] == NULL ? 1 : strlen(values[i]) + 2;
    if (!reserve_memory(m, more)) {
        m->too_large = true;
        return MC_OK;
    }
    memory_row *row = &m->rows[m->row_count++];
    *row = (memory_row){ .id = id, .at = m->size, .size = size };
    if (!mc_wkb_bounds(&row->box, wkb, size))
        row->box = (mc_extent){ -HUGE_VAL, -HUGE_VAL, HUGE_VAL, HUGE_VAL };
    memcpy(m->bytes + m->size, wkb, size);
    m->size += size;
    for (int i = 0; i < m->about.field_count; i++) {
        size_t length = values[i] == NULL ? 0 : strlen(values[i]) + 1;
        m->bytes[m->size++] = values[i] != NULL;
        if (length > 0)
            memcpy(m->bytes + m->size, values[i], length);
        m->size += length;
    }
    return MC_OK;
}

static mc_error *
fill_memory(mc_ogr_memory *m, mc_ogr_file *file, mc_ctx *ctx, apr_pool_t *pool)
{
    static const mc_extent all = { -HUGE_VAL, -HUGE_VAL, HUGE_VAL, HUGE_VAL };
    mc_ogr_reading r = { .file = file, .box = &all, .visit = keep_feature, .baton = m, .ctx = ctx, .pool = pool };
    int *fields = apr_palloc(pool, sizeof(*fields) * (size_t)(m->about.field_count + 1));
    for (int i = 0; i < m->about.field_count; i++)
        fields[i] = i;
    r.fields = fields;
    r.field_count = m->about.field_count;
    r.values = apr_pcalloc(pool, sizeof(*r.values) * (size_t)(r.field_count + 1));
    apr_pool_create(&r.scratch, pool);
    mc_error *error = mc_ogr_read_features(&r);
    apr_pool_destroy(r.scratch);
    return error;
}

static mc_ogr_memory *
create_memory(const mc_ogr_file *file)
{
    apr_pool_t *own;
    apr_pool_create_unmanaged_ex(&own, mc_memory_exhausted, NULL);
    mc_ogr_memory *m = apr_pcalloc(own, sizeof(*m));
    mc_field *fields = apr_pmemdup(own, file->about.fields, sizeof(*fields) * (size_t)(file->about.field_count + 1));
    for (int i = 0; i < file->about.field_count; i++)
        fields[i].name = apr_pstrdup(own, fields[i].name);
    m->pool = own;
    m->key = file->idle.key;
    m->key.text = apr_pstrdup(own, m->key.text);
    m->about = file->about;
    m->about.fields = fields;
    m->about.driver = apr_pstrdup(own, file->about.driver);
    m->about.srs = apr_pstrdup(own, file->about.srs);
    m->references = 1;
    return m;
}

/* Gives back what growing has left over. */
static void
fit_memory(mc_ogr_memory *m)
{
    char *bytes = m->size == 0 ? NULL : realloc(m->bytes, m->size);
    memory_row *rows = m->row_count == 0 ? NULL : realloc(m->rows, m->row_count * sizeof(*rows));
    if (bytes != NULL) {
        m->bytes = bytes;
        m->room = m->size;
    }
    if (rows != NULL) {
        m->rows = rows;
        m->row_room = m->row_count;
    }
}

/* What could not be kept has no bytes. */
static void
empty_memory(mc_ogr_memory *m)
{
    free(m->rows);
    free(m->bytes);
    m->rows = NULL;
    m->bytes = NULL;
    m->row_count = m->row_room = m->size = m->room = 0;
}

/* Takes an entry out of the list wherever it is, with the list's reference. Under the lock. */
static void
forget_memory(const mc_ogr_memory *memory, mc_ogr_memory **dead)
{
    for (mc_ogr_memory **at = &memories; *at != NULL; at = &(*at)->next)
        if (*at == memory) {
            unlist_memory(at, dead);
            return;
        }
}

mc_error *
mc_ogr_memory_make(mc_ogr_memory **memory, mc_ogr_file *file, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_ogr_memory *dead = NULL, *made = NULL;
    *memory = NULL;
    pthread_mutex_lock(&memories_lock);
    if (look_up_memory(&file->idle.key, &dead) == NULL) {
        made = create_memory(file);
        made->next = memories;
        memories = made;
    }
    pthread_mutex_unlock(&memories_lock);
    destroy_memories(dead);
    if (made == NULL)
        return MC_OK;
    dead = NULL;
    mc_error *error = fill_memory(made, file, ctx, pool);
    if (made->too_large || error != MC_OK)
        empty_memory(made);
    else
        fit_memory(made);
    pthread_mutex_lock(&memories_lock);
    made->state = made->too_large ? TOO_LARGE : READY;
    if (error != MC_OK) {
        forget_memory(made, &dead);
    } else if (!made->too_large) {
        made->references++;
        *memory = made;
    }
    trim_memories(&dead);
    pthread_mutex_unlock(&memories_lock);
    destroy_memories(dead);
    return error;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool
boxes_meet(const mc_extent *a, const mc_extent *b)
{
    return a->minx <= b->maxx && a->maxx >= b->minx && a->miny <= b->maxy && a->maxy >= b->miny;
}

static mc_error *
visit_memory_row(mc_ogr_reading *r, const mc_ogr_memory *memory, const memory_row *row, const char **own)
{
    const char *at = memory->bytes + row->at + row->size;
    for (int i = 0; i < memory->about.field_count; i++) {
        own[i] = *at++ != 0 ? at : NULL;
        if (own[i] != NULL)
            at += strlen(at) + 1;
    }
    for (int i = 0; i < r->field_count; i++)
        r->values[i] = r->fields[i] < 0 ? NULL : own[r->fields[i]];
    return r->visit(r->baton, row->id, memory->bytes + row->at, row->size, r->values);
}

mc_error *
mc_ogr_read_memory(mc_ogr_reading *r, const mc_ogr_memory *memory)
{
    mc_error *error = MC_OK;
    const char **own = apr_palloc(r->pool, sizeof(*own) * (size_t)(memory->about.field_count + 1));
    for (size_t i = 0; i < memory->row_count && error == MC_OK; i++) {
        const memory_row *row = &memory->rows[i];
        if (i % MC_OGR_BETWEEN_CHECKS == 0)
            error = mc_ctx_check(r->ctx, r->pool);
        if (error == MC_OK && boxes_meet(&row->box, r->box))
            error = visit_memory_row(r, memory, row, own);
    }
    return error;
}
