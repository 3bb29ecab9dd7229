alter table gateway.installplans drop column choices;
delete from gateway.bodies where kind = 'plan-reason';
alter table gateway.bodies drop constraint bodies_kind_check;
alter table gateway.bodies add constraint bodies_kind_check check (kind in ('subscription-config', 'catalog-source'));
