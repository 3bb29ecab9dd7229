-- A fleet of 1,000 clusters with 30 operators each, as the projections would have written it.
insert into clusters select 'default', 'spoke-' || to_char(c, 'FM0000'), '{"zone": "eu"}', 'Connected', '', 'v1.34.0', 1, now(), now(), 'cluster:' || c, 1
			from generate_series(1, 1000) c;
insert into catalogs select 'default', 'fleet', 'fleet', '', '', 'directory', '', 0, '', '', 'Ready', '', '', 0, '', 'sha256:r', 30, 300, 'e', now(), now(), 'catalog:1', 1;
insert into subscription_catalogs select 'default', 'fleet', 'Ready', '', 'e', now();
insert into subscriptions select 'default', 'spoke-' || to_char(c, 'FM0000'), 'ops-' || o, 'operator-' || o, 'operator-' || o, 'stable', 'fleet', '', '',
			'Automatic', '', false, 'operator-' || o || '.v1.0.0', 'operator-' || o || '.v1.0.0', '', 'install-aaaaa', 1, 'Complete', '', now(),
			'', '', '', null, now(), now(), 'subscription:1', 3 from generate_series(1, 1000) c, generate_series(1, 30) o;
insert into subscription_csvs select 'default', 'spoke-' || to_char(c, 'FM0000'), 'ops-' || o, 'operator-' || o || '.v1.0.0', 'Succeeded'
			from generate_series(1, 1000) c, generate_series(1, 30) o;
insert into operators select 'default', 'spoke-' || to_char(c, 'FM0000'), 'ops-' || o, 'operator-' || o || '.v1.0.0', 'operator-' || o, '1.0.0', 'Succeeded',
			'InstallSucceeded', 'sha256:c', 'p', false,
			(select jsonb_agg(jsonb_build_object('phase', 'Installing', 'reason', 'InstallSucceeded', 'time', now(), 'event', 'e')) from generate_series(1, 5)),
			now(), now(), 'csv:1', 5 from generate_series(1, 1000) c, generate_series(1, 30) o;
insert into installplans (tenant, id, cluster, namespace, name, approval, phase, begun, bundles, blocked_reason, epoch, position, ended, updated, stream, version, state)
			select 'default', id, cluster, namespace, 'install-aaaaa', 'Automatic', 'Complete', true, bundles, '', 1, n, now(), now(), stream, 3,
			jsonb_build_object('Plan', jsonb_build_object('Phase', 'Complete', 'Begun', true, 'StepLog', 'sha256:l', 'Proposed', jsonb_build_object(
				'plan', id, 'name', 'install-aaaaa', 'cluster', cluster, 'namespace', namespace, 'generation', 1, 'component', 'operator-' || o,
				'approval', 'Automatic', 'digest', 'sha256:d', 'document', 'sha256:d', 'steps', 12, 'bundles', bundles)),
				'ProposedAt', now(), 'StartedAt', now(), 'EndedAt', now(), 'UpdatedAt', now())
			from (select c, o, c * 100 + o as n, '00000000-0000-0000-0000-' || to_char(c * 100 + o, 'FM000000000000') as id, 'spoke-' || to_char(c, 'FM0000') as cluster,
				'ops-' || o as namespace, 'installplan:' || c || '-' || o as stream,
				'[{"csv": "x", "package": "x", "version": "1.0.0", "channel": "stable", "catalog": "fleet", "revision": "sha256:r", "content": "sha256:c", "reason": "ChannelHead"}]'::jsonb as bundles
				from generate_series(1, 1000) c, generate_series(1, 30) o) plans;
