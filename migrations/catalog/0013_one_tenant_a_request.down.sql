create or replace function catalog_api.search_packages(of_tenant text, of_revisions text[], wanted text[])
  returns table (digest text, rank real)
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  query constant tsquery := catalog.search_query(wanted);
begin
  if coalesce(current_setting('chandler.tenant', true), '') not in ('*', of_tenant) then
    raise exception 'this session does not belong to tenant %', of_tenant using errcode = 'CH003';
  end if;
  if query is null then
    return query
      select p.digest, 0::real from catalog.revision_packages p where p.tenant = of_tenant and p.revision = any (of_revisions);
    return;
  end if;
  -- A word of the description alone finds a package, behind all that have it in a name.
  return query
    select s.digest, (ts_rank('{0.05, 0.2, 0.4, 1.0}', s.names, query) + 0.001)::real
    from catalog.search s
    join (select distinct p.digest from catalog.revision_packages p where p.tenant = of_tenant and p.revision = any (of_revisions)) live
      on live.digest = s.digest
    where s.tenant = of_tenant and s.words @@ query;
end $$;
