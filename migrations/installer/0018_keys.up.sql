-- Ids of the keys that the last message of a scope, and the step logs of what is under way there, may be signed with.
-- Rows of before are signed with a key whose id is not known: they are published again at the next start.
alter table installer.published add column keys text[] not null default '{}';

create view installer_api.key_uses with (security_barrier) as
  select p.tenant, k.id as key_id, count(*) as uses
    from installer.published p cross join lateral unnest(p.keys) as k(id)
   where current_setting('chandler.tenant', true) in ('*', p.tenant)
   group by p.tenant, k.id;
comment on view installer_api.key_uses is 'how many namespaces need a key that signs grants';
