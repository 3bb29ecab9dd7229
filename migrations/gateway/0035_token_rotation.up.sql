-- compatible: 25
-- A token that gets another secret keeps the one before for a while, so that programs can be given the new one. used is
-- when it last let somebody in, to some minutes. A gateway of before refuses the secret before, and takes the token of a
-- service account for one of a person that no binding names: it lets through less.
alter table gateway.tokens
  add column kind text not null default 'User' check (kind in ('User', 'ServiceAccount')),
  add column used timestamptz,
  add column previous bytea,             -- SHA-256 of the secret before
  add column previous_ends timestamptz,  -- from then on that is refused
  add constraint tokens_previous_check check ((previous is null) = (previous_ends is null));
create unique index tokens_previous on gateway.tokens (previous);
-- The service account through which a person asked, '' for none.
alter table gateway.access_log add column via text not null default '';
