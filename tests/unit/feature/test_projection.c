/* CRSs that are told apart, or known to be the same, without PROJ. */
#include "unit.h"

#include "feature/projection.h"

START_TEST(well_known_text_ends_with_its_code)
{
    static const struct {
        const char *text;
        int same; /* as EPSG:21781 */
    } cases[] = {
        { "EPSG:21781", 1 },
        { "PROJCS[\"CH1903\",GEOGCS[\"a\",AUTHORITY[\"EPSG\",\"4149\"]],AUTHORITY[\"EPSG\",\"21781\"]]\r\n", 1 },
        { "PROJCRS[\"CH1903\",BASEGEOGCRS[\"a\",ID[\"EPSG\",4149]],ID[\"EPSG\",21781]]", 1 },
        { "PROJCS[\"CH1903\",AUTHORITY[\"EPSG\",\"2056\"]]", -1 },
        { "PROJCS[\"CH1903\",AUTHORITY[\"ESRI\",\"21781\"]]", -1 },
        { "PROJCS[\"CH1903\",GEOGCS[\"a\",AUTHORITY[\"EPSG\",\"21781\"]],UNIT[\"Meter\",1.0]]", -1 },
        { "PROJCS[\"CH1903\",GEOGCS[\"a\",UNIT[\"EPSG\",21781]]", 1 }, /* broken, but it says so */
        { "\"EPSG\",21781]]", 1 },
        { "EPSG\",21781]]", -1 },
        { "99999999999999]]", -1 },
        { "]]]]]]]]]]]]", -1 },
        { "\"\"\"\"\"\"\"\"\"\"\"]]", -1 },
        { "", -1 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(mc_projection_same(cases[i].text, "EPSG:21781") == cases[i].same, "%s", cases[i].text);
}
END_TEST

UNIT_MAIN("projection", well_known_text_ends_with_its_code)
