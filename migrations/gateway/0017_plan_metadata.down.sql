alter table gateway.installplans drop column annotations;
alter table gateway.installplans drop column labels;
