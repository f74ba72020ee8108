/*
 * Build tool: writes the codes of all EPSG systems whose first axis is latitude or northing, and of those that are not
 * measured in metres, from PROJ's database, as sorted C arrays. So the order of axes and their units follow the
 * registry, and no request ever opens that database.
 *
 *     generate proj.db OUTPUT
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#define HORIZONTAL                                                                                                     \
    "WITH horizontal(code, system_authority, system) AS ("                                                             \
    " SELECT code, coordinate_system_auth_name, coordinate_system_code FROM geodetic_crs WHERE auth_name = 'EPSG'"     \
    " UNION ALL"                                                                                                       \
    " SELECT code, coordinate_system_auth_name, coordinate_system_code FROM projected_crs WHERE auth_name = 'EPSG')"

/* Metres for a unit of the first axis; of an angle on the equator of WGS 84. */
static const char units_query[] =
    HORIZONTAL " SELECT CAST(h.code AS INTEGER), u.conv_factor * iif(u.type = 'angle', 6378137.0, 1.0)"
               " FROM horizontal h JOIN axis a ON a.coordinate_system_auth_name = h.system_authority"
               " AND a.coordinate_system_code = h.system AND a.coordinate_system_order = 1"
               " JOIN unit_of_measure u ON u.auth_name = a.uom_auth_name AND u.code = a.uom_code"
               " WHERE NOT (u.type = 'length' AND u.conv_factor = 1.0) ORDER BY 1";

static const char swapped_query[] =
    HORIZONTAL ", swapped(code) AS ("
               " SELECT h.code FROM horizontal h JOIN axis a ON a.coordinate_system_auth_name = h.system_authority"
               " AND a.coordinate_system_code = h.system AND a.coordinate_system_order = 1"
               " WHERE a.name IN ('Geodetic latitude', 'Northing'))"
               " SELECT CAST(code AS INTEGER) FROM swapped"
               " UNION SELECT CAST(c.code AS INTEGER) FROM compound_crs c JOIN swapped s ON c.horiz_crs_code = s.code"
               " WHERE c.auth_name = 'EPSG' AND c.horiz_crs_auth_name = 'EPSG' ORDER BY 1";

typedef void print_row(FILE *out, sqlite3_stmt *row);

static void
print_code(FILE *out, sqlite3_stmt *row)
{
    fprintf(out, "%d,", sqlite3_column_int(row, 0));
}

static void
print_axis_unit(FILE *out, sqlite3_stmt *row)
{
    fprintf(out, "{ %d, %.17g },", sqlite3_column_int(row, 0), sqlite3_column_double(row, 1));
}

/* An array of the rows of a query, and their count; returns it, 0 where it is no query of this database. */
static int
write_array(sqlite3 *database, const char *text, const char *type, const char *name, print_row *print, int each_line,
            FILE *out)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database, text, -1, &statement, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s\n", sqlite3_errmsg(database));
        return 0;
    }
    int count = 0;
    fprintf(out, "\nconst %s mc_axes_%ss[] = {\n", type, name);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        print(out, statement);
        fputs(++count % each_line == 0 ? "\n" : " ", out);
    }
    fprintf(out, "\n};\nconst int mc_axes_%s_count = %d;\n", name, count);
    sqlite3_finalize(statement);
    return count;
}

static int
write_axes(sqlite3 *database, FILE *out)
{
    fputs("/* Made at build time from PROJ's database. */\n#include \"grid/axes.h\"\n", out);
    int count = write_array(database, swapped_query, "int", "swapped_code", print_code, 12, out);
    return count == 0 ? 0 : write_array(database, units_query, "mc_axes_unit", "unit", print_axis_unit, 4, out);
}

int
main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: generate proj.db OUTPUT\n");
        return EXIT_FAILURE;
    }
    sqlite3 *database = NULL;
    FILE *out = fopen(argv[2], "w");
    int opened = sqlite3_open_v2(argv[1], &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK;
    int count = out != NULL && opened ? write_axes(database, out) : 0;
    sqlite3_close(database);
    int closed = out != NULL && fclose(out) == 0;
    if (count == 0)
        fprintf(stderr, "%s: no systems of the EPSG registry found\n", argv[1]);
    return closed && count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
