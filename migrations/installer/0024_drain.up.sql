-- compatible: 23
-- A person drains a replica, and sees who runs and records what.

alter table installer.replicas
  add column moves       bigint not null default 0, -- executors that it gave up for another replica
  add column recorded    int    not null default 0, -- clusters whose reports it records
  add column gone        timestamptz, -- when it stopped in order; null while it lives, or ended without a word
  add column draining_by text   not null default ''; -- actor of the person, '' while it does not drain

-- Replicas are the installation's, so that they are shown to administrators of any tenant as the keys are.
create function installer_api.replicas() returns table (
  name text, live boolean, draining boolean, draining_by text, capacity int, clusters int, load int, unplaced int,
  recorded int, moves bigint, heard timestamptz
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select r.name, r.heard > now() - interval '8 seconds', r.draining, r.draining_by, r.capacity, r.clusters, r.load,
    r.unplaced, r.recorded, r.moves, nullif(r.heard, '-infinity')
    from installer.replicas r order by r.name
$$;
comment on function installer_api.replicas is 'replicas of the installer, live ones and those that are gone for less than an hour';
revoke all on function installer_api.replicas from public;
grant execute on function installer_api.replicas to chandler_gateway;

create function installer_api.drain_replica(p_name text, p_draining boolean, p_actor text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update installer.replicas set draining = p_draining, draining_by = case when p_draining then p_actor else '' end
   where name = p_name;
  return found;
end $$;
comment on function installer_api.drain_replica is 'has a replica take clusters no more, or again; false: there is none';
revoke all on function installer_api.drain_replica from public;
grant execute on function installer_api.drain_replica to chandler_gateway;
