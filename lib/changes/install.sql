-- The change log of mapcache: which boxes of which tables have changed (docs/changes.md). May be run again at any time.
-- PostgreSQL 13 or later, with PostGIS. Run it as the owner of the tables.

-- What another role has put under that name could do things with the rights of who runs this.
DO $body$
DECLARE
    maker name;
BEGIN
    SELECT r.rolname INTO maker FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
        WHERE n.nspname = 'mapcache_changes' AND r.rolname <> current_user AND NOT r.rolsuper;
    IF maker IS NOT NULL THEN
        RAISE EXCEPTION 'the schema mapcache_changes belongs to the role "%": run this as that role, or drop the schema', maker;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_extension e WHERE e.extname = 'postgis') THEN
        RAISE EXCEPTION 'this database has no extension postgis';
    END IF;
END $body$;
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

-- The last transaction of which a row was removed before all readers had applied it (3, the first one of a cluster: there
-- was none), and when rows were removed at last. Who reads from the beginning has lost whatever was ever removed.
CREATE TABLE IF NOT EXISTS mapcache_changes.lost (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    xid xid8 NOT NULL
);
ALTER TABLE mapcache_changes.lost ADD COLUMN IF NOT EXISTS at timestamptz NOT NULL DEFAULT clock_timestamp();

-- Removes what all readers have applied; and what is older than `keep`, or more than `most` rows, whoever has not. A
-- reader that was not heard of for `keep` is forgotten. One at a time: whoever comes second leaves it to the first. What
-- lies in the future was written by another cluster: a reader's place there says nothing.
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
        WHERE c.xid < (SELECT min(CASE WHEN pg_snapshot_xmax(r.applied) > pg_snapshot_xmax(pg_current_snapshot()) THEN '1'
            ELSE pg_snapshot_xmin(r.applied) END) FROM mapcache_changes.readers r);
    GET DIAGNOSTICS removed = ROW_COUNT;
    SELECT c.id INTO oldest FROM mapcache_changes.log c ORDER BY c.id DESC OFFSET greatest(most, 0) LIMIT 1;
    WITH gone AS (
        DELETE FROM mapcache_changes.log c WHERE c.at < clock_timestamp() - keep OR c.id <= oldest RETURNING c.xid)
    SELECT count(*), max(gone.xid) FILTER (WHERE gone.xid < pg_snapshot_xmax(pg_current_snapshot()))
        INTO dropped, latest FROM gone;
    IF removed + dropped > 0 THEN
        INSERT INTO mapcache_changes.lost AS l (xid, at) VALUES (coalesce(latest, '3'), clock_timestamp())
            ON CONFLICT (only_row) DO UPDATE SET at = excluded.at, xid = CASE
                WHEN l.xid >= pg_snapshot_xmax(pg_current_snapshot()) THEN excluded.xid ELSE greatest(l.xid, excluded.xid) END;
    END IF;
    RETURN removed + dropped;
END $body$;

-- The triggers call this once for each statement, with the spatial columns that count as arguments, or none: all. Up to
-- 256 different boxes are logged as they are; more are joined in the cells of a lattice of 16 by 16 over all of them.
-- What has no place (infinite, not a number), or more than 16 SRIDs, counts as the whole table. The columns are looked up
-- each time: one that is renamed or dropped stops nobody from writing, and only types of PostGIS itself are cast, by
-- names with their schema, so that nothing that others have made is called with the rights of the owner.
CREATE OR REPLACE FUNCTION mapcache_changes.log_change()
RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    parts text[] := '{}';
    spatial record;
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
    mixed boolean;
    logged bigint;
BEGIN
    IF TG_OP <> 'TRUNCATE' THEN
        FOR spatial IN SELECT a.attname, t.typname, n.nspname AS place, g.nspname AS home FROM pg_attribute a
            JOIN pg_type t ON t.oid = a.atttypid AND t.typname IN ('geometry', 'geography', 'raster')
            JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
            JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
                AND e.extname IN ('postgis', 'postgis_raster')
            JOIN pg_namespace n ON n.oid = t.typnamespace
            JOIN pg_extension p ON p.extname = 'postgis' JOIN pg_namespace g ON g.oid = p.extnamespace
            WHERE a.attrelid = TG_RELID AND a.attnum > 0 AND NOT a.attisdropped
                AND (TG_NARGS = 0 OR a.attname::text = ANY (TG_ARGV)) LOOP
            shape := CASE spatial.typname WHEN 'geography' THEN format('%I::%I.geometry', spatial.attname, spatial.home)
                WHEN 'raster' THEN format('%I.st_envelope(%I)', spatial.place, spatial.attname)
                ELSE format('%I', spatial.attname) END;
            IF TG_OP <> 'INSERT' THEN
                parts := parts || format('SELECT %s AS g FROM old_rows', shape);
            END IF;
            IF TG_OP <> 'DELETE' THEN
                parts := parts || format('SELECT %s AS g FROM new_rows', shape);
            END IF;
            boxes := format('(SELECT s, %1$I.st_xmin(b) AS x0, %1$I.st_ymin(b) AS y0, %1$I.st_xmax(b) AS x1, %1$I.st_ymax(b) AS y1 '
                'FROM (SELECT %1$I.st_srid(g) AS s, g::%1$I.box3d AS b FROM (%2$s) shapes OFFSET 0) boxes WHERE b IS NOT NULL)',
                spatial.home, array_to_string(parts, ' UNION ALL '));
        END LOOP;
    END IF;
    IF TG_OP = 'TRUNCATE' THEN
        INSERT INTO mapcache_changes.log (relation, srid) VALUES (TG_RELID, 0);
    ELSIF boxes IS NULL THEN
        EXECUTE 'INSERT INTO mapcache_changes.log (relation, srid) SELECT $1, 0 WHERE '
            || CASE TG_OP WHEN 'INSERT' THEN 'EXISTS (SELECT FROM new_rows)' ELSE 'EXISTS (SELECT FROM old_rows)' END
            USING TG_RELID;
    ELSE
        EXECUTE 'SELECT coalesce(bool_and(least(x0, y0, x1, y1) > -1e150 AND greatest(x0, y0, x1, y1) < 1e150), true), '
                'count(*) > 256, array_agg(s), array_agg(x0), array_agg(y0), array_agg(x1), array_agg(y1) '
                'FROM (SELECT * FROM ' || boxes || ' b LIMIT 257) few' INTO sound, many, ss, x0s, y0s, x1s, y1s;
        IF many THEN
            EXECUTE 'SELECT min(least(x0, y0)) > -1e150 AND max(greatest(x1, y1)) < 1e150, min(x0), min(y0), '
                    'nullif(max(x1) - min(x0), 0) / 16, nullif(max(y1) - min(y0), 0) / 16, min(s) <> max(s) FROM ' || boxes || ' b'
                INTO sound, x, y, w, h, mixed;
            IF sound AND mixed THEN
                EXECUTE 'SELECT count(*) <= 16 FROM (SELECT DISTINCT s FROM ' || boxes || ' b LIMIT 17) few' INTO sound;
            END IF;
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
        -- Also where nobody reads the log it stays within its bounds. A transaction with one snapshot would fail on rows
        -- that another one has removed meanwhile.
        IF random() < 0.0005 AND current_setting('transaction_isolation') = 'read committed' THEN
            PERFORM mapcache_changes.trim_changes();
        END IF;
    END IF;
    RETURN NULL;
END $body$;

-- Logs a change by hand, of a box or (without one) of the whole table: after what triggers do not see.
CREATE OR REPLACE FUNCTION mapcache_changes.changed(changed_table regclass, srid integer DEFAULT 0, minx float8 DEFAULT NULL,
    miny float8 DEFAULT NULL, maxx float8 DEFAULT NULL, maxy float8 DEFAULT NULL)
RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $body$
    INSERT INTO mapcache_changes.log (relation, srid, minx, miny, maxx, maxy)
        VALUES (changed_table, srid, minx, miny, maxx, maxy);
    SELECT pg_notify('mapcache_changes', '');
$body$;

-- Drops the triggers of a table and of its partitions; the log stays.
CREATE OR REPLACE FUNCTION mapcache_changes.unwatch(watched_table regclass)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    event text;
    part regclass;
BEGIN
    FOREACH event IN ARRAY ARRAY['insert', 'update', 'delete', 'truncate'] LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS %I ON %s', 'mapcache_changes_' || event, watched_table);
    END LOOP;
    FOR part IN SELECT i.inhrelid::regclass FROM pg_inherits i WHERE i.inhparent = watched_table LOOP
        PERFORM mapcache_changes.unwatch(part);
    END LOOP;
END $body$;

-- Makes the triggers of a table, of all its spatial columns or of the one that is named; and of its partitions and
-- tables that inherit from it, as who writes to one of them is not seen by triggers above. Of a view: those of the tables
-- that it reads.
CREATE OR REPLACE FUNCTION mapcache_changes.watch(watched_table regclass, spatial_column name DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    kind "char" := (SELECT c.relkind FROM pg_class c WHERE c.oid = watched_table);
    argument text := coalesce(quote_literal(spatial_column), '');
    part regclass;
    part_kind "char";
BEGIN
    IF kind = 'v' THEN
        FOR part, part_kind IN SELECT DISTINCT d.refobjid::regclass, c.relkind FROM pg_rewrite w JOIN pg_depend d
            ON d.objid = w.oid AND d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
            JOIN pg_class c ON c.oid = d.refobjid AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
            WHERE w.ev_class = watched_table AND d.refobjid <> watched_table LOOP
            IF part_kind IN ('m', 'f') THEN
                RAISE WARNING '% has no triggers: call mapcache_changes.changed() after it has changed', part;
            ELSE
                PERFORM mapcache_changes.watch(part);
            END IF;
        END LOOP;
        RETURN;
    ELSIF kind NOT IN ('r', 'p') THEN
        RAISE EXCEPTION '% has no triggers: call mapcache_changes.changed() after it has changed', watched_table;
    END IF;
    IF spatial_column IS NOT NULL AND NOT EXISTS (SELECT FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = watched_table AND a.attnum > 0 AND NOT a.attisdropped AND a.attname = spatial_column
            AND t.typname IN ('geometry', 'geography', 'raster')) THEN
        RAISE EXCEPTION '% has no spatial column %', watched_table, spatial_column;
    END IF;
    PERFORM mapcache_changes.unwatch(watched_table);
    EXECUTE format('CREATE TRIGGER mapcache_changes_insert AFTER INSERT ON %s REFERENCING NEW TABLE AS new_rows '
        'FOR EACH STATEMENT EXECUTE FUNCTION mapcache_changes.log_change(%s)', watched_table, argument);
    EXECUTE format('CREATE TRIGGER mapcache_changes_update AFTER UPDATE ON %s REFERENCING OLD TABLE AS old_rows '
        'NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION mapcache_changes.log_change(%s)', watched_table, argument);
    EXECUTE format('CREATE TRIGGER mapcache_changes_delete AFTER DELETE ON %s REFERENCING OLD TABLE AS old_rows '
        'FOR EACH STATEMENT EXECUTE FUNCTION mapcache_changes.log_change(%s)', watched_table, argument);
    EXECUTE format('CREATE TRIGGER mapcache_changes_truncate AFTER TRUNCATE ON %s '
        'FOR EACH STATEMENT EXECUTE FUNCTION mapcache_changes.log_change()', watched_table);
    FOR part IN SELECT i.inhrelid::regclass FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        AND c.relkind IN ('r', 'p') WHERE i.inhparent = watched_table LOOP
        PERFORM mapcache_changes.watch(part, spatial_column);
    END LOOP;
END $body$;

REVOKE ALL ON FUNCTION mapcache_changes.log_change(), mapcache_changes.trim_changes(interval, bigint) FROM PUBLIC;
