#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/module.h"

START_TEST(what_is_not_installed_is_unavailable)
{
    void *symbol = NULL;
    ck_fails(UNAVAILABLE, mc_module_symbol(&symbol, "absent", "mc_anything", pool));
    ck_assert_ptr_null(symbol);
}
END_TEST

START_TEST(a_broken_module_says_why_in_its_cause_only)
{
    char folder[] = "/tmp/mapcache-module-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    char file[200];
    snprintf(file, sizeof(file), "%s/mapcache-broken.so", folder);
    FILE *out = fopen(file, "w");
    fputs("no library", out);
    fclose(out);
    setenv("MAPCACHE_MODULES", folder, 1);
    void *symbol;
    mc_error *error = mc_module_symbol(&symbol, "broken", "mc_anything", pool);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->kind, MC_ERR_UNAVAILABLE);
    ck_assert_ptr_null(strstr(error->message, folder));
    ck_assert_ptr_nonnull(error->cause);
    unlink(file);
    rmdir(folder);
}
END_TEST

UNIT_MAIN("module", what_is_not_installed_is_unavailable, a_broken_module_says_why_in_its_cause_only)
