alter table gateway.rollouts drop column rollback_to, drop column rollback_by, drop column rollback_words;
