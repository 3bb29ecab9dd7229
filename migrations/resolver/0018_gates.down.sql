drop table resolver.gate_evaluations;
alter table resolver.rollouts drop column gates;
