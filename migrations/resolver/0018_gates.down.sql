drop table resolver.gate_evaluations;
alter table resolver.installed drop column upgradeable;
alter table resolver.rollouts drop column gates;
