#include "styles.h"

#include <math.h>
#include <string.h>

#include "draw/style/label_style.h"

#define NAME "<ogc:PropertyName>name</ogc:PropertyName>"
#define COUNT "<ogc:PropertyName>count</ogc:PropertyName>"

/* The one label of a rule with a symbolizer of that content; NULL where it has none. */
static const mc_text_symbol *
label(const char *content)
{
    const mc_style *style =
        style_of(apr_pstrcat(pool, "<Rule><TextSymbolizer>", content, "</TextSymbolizer></Rule>", NULL));
    ck_assert_ptr_nonnull(style);
    ck_assert_int_eq(style->passes[0].rules[0].symbolizer_count, 0);
    return style->passes[0].rules[0].text_count == 1 ? style->passes[0].rules[0].texts : NULL;
}

/* What a label says of a feature that is called "Bern" and counts 7. */
static const char *
words(const char *content)
{
    const mc_text_symbol *text = label(apr_pstrcat(pool, "<Label>", content, "</Label>", NULL));
    const char *const values[] = { "Bern", "7" };
    const mc_feature feature = { .id = 1, .values = values };
    return text == NULL ? NULL : mc_expression_text(text->label, &feature, pool);
}

START_TEST(texts)
{
    ck_assert_str_eq(words("plain"), "plain");
    ck_assert_str_eq(words(NAME), "Bern");
    ck_assert_str_eq(words("\n   " NAME "\n  "), "Bern");
    ck_assert_str_eq(words(NAME " (" COUNT ")"), "Bern (7)");
    ck_assert_str_eq(words(NAME " " COUNT), "Bern 7");
    ck_assert_str_eq(words("\n  " NAME "\n  " COUNT "\n"), "Bern7\n"); /* trimmed when it is drawn */
    ck_assert_str_eq(words(NAME "<![CDATA[\n]]>" COUNT), "Bern\n7");
    ck_assert_str_eq(words(NAME "\n     No. " COUNT), "Bern No. 7");
    ck_assert_str_eq(words("<ogc:Function name='strToUpperCase'>" NAME "</ogc:Function>"), "BERN");
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 0);
    ck_assert_ptr_null(words(""));
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 1);
    ck_assert_ptr_null(words("<ogc:Nonsense/>"));
}
END_TEST

START_TEST(what_is_left_unsaid)
{
    const mc_text_symbol *text = label("<Label>" NAME "</Label>");
    ck_assert_double_eq(text->size.constant, 10);
    ck_assert_int_eq(text->font.family_count, 0);
    ck_assert_int_eq(text->font.weight, 400);
    ck_assert(!text->font.italic && !text->halo.present && !text->anchored && !text->group && !text->overlapping);
    ck_assert_int_eq(text->number, 0);
    ck_assert(text->aligned && text->curved && text->placement == MC_LABEL_POINT);
    ck_assert_double_eq(text->max_angle, 22.5);
    ck_assert_int_eq(text->fill.color.alpha, 255);
    ck_assert_int_eq(text->fill.color.red, 0);
}
END_TEST

START_TEST(fonts)
{
    const mc_text_symbol *text =
        label("<Label>a</Label><Font><CssParameter name='font-family'>'Noto Sans', Arial</CssParameter>"
              "<CssParameter name='font-family'> DejaVu Sans </CssParameter><CssParameter name='font-style'>oblique"
              "</CssParameter><CssParameter name='font-weight'>Bold</CssParameter>"
              "<CssParameter name='font-size'><ogc:Add><ogc:Literal>8</ogc:Literal>" COUNT
              "</ogc:Add></CssParameter></Font>");
    ck_assert_int_eq(text->font.family_count, 3);
    ck_assert_str_eq(text->font.families[0], "Noto Sans");
    ck_assert_str_eq(text->font.families[1], "Arial");
    ck_assert_str_eq(text->font.families[2], "DejaVu Sans");
    ck_assert(text->font.italic);
    ck_assert_int_eq(text->font.weight, 700);
    ck_assert_ptr_nonnull(text->size.value);
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 0);
    text = label("<Label>a</Label><Font><CssParameter name='font-weight'>woolly</CssParameter>"
                 "<CssParameter name='font-style'>wavy</CssParameter><CssParameter name='font-color'>x</CssParameter>"
                 "<CssParameter name='font-size'>huge</CssParameter></Font>");
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 4);
    ck_assert_int_eq(text->font.weight, 400);
}
END_TEST

START_TEST(placements)
{
    const mc_text_symbol *text = label(
        "<Label>a</Label><LabelPlacement><PointPlacement><AnchorPoint><AnchorPointX>0.25</AnchorPointX><AnchorPointY>"
        "1</AnchorPointY></AnchorPoint><Displacement><DisplacementX>3</DisplacementX><DisplacementY>-4</DisplacementY>"
        "</Displacement><Rotation>" COUNT "</Rotation></PointPlacement></LabelPlacement>");
    ck_assert(text->anchored);
    ck_assert_double_eq(text->anchor_x.constant, 0.25);
    ck_assert_double_eq(text->anchor_y.constant, 1);
    ck_assert_double_eq(text->displacement_x.constant, 3);
    ck_assert_double_eq(text->displacement_y.constant, -4);
    ck_assert_ptr_nonnull(text->rotation.value);
    text = label(
        "<Label>a</Label><LabelPlacement><LinePlacement><PerpendicularOffset>5</PerpendicularOffset><IsRepeated>true"
        "</IsRepeated><InitialGap>6</InitialGap><Gap>7</Gap><IsAligned>false</IsAligned><GeneralizeLine>1"
        "</GeneralizeLine></LinePlacement></LabelPlacement>");
    ck_assert(text->placement == MC_LABEL_LINE && text->repeated && !text->aligned && text->generalize);
    ck_assert_double_eq(text->offset.constant, 5);
    ck_assert_double_eq(text->initial_gap, 6);
    ck_assert_double_eq(text->gap, 7);
    text =
        label("<Label>a</Label><LabelPlacement><LinePlacement><Repeat>true</Repeat></LinePlacement></LabelPlacement>");
    ck_assert(text->repeated);
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 0);
}
END_TEST

START_TEST(options)
{
    const mc_text_symbol *text = label(
        "<Label>a</Label><Priority>" COUNT "</Priority><Halo><Radius>2</Radius><Fill><CssParameter name='fill'>#ff0000"
        "</CssParameter><CssParameter name='fill-opacity'>0.5</CssParameter></Fill></Halo>"
        "<VendorOption name='repeat'>200</VendorOption><VendorOption name='maxDisplacement'>1e99</VendorOption>"
        "<VendorOption name='spaceAround'>-3</VendorOption><VendorOption name='autoWrap'>80</VendorOption>"
        "<VendorOption name='maxAngleDelta'>400</VendorOption><VendorOption name='group'>yes</VendorOption>"
        "<VendorOption name='labelAllGroup'>true</VendorOption><VendorOption name='followLine'>false</VendorOption>"
        "<VendorOption name='forceLeftToRight'>false</VendorOption>"
        "<VendorOption name='conflictResolution'>false</VendorOption>");
    ck_assert_ptr_nonnull(text->priority.value);
    ck_assert(text->halo.present && text->halo.color.red == 255 && text->halo.color.alpha == 128);
    ck_assert_double_eq(text->halo_radius.constant, 2);
    ck_assert_double_eq(text->repeat, 200);
    ck_assert_double_eq(text->max_displacement, 1e6);
    ck_assert_double_eq(text->space_around, -3);
    ck_assert_double_eq(text->auto_wrap, 80);
    ck_assert_double_eq(text->max_angle, 180);
    ck_assert(text->group && text->label_all && !text->curved && text->any_direction && text->overlapping);
    ck_assert_msg(count_complaints(MC_NOT_BUILT) == 0, "%s", all_complaints());
    label("<Label>a</Label><Novelty/><BaseSymbolizer/><VendorOption "
          "name='goodnessOfFit'>0.3</VendorOption><VendorOption>1</VendorOption>"
          "<VendorOption name='group'>perhaps</VendorOption><VendorOption name='repeat'>often</VendorOption>");
    ck_assert_msg(count_complaints(MC_NOT_BUILT) == 6, "%s", all_complaints());
    ck_assert_ptr_nonnull(strstr(all_complaints(), "goodnessOfFit"));
    ck_assert_ptr_nonnull(strstr(all_complaints(), "<Novelty> of a label"));
}
END_TEST

START_TEST(geometries)
{
    ck_assert_int_eq(label("<Label>a</Label><Geometry><ogc:PropertyName>the_geom</ogc:PropertyName></Geometry>")->part,
                     MC_PART_WHOLE);
    ck_assert_int_eq(label("<Label>a</Label><Geometry><ogc:Function name='endPoint'><ogc:PropertyName>g"
                           "</ogc:PropertyName></ogc:Function></Geometry>")
                         ->part,
                     MC_PART_END);
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 0);
    label("<Label>a</Label><Geometry><ogc:Function name='buffer'><ogc:PropertyName>g</ogc:PropertyName></ogc:Function>"
          "</Geometry>");
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 1);
}
END_TEST

UNIT_MAIN("label_style", texts, what_is_left_unsaid, fonts, placements, options, geometries)
