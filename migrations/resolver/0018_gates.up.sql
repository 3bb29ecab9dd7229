-- Gates of rollouts: where those of the open wave stand, and what is known of evaluations.
-- compatible: 14
alter table resolver.rollouts add column gates jsonb not null default '{}';
comment on column resolver.rollouts.gates is 'where the gates of the open wave stand';

alter table resolver.installed add column upgradeable boolean not null default true;
comment on column resolver.installed.upgradeable is 'whether the operator lets itself be upgraded, as far as it has said anything';
update resolver.installed i set upgradeable = false where (
  select convert_from(e.body, 'UTF8')::jsonb -> 'data' ->> 'upgradeable'
  from eventlog.events e where e.tenant = i.tenant and e.type = 'operatorcondition.changed.v1'
    and e.subject = i.cluster || '/' || i.namespace || '/' || i.name
  order by e.position desc limit 1) = 'false';

create table resolver.gate_evaluations (
  tenant text not null,
  fleet text not null,
  number integer not null,
  gate text not null,
  round integer not null,
  evaluation text not null default '',
  held_until timestamptz not null default '-infinity',
  next_at timestamptz not null default '-infinity',
  successes integer not null default 0,
  result text not null default '',
  verdict text not null default '',
  code text not null default '',
  begun_at timestamptz not null default '-infinity',
  ended_at timestamptz not null default '-infinity',
  primary key (tenant, fleet, number, gate)
);
comment on table resolver.gate_evaluations is 'gates whose verdict is waited for: who evaluates one, and what the last evaluation came to';
comment on column resolver.gate_evaluations.round is 'that was due when the evaluation was begun';
comment on column resolver.gate_evaluations.evaluation is 'id of the one that is under way until held_until';
comment on column resolver.gate_evaluations.successes is 'how often in a row it held';
comment on column resolver.gate_evaluations.result is 'id of the evaluation that the columns behind it tell of';
select eventlog.protect('resolver.gate_evaluations');
