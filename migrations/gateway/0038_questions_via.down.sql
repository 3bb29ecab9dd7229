alter table gateway.read_audit drop column via;
