-- compatible: 20
-- Which message of PLANS a row tells of. A row that tells of another one than PLANS holds is not believed: a worker was
-- killed between the publish and the note, or paused while another published.
alter table installer.published add column sequence bigint not null default 0;
comment on column installer.published.sequence is 'of the message in PLANS; 0: not known, it is published again';
