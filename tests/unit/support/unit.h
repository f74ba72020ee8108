/* What every unit test needs: Check, APR set up once, a pool for each test, and errors printed when they are not
 * expected. */
#ifndef MC_UNIT_H
#define MC_UNIT_H

#include <apr_general.h>
#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "mapcache/ctx.h"

extern apr_pool_t *pool;
extern mc_ctx ctx;
extern mc_process process;

/* Where the sources are. */
extern const char *const unit_source_folder;

void unit_setup(void);
void unit_teardown(void);

/* Check writes the place of each assertion that holds to a file, for the case that the next one does not return: most
 * of the time of a test that looks at every pixel. Here each place is written once in a test. */
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                                       \
    do {                                                                                                               \
        static atomic_bool ck_written_;                                                                                \
        if (!(expr))                                                                                                   \
            _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", __VA_ARGS__);                        \
        if (!atomic_load_explicit(&ck_written_, memory_order_relaxed)) {                                               \
            atomic_store_explicit(&ck_written_, true, memory_order_relaxed);                                           \
            mark_point();                                                                                              \
        }                                                                                                              \
    } while (0)

#define ck_ok(expr)                                                                                                    \
    do {                                                                                                               \
        mc_error *ck_error_ = (expr);                                                                                  \
        ck_assert_msg(ck_error_ == MC_OK, "%s: %s", #expr, mc_error_chain(ck_error_, pool));                           \
    } while (0)

#define ck_fails(expected_kind, expr)                                                                                  \
    do {                                                                                                               \
        mc_error *ck_error_ = (expr);                                                                                  \
        ck_assert_msg(ck_error_ != MC_OK, "%s did not fail", #expr);                                                   \
        ck_assert_msg(ck_error_->kind == MC_ERR_##expected_kind, "%s: %s (%s)", #expr,                                 \
                      mc_error_chain(ck_error_, pool), mc_error_name(ck_error_->kind));                                \
    } while (0)

/* Runs a suite made of one test case and returns main()'s value. */
int unit_run(const char *name, const TTest *const *tests, int count);

/* The same with what is done before and after each test. */
int unit_run_between(const char *name, const TTest *const *tests, int count, SFun before, SFun after);

#define UNIT_MAIN(name, ...)                                                                                           \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = { __VA_ARGS__ };                                                                  \
        return unit_run(name, tests, (int)(sizeof(tests) / sizeof(tests[0])));                                         \
    }

#endif
