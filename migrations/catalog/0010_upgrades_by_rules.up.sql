-- What upgrades change is kept under the name of the rules that compared them: a difference of older rules is shown as what
-- it is, and never becomes another one silently.
alter table catalog.upgrades drop constraint upgrades_pkey;
alter table catalog.upgrades add primary key (tenant, from_content, to_content, semantics);
comment on column catalog.upgrades.gained is 'rights and demands that the old bundle did not have';
