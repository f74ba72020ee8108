/* A configuration in YAML as a tree, copied and merged. */
#include <stdlib.h>
#include <string.h>

#include "adopt/yaml.h"
#include "fuzz_support.h"

static int
count_branches(const mc_branch *branch, int depth)
{
    int count = 1;
    MC_ASSERT(depth <= 2 * MC_BRANCH_DEPTH);
    for (const mc_branch *child = branch->children; child != NULL; child = child->next) {
        MC_ASSERT((child->key != NULL) == (branch->kind == MC_BRANCH_MAP));
        count += count_branches(child, depth + 1);
    }
    MC_ASSERT(branch->kind != MC_BRANCH_TEXT || branch->children == NULL);
    return count;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    mc_branch *root;
    int room = MC_BRANCHES_MAX;
    apr_pool_create(&pool, NULL);
    char *exact = malloc(size + 1); /* a block of its own, so that a byte read beyond it is noticed */
    memcpy(exact, data, size);
    mc_error *error = mc_yaml_parse(&root, "x.yaml", exact, size, &room, pool);
    MC_ASSERT(error == MC_OK || error->kind == MC_ERR_CONFIG);
    if (error == MC_OK)
        MC_ASSERT(count_branches(root, 0) <= MC_BRANCHES_MAX + 1);
    free(exact);
    apr_pool_destroy(pool);
    return 0;
}
