-- compatible: 25
-- The service account through which a person asked, '' for none.
alter table gateway.read_audit add column via text not null default '';
