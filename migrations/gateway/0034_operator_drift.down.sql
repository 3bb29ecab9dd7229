drop index gateway.operators_drifted;
alter table gateway.operators drop column drifted, drop column drift_policy, drop column drift_since;
