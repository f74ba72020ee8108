#include "unit.h"

#include <string.h>

#include "dimension/placeholders.h"

static const char *
numbered(const char *sql)
{
    return mc_placeholders_number(sql, pool).sql;
}

START_TEST(names_become_numbers)
{
    mc_placeholders p = mc_placeholders_number(
        "SELECT id FROM t WHERE x<=:maxx AND x>=:minx AND (k=:dim OR n=:dim) AND s=:gridsrs AND :tileset=t", pool);
    ck_assert_str_eq(p.sql, "SELECT id FROM t WHERE x<=$1 AND x>=$2 AND (k=$3 OR n=$3) AND s=$4 AND $5=t");
    ck_assert_int_eq(p.count, 5);
    static const mc_query_parameter wanted[] = { MC_QUERY_MAXX, MC_QUERY_MINX, MC_QUERY_DIM, MC_QUERY_GRIDSRS,
                                                 MC_QUERY_TILESET };
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(p.parameters[i], wanted[i]);
    p = mc_placeholders_number("(:miny,:maxy,:start_timestamp,:end_timestamp,:minx,:maxx,:dim,:tileset,:gridsrs)",
                               pool);
    ck_assert_str_eq(p.sql, "($1,$2,$3,$4,$5,$6,$7,$8,$9)");
    ck_assert_str_eq(numbered(":dim"), "$1");
    ck_assert_str_eq(numbered(""), "");
}
END_TEST

/* What stands inside of something else, and what is something else. */
START_TEST(what_is_no_parameter_is_left_alone)
{
    static const char *const same[] = {
        "':dim'",
        "'it''s :dim'",
        "E'it\\':dim'",
        "e'\\\\\\':dim'",
        "U&':dim'",
        "N':dim'",
        "B'01'':dim'",
        "\":dim\"",
        "\"a\"\":dim\"",
        "-- :dim",
        "-- :dim\r-- :dim",
        "/* :dim */",
        "/* /* */ :dim */",
        "$$ :dim $$",
        "$a$ $$ :dim $b$ :dim $a$",
        "$_1$ :dim $_1$",
        "x::dim",
        "x ::dim",
        "x:=dim",
        ":dimension",
        ":dim_x",
        ":dim2",
        ":dim$",
        ":dim\xc3\xa9",
        ":Dim",
        ":tilesets",
        ":minx1",
        ":start_timestamps",
        ":end",
        ": dim",
        ":",
        "::",
        "a[1:2]",
        "' :dim",
        "\" :dim",
        "/* :dim",
        "$$ :dim",
        "$a$ :dim $b$",
        "E' \\",
    };
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        mc_placeholders p = mc_placeholders_number(same[i], pool);
        ck_assert_str_eq(p.sql, same[i]);
        ck_assert_int_eq(p.count, 0);
    }
}
END_TEST

START_TEST(what_follows_is_found_again)
{
    static const char *const pairs[][2] = {
        { "':dim' :dim", "':dim' $1" },
        { "E'\\':dim' :dim", "E'\\':dim' $1" },
        { "'\\' :dim", "'\\' $1" },
        { "name'\\' :dim", "name'\\' $1" },
        { "-- :dim\n:dim", "-- :dim\n$1" },
        { "/* /* :dim */ */:dim", "/* /* :dim */ */$1" },
        { "$$ :dim $$:dim", "$$ :dim $$ $1" },
        { "$a$ :dim $a$:dim", "$a$ :dim $a$ $1" },
        { "price$ :dim", "price$ $1" },
        { "a$b$ :dim a$b$", "a$b$ $1 a$b$" },
        { "x::text = :dim::text", "x::text = $1::text" },
        { ":dim::text", "$1::text" },
        { ":minx::float8-:maxx", "$1::float8-$2" },
        { "5-:minx", "5-$1" },
        { "5/:minx", "5/$1" },
        { ":dim:dim", "$1 $1" },
        { "x like :dim||'%'", "x like $1||'%'" },
        { "$1 :dim", "$1 $1" },
        { "$ :dim", "$ $1" },
        { "j->>'a:dim' = :dim", "j->>'a:dim' = $1" },
        { "array[:minx,:maxx]", "array[$1,$2]" },
        { "\xc3\xa9:dim", "\xc3\xa9 $1" },
        { "select:dim", "select $1" },
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        ck_assert_str_eq(numbered(pairs[i][0]), pairs[i][1]);
}
END_TEST

START_TEST(texts_take_the_place_of_names_once)
{
    const char *texts[MC_QUERY_PARAMETER_COUNT] = { 0 };
    texts[MC_QUERY_DIM] = "<:minx :dim>";
    texts[MC_QUERY_MINX] = "1";
    texts[MC_QUERY_END] = "99";
    ck_assert_str_eq(mc_placeholders_fill(
                         "{\"a\": \":dim\", \"b\": :minx, \"c\": \":gridsrs\", \":d\": :end_timestamp}", texts, pool),
                     "{\"a\": \"<:minx :dim>\", \"b\": 1, \"c\": \"\", \":d\": 99}");
    ck_assert_str_eq(mc_placeholders_fill(":dim_1:", texts, pool), "<:minx :dim>_1:");
    ck_assert_str_eq(mc_placeholders_fill("", texts, pool), "");
}
END_TEST

UNIT_MAIN("placeholders", names_become_numbers, what_is_no_parameter_is_left_alone, what_follows_is_found_again,
          texts_take_the_place_of_names_once)
