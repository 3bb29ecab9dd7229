alter table gateway.webhooks drop column unsent_since;
drop table gateway.webhook_tests;
