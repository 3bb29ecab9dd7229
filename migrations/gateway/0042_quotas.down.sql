drop table gateway.quotas;
