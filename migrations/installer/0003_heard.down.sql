alter table installer.streams drop column fills, drop column messages;
alter table installer.holders drop column heard;
