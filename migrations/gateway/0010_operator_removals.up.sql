-- An operator that is to be uninstalled says so. The projection is made again from the log, which fills the column.
alter table gateway.operators
  add column removal jsonb; -- model.Removal, null where nobody asked
