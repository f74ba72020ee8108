/* See branch.h. */
#include "adopt/branch.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "text/text.h"

mc_branch *
mc_branch_create(mc_branch_kind kind, const char *file, int line, apr_pool_t *pool)
{
    mc_branch *branch = apr_pcalloc(pool, sizeof(*branch));
    branch->kind = kind;
    branch->file = file;
    branch->line = line;
    return branch;
}

void
mc_branch_add(mc_branch *parent, mc_branch *child)
{
    child->next = NULL;
    if (parent->last == NULL)
        parent->children = child;
    else
        parent->last->next = child;
    parent->last = child;
}

mc_branch *
mc_branch_get(mc_branch *map, const char *key)
{
    mc_branch *found = NULL;
    if (map == NULL || map->kind != MC_BRANCH_MAP)
        return NULL;
    for (mc_branch *child = map->children; child != NULL; child = child->next)
        if (strcmp(child->key, key) == 0) {
            child->taken = true;
            found = child;
        }
    return found;
}

mc_branch *
mc_branch_find(mc_branch *map, const char *path)
{
    char name[128];
    while (map != NULL) {
        size_t size = strcspn(path, ".");
        MC_ASSERT(size < sizeof(name));
        memcpy(name, path, size);
        name[size] = '\0';
        map = mc_branch_get(map, name);
        if (path[size] == '\0')
            return map;
        path += size + 1;
    }
    return NULL;
}

const char *
mc_branch_text(mc_branch *map, const char *path, const char *otherwise)
{
    const mc_branch *found = mc_branch_find(map, path);
    return found == NULL || found->kind != MC_BRANCH_TEXT || found->text == NULL ? otherwise : found->text;
}

mc_branch *
mc_branch_item(mc_branch *list, int number)
{
    if (list == NULL || list->kind == MC_BRANCH_MAP || (list->kind == MC_BRANCH_TEXT && list->text == NULL))
        return NULL;
    mc_branch *item = list->kind == MC_BRANCH_TEXT ? list : list->children;
    for (; item != NULL && number > 0; number--)
        item = list->kind == MC_BRANCH_TEXT ? NULL : item->next;
    if (item != NULL)
        item->taken = true;
    return item;
}

int
mc_branch_count(const mc_branch *list)
{
    int count = 0;
    if (list != NULL && list->kind == MC_BRANCH_TEXT)
        return list->text != NULL;
    if (list == NULL || list->kind == MC_BRANCH_MAP)
        return 0;
    for (const mc_branch *child = list->children; child != NULL; child = child->next)
        count++;
    return count;
}

bool
mc_branch_is_true(mc_branch *map, const char *path, bool otherwise)
{
    const char *text = mc_branch_text(map, path, NULL);
    if (text == NULL)
        return otherwise;
    return strcasecmp(text, "true") == 0 || strcasecmp(text, "yes") == 0 || strcasecmp(text, "on") == 0 ||
           strcmp(text, "1") == 0;
}

const char *
mc_branch_join(mc_branch *list, const char *separator, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 8, sizeof(const char *));
    if (list == NULL || list->kind == MC_BRANCH_MAP)
        return "";
    for (mc_branch *item = mc_branch_item(list, 0); item != NULL; item = list == item ? NULL : item->next) {
        item->taken = true;
        if (item->kind != MC_BRANCH_TEXT || item->text == NULL)
            continue;
        if (parts->nelts > 0)
            APR_ARRAY_PUSH(parts, const char *) = separator;
        APR_ARRAY_PUSH(parts, const char *) = item->text;
    }
    return apr_array_pstrcat(pool, parts, '\0');
}

int
mc_branch_numbers(double *numbers, int most, mc_branch *list)
{
    int count = 0;
    if (list == NULL)
        return 0;
    if (list->kind == MC_BRANCH_TEXT) {
        if (list->text == NULL || most < 1)
            return 0;
        const char *separators = strchr(list->text, ',') != NULL ? ", " : " \t";
        return mc_parse_doubles(numbers, most, &count, list->text, separators) ? count : 0;
    }
    for (mc_branch *item = mc_branch_item(list, 0); item != NULL; item = item->next) {
        item->taken = true;
        if (count == most || item->kind != MC_BRANCH_TEXT || item->text == NULL ||
            !mc_parse_double(&numbers[count++], item->text))
            return 0;
    }
    return count;
}

void
mc_branch_pass(mc_branch *branch)
{
    if (branch == NULL)
        return;
    branch->taken = true;
    for (mc_branch *child = branch->children; child != NULL; child = child->next)
        mc_branch_pass(child);
}

mc_branch *
mc_branch_copy(const mc_branch *branch, int *room, apr_pool_t *pool)
{
    if (--*room < 0)
        return NULL;
    mc_branch *copy = apr_pmemdup(pool, branch, sizeof(*branch));
    copy->children = copy->last = copy->next = NULL;
    for (const mc_branch *child = branch->children; child != NULL; child = child->next) {
        mc_branch *made = mc_branch_copy(child, room, pool);
        if (made == NULL)
            return NULL;
        mc_branch_add(copy, made);
    }
    return copy;
}
