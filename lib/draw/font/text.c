/* The front of text: finds its module, once. */
#include "draw/font/text.h"

#include <stdatomic.h>

#include "base/module.h"

static mc_error *
load_text_module(const mc_text_ops **ops, apr_pool_t *pool)
{
    static _Atomic(const mc_text_ops *) found;
    *ops = atomic_load_explicit(&found, memory_order_acquire);
    if (*ops != NULL)
        return MC_OK;
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "text", MC_TEXT_SYMBOL, pool));
    *ops = symbol;
    atomic_store_explicit(&found, *ops, memory_order_release);
    return MC_OK;
}

mc_error *
mc_text_font(const mc_font **font, const mc_font_spec *spec, apr_pool_t *pool)
{
    const mc_text_ops *ops;
    MC_TRY(load_text_module(&ops, pool));
    return ops->font(font, spec, pool);
}

mc_error *
mc_text_shape(mc_text_line *line, const mc_font *font, const char *text, size_t size, apr_pool_t *pool)
{
    const mc_text_ops *ops;
    MC_TRY(load_text_module(&ops, pool));
    return ops->shape(line, font, text, size, pool);
}

mc_error *
mc_text_outline(mc_glyph_outline *outline, uint32_t face, uint32_t glyph, float size, bool hinted, apr_pool_t *pool)
{
    const mc_text_ops *ops;
    MC_TRY(load_text_module(&ops, pool));
    return ops->outline(outline, face, glyph, size, hinted, pool);
}

mc_error *
mc_text_character(mc_text_symbol_glyph *glyph, const char *family, uint32_t character, apr_pool_t *pool)
{
    const mc_text_ops *ops;
    MC_TRY(load_text_module(&ops, pool));
    return ops->character(glyph, family, character, pool);
}

mc_error *
mc_text_substitute(const char **name, const char *family, apr_pool_t *pool)
{
    const mc_text_ops *ops;
    MC_TRY(load_text_module(&ops, pool));
    return ops->substitute(name, family, pool);
}
