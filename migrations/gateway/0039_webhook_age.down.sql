alter table gateway.webhooks drop column test_until, drop column claim;
alter table gateway.webhook_deliveries drop column since;
