drop table gateway.idempotency_keys;
