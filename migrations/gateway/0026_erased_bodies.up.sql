-- compatible: 25
-- Which bodies were erased, by whom and when. The body itself is gone, with its salt: what is left tells nothing of it.
create table gateway.erased_bodies (
  tenant     text        not null,
  commitment text        not null,
  kind       text        not null,
  at         timestamptz not null,
  actor      text        not null,
  primary key (tenant, commitment)
);
comment on table gateway.erased_bodies is 'bodies that a person erased; events keep the commitments';
select eventlog.protect('gateway.erased_bodies');
revoke update, delete, truncate on gateway.erased_bodies from chandler_gateway;
