alter table gateway.rollouts drop column gates;
