alter table resolver.clusters drop column labels;
drop table resolver.approval_policies;
