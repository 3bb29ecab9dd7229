-- compatible: 25
-- When the credential of a cluster ends, as its token or certificate says.
alter table gateway.clusters add column credential_ends timestamptz;
