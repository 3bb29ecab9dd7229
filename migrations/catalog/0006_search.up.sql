-- What packages are found by and what their tiles show (R-UI-1): one row for each package document, made
-- from it when a revision is published. Which of them are offered now, the live revisions say.
create table catalog.search (
  tenant  text        not null,
  digest  text        not null, -- of the package document
  package text        not null,
  card    jsonb       not null, -- tile and facets
  names   tsvector    not null, -- what ranks: A: names, B: keywords, categories and provider, C: summary
  words   tsvector    not null, -- what is found: the same and the description; seldom read, since GIN needs no recheck
  created timestamptz not null default now(),
  primary key (tenant, digest),
  -- A row goes with the document that it was made from.
  foreign key (tenant, digest) references catalog.packages (tenant, digest) on delete cascade
);
comment on table catalog.search is 'search rows and tiles of packages, by digest of the package document';
create index search_words on catalog.search using gin (words);
select eventlog.protect('catalog.search');

create view catalog_api.package_cards with (security_barrier) as
  select tenant, digest, package, card from catalog.search
  where current_setting('chandler.tenant', true) in ('*', tenant);
comment on view catalog_api.package_cards is 'tiles and facets of packages, by digest of the package document';

-- All words must be there, each in its own form or as the beginning of one: names are matched as they are
-- written, texts by their English stems. A word that English leaves out, such as "the", asks for nothing.
create function catalog.search_query(wanted text[]) returns tsquery
  language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  word  text;
  stem  tsquery;
  found tsquery;
begin
  foreach word in array wanted loop
    word := replace(word, '\', ' '); -- quote_literal would write it in a form that queries do not have
    continue when btrim(word) = '';
    stem := to_tsquery('english', quote_literal(word) || ':*');
    continue when numnode(stem) = 0;
    stem := stem || to_tsquery('simple', quote_literal(word) || ':*');
    found := case when found is null then stem else found && stem end;
  end loop;
  return found;
end $$;
comment on function catalog.search_query is 'words that a person typed as a query';

-- Search is a function rather than a view: behind a security barrier the planner may use no index for
-- "@@", which is not leakproof. It checks the tenant itself, as views do, and tells digests and ranks only.
create function catalog_api.search_packages(of_tenant text, of_revisions text[], wanted text[])
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
comment on function catalog_api.search_packages is 'packages of some revisions that hold all words, with a rank';
revoke execute on function catalog_api.search_packages from public;
grant execute on function catalog_api.search_packages to chandler_gateway;
