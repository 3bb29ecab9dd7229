-- compatible: 25
-- Machines show certificates (ADR 0068), and are identities as people of providers are. A gateway of before does not ask
-- for certificates, and knows people alone.
alter table gateway.identities add column kind text not null default 'User' check (kind in ('User', 'ServiceAccount'));
comment on table gateway.identities is 'who signs in at a provider, and machines that show certificates, with the actor of each; what acts in events is the actor';
-- Those that one provider or authority made known lately are counted.
create index identities_made on gateway.identities (created, tenant, provider);
