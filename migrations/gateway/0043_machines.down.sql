drop index gateway.identities_made;
alter table gateway.identities drop column kind;
comment on table gateway.identities is 'who signs in at a provider, with the actor of each; what acts in events is the actor';
