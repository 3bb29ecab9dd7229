-- One difference of each pair stays: that of the newest rules.
delete from catalog.upgrades u using catalog.upgrades n
where n.tenant = u.tenant and n.from_content = u.from_content and n.to_content = u.to_content and n.semantics > u.semantics;
comment on column catalog.upgrades.gained is null;
alter table catalog.upgrades drop constraint upgrades_pkey;
alter table catalog.upgrades add primary key (tenant, from_content, to_content);
