create or replace view gateway_api.bodies with (security_barrier) as
  select tenant, commitment, kind, body from gateway.bodies
  where current_setting('chandler.tenant', true) in ('*', tenant);
