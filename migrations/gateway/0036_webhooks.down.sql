drop table gateway.webhook_deliveries;
drop table gateway.webhooks;
