alter table resolver.rollouts drop column rollback_to;
