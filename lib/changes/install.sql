-- The change log of mapcache: which boxes of which tables have changed (docs/changes.md). May be run again at any time.
-- PostgreSQL 13 or later, with PostGIS. Run it as the owner of the tables.

CREATE SCHEMA IF NOT EXISTS mapcache_changes;

-- A row for each changed box. Readers tell by the transaction what they have not seen yet. All of the box is null: the
-- whole table may have changed.
CREATE TABLE IF NOT EXISTS mapcache_changes.log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    relation oid NOT NULL,
    srid integer NOT NULL,
    minx float8, miny float8, maxx float8, maxy float8
);
CREATE INDEX IF NOT EXISTS log_xid ON mapcache_changes.log (xid);
CREATE INDEX IF NOT EXISTS log_at ON mapcache_changes.log (at);

-- Who reads the log, and the snapshot up to which all is applied for good.
CREATE TABLE IF NOT EXISTS mapcache_changes.readers (
    name text PRIMARY KEY,
    applied pg_snapshot NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The last transaction of which a row was removed before all readers had applied it.
CREATE TABLE IF NOT EXISTS mapcache_changes.lost (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    xid xid8 NOT NULL
);

-- Removes what all readers have applied; and what is older than `keep`, or more than `most` rows, whoever has not. A
-- reader that was not heard of for `keep` is forgotten. One at a time: whoever comes second leaves it to the first.
CREATE OR REPLACE FUNCTION mapcache_changes.trim_changes(keep interval DEFAULT '7 days', most bigint DEFAULT 1000000)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    removed bigint;
    dropped bigint;
    latest xid8;
    oldest bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('mapcache trim_changes')) THEN
        RETURN 0;
    END IF;
    DELETE FROM mapcache_changes.readers WHERE at < clock_timestamp() - keep;
    DELETE FROM mapcache_changes.log c
        WHERE c.xid < (SELECT min(pg_snapshot_xmin(r.applied)) FROM mapcache_changes.readers r);
    GET DIAGNOSTICS removed = ROW_COUNT;
    SELECT c.id INTO oldest FROM mapcache_changes.log c ORDER BY c.id DESC OFFSET greatest(most, 0) LIMIT 1;
    WITH gone AS (
        DELETE FROM mapcache_changes.log c WHERE c.at < clock_timestamp() - keep OR c.id <= oldest RETURNING c.xid)
    SELECT count(*), max(gone.xid) INTO dropped, latest FROM gone;
    IF latest IS NOT NULL THEN
        INSERT INTO mapcache_changes.lost AS l (xid) VALUES (latest)
            ON CONFLICT (only_row) DO UPDATE SET xid = greatest(l.xid, excluded.xid);
    END IF;
    RETURN removed + dropped;
END $body$;

-- The triggers call this once for each statement. Its arguments are pairs: a spatial column and its type. Up to 256
-- different boxes are logged as they are; more are joined in the cells of a lattice of 16 by 16 over all of them. What
-- has no place (infinite, not a number) counts as the whole table.
CREATE OR REPLACE FUNCTION mapcache_changes.log_change()
RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
DECLARE
    parts text[] := '{}';
    shape text;
    boxes text;
    sound boolean;
    many boolean;
    ss integer[];
    x0s float8[];
    y0s float8[];
    x1s float8[];
    y1s float8[];
    x float8;
    y float8;
    w float8;
    h float8;
    logged bigint;
    i integer;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        INSERT INTO mapcache_changes.log (relation, srid) VALUES (TG_RELID, 0);
    ELSIF TG_NARGS = 0 THEN
        EXECUTE 'INSERT INTO mapcache_changes.log (relation, srid) SELECT $1, 0 WHERE '
            || CASE TG_OP WHEN 'INSERT' THEN 'EXISTS (SELECT FROM new_rows)' ELSE 'EXISTS (SELECT FROM old_rows)' END
            USING TG_RELID;
    ELSE
        FOR i IN 0 .. TG_NARGS - 1 BY 2 LOOP
            shape := CASE TG_ARGV[i + 1] WHEN 'geography' THEN format('%I::geometry', TG_ARGV[i])
                                         WHEN 'raster' THEN format('ST_Envelope(%I)', TG_ARGV[i])
                                         ELSE format('%I', TG_ARGV[i]) END;
            IF TG_OP <> 'INSERT' THEN
                parts := parts || format('SELECT %s AS g FROM old_rows', shape);
            END IF;
            IF TG_OP <> 'DELETE' THEN
                parts := parts || format('SELECT %s AS g FROM new_rows', shape);
            END IF;
        END LOOP;
        boxes := '(SELECT s, ST_XMin(b) AS x0, ST_YMin(b) AS y0, ST_XMax(b) AS x1, ST_YMax(b) AS y1 FROM '
            '(SELECT ST_SRID(g) AS s, g::box3d AS b FROM (' || array_to_string(parts, ' UNION ALL ')
            || ') shapes OFFSET 0) boxes WHERE b IS NOT NULL)';
        EXECUTE 'SELECT coalesce(bool_and(least(x0, y0, x1, y1) > -1e150 AND greatest(x0, y0, x1, y1) < 1e150), true), '
                'count(*) > 256, array_agg(s), array_agg(x0), array_agg(y0), array_agg(x1), array_agg(y1) '
                'FROM (SELECT * FROM ' || boxes || ' b LIMIT 257) few' INTO sound, many, ss, x0s, y0s, x1s, y1s;
        IF many THEN
            EXECUTE 'SELECT min(least(x0, y0)) > -1e150 AND max(greatest(x1, y1)) < 1e150, min(x0), min(y0), '
                    'nullif(max(x1) - min(x0), 0) / 16, nullif(max(y1) - min(y0), 0) / 16 FROM ' || boxes || ' b'
                INTO sound, x, y, w, h;
        END IF;
        IF NOT sound THEN
            INSERT INTO mapcache_changes.log (relation, srid) VALUES (TG_RELID, 0);
        ELSIF many THEN
            EXECUTE 'INSERT INTO mapcache_changes.log (relation, srid, minx, miny, maxx, maxy) '
                    'SELECT $1, s, min(x0), min(y0), max(x1), max(y1) FROM ' || boxes || ' b GROUP BY s, '
                    'least(floor(coalesce(((x0 + x1) / 2 - $2) / $4, 0)), 15), '
                    'least(floor(coalesce(((y0 + y1) / 2 - $3) / $5, 0)), 15)'
                USING TG_RELID, x, y, w, h;
        ELSE -- its plan is kept: most statements change few rows
            INSERT INTO mapcache_changes.log (relation, srid, minx, miny, maxx, maxy)
                SELECT DISTINCT TG_RELID, few.* FROM unnest(ss, x0s, y0s, x1s, y1s) few;
        END IF;
    END IF;
    GET DIAGNOSTICS logged = ROW_COUNT;
    IF logged > 0 THEN
        PERFORM pg_notify('mapcache_changes', '');
        IF random() < 0.0005 THEN -- also where nobody reads the log it stays within its bounds
            PERFORM mapcache_changes.trim_changes();
        END IF;
    END IF;
    RETURN NULL;
END $body$;

-- Functions of PostGIS are found in its own schema, whatever the search path of the writer is.
DO $body$
DECLARE
    place name;
BEGIN
    SELECT n.nspname INTO place FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
        WHERE e.extname = 'postgis';
    IF place IS NULL THEN
        RAISE EXCEPTION 'this database has no extension postgis';
    END IF;
    EXECUTE format('ALTER FUNCTION mapcache_changes.log_change() SET search_path = pg_catalog, %I, pg_temp', place);
END $body$;

-- Logs a change by hand, of a box or (without one) of the whole table: after what triggers do not see.
CREATE OR REPLACE FUNCTION mapcache_changes.changed(changed_table regclass, srid integer DEFAULT 0, minx float8 DEFAULT NULL,
    miny float8 DEFAULT NULL, maxx float8 DEFAULT NULL, maxy float8 DEFAULT NULL)
RETURNS void LANGUAGE sql AS $body$
    INSERT INTO mapcache_changes.log (relation, srid, minx, miny, maxx, maxy)
        VALUES (changed_table, srid, minx, miny, maxx, maxy);
    SELECT pg_notify('mapcache_changes', '');
$body$;

-- Drops the triggers of a table; the log stays.
CREATE OR REPLACE FUNCTION mapcache_changes.unwatch(watched_table regclass)
RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    event text;
BEGIN
    FOREACH event IN ARRAY ARRAY['insert', 'update', 'delete', 'truncate'] LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS %I ON %s', 'mapcache_changes_' || event, watched_table);
    END LOOP;
END $body$;

-- Makes the triggers of a table, of all its spatial columns or of the one that is named. Of a view: those of the tables
-- that it reads.
CREATE OR REPLACE FUNCTION mapcache_changes.watch(watched_table regclass, spatial_column name DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    kind "char" := (SELECT c.relkind FROM pg_class c WHERE c.oid = watched_table);
    arguments text;
    part regclass;
BEGIN
    IF kind = 'v' THEN
        FOR part IN SELECT DISTINCT d.refobjid::regclass FROM pg_rewrite w JOIN pg_depend d ON d.objid = w.oid
            AND d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
            JOIN pg_class c ON c.oid = d.refobjid AND c.relkind IN ('r', 'p', 'v')
            WHERE w.ev_class = watched_table AND d.refobjid <> watched_table LOOP
            PERFORM mapcache_changes.watch(part);
        END LOOP;
        RETURN;
    ELSIF kind NOT IN ('r', 'p') THEN
        RAISE EXCEPTION '% has no triggers: call mapcache_changes.changed() after it has changed', watched_table;
    END IF;
    SELECT string_agg(format('%L, %L', a.attname, t.typname), ', ' ORDER BY a.attnum) INTO arguments
        FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = watched_table AND a.attnum > 0 AND NOT a.attisdropped
        AND t.typname IN ('geometry', 'geography', 'raster') AND a.attname = coalesce(spatial_column, a.attname);
    IF arguments IS NULL AND spatial_column IS NOT NULL THEN
        RAISE EXCEPTION '% has no spatial column %', watched_table, spatial_column;
    END IF;
    arguments := coalesce(arguments, '');
    PERFORM mapcache_changes.unwatch(watched_table);
    EXECUTE format('CREATE TRIGGER mapcache_changes_insert AFTER INSERT ON %s REFERENCING NEW TABLE AS new_rows '
        'FOR EACH STATEMENT EXECUTE FUNCTION mapcache_changes.log_change(%s)', watched_table, arguments);
    EXECUTE format('CREATE TRIGGER mapcache_changes_update AFTER UPDATE ON %s REFERENCING OLD TABLE AS old_rows '
        'NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION mapcache_changes.log_change(%s)', watched_table, arguments);
    EXECUTE format('CREATE TRIGGER mapcache_changes_delete AFTER DELETE ON %s REFERENCING OLD TABLE AS old_rows '
        'FOR EACH STATEMENT EXECUTE FUNCTION mapcache_changes.log_change(%s)', watched_table, arguments);
    EXECUTE format('CREATE TRIGGER mapcache_changes_truncate AFTER TRUNCATE ON %s '
        'FOR EACH STATEMENT EXECUTE FUNCTION mapcache_changes.log_change()', watched_table);
END $body$;

REVOKE ALL ON FUNCTION mapcache_changes.log_change(), mapcache_changes.trim_changes(interval, bigint) FROM PUBLIC;
