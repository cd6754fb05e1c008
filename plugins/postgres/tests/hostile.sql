-- What a role that may create functions can put into the search path: better fits for calls whose types are not exact.
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.raised() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'taken over'; END $$;

DO $$
DECLARE
  types text[] := '{oid,regclass,name,text,varchar,"\"char\"",smallint,integer,bigint,boolean,real,numeric,oid[],text[],name[]}';
  one text; two text; operator text; called text;
BEGIN
  FOREACH one IN ARRAY types LOOP
    FOREACH two IN ARRAY types LOOP
      EXECUTE format('CREATE FUNCTION hostile.act(%s, %s) RETURNS boolean LANGUAGE sql AS $f$ SELECT hostile.raised() $f$', one, two);
      FOREACH operator IN ARRAY '{=,<>,<,<=,>,>=,~,!~,||,+,-,*}'::text[] LOOP
        EXECUTE format('CREATE OPERATOR hostile.%s (FUNCTION = hostile.act, LEFTARG = %s, RIGHTARG = %s)', operator, one, two);
      END LOOP;
      FOREACH called IN ARRAY '{has_schema_privilege,has_table_privilege,has_any_column_privilege,format_type,pg_get_expr,
          pg_get_constraintdef,pg_get_viewdef,generate_series}'::text[] LOOP
        EXECUTE format('CREATE FUNCTION hostile.%I(%s, %s) RETURNS text LANGUAGE sql AS $f$ SELECT hostile.raised()::text $f$',
          called, one, two);
      END LOOP;
      FOREACH called IN ARRAY '{has_column_privilege,pg_get_expr,pg_get_indexdef}'::text[] LOOP
        EXECUTE format('CREATE FUNCTION hostile.%I(%s, %s, boolean) RETURNS text LANGUAGE sql AS $f$ SELECT hostile.raised()::text $f$',
          called, one, two);
        EXECUTE format('CREATE FUNCTION hostile.%I(%s, %s, text) RETURNS text LANGUAGE sql AS $f$ SELECT hostile.raised()::text $f$',
          called, one, two);
      END LOOP;
    END LOOP;
    FOREACH called IN ARRAY '{pg_get_userbyid,pg_stat_get_live_tuples,pg_relation_size,pg_total_relation_size,unnest,current_setting,
        pg_get_partkeydef,pg_table_is_visible,count,sum}'::text[] LOOP
      EXECUTE format('CREATE FUNCTION hostile.%I(%s) RETURNS text LANGUAGE sql AS $f$ SELECT hostile.raised()::text $f$', called, one);
    END LOOP;
    EXECUTE format('CREATE FUNCTION hostile.step(text, %s) RETURNS text LANGUAGE sql AS $f$ SELECT hostile.raised()::text $f$', one);
    EXECUTE format('CREATE AGGREGATE hostile.array_agg(%s) (SFUNC = hostile.step, STYPE = text)', one);
  END LOOP;
END $$;

-- And what takes the place of the system's relations and types where its schema is searched later, or temporary ones first.
DO $$
DECLARE
  taken text;
BEGIN
  FOR taken IN SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') LOOP
    EXECUTE format('CREATE VIEW hostile.%I AS SELECT hostile.raised() AS oid', taken);
  END LOOP;
  FOR taken IN SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typelem = 0 LOOP
    EXECUTE format('CREATE DOMAIN hostile.%I AS text CHECK (hostile.raised())', taken);
  END LOOP;
END $$;
