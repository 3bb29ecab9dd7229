-- compatible: 25
-- Plans are found by their names, too. The table has no row: read models are made of its shape (ADR 0043).
create index installplans_name on gateway.installplans (tenant, name);
