create or replace function eventlog.protect(target regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  execute format('alter table %s enable row level security, force row level security', target);
  execute format($policy$create policy tenant on %s
    using (current_setting('chandler.tenant', true) in ('*', tenant)
      and (session_user <> 'chandler_gateway_api' or current_setting('chandler.tenant', true) <> '*')
      or current_user = 'chandler_owner')$policy$, target);
end $$;
do $$
declare
  t regclass;
begin
  for t in select p.polrelid from pg_policy p where p.polname = 'tenant' loop
    execute format($policy$alter policy tenant on %s
      using (current_setting('chandler.tenant', true) in ('*', tenant)
      and (session_user <> 'chandler_gateway_api' or current_setting('chandler.tenant', true) <> '*')
      or current_user = 'chandler_owner')$policy$, t);
  end loop;
end $$;
