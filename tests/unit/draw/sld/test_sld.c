/* Element by element what SLD 1.0.0 and SE 1.1.0 know: drawn, of no account for the picture, or named as lacking. */
#include "styles.h"

#include <string.h>

#include "draw/sld/sld_private.h"
#include "draw/style/expression.h"

#define POINT(inner) "<Rule><PointSymbolizer>" inner "</PointSymbolizer></Rule>"
#define LINE(inner) "<Rule><LineSymbolizer>" inner "</LineSymbolizer></Rule>"
#define AREA(inner) "<Rule><PolygonSymbolizer>" inner "</PolygonSymbolizer></Rule>"
#define GRAPHIC(inner) POINT("<Graphic>" inner "</Graphic>")
#define MARK(name) "<Mark><WellKnownName>" name "</WellKnownName></Mark>"
#define CSS(name, value) "<CssParameter name='" name "'>" value "</CssParameter>"
#define OPTION(name, value) "<VendorOption name='" name "'>" value "</VendorOption>"
#define PROPERTY "<PropertyName>a</PropertyName>"

static const struct {
    const char *rules;
    const char *lacking; /* in the one complaint; NULL: there is none */
    int symbols;         /* that are drawn by the first rule; -1: the rule is left out */
} table[] = {
    /* FeatureTypeStyle and Rule */
    { "<Name>n</Name><Title>t</Title><Abstract>a</Abstract><Description><Title>t</Title></"
      "Description><FeatureTypeName>f"
      "</FeatureTypeName><SemanticTypeIdentifier>generic:geometry</SemanticTypeIdentifier><Rule/>",
      NULL, 0 },
    { OPTION("ruleEvaluation", "first") "<Rule/>", NULL, 0 },
    { OPTION("ruleEvaluation", "last") "<Rule/>", "ruleEvaluation", 0 },
    { OPTION("composite", "multiply") "<Rule/>", "composite", 0 },
    { OPTION("sortBy", "a, ,b") "<Rule/>", "sortBy", 0 },
    { OPTION("sortBy", "a D, b") OPTION("sortByGroup", "roads") "<Rule/>", NULL, 0 },
    { "<Transformation/><Rule/>", "<Transformation>", 0 },
    { "<OnlineResource/><Rule/>", "<OnlineResource>", 0 },
    { "<Rule><Name>n</Name><Title>t</Title><Abstract>a</Abstract><LegendGraphic><Graphic>" MARK(
          "star") "</Graphic></LegendGraphic><ElseFilter/><MinScaleDenominator>1</"
                  "MinScaleDenominator><MaxScaleDenominator>9e9"
                  "</MaxScaleDenominator></Rule>",
      NULL, 0 },
    { "<Rule><LegendGraphic><Graphic>" MARK("nothing") "</Graphic></LegendGraphic></Rule>", "nothing", 0 },
    { "<Rule><RasterSymbolizer><Opacity>1</Opacity><OverlapBehavior><AVERAGE/></OverlapBehavior></RasterSymbolizer>"
      "</Rule>",
      "<RasterSymbolizer>", 0 },
    { "<Rule><ExtensionSymbolizer/></Rule>", "<ExtensionSymbolizer>", 0 },
    { "<Rule><Filter/></Rule>", "without a condition", -1 },
    { "<Rule><Filter><PropertyIsNull>" PROPERTY "</PropertyIsNull><PropertyIsNull>" PROPERTY
      "</PropertyIsNull></Filter></Rule>",
      "second condition", -1 },
    { "<Rule><Filter><Overlaps/></Filter></Rule>", "<Overlaps>", -1 },
    /* symbolizers */
    { AREA("<Name>n</Name><Description/><Geometry>" PROPERTY "</Geometry><Fill/><Stroke/>"), NULL, 1 },
    { AREA("<BaseSymbolizer/><Fill/>"), "<BaseSymbolizer>", 1 },
    { AREA("<Fill/><PerpendicularOffset>3</PerpendicularOffset><Displacement><DisplacementX>1</DisplacementX>"
           "<DisplacementY>" PROPERTY "</DisplacementY></Displacement>"),
      NULL, 1 },
    { LINE("<Stroke/><PerpendicularOffset>" PROPERTY "</PerpendicularOffset>"), "<PerpendicularOffset>", 1 },
    { LINE("<Geometry><Function name='boundary'>" PROPERTY "</Function></Geometry><Stroke/>"), NULL, 1 },
    { LINE("<Geometry><Function name='buffer'>" PROPERTY "<Literal>3</Literal></Function></Geometry><Stroke/>"),
      "this geometry", 1 },
    { LINE("<Geometry><Function name='centroid'>" PROPERTY "</Function></Geometry><Stroke/>"), "areas of points", 0 },
    { LINE("<Graphic/><Stroke/>"), "<Graphic>", 1 },
    { POINT("<Stroke/>"), "<Stroke>", 1 },
    { POINT(""), NULL, 1 },
    { "<Rule><LineSymbolizer uom='http://www.opengeospatial.org/se/units/foot'><Stroke/></LineSymbolizer></Rule>", NULL,
      1 },
    { "<Rule><LineSymbolizer uom='furlong'><Stroke/></LineSymbolizer></Rule>", "furlong", 1 },
    { AREA(OPTION("graphic-margin", "1 2 3 4") OPTION("distance", "5,6") "<Fill/>"), NULL, 1 },
    { AREA(OPTION("random", "grid") "<Fill/>"), "random", 1 },
    { LINE(OPTION("placement", "lastPoint") OPTION("rotateMarker", "0") "<Stroke/>"), NULL, 1 },
    { LINE(OPTION("placement", "innerVertices") "<Stroke/>"), "placement", 1 },
    /* fills and strokes */
    { AREA("<Fill>" CSS("fill", "#123") CSS("fill-opacity", PROPERTY) "</Fill>"), NULL, 1 },
    { AREA("<Fill>" CSS("fill", "red") "</Fill>"), "the colour", 1 },
    { AREA("<Fill>" CSS("fill-rule", "evenodd") "</Fill>"), "<CssParameter>", 1 },
    { LINE("<Stroke>" CSS("stroke", PROPERTY) CSS("stroke-width", "2") CSS("stroke-opacity", ".5")
               CSS("stroke-linejoin", "<Literal>round</Literal>") CSS("stroke-linecap", "square")
                   CSS("stroke-dasharray", "4 2 1") CSS("stroke-dashoffset", "2") "</Stroke>"),
      NULL, 1 },
    { LINE("<Stroke>" CSS("stroke-dasharray", PROPERTY) "</Stroke>"), "differs between features", 1 },
    { LINE("<Stroke>" CSS("stroke-dasharray", "4 -2") "</Stroke>"), "dashes below 0", 1 },
    { LINE("<Stroke>" CSS("stroke-linecap", "triangle") "</Stroke>"), "triangle", 1 },
    { LINE("<Stroke>" CSS("stroke-miterlimit", "3") "</Stroke>"), "stroke-miterlimit", 1 },
    { LINE("<Stroke>" CSS("stroke-width", "wide") "</Stroke>"), "wide", 1 },
    { AREA("<Fill><GraphicFill><Graphic>" MARK("slash") "</Graphic></GraphicFill></Fill>"), NULL, 1 },
    { AREA("<Fill><GraphicFill/></Fill>"), "without a graphic", 1 },
    { LINE("<Stroke><GraphicStroke><Graphic>" MARK(
          "star") "</Graphic><InitialGap>3</InitialGap><Gap>2</Gap></GraphicStroke>"
                  "</Stroke>"),
      NULL, 1 },
    { LINE("<Stroke><GraphicFill><Graphic>" MARK("x") "</Graphic></GraphicFill></Stroke>"), NULL, 1 },
    { AREA("<Fill><GraphicFill><Graphic><Mark><Fill><GraphicFill><Graphic><Mark><Fill><GraphicFill><Graphic/>"
           "</GraphicFill></Fill></Mark></Graphic></GraphicFill></Fill></Mark></Graphic></GraphicFill></Fill>"),
      "patterns inside", 1 },
    /* graphics */
    { GRAPHIC(MARK("diamond") "<Size>" PROPERTY "</Size><Rotation>" PROPERTY "</Rotation><Opacity>" PROPERTY
                              "</Opacity>"
                              "<AnchorPoint><AnchorPointX>0</AnchorPointX><AnchorPointY>1</AnchorPointY></"
                              "AnchorPoint><Displacement>"
                              "<DisplacementX>1</DisplacementX><DisplacementY>2</DisplacementY></Displacement>"),
      NULL, 1 },
    { GRAPHIC(MARK("ttf://Webdings#0x64")), NULL, 1 },
    { GRAPHIC(MARK("ttf://Web Dings#U+F064")), NULL, 1 },
    { GRAPHIC(MARK("ttf://Webdings#")), "the mark", 0 },
    { GRAPHIC(MARK("ttf://Webdings")), "the mark", 0 },
    { GRAPHIC(MARK("ttf://file:/a.ttf#0x64")), "the mark", 0 },
    { GRAPHIC(MARK("ttf://Webdings#0x110000")), "the mark", 0 },
    { GRAPHIC(MARK("ttf://Webdings#64h")), "the mark", 0 },
    { GRAPHIC(
          "<Mark><OnlineResource xlink:href='ttf://Dingbats'/><Format>ttf</Format><MarkIndex>79</MarkIndex></Mark>"),
      NULL, 1 },
    { GRAPHIC("<Mark><OnlineResource xlink:href='ttf://Dingbats'/><Format>ttf</Format></Mark>"), "ttf://Dingbats", 0 },
    { GRAPHIC("<Mark><OnlineResource xlink:href='a.svg'/><Format>image/svg+xml</Format></Mark>"), "a.svg", 0 },
    { GRAPHIC("<Mark><WellKnownName>star</WellKnownName><OnlineResource xlink:href='ttf://D'/></Mark>"),
      "<OnlineResource>", 0 },
    { GRAPHIC(MARK("windbarbs://default(15)[kts]")), "windbarbs", 0 },
    { GRAPHIC(MARK("wkt://POINT(0 0)")), "wkt://", 0 },
    { GRAPHIC(MARK("extshape://arrow?hr=2")), "extshape://arrow?hr", 0 },
    { GRAPHIC("<Mark><WellKnownName>" PROPERTY "</WellKnownName></Mark>"), "<WellKnownName>", 0 },
    { GRAPHIC("<Mark><OnlineResource/></Mark>"), "the mark", 0 },
    { GRAPHIC("<Mark><MarkIndex>3</MarkIndex></Mark>"), "<MarkIndex>", 0 },
    { GRAPHIC("<ExternalGraphic/>"), "without a file", 0 },
    { GRAPHIC("<ExternalGraphic><ColorReplacement/></ExternalGraphic>"), "<ColorReplacement>", 0 },
    { GRAPHIC("<ExternalGraphic><InlineContent encoding='xml'><svg/></InlineContent></ExternalGraphic>"), "as XML", 0 },
    { GRAPHIC("<ExternalGraphic><ColorReplacement/></ExternalGraphic>" MARK("square")), "<ColorReplacement>", 1 },
    { GRAPHIC(MARK("square") "<Gap>3</Gap>"), "<Gap>", 1 },
    { GRAPHIC(MARK("square") "<AnchorPoint><AnchorPointZ>3</AnchorPointZ></AnchorPoint>"), "AnchorPointZ", 1 },
};

START_TEST(every_element)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const mc_style *style = style_of(table[i].rules);
        ck_assert_msg(style != NULL, "%s: %s", table[i].rules, all_complaints());
        ck_assert_msg(count_complaints(MC_NOT_BUILT) == (table[i].lacking != NULL), "%s: %s", table[i].rules,
                      all_complaints());
        ck_assert_msg(table[i].lacking == NULL || strstr(all_complaints(), table[i].lacking) != NULL, "%s: %s",
                      table[i].rules, all_complaints());
        int rules = style->passes[0].rule_count;
        ck_assert_msg(rules == (table[i].symbols >= 0), "%s", table[i].rules);
        ck_assert_msg(rules == 0 || style->passes[0].rules[0].symbolizer_count == table[i].symbols, "%s",
                      table[i].rules);
    }
}
END_TEST

/* A whole document; what stands around its style counts as well. */
static const mc_style *
document(const char *text, const char *name)
{
    char path[] = "/tmp/mapcache-style-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    style_build = config_build();
    fputs(text, file);
    fclose(file);
    const mc_style *style = mc_style_read(path, name, NULL, &style_build);
    unlink(path);
    return style;
}

START_TEST(what_stands_around_a_style)
{
#define STYLE(name)                                                                                                    \
    "<UserStyle><Name>" name "</Name><IsDefault>1</IsDefault><FeatureTypeStyle><Rule/></FeatureTypeStyle></UserStyle>"
    static const struct {
        const char *text, *lacking;
    } cases[] = {
        { "<StyledLayerDescriptor><Name>n</Name><NamedLayer><Name>a</Name>" STYLE("one") "</NamedLayer>"
                                                                                         "</StyledLayerDescriptor>",
          NULL },
        { "<StyledLayerDescriptor><UseSLDLibrary/><NamedLayer>" STYLE("one") "</NamedLayer></StyledLayerDescriptor>",
          "<UseSLDLibrary>" },
        { "<StyledLayerDescriptor><NamedLayer><LayerFeatureConstraints/>" STYLE("one") "</NamedLayer>"
                                                                                       "</StyledLayerDescriptor>",
          NULL },
        { "<StyledLayerDescriptor><UserLayer><LayerFeatureConstraints><FeatureTypeConstraint/>"
          "</LayerFeatureConstraints>" STYLE("one") "</UserLayer></StyledLayerDescriptor>",
          NULL },
        { "<StyledLayerDescriptor><UserLayer><LayerFeatureConstraints><FeatureTypeConstraint><FeatureTypeName>t"
          "</FeatureTypeName></FeatureTypeConstraint></LayerFeatureConstraints>" STYLE(
              "one") "</UserLayer></StyledLayerDescriptor>",
          "<LayerFeatureConstraints>" },
        { "<StyledLayerDescriptor><NamedLayer><NamedStyle/>" STYLE("one") "</NamedLayer></StyledLayerDescriptor>",
          "<NamedStyle>" },
        { "<StyledLayerDescriptor><UserLayer><InlineFeature/>" STYLE("one") "</UserLayer></StyledLayerDescriptor>",
          "<InlineFeature>" },
        { "<StyledLayerDescriptor><UserLayer><RemoteOWS/>" STYLE("one") "</UserLayer></StyledLayerDescriptor>",
          "<RemoteOWS>" },
        { "<UserStyle><CoverageStyle/><FeatureTypeStyle><Rule/></FeatureTypeStyle></UserStyle>", "<CoverageStyle>" },
        { "<FeatureTypeStyle><Rule/></FeatureTypeStyle>", NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_ptr_nonnull(document(cases[i].text, NULL));
        ck_assert_msg(count_complaints(MC_NOT_BUILT) == (cases[i].lacking != NULL), "%s: %s", cases[i].text,
                      all_complaints());
        ck_assert(cases[i].lacking == NULL || strstr(all_complaints(), cases[i].lacking) != NULL);
    }
    ck_assert_str_eq(document("<a>" STYLE("one") STYLE("two") "</a>", "two")->name, "two");
    ck_assert_ptr_null(document("<a>" STYLE("one") "</a>", "three"));
    ck_assert_ptr_null(document("<StyledLayerDescriptor/>", NULL));
    ck_assert_int_eq(count_complaints(MC_REFUSED), 1);
}
END_TEST

START_TEST(a_legend_and_the_first_rule)
{
    const mc_style *style = style_of("<VendorOption name='ruleEvaluation'>first</VendorOption><Rule><LegendGraphic>"
                                     "<Graphic>" MARK("star") "<Size>9</Size></Graphic></LegendGraphic></Rule>");
    ck_assert(style->passes[0].first_only);
    ck_assert_double_eq(style->passes[0].rules[0].legend->size, 9);
}
END_TEST

START_TEST(what_an_export_has_lost)
{
    static const char rest[] = "<Rule><!--Parser Error: \nsyntax error, unexpected ELSE - Expression was: ELSE-->"
                               "<LineSymbolizer><Stroke/></LineSymbolizer>"
                               "<!--SymbolLayerV2 HashLine not implemented yet--><!-- a road --></Rule>";
    ck_assert_ptr_nonnull(style_of(rest));
    ck_assert_int_eq(style_build.diagnostics->complaints->nelts, 2);
    ck_assert_int_eq(count_complaints(MC_NOT_BUILT), 2);
    ck_assert_msg(strstr(all_complaints(), "the condition \"ELSE\" of <Rule>") != NULL, "%s", all_complaints());
    ck_assert_msg(strstr(all_complaints(), "HashLine") != NULL, "%s", all_complaints());
    ck_assert_ptr_nonnull(style_of("<Rule><!-- roads --><LineSymbolizer><Stroke/></LineSymbolizer></Rule>"));
    ck_assert_int_eq(style_build.diagnostics->complaints->nelts, 0);
}
END_TEST

START_TEST(colours)
{
    static const char stroke[] = "<Rule><LineSymbolizer><Stroke><CssParameter name='stroke'>%s</CssParameter></Stroke>"
                                 "</LineSymbolizer></Rule>";
    static const char *const good[] = { "#aabbcc", "#AbC", "0xaabbcc" };
    static const char *const bad[] = { "aabbcc", "#aabbc", "0xaabbccd", "0Xaabbcc", "#", "0x", "red" };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        mc_color color =
            style_of(apr_psprintf(pool, stroke, good[i]))->passes[0].rules[0].symbolizers[0].stroke.paint.color;
        ck_assert_msg(color.red == 0xaa && color.green == 0xbb && color.blue == 0xcc, "%s", good[i]);
        ck_assert_int_eq(style_build.diagnostics->complaints->nelts, 0);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        style_of(apr_psprintf(pool, stroke, bad[i]));
        ck_assert_msg(count_complaints(MC_NOT_BUILT) == 1, "%s", bad[i]);
    }
}
END_TEST

START_TEST(rules_of_the_map_and_of_the_legend)
{
    static const char *const ways[] = { "normal", "mapOnly", "legendOnly", "elsewhere" };
    for (int i = 0; i < 4; i++) {
        const mc_style *style = style_of(apr_psprintf(
            pool, "<Rule><LineSymbolizer/><VendorOption name='inclusion'>%s</VendorOption></Rule>", ways[i]));
        ck_assert_ptr_nonnull(style);
        ck_assert_int_eq(style->passes[0].rules[0].inclusion, i % 3);
        ck_assert_int_eq(style_build.diagnostics->complaints->nelts, i / 3);
    }
}
END_TEST

START_TEST(constants_that_do_not_end_stay_as_they_are)
{
    static const char *const texts[] = { "${'circle'", "a${5", "${5", "icons/${1st}.svg", "${'", "${", "a${'b'}${" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        char *text = apr_pstrdup(pool, texts[i]);
        ck_assert_str_eq(mc_sld_fill_constants(text, pool), i == 6 ? "ab${" : text);
    }
}
END_TEST

UNIT_MAIN("sld", every_element, what_stands_around_a_style, a_legend_and_the_first_rule, what_an_export_has_lost,
          colours, rules_of_the_map_and_of_the_legend, constants_that_do_not_end_stay_as_they_are)
