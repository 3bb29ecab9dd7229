-- compatible: 23
-- What counts of installed operators in the place of their own conditions travels to their executors.
alter table installer.csvs add column overrides jsonb; -- protocol.Overrides; null without any
