-- compatible: 23
-- Agents join by tokens: who may, and what NATS was told of it.
create table installer.agents (
  tenant     text  not null,
  cluster_id uuid  not null,
  cluster    text  not null, -- name
  state      jsonb not null, -- joining.State
  pushed     timestamptz,    -- when NATS was last given the accounts; null: they have changed since
  primary key (tenant, cluster_id)
);
comment on table installer.agents is 'agents of clusters and who wants to become one, as the log tells them';
select eventlog.protect('installer.agents');

-- Processes that have shown the credentials of an agent. One that was followed by another and comes back is a clone.
create table installer.agent_processes (
  tenant     text        not null,
  cluster_id uuid        not null,
  key        text        not null, -- public key of the agent
  process    uuid        not null,
  first      timestamptz not null,
  last       timestamptz not null,
  primary key (tenant, cluster_id, key, process)
);
comment on table installer.agent_processes is 'processes of agents, with when each was heard first and last';
select eventlog.protect('installer.agent_processes');
