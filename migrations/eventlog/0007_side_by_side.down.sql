create or replace function eventlog.may_write(p_kind text, p_types text[]) returns void
language plpgsql stable as $$
declare
  r record;
begin
  for r in
    select u.type, t.kind, t.writer, t.role
    from unnest(p_types) with ordinality as u (type, i) left join eventlog.event_types t on t.type = u.type
    order by u.i
  loop
    if r.kind is null then
      raise exception 'event type % is not registered in this database', r.type
        using errcode = 'CH006', hint = 'run the migration command of the version that writes it';
    elsif r.kind <> p_kind then
      raise exception 'event type % stands in streams of kind %, not %', r.type, r.kind, p_kind using errcode = 'CH006';
    elsif not pg_has_role(session_user, r.role, 'MEMBER') then
      raise exception 'role % may not write events of type %: their writer is the service %', session_user, r.type, r.writer
        using errcode = 'CH003';
    end if;
  end loop;
end $$;
drop function eventlog.leave(text), eventlog.attend(text, text, text, text[]), eventlog.release_types(),
  eventlog.announce_type(text, text, text, boolean), eventlog.unaware(text);
drop table eventlog.coming_types, eventlog.readers;
alter table eventlog.schema_info drop column compatible_from;
drop function eventlog.hold_work(text), eventlog.at_work(text);
drop trigger note_replay on eventlog.checkpoints;
drop trigger note_begin on eventlog.checkpoints;
drop function eventlog.note_replay();
alter table eventlog.checkpoints drop column replay_to;
