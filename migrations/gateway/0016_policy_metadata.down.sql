alter table gateway.approval_policies drop column annotations;
alter table gateway.approval_policies drop column labels;
