/* Kept texts: see aws_text.h. */
#include "cache/rest/aws_text.h"

#include <apr_strings.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stamp.h"
#include "cache/rest/rest_base.h"

enum { TEXTS_MOST = 32 };

/* Microseconds from one look at the stamp of a file to the next. */
#define LOOK_EACH APR_USEC_PER_SEC

typedef struct kept_text {
    char *path;        /* NULL: free */
    char *text;        /* NULL: there is no such file */
    apr_time_t looked; /* mc_clock_now(); 0: the file has to be read */
    mc_stamp stamp;
    bool settled; /* else the stamp may be that of an older text, too */
} kept_text;

/* Of the process, as kept credentials are. */
static pthread_mutex_t texts_lock = PTHREAD_MUTEX_INITIALIZER; /* of `texts` */
static kept_text texts[TEXTS_MOST];

/* The place of the path, made where there is none yet; the lock is held. NULL: all are in use. */
static kept_text *
find_kept_text(const char *path)
{
    kept_text *unused = NULL;
    for (int i = 0; i < TEXTS_MOST; i++) {
        if (texts[i].path != NULL && strcmp(texts[i].path, path) == 0)
            return &texts[i];
        if (texts[i].path == NULL && unused == NULL)
            unused = &texts[i];
    }
    if (unused != NULL) {
        *unused = (kept_text){ .path = strdup(path) };
        MC_ASSERT(unused->path != NULL);
    }
    return unused;
}

/* Whether what is kept is to be used. Whoever is told that it is not looks at the file; the others use what is kept
 * meanwhile. */
static bool
use_kept_text(const char **text, kept_text *seen, const char *path, apr_pool_t *pool)
{
    const apr_time_t now = mc_clock_now();
    pthread_mutex_lock(&texts_lock);
    kept_text *place = find_kept_text(path);
    const bool fresh = place != NULL && place->looked != 0 && now - place->looked < LOOK_EACH;
    *seen = place == NULL ? (kept_text){ .looked = 0 } : *place;
    *text = place == NULL || place->text == NULL ? NULL : apr_pstrdup(pool, place->text);
    if (place != NULL && place->looked != 0 && !fresh)
        place->looked = now;
    pthread_mutex_unlock(&texts_lock);
    return fresh;
}

static void
keep_aws_text(const char *path, const char *text, const mc_stamp *stamp, bool settled)
{
    pthread_mutex_lock(&texts_lock);
    kept_text *place = find_kept_text(path);
    if (place != NULL) {
        free(place->text);
        place->text = text == NULL ? NULL : strdup(text);
        MC_ASSERT(text == NULL || place->text != NULL);
        place->looked = mc_clock_now();
        place->stamp = *stamp;
        place->settled = settled;
    }
    pthread_mutex_unlock(&texts_lock);
}

mc_error *
mc_aws_text_read(const char **text, const char *path, apr_pool_t *pool)
{
    kept_text seen;
    mc_stamp stamp = { .wal_size = -1 };
    mc_error *error = MC_OK;
    if (use_kept_text(text, &seen, path, pool))
        return MC_OK;
    const apr_time_t now = apr_time_now();
    const bool there = mc_stamp_take_any(&stamp, path);
    if (there && *text != NULL && seen.looked != 0 && seen.settled && mc_stamp_equal(&stamp, &seen.stamp))
        return MC_OK;
    *text = NULL;
    if (there)
        error = mc_rest_file_text(text, path, MC_AWS_TEXT_BYTES, pool);
    if (error == MC_OK)
        keep_aws_text(path, *text, &stamp, there && mc_stamp_settled(&stamp, now));
    else
        mc_aws_texts_forget(); /* of this one the next request says the same */
    return error;
}

void
mc_aws_texts_forget(void)
{
    pthread_mutex_lock(&texts_lock);
    for (int i = 0; i < TEXTS_MOST; i++)
        texts[i].looked = 0;
    pthread_mutex_unlock(&texts_lock);
}
