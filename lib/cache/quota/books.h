/*
 * The books of a cache with <max_size>: an SQLite file beside the store. What stands in it can be found out anew, so
 * that it is not synced, and made anew where it is damaged.
 */
#ifndef MC_CACHE_QUOTA_BOOKS_H
#define MC_CACHE_QUOTA_BOOKS_H

#include "cache/quota/quota.h"
#include "db/sqlite/handles.h"

typedef struct mc_books {
    const char *path, *cache; /* `cache`: its name, for messages */
    mc_open_options how, reading;
} mc_books;

/* What happened to a block. */
typedef enum mc_book_event {
    MC_BOOK_USED,    /* a tile was read, or found in the store */
    MC_BOOK_STORED,  /* tiles are about to be stored */
    MC_BOOK_CHANGED, /* tiles were stored, or removed by others than the keeper */
} mc_book_event;

/* A block as it stands in the books. */
typedef struct mc_book_block {
    int64_t series; /* number of its name */
    int z, x, y;    /* of its first tile */
    int64_t used, stored, bytes;
    mc_quota_name name; /* texts are of the pool that the block was read into */
} mc_book_block;

mc_books mc_books_at(const char *path, const char *cache, apr_pool_t *pool);

/* Opens the books for writing, made where they are not there, and made anew where they are damaged. Given back by
 * mc_handle_release; until then no other thread of the process has them for writing. */
mc_error *mc_books_open(mc_handle **books, const mc_books *which, mc_ctx *ctx) MC_CHECKED;

/* Reads them, as mc_handle_read does; `work` is not called where there are none. */
mc_error *mc_books_read(const mc_books *which, mc_handle_work *work, void *baton, mc_ctx *ctx) MC_CHECKED;

/* Opens the books, does some work in one transaction, and gives them back: all of the work or nothing is written down.
 */
typedef mc_error *mc_books_work(mc_handle *books, void *baton, mc_ctx *ctx);
mc_error *mc_books_do(const mc_books *which, mc_books_work *work, void *baton, mc_ctx *ctx) MC_CHECKED;

/* Something happened to a block at `time` (Unix seconds). Stored or removed, and the first time that the books hear of
 * it: the block is to be measured. */
mc_error *mc_books_note(mc_handle *books, const mc_quota_name *name, const mc_tile_key *block, apr_int64_t time,
                        mc_book_event event, apr_pool_t *pool) MC_CHECKED;

/* At most `most` blocks, oldest use first, then the deepest levels; only those that were used before `before`. */
mc_error *mc_books_oldest(mc_book_block *blocks, int *count, int most, apr_int64_t before, mc_handle *books,
                          apr_pool_t *pool) MC_CHECKED;

/* At most `most` blocks to be measured: those of which nothing is known; then those that were measured while somebody
 * may have been storing there, once nobody did since `before`. */
mc_error *mc_books_unmeasured(mc_book_block *blocks, int *count, int most, apr_int64_t before, mc_handle *books,
                              apr_pool_t *pool) MC_CHECKED;

/* Whether there is a block to be measured, now or later. */
mc_error *mc_books_unsettled(bool *any, mc_handle *books, apr_pool_t *pool) MC_CHECKED;

/* Of a store that tells its size itself: no block is to be measured. */
mc_error *mc_books_settle(mc_handle *books, apr_pool_t *pool) MC_CHECKED;

/* Writes down the size of a block, unless somebody said after it was read that he stores there. Where nobody did since
 * `before`, a block without tiles goes. */
mc_error *mc_books_measured(mc_handle *books, const mc_book_block *block, const mc_quota_amount *found,
                            apr_int64_t before, apr_pool_t *pool) MC_CHECKED;
/* After some of its tiles were removed. */
mc_error *mc_books_set_bytes(mc_handle *books, const mc_book_block *block, int64_t bytes, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_books_remove(mc_handle *books, const mc_book_block *block, apr_pool_t *pool) MC_CHECKED;

/* Uses that lie in the future, as by a clock that was set back, become uses of now. */
mc_error *mc_books_correct_clock(mc_handle *books, apr_int64_t now, apr_pool_t *pool) MC_CHECKED;

/* Everything that is known of blocks goes. */
mc_error *mc_books_empty(mc_handle *books, apr_pool_t *pool) MC_CHECKED;

/* Numbers and texts by name; 0 and "" where nothing was set. */
#define MC_BOOKS_SHIFT "shift"       /* of the blocks */
#define MC_BOOKS_BYTES "bytes"       /* of all blocks; kept by the books themselves */
#define MC_BOOKS_TOTAL "total"       /* bytes of the store, where it tells them itself */
#define MC_BOOKS_SURVEY "survey"     /* where the survey is */
#define MC_BOOKS_SURVEYED "surveyed" /* when it was done; 0: it is not */
#define MC_BOOKS_REMOVED "removed"   /* tiles that were removed */
#define MC_BOOKS_HOLDER "holder"     /* who has the lease */
#define MC_BOOKS_UNTIL "until"       /* Unix seconds: when the lease ends */
mc_error *mc_books_number(int64_t *number, mc_handle *books, const char *name, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_books_text(const char **text, mc_handle *books, const char *name, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_books_set_number(mc_handle *books, const char *name, int64_t number, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_books_set_text(mc_handle *books, const char *name, const char *text, apr_pool_t *pool) MC_CHECKED;

/* Takes or renews the lease of `holder` for some seconds from `now` on; *mine false: another one has it. */
mc_error *mc_books_lease(bool *mine, mc_handle *books, const char *holder, apr_int64_t now,
                         apr_pool_t *pool) MC_CHECKED;
mc_error *mc_books_end_lease(mc_handle *books, const char *holder, apr_pool_t *pool) MC_CHECKED;

#endif
