-- Why a subscription does not resolve, '' where it does: shown in clusters that mirror everything.
alter table installer.subscriptions add column failed text not null default '';
alter table installer.subscriptions add column failed_since timestamptz;
