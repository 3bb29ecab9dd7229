alter table gateway.operators drop column removal;
