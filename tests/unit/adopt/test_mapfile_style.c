#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "adopt/mapfile_parts.h"
#include "adopt/mapfile_words.h"
#include "mapcache/config.h"

static const char head[] = "MAP SYMBOL NAME \"Dot\" TYPE ELLIPSE FILLED TRUE POINTS 1 1 END END\n"
                           "SYMBOL NAME \"oval\" TYPE ELLIPSE POINTS 1 2 END END\n"
                           "SYMBOL NAME \"bar\" TYPE VECTOR POINTS 0 0 4 2 END END\nLAYER NAME \"l\"\n";

/* A reader at the layer of a map file, whose layer has these words. */
static mc_mapfile_reader *
read_layer(const char *words)
{
    mc_branch *root;
    int room = MC_BRANCHES_MAX;
    mc_mapfile_reader *reader = apr_pcalloc(pool, sizeof(*reader));
    const char *text = apr_pstrcat(pool, head, words, " END END", NULL);
    ck_ok(mc_mapfile_parse(&root, "m.map", text, &room, pool));
    *reader = (mc_mapfile_reader){ .adopt = mc_adopt_create(pool),
                                   .pool = pool,
                                   .path = "/m.map",
                                   .folder = "/",
                                   .symbols = apr_hash_make(pool),
                                   .fonts = apr_hash_make(pool),
                                   .families = apr_hash_make(pool),
                                   .scale_unit = 2,
                                   .type = MC_MAPFILE_POLYGON };
    mc_branch *map = mc_branch_get(root, "MAP");
    mc_mapfile_read_symbols(reader, map);
    reader->layer = mc_branch_get(map, "LAYER");
    return reader;
}

/* Short forms of elements, for tables that can be read. */
static const char *
shorten(const char *text)
{
    static const char *const forms[][2] = { { "<ogc:PropertyName>", "[" },
                                            { "</ogc:PropertyName>", "]" },
                                            { "<ogc:Literal>", "'" },
                                            { "</ogc:Literal>", "'" },
                                            { "<ogc:Function name=\"Coalesce\">", "~" },
                                            { "</ogc:Function>", "" },
                                            { " wildCard=\"*\" singleChar=\"?\" escape=\"\\\"", "" },
                                            { "</ogc:PropertyIs", "</" },
                                            { "<ogc:PropertyIs", "<" },
                                            { "ogc:", "" } };
    char *made = apr_pstrdup(pool, text == NULL ? "(refused)" : text);
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        for (char *at = strstr(made, forms[i][0]); at != NULL; at = strstr(made, forms[i][0])) {
            *at = '\0';
            made = apr_pstrcat(pool, made, forms[i][1], at + strlen(forms[i][0]), NULL);
        }
    return made;
}

static const struct {
    const char *expression, *condition; /* NULL: refused */
} conditions[] = {
    { "\"a\"", "<EqualTo>[k]'a'</EqualTo>" },
    { "'a b'i", "<EqualTo matchCase=\"false\">[k]'a b'</EqualTo>" },
    { "\"\"", "<EqualTo>~[k]''''</EqualTo>" },
    { "12", "<EqualTo>[k]'12'</EqualTo>" },
    { "{a,<b>}", "<Or><EqualTo>[k]'a'</EqualTo><EqualTo>[k]'&lt;b&gt;'</EqualTo></Or>" },
    { "/^a/", "<Like>[k]'a*'</Like>" },
    { "/a$/i", "<Like matchCase=\"false\">[k]'*a'</Like>" },
    { "/./", "<Like>[k]'*?*'</Like>" },
    { "/.*/", "<Like>~[k]'''***'</Like>" },
    { "/^a\\.b.c.+\\*$/", "<Like>[k]'a\\.b?c?*\\*'</Like>" },
    { "/^(a|b)$/", "<Or><Like>[k]'a'</Like><Like>[k]'b'</Like></Or>" },
    { "/^a|b/", "<Or><Like>[k]'a*'</Like><Like>[k]'*b*'</Like></Or>" },
    { "/[a-c]/", NULL },
    { "/a{2}/", NULL },
    { "/(a)(b)/", NULL },
    { "/\\d/", NULL },
    { "/a+/", NULL },
    { "(\"[a]\" = 'x')", "<EqualTo>[a]'x'</EqualTo>" },
    { "('[a]' eq \"x\")", "<EqualTo>[a]'x'</EqualTo>" },
    { "(\"[a]\" =* \"x\")", "<EqualTo matchCase=\"false\">[a]'x'</EqualTo>" },
    { "(\"[a]\" != 'x')", "<NotEqualTo>~[a]'''x'</NotEqualTo>" },
    { "([n] > 3)", "<GreaterThan>[n]'3'</GreaterThan>" },
    { "([n] < 3)", "<LessThan>~[n]'0''3'</LessThan>" },
    { "([n] > -3)", "<GreaterThan>~[n]'0''-3'</GreaterThan>" },
    { "([n] ge 3 and [n] le 5 or \"[a]\" = 'x')",
      "<Or><And><GreaterThanOrEqualTo>[n]'3'</GreaterThanOrEqualTo><LessThanOrEqualTo>~[n]'0''5'</LessThanOrEqualTo>"
      "</And><EqualTo>[a]'x'</EqualTo></Or>" },
    { "(not ([n] = 1))", "<Not><EqualTo>[n]'1'</EqualTo></Not>" },
    { "(!([n] = 1) && ((([n] = 2))))", "<And><Not><EqualTo>[n]'1'</EqualTo></Not><EqualTo>[n]'2'</EqualTo></And>" },
    { "(([n] + 1) * 2 > 3)", "<GreaterThan><Mul><Add>~[n]'0''1'</Add>'2'</Mul>'3'</GreaterThan>" },
    { "(\"[a]\" ~ \"^x\")", "<Like>[a]'x*'</Like>" },
    { "(\"[a]\" IN \"x,y\")", "<Or><EqualTo>[a]'x'</EqualTo><EqualTo>[a]'y'</EqualTo></Or>" },
    { "(\"[a]\" < 'x')", NULL },
    { "(\"[a]\" = 3)", NULL },
    { "([a] = '3')", NULL },
    { "(\"[a]-[b]\" = 'x')", NULL },
    { "([n] > %least%)", NULL },
    { "(area([shape]) > 3)", NULL },
    { "([n] > 3", "<GreaterThan>[n]'3'</GreaterThan>" }, /* the file's end closes the bracket */
    { "([n] >)", NULL },
    { "([n])", NULL },
    { "()", NULL },
    { "([n] > 3 4)", NULL },
    { "(`2020-01-01` < 3)", NULL },
};

static void
check_condition(size_t i)
{
    mc_branch *root;
    int room = 100;
    mc_mapfile_reader *reader = read_layer("");
    ck_ok(mc_mapfile_parse(&root, "m.map", apr_pstrcat(pool, "EXPRESSION ", conditions[i].expression, NULL), &room,
                           pool));
    const mc_branch *expression = mc_branch_get(root, "EXPRESSION");
    ck_assert_ptr_nonnull(expression);
    const char *made = mc_mapfile_condition(reader, expression, "k");
    ck_assert_str_eq(shorten(made), conditions[i].condition == NULL ? "(refused)" : conditions[i].condition);
    ck_assert((made == NULL) == (reader->refused != NULL));
}

START_TEST(conditions_have_their_form_or_refuse_the_layer)
{
    for (size_t i = 0; i < sizeof(conditions) / sizeof(*conditions); i++)
        check_condition(i);
}
END_TEST

START_TEST(brackets_end_at_a_bound)
{
    char text[4096] = "EXPRESSION ";
    mc_branch *root;
    int room = 100;
    for (int i = 0; i < 500; i++)
        strcat(text, "(");
    strcat(text, "[n] = 1");
    for (int i = 0; i < 500; i++)
        strcat(text, ")");
    mc_mapfile_reader *reader = read_layer("");
    ck_ok(mc_mapfile_parse(&root, "m.map", text, &room, pool));
    ck_assert_ptr_null(mc_mapfile_condition(reader, mc_branch_get(root, "EXPRESSION"), NULL));
    ck_assert_ptr_nonnull(strstr(reader->refusal, "nest too deeply"));
}
END_TEST

static const struct {
    int type;
    const char *words, *said; /* a part of the style, or why it is refused */
    bool refused;
} styles[] = {
    { MC_MAPFILE_POLYGON, "CLASS STYLE COLOR 1 2 300 END END", "#0102ff", false },
    { MC_MAPFILE_POLYGON, "CLASS STYLE COLOR '#0102FF80' END END", "fill-opacity\">0.50196", false },
    { MC_MAPFILE_POLYGON, "CLASS STYLE COLOR '#0102FF80' OPACITY 20 END END", "fill-opacity\">0.2<", false },
    { MC_MAPFILE_POLYGON, "CLASS STYLE OUTLINECOLOR 1 2 3 PATTERN 1 2 END END END", "dasharray\">1 2<", false },
    { MC_MAPFILE_POLYGON, "CLASS STYLE COLOR 1 2 3 OUTLINECOLOR 1 2 3 LINEJOIN BEVEL END END", "linejoin\">round<",
      false },
    { MC_MAPFILE_POLYGON, "CLASS MAXSCALEDENOM 1000 STYLE COLOR 1 2 3 END END", "<MaxScaleDenominator>2000<", false },
    { MC_MAPFILE_POLYGON, "FILTER ([n] = 1) CLASS EXPRESSION ([n] = 2) STYLE COLOR 1 2 3 END END", "<ogc:And>", false },
    { MC_MAPFILE_POLYGON,
      "CLASSGROUP 'x' CLASS GROUP 'y' STYLE COLOR 9 9 9 END END CLASS GROUP 'x' STYLE COLOR 1 2 3 END END", "#010203",
      false },
    { MC_MAPFILE_POLYGON, "CLASS LABEL TEXT '[a] <m>' OUTLINECOLOR 1 2 3 OUTLINEWIDTH 3 END END", "<Radius>2<", false },
    { MC_MAPFILE_POLYGON, "CLASS LABEL TEXT '[a] <m>' END END", "<ogc:Literal> &lt;m&gt;</ogc:Literal>", false },
    { MC_MAPFILE_LINE, "CLASS STYLE COLOR 1 2 3 WIDTH 4 OUTLINECOLOR 4 5 6 OUTLINEWIDTH 1.5 END END",
      "stroke-width\">7<", false },
    { MC_MAPFILE_LINE, "CLASS STYLE COLOR 1 2 3 WIDTH 100 END END", "stroke-width\">32<", false },
    { MC_MAPFILE_LINE, "CLASS STYLE COLOR 1 2 3 WIDTH [w] END END", "<ogc:PropertyName>w<", false },
    { MC_MAPFILE_POINT, "CLASS STYLE SYMBOL 'dot' SIZE 7 COLOR 1 2 3 END END", "<Size>7<", false },
    { MC_MAPFILE_POINT, "CLASS STYLE SYMBOL 'bar' SIZE 7 COLOR 1 2 3 END END", "wkt://MULTILINESTRING((-2 1, 2 -1))",
      false },
    { MC_MAPFILE_POINT, "CLASS STYLE SYMBOL 'oval' COLOR 1 2 3 END END", "no circle", true },
    { MC_MAPFILE_POINT, "CLASS STYLE SYMBOL 'none' COLOR 1 2 3 END END", "SYMBOL none", true },
    { MC_MAPFILE_LINE, "CLASS STYLE SYMBOL 'dot' COLOR 1 2 3 END END", "SYMBOL dot along a line", true },
    { MC_MAPFILE_LINE, "CLASS STYLE COLOR 1 2 3 LINEJOIN NONE END END", "LINEJOIN NONE", true },
    { MC_MAPFILE_LINE, "CLASS STYLE COLOR 1 2 3 PATTERN 1 2 3 END END END", "PATTERN", true },
    { MC_MAPFILE_POLYGON, "CLASS STYLE COLOR [c] END END", "COLOR of its STYLE", true },
    { MC_MAPFILE_POLYGON, "CLASS STYLE COLOR 1 2 3 GAP 4 END END", "GAP of its STYLE", true },
    { MC_MAPFILE_POLYGON, "CLASS STYLE COLOR 1 2 3 NEWWORD on END END", "NEWWORD of its STYLE", true },
    { MC_MAPFILE_POLYGON, "CLASS NEWBLOCK 1 STYLE COLOR 1 2 3 END END", "NEWBLOCK of its CLASS", true },
    { MC_MAPFILE_POLYGON, "CLASS LABEL TEXT 'a' FONT 'none' END END", "FONT none", true },
    { MC_MAPFILE_POLYGON, "CLASS LABEL END END", "without a TEXT", true },
    { MC_MAPFILE_POLYGON, "", "lack of a CLASS", true },
};

static void
check_style(size_t i)
{
    mc_node *root;
    mc_mapfile_reader *reader = read_layer(styles[i].words);
    reader->type = styles[i].type;
    const char *made = mc_mapfile_style(reader);
    ck_assert_msg((made == NULL) == styles[i].refused, "%s: %s", styles[i].words,
                  made == NULL ? reader->refusal : made);
    const char *said = made == NULL ? reader->refusal : made;
    ck_assert_msg(strstr(said, styles[i].said) != NULL, "%s: %s", styles[i].words, said);
    if (made != NULL)
        ck_ok(mc_xml_parse_text(&root, "x.sld", made, strlen(made), pool));
}

START_TEST(styles_are_read_or_refused_with_a_reason)
{
    for (size_t i = 0; i < sizeof(styles) / sizeof(*styles); i++)
        check_style(i);
}
END_TEST

static const struct {
    const char *words, *data; /* NULL: refused */
} tables[] = {
    { "'geom from Roads'", "<table>roads</table><geometry>geom</geometry>" },
    { "'\"Geom\" FROM \"My\".\"Roads\" USING SRID=3857 using unique gid'",
      "<table>My.Roads</table><geometry>Geom</geometry><srid>3857</srid><id>gid</id>" },
    { "'g from (select g from a where x = ''('' and g && !BOX!) as t using unique id using srid = 4326'", NULL },
    { "\"g from (select g from a where x = '(' and g && !BOX!) as t using unique id using srid = 4326\"",
      "<query>select g from a where x = &#39;(&#39; and g &amp;&amp; "
      "!BBOX!</query><geometry>g</geometry><srid>4326</srid><id>id</id>" },
    { "'g from (select g from a) as t using unique id'", NULL },
    { "'g from a using srid=%srid%'", NULL },
    { "'g from a using nothing=1'", NULL },
    { "'g from'", NULL },
    { "'from'", NULL },
    { "'g from (select'", NULL },
    { "'g from a, b'", NULL },
};

static void
check_table(size_t i)
{
    const char *kind;
    mc_mapfile_reader *reader =
        read_layer(apr_pstrcat(pool, "CONNECTIONTYPE POSTGIS CONNECTION 'dbname=x' DATA ", tables[i].words, NULL));
    char *made = apr_pstrdup(pool, "(refused)");
    const char *data = mc_mapfile_data(&kind, reader);
    if (data != NULL) {
        char *to = made = apr_pstrdup(pool, data);
        for (const char *from = data; *from != '\0'; from++)
            if (*from != '\n' && (*from != ' ' || (from > data && from[-1] != ' ' && from[-1] != '\n')))
                *to++ = *from;
        *to = '\0';
        ck_assert_str_eq(kind, "postgis");
        made = strstr(made, "</connection>") + strlen("</connection>");
    }
    ck_assert_str_eq(made, tables[i].data == NULL ? "(refused)" : tables[i].data);
}

START_TEST(tables_and_queries_are_read)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
        check_table(i);
}
END_TEST

UNIT_MAIN("mapfile_style", conditions_have_their_form_or_refuse_the_layer, brackets_end_at_a_bound,
          styles_are_read_or_refused_with_a_reason, tables_and_queries_are_read)
