/*
 * Fonts by fontconfig: looked up once for each font specification and process. One lock guards all that is found; the
 * order is fonts.lock before a face's own lock.
 */
#include "draw/font/fonts.h"

#include <apr_strings.h>
#include <fontconfig/fontconfig.h>
#include <hb-ot.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* fontconfig's patterns point to their parts by offsets, which a checker of leaks cannot follow. */
#if defined(__SANITIZE_ADDRESS__)
#define CHECKS_LEAKS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECKS_LEAKS
#endif
#endif
#ifdef CHECKS_LEAKS
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_disable()
#define __lsan_enable()
#endif

enum {
    FONTS_MAX = 256,
    FACES_MAX = 512,
    CHOICES_MAX = 8192, /* faces that stand in for each other */
    BLOCK = 256,        /* characters whose faces are remembered together */
    CHARACTERS = 0x110000,
    BLOCKS_KEPT = 8192, /* of all fonts */
    NO_FACE = 0xFFFF,
};

/* A face that a font may use, as fontconfig describes it; opened when a character is found in it. */
typedef struct choice {
    FcPattern *pattern;
    FcCharSet *characters; /* of the pattern; NULL: not known */
    _Atomic(mc_face *) face;
    atomic_bool broken; /* cannot be opened */
} choice;

/* For each character of a block 1 + the choice that has the character; 0: not looked for; NO_FACE: no choice does. */
typedef struct choice_block {
    _Atomic(uint16_t) choices[BLOCK];
} choice_block;

typedef struct font {
    mc_font shown; /* first member */
    const char *key;
    FcPattern *wanted;
    FcFontSet *set;  /* the patterns of all choices */
    choice *choices; /* the best first, each with characters that none before it has */
    int count;
    _Atomic(choice_block *) blocks[CHARACTERS / BLOCK]; /* made as their characters occur */
} font;

static struct {
    pthread_mutex_t lock; /* of the rest, but for reading faces below face_count */
    FcConfig *config;
    FT_Library library;
    font *fonts[FONTS_MAX];
    int font_count;
    struct {
        mc_face *face;
        const char *file;
        int index;
    } faces[FACES_MAX];
    atomic_int face_count;
    atomic_int block_count; /* of all fonts */
} fonts = { .lock = PTHREAD_MUTEX_INITIALIZER };

mc_face *
mc_fonts_face(uint32_t number)
{
    MC_ASSERT((int)number < atomic_load_explicit(&fonts.face_count, memory_order_acquire));
    return fonts.faces[number].face;
}

/* With the lock held. */
static mc_error *
start_font_libraries(apr_pool_t *pool)
{
    __lsan_disable();
    if (fonts.config == NULL)
        fonts.config = FcInitLoadConfigAndFonts();
    __lsan_enable();
    if (fonts.library == NULL && FT_Init_FreeType(&fonts.library) != 0)
        fonts.library = NULL;
    if (fonts.config == NULL || fonts.library == NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "fonts cannot be looked up");
    return MC_OK;
}

/* fontconfig's numbers for CSS' weights. */
static FcPattern *
make_font_pattern(const mc_font_spec *spec)
{
    FcPattern *pattern = FcPatternCreate();
    for (int i = 0; i < spec->family_count; i++)
        FcPatternAddString(pattern, FC_FAMILY, (const FcChar8 *)spec->families[i]);
    FcPatternAddString(pattern, FC_FAMILY, (const FcChar8 *)"sans-serif");
    FcPatternAddInteger(pattern, FC_SLANT, spec->italic ? FC_SLANT_ITALIC : FC_SLANT_ROMAN);
    FcPatternAddInteger(pattern, FC_WEIGHT, FcWeightFromOpenType(spec->weight));
    FcPatternAddBool(pattern, FC_SCALABLE, FcTrue);
    FcConfigSubstitute(fonts.config, pattern, FcMatchPattern);
    FcDefaultSubstitute(pattern);
    return pattern;
}

/* HarfBuzz's side of a face; NULL where the file is none. */
static hb_font_t *
shaper_of(const char *file, int index)
{
    hb_blob_t *blob = hb_blob_create_from_file_or_fail(file);
    if (blob == NULL)
        return NULL;
    hb_face_t *face = hb_face_create(blob, (unsigned)index & 0xFFFF);
    hb_font_t *made = hb_font_create(face);
    hb_ot_font_set_funcs(made);
    if (index >> 16 > 0)
        hb_font_set_var_named_instance(made, (unsigned)(index >> 16) - 1);
    hb_font_make_immutable(made);
    hb_face_destroy(face);
    hb_blob_destroy(blob);
    return made;
}

/* With the lock held; NULL where the file cannot be used. */
static mc_face *
open_prepared_face(FcPattern *pattern)
{
    FcChar8 *file;
    int index = 0;
    if (FcPatternGetString(pattern, FC_FILE, 0, &file) != FcResultMatch)
        return NULL;
    FcPatternGetInteger(pattern, FC_INDEX, 0, &index);
    FcBool embolden = FcFalse;
    FcMatrix *matrix = NULL;
    FcPatternGetBool(pattern, FC_EMBOLDEN, 0, &embolden);
    FcPatternGetMatrix(pattern, FC_MATRIX, 0, &matrix);
    double slant = matrix == NULL ? 0 : matrix->xy;
    int count = atomic_load(&fonts.face_count);
    for (int i = 0; i < count; i++)
        if (fonts.faces[i].index == index && strcmp(fonts.faces[i].file, (const char *)file) == 0 &&
            fonts.faces[i].face->embolden == (embolden == FcTrue) && fonts.faces[i].face->slant == slant)
            return fonts.faces[i].face;
    FT_Face outlines;
    if (count == FACES_MAX || FT_New_Face(fonts.library, (const char *)file, index, &outlines) != 0)
        return NULL;
    hb_font_t *shaper = FT_IS_SCALABLE(outlines) ? shaper_of((const char *)file, index) : NULL;
    if (shaper == NULL) {
        FT_Done_Face(outlines);
        return NULL;
    }
    mc_face *made = calloc(1, sizeof(*made));
    MC_ASSERT(made != NULL);
    *made = (mc_face){ (uint32_t)count, shaper, 1, PTHREAD_MUTEX_INITIALIZER, outlines, embolden == FcTrue, slant };
    made->per_unit = 1.0F / (float)hb_face_get_upem(hb_font_get_face(shaper));
    fonts.faces[count].face = made;
    fonts.faces[count].file = strdup((const char *)file);
    fonts.faces[count].index = index;
    atomic_store_explicit(&fonts.face_count, count + 1, memory_order_release);
    return made;
}

/* With the lock held: the face as it is to be drawn, perhaps made bolder or slanted. */
static mc_face *
open_face(const font *own, const choice *chosen)
{
    __lsan_disable();
    FcPattern *prepared = FcFontRenderPrepare(fonts.config, own->wanted, chosen->pattern);
    __lsan_enable();
    mc_face *face = prepared == NULL ? NULL : open_prepared_face(prepared);
    if (prepared != NULL)
        FcPatternDestroy(prepared);
    return face;
}

/* The face of a choice, opened at its first use; NULL where it cannot be. */
static mc_face *
face_of(const font *own, choice *chosen)
{
    mc_face *face = atomic_load_explicit(&chosen->face, memory_order_acquire);
    if (face != NULL || atomic_load(&chosen->broken))
        return face;
    pthread_mutex_lock(&fonts.lock);
    face = open_face(own, chosen);
    pthread_mutex_unlock(&fonts.lock);
    atomic_store_explicit(&chosen->face, face, memory_order_release);
    atomic_store(&chosen->broken, face == NULL);
    return face;
}

static bool
choice_has(const choice *chosen, uint32_t character)
{
    return chosen->characters != NULL && FcCharSetHasChar(chosen->characters, character);
}

/* Which choice has a character, by looking at all of them: 1 + its number, or NO_FACE. The same at any time. */
static uint16_t
find_choice(font *own, uint32_t character)
{
    for (int i = 0; i < own->count; i++)
        if (choice_has(&own->choices[i], character) && face_of(own, &own->choices[i]) != NULL)
            return (uint16_t)(i + 1);
    return NO_FACE;
}

/* What is remembered of a block of characters; NULL where there is no room. */
static choice_block *
block_of(font *own, uint32_t character)
{
    _Atomic(choice_block *) *place = &own->blocks[character / BLOCK];
    choice_block *known = atomic_load_explicit(place, memory_order_acquire), *none = NULL;
    if (known != NULL)
        return known;
    if (atomic_fetch_add(&fonts.block_count, 1) >= BLOCKS_KEPT) {
        atomic_fetch_sub(&fonts.block_count, 1);
        return NULL;
    }
    choice_block *made = calloc(1, sizeof(*made));
    MC_ASSERT(made != NULL);
    if (atomic_compare_exchange_strong(place, &none, made))
        return made;
    atomic_fetch_sub(&fonts.block_count, 1); /* another thread was quicker */
    free(made);
    return none;
}

mc_face *
mc_font_face_of(const mc_font *shown, uint32_t character)
{
    font *own = (font *)(uintptr_t)shown; /* its choices and blocks have atomics of their own */
    mc_face *first = face_of(own, &own->choices[0]);
    if ((first != NULL && choice_has(&own->choices[0], character)) || character >= CHARACTERS)
        return first;
    choice_block *block = block_of(own, character);
    _Atomic(uint16_t) *remembered = block == NULL ? NULL : &block->choices[character % BLOCK];
    uint16_t found = remembered == NULL ? 0 : atomic_load_explicit(remembered, memory_order_relaxed);
    if (found == 0)
        found = find_choice(own, character);
    if (remembered != NULL)
        atomic_store_explicit(remembered, found, memory_order_relaxed);
    if (found != NO_FACE)
        return face_of(own, &own->choices[found - 1]);
    for (int i = 0; i < own->count; i++)
        if (face_of(own, &own->choices[i]) != NULL)
            return face_of(own, &own->choices[i]);
    return NULL;
}

mc_face *
mc_font_first_face(const mc_font *shown)
{
    font *own = (font *)(uintptr_t)shown; /* as in mc_font_face_of */
    return face_of(own, &own->choices[0]);
}

static void
measure_font(mc_font *shown, mc_face *face)
{
    hb_font_extents_t extents;
    hb_glyph_extents_t letter;
    hb_codepoint_t x;
    shown->ascent = 0.8F;
    shown->descent = 0.2F;
    shown->x_height = 0.5F;
    if (hb_font_get_h_extents(face->shaper, &extents) != 0 && extents.ascender > 0) {
        shown->ascent = fminf((float)extents.ascender * face->per_unit, 2);
        shown->descent = fminf(fmaxf(-(float)extents.descender * face->per_unit, 0), 2);
    }
    /* Of the letter itself: not every font says it. */
    if (hb_font_get_nominal_glyph(face->shaper, 'x', &x) != 0 &&
        hb_font_get_glyph_extents(face->shaper, x, &letter) != 0 && letter.y_bearing > 0)
        shown->x_height = fminf((float)letter.y_bearing * face->per_unit, 1);
}

/* With the lock held: every face that fontconfig has, the most similar one first, without those that add no character.
 */
static void
list_choices(font *own)
{
    FcResult result;
    __lsan_disable();
    own->set = FcFontSort(fonts.config, own->wanted, FcTrue, NULL, &result);
    __lsan_enable();
    int most = own->set == NULL ? 0 : own->set->nfont < CHOICES_MAX ? own->set->nfont : CHOICES_MAX;
    own->choices = calloc((size_t)most + 1, sizeof(*own->choices));
    MC_ASSERT(own->choices != NULL);
    for (int i = 0; i < most; i++) {
        FcBool scalable = FcFalse;
        FcPatternGetBool(own->set->fonts[i], FC_SCALABLE, 0, &scalable);
        if (!scalable)
            continue;
        choice *added = &own->choices[own->count++];
        added->pattern = own->set->fonts[i];
        if (FcPatternGetCharSet(added->pattern, FC_CHARSET, 0, &added->characters) != FcResultMatch)
            added->characters = NULL;
    }
}

static void
free_font(font *own)
{
    if (own->set != NULL)
        FcFontSetDestroy(own->set);
    FcPatternDestroy(own->wanted);
    free(own->choices);
    free(own);
}

/* With the lock held. */
static mc_error *
make_font(font **made, const mc_font_spec *spec, const char *key, apr_pool_t *pool)
{
    MC_TRY(start_font_libraries(pool));
    font *own = calloc(1, sizeof(*own));
    MC_ASSERT(own != NULL);
    __lsan_disable();
    own->wanted = make_font_pattern(spec);
    __lsan_enable();
    list_choices(own);
    mc_face *first = NULL;
    for (int i = 0; i < own->count && first == NULL; i++) {
        first = open_face(own, &own->choices[i]);
        atomic_store(&own->choices[i].face, first);
        atomic_store(&own->choices[i].broken, first == NULL);
    }
    if (first == NULL) {
        free_font(own);
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "no font can be found: install one that fontconfig knows");
    }
    measure_font(&own->shown, first);
    own->key = strdup(key);
    *made = own;
    return MC_OK;
}

/* With the lock held. */
static mc_error *
find_font(const mc_font **found, const mc_font_spec *spec, const char *key, apr_pool_t *pool)
{
    for (int i = 0; i < fonts.font_count; i++)
        if (strcmp(fonts.fonts[i]->key, key) == 0) {
            *found = &fonts.fonts[i]->shown;
            return MC_OK;
        }
    if (fonts.font_count == FONTS_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "the styles of this process use more than %d fonts", FONTS_MAX);
    MC_TRY(make_font(&fonts.fonts[fonts.font_count], spec, key, pool));
    *found = &fonts.fonts[fonts.font_count++]->shown;
    return MC_OK;
}

mc_error *
mc_fonts_find(const mc_font **found, const mc_font_spec *spec, apr_pool_t *pool)
{
    const char *key = apr_psprintf(pool, "%d %d", spec->italic, spec->weight);
    for (int i = 0; i < spec->family_count; i++)
        key = apr_pstrcat(pool, key, "\n", spec->families[i], NULL);
    pthread_mutex_lock(&fonts.lock);
    mc_error *error = find_font(found, spec, key, pool);
    pthread_mutex_unlock(&fonts.lock);
    return error;
}

/* With the lock held. Generic families stand for whatever fontconfig's configuration says. */
static mc_error *
find_substitute_family(const char **name, const char *family, apr_pool_t *pool)
{
    static const char *const generic[] = { "sans-serif", "sans", "serif", "monospace", "cursive", "fantasy" };
    *name = NULL;
    for (size_t i = 0; i < sizeof(generic) / sizeof(generic[0]); i++)
        if (FcStrCmpIgnoreCase((const FcChar8 *)family, (const FcChar8 *)generic[i]) == 0)
            return MC_OK;
    MC_TRY(start_font_libraries(pool));
    const mc_font_spec spec = { .families = &family, .family_count = 1, .weight = 400 };
    FcPattern *pattern = make_font_pattern(&spec);
    FcResult result;
    FcPattern *match = FcFontMatch(fonts.config, pattern, &result);
    FcChar8 *taken;
    bool same = false;
    for (int i = 0; match != NULL && FcPatternGetString(match, FC_FAMILY, i, &taken) == FcResultMatch; i++)
        same |= FcStrCmpIgnoreCase(taken, (const FcChar8 *)family) == 0;
    if (!same)
        *name = match != NULL && FcPatternGetString(match, FC_FAMILY, 0, &taken) == FcResultMatch
                    ? apr_pstrdup(pool, (const char *)taken)
                    : "no font at all";
    if (match != NULL)
        FcPatternDestroy(match);
    FcPatternDestroy(pattern);
    return MC_OK;
}

mc_error *
mc_fonts_substitute(const char **name, const char *family, apr_pool_t *pool)
{
    pthread_mutex_lock(&fonts.lock);
    mc_error *error = find_substitute_family(name, family, pool);
    pthread_mutex_unlock(&fonts.lock);
    return error;
}
